package fileserver

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

const (
	oneIdentity     = "11111111-1111-1111-1111-111111111111"
	anotherIdentity = "22222222-2222-2222-2222-222222222222"
)

func named(name string, uid types.UID, made time.Time) v1alpha1.FileServer {
	fs := v1alpha1.FileServer{}
	fs.Namespace, fs.Name, fs.UID, fs.CreationTimestamp = "ns", name, uid, metav1.NewTime(made)
	return fs
}

func TestTheFirstStorageIdentity(t *testing.T) {
	begin := func(name string, uid types.UID) *observed {
		fs := named(name, uid, time.Time{})
		return &observed{fileServer: &fs}
	}
	derived := begin("fs", "first").firstIdentity("namespace")
	if len(derived) != len(oneIdentity) {
		t.Errorf("%q is no UUID", derived)
	}
	for name, tc := range map[string]struct {
		o         *observed
		namespace string
		change    func(*observed)
		want      string
	}{
		"made again under its name":                           {begin("fs", "second"), "namespace", func(*observed) {}, derived},
		"with the status that the API server gives a new one": {begin("fs", "second"), "namespace", func(o *observed) { o.fileServer.Status.ObservedGeneration = ptr.To[int64](0) }, derived},
		"in a later namespace of the same name":               {begin("fs", "second"), "another", func(*observed) {}, "not " + derived},
		"under another name":                                  {begin("other", "second"), "namespace", func(*observed) {}, "not " + derived},
		"asked for":                                           {begin("fs", "second"), "namespace", func(o *observed) { o.fileServer.Spec.Storage.Ceph.Identity = oneIdentity }, oneIdentity},
		"of an earlier version": {begin("fs", "first"), "namespace", func(o *observed) {
			o.fileServer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady}}
		}, "first"},
		"of an earlier version, with a Steward and without a status": {begin("fs", "first"), "namespace", func(o *observed) {
			o.steward = &internalv1.Steward{Spec: internalv1.StewardSpec{FileServerUID: "first"}}
		}, "first"},
	} {
		tc.change(tc.o)
		got := tc.o.firstIdentity(tc.namespace)
		if unwanted, not := strings.CutPrefix(tc.want, "not "); not && got == unwanted || !not && got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestOneFileServerHasAStorageIdentity(t *testing.T) {
	at := time.Unix(1000, 0)
	with := func(fs v1alpha1.FileServer, identity string) v1alpha1.FileServer {
		fs.Spec.Storage.Ceph.Identity = identity
		return fs
	}
	older, younger := with(named("older", "a", at), oneIdentity), with(named("younger", "b", at.Add(time.Second)), oneIdentity)
	all := []v1alpha1.FileServer{older, younger, with(named("third", "c", at), anotherIdentity), named("volumes", "d", at)}
	if got := holderOf(&younger, all); got != "ns/older" {
		t.Errorf("the younger one has it beside %q", got)
	}
	if got := holderOf(&older, all); got != "" {
		t.Errorf("the older one is kept out by %s", got)
	}
	if got := holderOf(&all[3], all); got != "" {
		t.Errorf("one without identity is kept out by %s", got)
	}
	// By the same second, by UID.
	same := with(named("same", "0", at), oneIdentity)
	if got := holderOf(&older, []v1alpha1.FileServer{same}); got != "ns/same" {
		t.Errorf("of two of the same second %q has it", got)
	}
}

func TestAnIdentityInUseIsReported(t *testing.T) {
	fs := named("fs", "a", time.Time{})
	o := &observed{fileServer: &fs}
	if err := o.identityFault(); err != nil {
		t.Errorf("without any: %v", err)
	}
	fs.Spec.Storage.Ceph.Identity, fs.Status.StorageIdentity = oneIdentity, oneIdentity
	if err := o.identityFault(); err != nil {
		t.Errorf("its own: %v", err)
	}
	o.holder = "ns/other"
	taken := o.identityFault()
	fs.Status.StorageIdentity = anotherIdentity
	changed := o.identityFault()
	for err, part := range map[error]string{taken: "FileServer ns/other has " + oneIdentity, changed: "has the identity " + anotherIdentity + " already"} {
		if !errors.Is(err, errIdentity) || !strings.Contains(err.Error(), part) || reasonOf(err) != v1alpha1.ReasonInvalidSpec {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if !v1alpha1.NeedsUser(metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonOf(taken)}.Reason) || conditions.IsTrue(nil, "") {
		t.Error("the user need not act")
	}
}
