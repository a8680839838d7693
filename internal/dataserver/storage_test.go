package dataserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

func TestADataServerReportsThatAnotherProcessHasItsVolumes(t *testing.T) {
	root := t.TempDir()
	mustWork(t, "make a volume", os.Mkdir(filepath.Join(root, "0"), 0o755))
	options := Options{VolumesRoot: root, NodeName: "node-a", PodIP: "10.0.0.1", PodUID: "uid-1", Log: quiet}
	reports := make(chan internalv1.DataServerStatus, 10)
	report := func(_ context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
		reports <- build(internalv1.DataServerStatus{})
		return nil
	}
	release, _ := takeStorage(t.Context(), options, report)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	alone := make(chan bool, 1)
	go func() {
		_, ok := takeStorage(ctx, options, report)
		alone <- ok
	}()
	select {
	case status := <-reports:
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != internalv1.ReasonVolumeRefused || !strings.HasPrefix(ready.Message, "another process of node node-a serves from the volumes") || status.PodUID != "uid-1" {
			t.Errorf("%+v", status)
		}
	case <-time.After(time.Minute):
		t.Error("it reports nothing")
	}
	cancel()
	if <-alone {
		t.Error("two processes serve from the same volumes")
	}
}
