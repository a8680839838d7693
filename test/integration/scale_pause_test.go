package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A FileServer", func() {
	It("is scaled as kubectl scale does it", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "fs").Replicas(1).Build())
		runEverything(namespace, "fs")
		expectCondition(namespace, "fs", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

		scale := &autoscalingv1.Scale{}
		Expect(admin.SubResource("scale").Get(ctx, exists(&v1alpha1.FileServer{}, namespace, "fs"), scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(Equal(int32(1)))
		selector, err := metav1.ParseToLabelSelector(scale.Status.Selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(selector.MatchLabels).To(Equal(exists(&appsv1.StatefulSet{}, namespace, "fs").Spec.Selector.MatchLabels))
	})

	It("that is paused is left alone, deletion included, and says so", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "fs").Replicas(1).Build()
		create(fs)
		runEverything(namespace, "fs")
		expectCondition(namespace, "fs", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Annotations = map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
		})
		expectCondition(namespace, "fs", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		observed := *exists(&v1alpha1.FileServer{}, namespace, "fs").Status.ObservedGeneration
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 2 })
		Expect(admin.Delete(ctx, fs)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(*exists(&appsv1.StatefulSet{}, namespace, "fs").Spec.Replicas).To(Equal(int32(1)))
			g.Expect(*exists(&v1alpha1.FileServer{}, namespace, "fs").Status.ObservedGeneration).To(Equal(observed))
		}, "2s").Should(Succeed())
		Expect(expectCondition(namespace, "fs", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)).To(ContainSubstring("deletion waits"))

		change(exists(&v1alpha1.FileServer{}, namespace, "fs"), func(fs *v1alpha1.FileServer) { delete(fs.Annotations, v1alpha1.PausedAnnotation) })
		isNoMore(&v1alpha1.FileServer{}, namespace, "fs")
	})
})

var _ = Describe("A share", func() {
	It("that is paused is left alone, deletion included, and says so", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		share := builders.FileShare(namespace, "s", "fs").Directories("a").Build()
		share.Annotations = map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
		create(share)
		expectShare(namespace, "s", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		Consistently(func() int { return len(directoriesOf(namespace, "s")) }, "1s").Should(BeZero())

		pause := func(annotations map[string]string) {
			GinkgoHelper()
			change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Annotations = annotations })
		}
		pause(nil)
		readyShare(namespace, "s")
		Expect(shareCondition(namespace, "s", v1alpha1.ConditionPaused).Type).To(BeEmpty())

		pause(map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue})
		expectShare(namespace, "s", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Consistently(func() int { return len(directoriesOf(namespace, "s")) }, "2s").Should(Equal(1))
		pause(nil)
		shareIsGone(namespace, "s", "fs")
	})
})
