package fileserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// secretsOnly is an API server as the operator sees Secrets: it can make them, and learn that it can't.
type secretsOnly struct {
	client.Client
	there map[string]bool
	asked int
	fails error
}

func (s *secretsOnly) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	dry := slices.Contains(options, client.CreateOption(client.DryRunAll))
	if dry {
		s.asked++
	}
	switch {
	case s.fails != nil:
		return s.fails
	case s.there[object.GetName()]:
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, object.GetName())
	case !dry:
		s.there[object.GetName()] = true
	}
	return nil
}

func (s *secretsOnly) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.FileServerList).Items = []v1alpha1.FileServer{*sampleWithKeys()}
	return nil
}

func sampleWithKeys() *v1alpha1.FileServer {
	return builders.FileServer("ns", "fs").UID("7c2e").Replicas(2).Build()
}

// served is a FileServer whose data servers were given certificates after a number of losses.
func served(lost int32) *observed {
	o := &observed{fileServer: sampleWithKeys(), statefulSet: &appsv1.StatefulSet{}}
	if lost > 0 {
		o.statefulSet.Spec.Template.Annotations = map[string]string{v1alpha1.CertificatesLostAnnotation: strconv.Itoa(int(lost))}
	}
	o.statefulSet.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: certificatesOf(o.fileServer, lost).Name},
	}}}
	return o
}

func TestLostCertificatesReplaceTheServersOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	secret := func(lost int32) string { return certificatesOf(sampleWithKeys(), lost).Name }
	api := &secretsOnly{there: map[string]bool{}}
	k := &keys{}
	look := func(what string, o *observed, lost bool) {
		t.Helper()
		if was, err := k.haveLost(t.Context(), api, o, now); err != nil || was != lost {
			t.Fatalf("%s: lost %v, %v", what, was, err)
		}
	}
	ensure := func(lost int32) {
		t.Helper()
		if err := k.ensure(t.Context(), api, served(lost), lost, now); err != nil || !api.there[secret(lost)] {
			t.Fatalf("%s is not made: %v", secret(lost), err)
		}
	}
	look("a new FileServer has lost nothing", &observed{fileServer: sampleWithKeys()}, false)
	ensure(0)
	for range 3 {
		look("nothing speaks for a loss", served(0), false)
	}
	if api.asked != 0 {
		t.Errorf("the API server was asked %d times", api.asked)
	}
	delete(api.there, secret(0))
	look("not noticed yet", served(0), false)
	k.made.Delete(certificatesOf(sampleWithKeys(), 0)) // As a round of keyWatch does.
	look("lost", served(0), true)
	look("the next Secret could not be made", served(0), true)
	ensure(1)
	if api.there[secret(0)] {
		t.Error("the lost one is made again, which kubelets may not see")
	}
	look("the cache does not know of the new templates yet", served(0), true)
	look("it does", served(1), false)

	k = &keys{} // Another process.
	look("an operator that starts", served(1), false)
	delete(api.there, secret(1))
	waiting := served(1)
	waiting.pods = map[string]corev1.Pod{"fs-0": {
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
		Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}}
	look("a pod waits", waiting, true)
	api.fails = errors.New("no answer")
	if _, err := k.haveLost(t.Context(), api, waiting, now); err == nil {
		t.Error("what is not known was taken for something")
	}
	raised := served(2)
	raised.fileServer.Spec.KeyGeneration = 2
	api.fails = nil
	look("a new generation was never there", raised, false)
}

func TestCertificatesAreLookedForEachMinute(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	api := &secretsOnly{there: map[string]bool{}}
	watch := &keyWatch{client: api, keys: &keys{}, clock: clock, lost: make(chan event.GenericEvent, 1)}
	if err := watch.keys.ensure(t.Context(), api, &observed{fileServer: sampleWithKeys()}, 3, clock.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- watch.Start(ctx) }()
	pass := func() {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(lookEvery)
	}
	delete(api.there, certificatesOf(sampleWithKeys(), 3).Name)
	pass()
	select {
	case lost := <-watch.lost:
		if lost.Object.GetName() != "fs" {
			t.Errorf("%s has lost its certificates", lost.Object.GetName())
		}
	case <-time.After(time.Minute):
		t.Fatal("the loss was not noticed")
	}
	if _, made := watch.keys.made.Load(certificatesOf(sampleWithKeys(), 3)); made {
		t.Error("the pass that follows does not look")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestKeysOfFileServersThatAreGoneAreForgotten(t *testing.T) {
	var k keys
	c := &secretsOnly{there: map[string]bool{}}
	const many = 300
	name := func(i int) string { return fmt.Sprint("fs-", i) }
	for i := range many {
		o := &observed{fileServer: builders.FileServer("ns", name(i)).UID(fmt.Sprint("uid-", i)).Replicas(1).Build()}
		k.made.Store(certificatesOf(o.fileServer, 0), nil)
		k.given.Store(o.fileServer.UID, certificatesOf(o.fileServer, 0))
		if err := k.ensureStewardSecret(t.Context(), c, o, naming.StewardSecret(name(i), fmt.Sprint("uid-", i))); err != nil {
			t.Fatal(err)
		}
	}
	size := func() (n int) {
		count := func(any, any) bool { n++; return true }
		k.made.Range(count)
		k.given.Range(count)
		return n
	}
	if got := size(); got != 3*many {
		t.Errorf("%d are remembered, want %d", got, 3*many)
	}
	for i := 1; i < many; i++ {
		k.forget(types.NamespacedName{Namespace: "ns", Name: name(i)})
	}
	if got := size(); got != 3 {
		t.Errorf("with one FileServer left %d are remembered, want 3", got)
	}
}
