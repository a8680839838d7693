package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
)

var _ = Describe("Applying children", func() {
	var (
		namespace string
		owner     *corev1.ConfigMap
		applied   int
		counting  client.Client
	)
	newApplier := func() *apply.Applier { return apply.New(counting, counting, "howdah-test") }
	wanted := func(name string, data map[string]string) *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap(name, namespace).WithData(data)
	}
	newOwner := func(name string) *corev1.ConfigMap {
		GinkgoHelper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		create(object)
		return object
	}
	BeforeEach(func() {
		namespace = newNamespace()
		owner = newOwner("owner")
		applied = 0
		watching, err := client.NewWithWatch(config, client.Options{Scheme: admin.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		counting = interceptor.NewClient(watching, interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				applied++
				return c.Apply(ctx, object, options...)
			},
		})
	})
	read := func(name string) *corev1.ConfigMap {
		GinkgoHelper()
		return exists(&corev1.ConfigMap{}, namespace, name)
	}

	It("marks what it makes, and sends nothing while it stays as it is", func() {
		a := newApplier()
		Expect(a.Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"k": "v"})))).To(Succeed())
		child := read("child")
		Expect(child.Labels).To(HaveKeyWithValue(v1alpha1.ManagedByLabel, v1alpha1.ManagedBy))
		Expect(child.Annotations).To(HaveKeyWithValue(v1alpha1.OwnerAnnotation, "ConfigMap/"+namespace+"/owner"))
		Expect(metav1.IsControlledBy(child, owner)).To(BeTrue())
		for range 3 {
			Expect(a.Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"k": "v"})))).To(Succeed())
		}
		Expect(applied).To(Equal(1))

		By("taking other writers' fields for theirs")
		change(child, func(c *corev1.ConfigMap) { c.Data["theirs"] = "x" })
		Expect(a.Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"k": "v"})))).To(Succeed())
		Expect(applied).To(Equal(1))

		By("undoing what they do to its own")
		change(child, func(c *corev1.ConfigMap) { c.Data["k"] = "wrong" })
		Expect(a.Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"k": "v"})))).To(Succeed())
		Expect(applied).To(Equal(2))
		Expect(read("child").Data).To(Equal(map[string]string{"k": "v", "theirs": "x"}))

		By("changing nothing in a process that remembers nothing")
		before := read("child").ResourceVersion
		Expect(newApplier().Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"k": "v"})))).To(Succeed())
		Expect(read("child").ResourceVersion).To(Equal(before))

		By("removing a field that is no longer applied")
		Expect(a.Apply(ctx, owner, apply.Owned(wanted("child", map[string]string{"other": "v"})))).To(Succeed())
		Expect(read("child").Data).To(Equal(map[string]string{"other": "v", "theirs": "x"}))
	})

	It("does not touch what is not its owner's", func() {
		other := newOwner("other")
		Expect(newApplier().Apply(ctx, other, apply.Owned(wanted("theirs", nil)), apply.Unowned(wanted("loose", nil)))).To(Succeed())
		create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}})
		create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "pretender",
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		}})
		applied = 0
		for name, holder := range map[string]string{
			"theirs":    "ConfigMap other",
			"loose":     "ConfigMap/" + namespace + "/other",
			"foreign":   "another program (no label app.kubernetes.io/managed-by=howdah)",
			"pretender": "another program (no annotation howdah.io/owner)",
		} {
			err := newApplier().Apply(ctx, owner, apply.Owned(wanted(name, nil)), apply.Owned(wanted("next", nil)))
			taken, ok := apply.IsNameTaken(err)
			Expect(ok).To(BeTrue(), "%s: %v", name, err)
			Expect(taken.Name).To(Equal(name))
			Expect(taken.Holder).To(Equal(holder))
			Expect(taken.Leftover).To(BeFalse())
		}
		Expect(applied).To(Equal(4), "only the next object was written")
	})

	It("waits for the children of an earlier owner of the same name, and takes in orphans", func() {
		Expect(newApplier().Apply(ctx, owner, apply.Owned(wanted("child", nil)))).To(Succeed())
		Expect(admin.Delete(ctx, owner)).To(Succeed())
		owner = newOwner("owner")
		taken, ok := apply.IsNameTaken(newApplier().Apply(ctx, owner, apply.Owned(wanted("child", nil))))
		Expect(ok).To(BeTrue())
		Expect(taken.Leftover).To(BeTrue())
		Expect(taken.Error()).To(ContainSubstring("waiting for Kubernetes to remove it"))

		change(read("child"), func(c *corev1.ConfigMap) { c.OwnerReferences = nil })
		Expect(newApplier().Apply(ctx, owner, apply.Owned(wanted("child", nil)))).To(Succeed())
		Expect(metav1.IsControlledBy(read("child"), owner)).To(BeTrue())
	})

	It("prunes what its owner no longer wants and nothing else", func() {
		a, other := newApplier(), newOwner("other")
		Expect(a.Apply(ctx, owner, apply.Owned(wanted("keep", nil)), apply.Owned(wanted("drop", nil)), apply.Unowned(wanted("loose", nil)))).To(Succeed())
		Expect(a.Apply(ctx, other, apply.Owned(wanted("theirs", nil)))).To(Succeed())
		deleted, err := a.Prune(ctx, owner, []apply.Object{apply.Owned(wanted("keep", nil))}, []client.ObjectList{&corev1.ConfigMapList{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(deleted).To(Equal(2))
		isGone(&corev1.ConfigMap{}, namespace, "drop")
		isGone(&corev1.ConfigMap{}, namespace, "loose")
		read("keep")
		read("theirs")
		read("owner")
	})

	It("does not give an owner to objects elsewhere", func() {
		err := newApplier().Apply(ctx, owner, apply.Owned(corev1ac.ConfigMap("child", "default")))
		Expect(err).To(MatchError(ContainSubstring("an owner reference can't reach")))
		Expect(applied).To(BeZero())
	})
})
