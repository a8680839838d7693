package provisioner

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
)

// indexes gives a client in memory the indexes of the cache for the kinds that the controller lists.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, value client.IndexerFunc) error {
	switch object.(type) {
	case *v1alpha1.FileShare, *internalv1.ShareDirectory:
		i.WithIndex(object, field, value)
	}
	return nil
}

// A tenant knows the UIDs of its claims.
func TestAShareOfThatNameElsewhereDoesNotKeepWhatAClaimLeft(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	left := unbound(func(o *observed) { o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete }).share
	left.Finalizers = nil
	forged := left.DeepCopy()
	forged.Namespace, forged.Spec.ReclaimPolicy = "a-tenant", v1alpha1.ReclaimRetain
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(left, forged).
		WithIndex(&corev1.PersistentVolumeClaim{}, volumeField, func(o client.Object) []string { return []string{volumeOf(o)} })
	if err := index.Register(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	c := builder.Build()
	r := &Reconciler{Client: c, Live: c, Claims: c, Clock: testingclock.NewFakePassiveClock(time.Unix(1e9, 0)), Events: events.NewFakeRecorder(10)}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: volumeName}}); err != nil {
		t.Fatal(err)
	}
	var shares v1alpha1.FileShareList
	if err := c.List(t.Context(), &shares); err != nil || len(shares.Items) != 1 || shares.Items[0].Namespace != "a-tenant" {
		t.Errorf("%d shares are left: %v", len(shares.Items), err)
	}
}
