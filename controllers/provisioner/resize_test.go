package provisioner

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/howdah/howdah/api/v1alpha1"
)

// A ResourceQuota counts what a claim has allocated. Without it, a user could ask for a terabyte, lower the request when
// the share has the quota for it, and pay for a gigabyte.
func TestAQuotaIsRaisedOnlyAfterTheClaimHasItAllocated(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := kept(func(o *observed) { o.claim.Spec.Resources.Requests = sized("20Gi") })
	o.claim.ResourceVersion, o.share.ResourceVersion = "", ""
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.claim, o.share).WithStatusSubresource(o.claim).Build()
	r := &Reconciler{Client: c, Live: c}
	read := func() (claim *corev1.PersistentVolumeClaim, share *v1alpha1.FileShare) {
		claim, share = &corev1.PersistentVolumeClaim{}, &v1alpha1.FileShare{}
		for object, key := range map[client.Object]client.ObjectKey{claim: client.ObjectKeyFromObject(o.claim), share: client.ObjectKeyFromObject(o.share)} {
			if err := c.Get(t.Context(), key, object); err != nil {
				t.Fatal(err)
			}
		}
		return claim, share
	}
	stale, share := read()
	changed := stale.DeepCopy()
	changed.Spec.Resources.Requests = sized("15Gi")
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	o.claim, o.share = stale, share
	if err := r.execute(t.Context(), o, decide(o)); err == nil {
		t.Error("a claim that has changed is written")
	}
	if _, share := read(); share.Spec.Quota.Size.String() != "10Gi" {
		t.Errorf("the share has a quota of %s, and its claim has changed", share.Spec.Quota.Size)
	}
	d := decide(o)
	if err := r.readLive(t.Context(), o, o.share.Name, doubtOf(o, d)); err != nil {
		t.Fatal(err)
	}
	if err := r.execute(t.Context(), o, decide(o)); err != nil {
		t.Fatal(err)
	}
	claim, share := read()
	if allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]; allocated.Cmp(resource.MustParse("15Gi")) != 0 || share.Spec.Quota.Size.String() != "15Gi" {
		t.Errorf("allocated are %s, and the share has a quota of %s", allocated.String(), share.Spec.Quota.Size)
	}
}

// A claim of this name that was made again meanwhile has asked for another size.
func TestASizeIsWrittenOnlyIntoTheClaimThatWasSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := kept(func(o *observed) { quotaIs(o, "20Gi", "20Gi", "") })
	o.claim.ResourceVersion, o.volume.ResourceVersion = "", ""
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.claim, o.volume).WithStatusSubresource(o.claim).Build()
	r := &Reconciler{Client: c, Live: c}
	for _, object := range []client.Object{o.claim, o.volume} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	again := o.claim.DeepCopy()
	again.UID, again.ResourceVersion = "another", ""
	if err := c.Delete(t.Context(), o.claim.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	d := decide(o)
	if d.grow == nil {
		t.Fatalf("nothing grows: %+v", d)
	}
	if err := r.execute(t.Context(), o, d); err == nil {
		t.Error("the other claim is written")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil {
		t.Fatal(err)
	}
	if allocated, is := again.Status.AllocatedResources[corev1.ResourceStorage]; is {
		t.Errorf("the other claim has %s allocated", allocated.String())
	}
}
