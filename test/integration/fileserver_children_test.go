package integration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A FileServer becomes its children", func() {
	var namespace string
	BeforeEach(func() { namespace = newNamespace() })

	It("makes data servers, namespace servers and their addresses, and reports them when they serve", func() {
		create(builders.FileServer(namespace, "training").Replicas(3).PerServer(2).Build())

		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		Expect(*set.Spec.Replicas).To(Equal(int32(3)))
		Expect(set.Spec.PodManagementPolicy).To(Equal(appsv1.ParallelPodManagement))
		Expect(set.Spec.VolumeClaimTemplates).To(HaveLen(2))
		Expect(*set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName).To(Equal(standardClass), "the default class is written down")
		Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal(serverImage))
		deployment := exists(&appsv1.Deployment{}, namespace, "training-namespace")
		Expect(*deployment.Spec.Replicas).To(Equal(int32(2)))
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(howdahImage))
		Expect(exists(&corev1.Service{}, namespace, "training").Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityClientIP))
		for i := range 3 {
			service := exists(&corev1.Service{}, namespace, fmt.Sprintf("training-%d", i))
			Eventually(func() string {
				return exists(&internalv1.DataServer{}, namespace, service.Name).Spec.Address
			}, timeout).Should(Equal(service.Spec.ClusterIP), "referrals carry the Service's address")
		}
		for _, name := range []string{"training-data", "training-namespace"} {
			exists(&policyv1.PodDisruptionBudget{}, namespace, name)
			exists(&corev1.ServiceAccount{}, namespace, name)
			exists(&rbacv1.Role{}, namespace, name)
			exists(&rbacv1.RoleBinding{}, namespace, name)
		}

		By("explaining what it waits for")
		message := expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonClaimsPending)
		Expect(message).To(ContainSubstring("data-0-training-0"))

		By("becoming ready with its pods")
		runEverything(namespace, "training")
		var fs v1alpha1.FileServer
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training"}, &fs)).To(Succeed())
		Expect(fs.Status.Address).To(Equal(exists(&corev1.Service{}, namespace, "training").Spec.ClusterIP))
		Expect(*fs.Status.ReadyReplicas).To(Equal(int32(3)))
		Expect(*fs.Status.ObservedGeneration).To(Equal(fs.Generation))
		Expect(fs.Status.Servers).To(HaveLen(3))
		Expect(fs.Status.Servers[1].State).To(Equal(v1alpha1.ServerServing))
		Expect(fs.Status.Servers[1].NodeName).To(Equal("node-b"))
		Expect(*fs.Status.Capacity.TotalBytes).To(Equal(int64(3 << 30)))
		for _, c := range fs.Status.Conditions {
			Expect(c.Status).To(Equal(metav1.ConditionTrue), "%s: %s", c.Type, c.Message)
		}
	})

	It("takes nothing of an earlier FileServer of its name that Kubernetes has not removed yet", func() {
		create(builders.FileServer(namespace, "again").Replicas(1).Build())
		runEverything(namespace, "again")
		earlier := exists(&v1alpha1.FileServer{}, namespace, "again")
		Expect(earlier.Status.Address).NotTo(BeEmpty())
		Expect(admin.Delete(ctx, earlier)).To(Succeed())
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(earlier), earlier) }, timeout).Should(MatchError(ContainSubstring("not found")))

		create(builders.FileServer(namespace, "again").Replicas(1).Build())
		create(builders.FileShare(namespace, "s", "again").Build())
		Expect(expectCondition(namespace, "again", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonProgressing)).
			To(ContainSubstring("waiting for Kubernetes to remove it"))
		Consistently(func() string { return exists(&v1alpha1.FileServer{}, namespace, "again").Status.Address }, "2s").Should(BeEmpty(), "the address goes with the Service")
		Expect(admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(namespace, "s")}, &corev1.PersistentVolume{})).NotTo(Succeed(), "no volume has an address that goes")
		for _, server := range exists(&v1alpha1.FileServer{}, namespace, "again").Status.Servers {
			Expect(server.State).NotTo(Equal(v1alpha1.ServerServing), "the data server of an earlier FileServer")
		}

		By("removing what had owners, as Kubernetes does, and the pods later")
		collectOwned(namespace, earlier.UID)
		Eventually(func() string { return exists(&v1alpha1.FileServer{}, namespace, "again").Status.Address }, timeout).
			Should(Equal(exists(&corev1.Service{}, namespace, "again").Spec.ClusterIP))
		exists(&appsv1.StatefulSet{}, namespace, "again")
		Expect(exists(&corev1.Pod{}, namespace, "again-0").DeletionTimestamp).To(BeNil())
		Expect(expectCondition(namespace, "again", v1alpha1.FileServerNamespaceServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonNamespaceServersNotReady)).
			To(HavePrefix("0 of 2 namespace servers are ready"))
		Expect(expectCondition(namespace, "again", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)).
			To(ContainSubstring("again-0 is Pending (its pod is made when the one of an earlier FileServer of this name is gone"))
		Expect(exists(&v1alpha1.FileServer{}, namespace, "again").Status.Servers).To(ConsistOf(HaveField("NodeName", BeEmpty())))
		var rooms discoveryv1.EndpointSliceList
		Expect(admin.List(ctx, &rooms, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "again-0"})).To(Succeed())
		for _, room := range rooms.Items {
			Expect(room.Endpoints).To(BeEmpty(), "no client is sent to an earlier FileServer's namespace servers")
		}

		By("removing the pods")
		removePods(namespace)
		runEverything(namespace, "again")
	})

	It("leaves data servers and exports alone while namespace servers come and go", func() {
		create(builders.FileServer(namespace, "calm").Replicas(2).Build())
		runEverything(namespace, "calm")
		create(builders.FileShare(namespace, "unet3d", "calm").Build())
		Eventually(func() int { return len(exportsOf(namespace, "calm-0")) + len(exportsOf(namespace, "calm-1")) }, timeout).Should(Equal(2))
		loadConfigurations(namespace, "calm")
		awaitQuiet(namespace)
		versions := func() map[string]string {
			found := map[string]string{}
			for _, server := range []string{"calm-0", "calm-1"} {
				found[server] = exists(&internalv1.DataServer{}, namespace, server).ResourceVersion
				for name, export := range exportsOf(namespace, server) {
					found[server+" "+name] = export.ResourceVersion
				}
			}
			return found
		}
		before := versions()
		Expect(before).To(HaveLen(4))

		template := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("calm")).Spec.Template
		for i := range 2 {
			old := exists(&corev1.Pod{}, namespace, fmt.Sprintf("calm-namespace-%d", i))
			Expect(admin.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())
			Eventually(func() string {
				return fileServerCondition(namespace, "calm", v1alpha1.FileServerNamespaceServersAvailable).Message
			}, timeout).Should(ContainSubstring("1 of 2"), "the operator has heard of it")
			runPod(namespace, fmt.Sprintf("calm-namespace-new-%d", i), template, nil, "node-a", fmt.Sprintf("10.2.9.%d", i+1))
			Eventually(func() string {
				return fileServerCondition(namespace, "calm", v1alpha1.FileServerNamespaceServersAvailable).Message
			}, timeout).Should(ContainSubstring("2 of 2"))
		}
		awaitQuiet(namespace)
		Expect(versions()).To(Equal(before))
	})

	It("gives servers certificates by which they know each other, and new ones when asked", func() {
		fs := builders.FileServer(namespace, "training").Replicas(2).Build()
		create(fs)
		name := func(generation int32) string { return naming.Certificates(fs.Name, string(fs.UID), generation, 0) }
		secret := exists(&corev1.Secret{}, namespace, name(1))
		Expect(*secret.Immutable).To(BeTrue())
		Expect(metav1.GetControllerOf(secret).UID).To(Equal(fs.UID))
		Expect(secret.Data).To(HaveLen(64+1), "for every data server that can ever be, and for namespace servers")

		By("being valid for the FileServer's servers, without an end")
		later := time.Now().AddDate(1000, 0, 0)
		check := func(key, tlsName string, usage mtls.Usage) error {
			identity, err := mtls.Parse(secret.Data[key])
			Expect(err).NotTo(HaveOccurred())
			return mtls.Check([]*mtls.Identity{identity}, tlsName, usage, later)
		}
		uid := string(fs.UID)
		Expect(check("training-63", naming.DataServerTLSName(uid, "training-63"), mtls.AsServer)).To(Succeed())
		Expect(check("namespace-servers", naming.NamespaceServerTLSName(uid), mtls.AsClient)).To(Succeed())
		Expect(check("training-0", naming.DataServerTLSName(uid, "training-0"), mtls.AsClient)).NotTo(Succeed())

		By("being in the pods, each its own")
		mounted := func() map[string]string {
			found := map[string]string{}
			set := exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec
			front := exists(&appsv1.Deployment{}, namespace, "training-namespace").Spec.Template.Spec
			for who, pod := range map[string]corev1.PodSpec{"data": set, "namespace": front} {
				for _, volume := range pod.Volumes {
					for _, mount := range pod.Containers[0].VolumeMounts {
						if volume.Secret == nil || mount.Name != volume.Name || !strings.HasSuffix(mount.MountPath, ".pem") {
							continue
						}
						found[who+" "+mount.MountPath] = volume.Secret.SecretName
						switch who {
						case "data":
							Expect(mount.SubPathExpr).To(Equal("$(POD_NAME)"), "no server sees another's key")
						case "namespace":
							Expect(mount.SubPath).To(Equal("namespace-servers"))
							Expect(volume.Secret.Items).To(HaveLen(1), "no data server's key is in the pod")
						}
					}
				}
			}
			return found
		}
		const current, previous = "/etc/howdah/certificate.pem", "/etc/howdah/previous-certificate.pem"
		Expect(mounted()).To(Equal(map[string]string{"data " + current: name(1), "namespace " + current: name(1)}))
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.KeyGeneration = 2 })
		Eventually(mounted, timeout).Should(Equal(map[string]string{
			"data " + current: name(2), "namespace " + current: name(2), "data " + previous: name(1), "namespace " + previous: name(1),
		}))
		Expect(exists(&corev1.Secret{}, namespace, name(1)).Data).To(Equal(secret.Data), "what was signed stays good")
		Expect(exists(&corev1.Secret{}, namespace, name(2)).Data["training-0"]).NotTo(Equal(secret.Data["training-0"]))
	})

	It("gives data servers keys for file handles, each its own, and new ones when asked", func() {
		fs := builders.FileServer(namespace, "training").Replicas(2).Build()
		create(fs)
		keys := func(generation int32) map[string][]byte {
			secret := exists(&corev1.Secret{}, namespace, naming.HandleKeys(fs.Name, string(fs.UID), generation))
			Expect(*secret.Immutable).To(BeTrue())
			Expect(metav1.GetControllerOf(secret).UID).To(Equal(fs.UID))
			return secret.Data
		}
		first := keys(1)
		Expect(first).To(HaveLen(64), "for every data server that can ever be")
		distinct := map[string]bool{}
		for _, key := range first {
			Expect(key).To(HaveLen(16))
			distinct[string(key)] = true
		}
		Expect(distinct).To(HaveLen(64))
		mounted := func() map[string]string {
			pod := exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec
			found := map[string]string{}
			for _, volume := range pod.Volumes {
				for _, mount := range pod.Containers[0].VolumeMounts {
					if volume.Secret != nil && mount.Name == volume.Name && strings.HasSuffix(mount.MountPath, "handle-key") {
						Expect(mount.SubPathExpr).To(Equal("$(POD_NAME)"), "no server sees another's key")
						Expect(*volume.Secret.DefaultMode).To(Equal(int32(0o400)))
						found[mount.MountPath] = volume.Secret.SecretName
					}
				}
			}
			return found
		}
		name := func(generation int32) string { return naming.HandleKeys(fs.Name, string(fs.UID), generation) }
		Expect(mounted()).To(Equal(map[string]string{"/etc/howdah/handle-key": name(1)}))

		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.KeyGeneration = 2 })
		Eventually(mounted, timeout).Should(Equal(map[string]string{
			"/etc/howdah/handle-key": name(2), "/etc/howdah/previous-handle-key": name(1),
		}))
		Expect(keys(2)["training-0"]).NotTo(Equal(first["training-0"]))
		Expect(keys(1)).To(Equal(first), "what was signed stays good")

		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.KeyGeneration = 3 })
		Eventually(mounted, timeout).Should(Equal(map[string]string{
			"/etc/howdah/handle-key": name(3), "/etc/howdah/previous-handle-key": name(2),
		}))
		back := fs.DeepCopy()
		back.Spec.KeyGeneration = 2
		Expect(admin.Patch(ctx, back, client.MergeFrom(fs))).To(MatchError(ContainSubstring("can't be reduced")))
	})

	It("makes lost keys and certificates again when a pod waits for them, and has all servers get the new certificates", func() {
		fs := builders.FileServer(namespace, "training").Replicas(1).Build()
		create(fs)
		name := naming.HandleKeys(fs.Name, string(fs.UID), 1)
		lost := exists(&corev1.Secret{}, namespace, name)
		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		certificates := naming.Certificates(fs.Name, string(fs.UID), 1, 0)
		restarts := func() []string {
			return []string{
				exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Annotations[v1alpha1.CertificatesLostAnnotation],
				exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training")).Spec.Template.Annotations[v1alpha1.CertificatesLostAnnotation],
			}
		}
		Expect(restarts()).To(Equal([]string{"", ""}))
		Expect(admin.Delete(ctx, lost)).To(Succeed())
		Expect(admin.Delete(ctx, exists(&corev1.Secret{}, namespace, certificates))).To(Succeed())
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training-0", Labels: set.Spec.Template.Labels},
			Spec:       withClaims(set, "training-0").Spec,
		}
		pod.Spec.NodeName = "node-a"
		create(pod)
		Expect(exists(&corev1.Secret{}, namespace, name).UID).NotTo(Equal(lost.UID))
		Expect(exists(&corev1.Secret{}, namespace, naming.Certificates(fs.Name, string(fs.UID), 1, 1)).Immutable).To(HaveValue(BeTrue()))
		Eventually(restarts, timeout).Should(Equal([]string{"1", "1"}), "servers with the old ones are replaced")
		Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: certificates}, &corev1.Secret{}))).To(Succeed())
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.NFS.LeaseSeconds = 9 })
		Eventually(func() int32 { return exists(&internalv1.DataServer{}, namespace, "training-0").Spec.LeaseSeconds }, timeout).Should(Equal(int32(9)))
		Expect(restarts()).To(Equal([]string{"1", "1"}), "another pass replaces none again")
		Eventually(func() []string { return notesOf(namespace, "FileServer", "training") }, timeout).Should(ContainElement(ContainSubstring("Secret " + certificates)))
	})

	It("follows the nodes when replicas is unset", func() {
		create(builders.FileServer(namespace, "wide").Build())
		Expect(*exists(&appsv1.StatefulSet{}, namespace, "wide").Spec.Replicas).To(Equal(int32(3)))
		node := createNode(builders.Node("node-d").Build())
		DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, node))).To(Succeed()) })
		replicas := func() int32 { return *exists(&appsv1.StatefulSet{}, namespace, "wide").Spec.Replicas }
		Eventually(replicas, timeout).Should(Equal(int32(4)))
		Expect(admin.Delete(ctx, node)).To(Succeed())
		Consistently(replicas, "1s").Should(Equal(int32(4)), "a node that goes costs no server")
	})

	It("writes nothing once it is steady, whatever stirs it", func() {
		create(builders.FileServer(namespace, "steady").Replicas(2).Build())
		runEverything(namespace, "steady")
		before := awaitQuiet(namespace)
		for i := range 5 {
			for _, object := range []client.Object{
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "steady-namespace"}},
				&internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "steady-0"}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "steady-1"}},
			} {
				change(object, func(o client.Object) {
					o.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: o.GetAnnotations()[v1alpha1.OwnerAnnotation], "test.howdah.io/stir": fmt.Sprint(i)})
				})
			}
			Consistently(func() int64 { return writesIn(namespace) }, "200ms").Should(Equal(before), describeWrites)
		}
	})

	It("makes deleted children again, and undoes changes to them", func() {
		create(builders.FileServer(namespace, "healing").Replicas(2).Build())
		runEverything(namespace, "healing")
		for _, object := range []client.Object{
			&corev1.Service{}, &internalv1.DataServer{}, &appsv1.StatefulSet{}, &appsv1.Deployment{},
			&policyv1.PodDisruptionBudget{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		} {
			name := map[bool]string{true: "healing-0", false: "healing-namespace"}[isNumbered(object)]
			if _, ok := object.(*appsv1.StatefulSet); ok {
				name = "healing"
			}
			uid := exists(object, namespace, name).GetUID()
			Expect(admin.Delete(ctx, object)).To(Succeed())
			Eventually(func() bool {
				err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
				return err == nil && object.GetUID() != uid
			}, timeout, "50ms").Should(BeTrue(), "%T %s comes back", object, name)
		}
		deployment := exists(&appsv1.Deployment{}, namespace, "healing-namespace")
		change(deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other.invalid/image" })
		Eventually(func() string {
			return exists(&appsv1.Deployment{}, namespace, "healing-namespace").Spec.Template.Spec.Containers[0].Image
		}, timeout).Should(Equal(howdahImage))
		service := exists(&corev1.Service{}, namespace, "healing-1")
		change(service, func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
		Eventually(func() bool {
			return exists(&corev1.Service{}, namespace, "healing-1").Spec.PublishNotReadyAddresses
		}, timeout).Should(BeFalse(), "a pod that ends would be led to")
	})

	It("exports every live share, spelled out, and asks for removals", func() {
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		create(builders.FileShare(namespace, "unet3d", "training").Owner(1000, 1000, "0770").
			Access(v1alpha1.AccessReadOnly, "", "10.0.0.0/8").Build())
		create(builders.FileShare(namespace, "bert", "training").Build())
		create(builders.FileShare(namespace, "elsewhere", "other").Build())
		server := func() []string {
			var names []string
			for name := range exportsOf(namespace, "training-0") {
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		}
		Eventually(server, timeout).Should(Equal([]string{"bert", "unet3d"}))
		exports := exportsOf(namespace, "training-0")
		Expect(exports["bert"].Spec.Access).To(Equal([]v1alpha1.AccessRule{{
			Clients: []string{v1alpha1.ClientNodes}, AccessType: v1alpha1.AccessReadWrite, Squash: v1alpha1.SquashNone, SourcePorts: v1alpha1.SourcePortsAny,
		}}))
		Expect(exports["unet3d"].Spec.Mode).To(Equal("0770"))
		Expect(*exports["unet3d"].Spec.UID).To(Equal(int64(1000)))
		Expect(exports["unet3d"].Spec.Access[0].Squash).To(Equal(v1alpha1.SquashNone))

		By("a share being deleted with its data")
		Expect(exports["bert"].Spec.DataPolicy).To(Equal(internalv1.DataRetain), "an accident with the object must not cost data")
		serve := func() { loadConfigurations(namespace, "training") }
		runEverything(namespace, "training")
		change(exists(&v1alpha1.FileShare{}, namespace, "bert"), func(s *v1alpha1.FileShare) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete })
		serve()
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "bert"))).To(Succeed())
		Eventually(func() bool { return exportsOf(namespace, "training-0")["bert"].DeletionTimestamp != nil }, timeout).Should(BeTrue())
		Expect(exportsOf(namespace, "training-0")["bert"].Spec.DataPolicy).To(Equal(internalv1.DataDelete))
		Expect(exportsOf(namespace, "training-0")["unet3d"].DeletionTimestamp).To(BeNil())
		Eventually(func() []string { serve(); return server() }, timeout).Should(Equal([]string{"unet3d"}))
	})
})

// isNumbered tells the kinds of which each data server has one.
func isNumbered(object client.Object) bool {
	switch object.(type) {
	case *corev1.Service, *internalv1.DataServer:
		return true
	}
	return false
}

var _ = Describe("FileServers of the same name in two Kubernetes namespaces", func() {
	It("do not disturb each other", func() {
		one, two := newNamespace(), newNamespace()
		create(builders.FileServer(one, "training").Replicas(2).Build())
		create(builders.FileServer(two, "training").Replicas(1).Build())
		create(builders.FileShare(one, "data", "training").Build())
		runEverything(one, "training")
		runEverything(two, "training")
		first := exists(&internalv1.DataServer{}, one, "training-0")
		second := exists(&internalv1.DataServer{}, two, "training-0")
		Eventually(func() int { return len(exportsOf(one, "training-0")) }, timeout).Should(Equal(1))
		Expect(exportsOf(two, "training-0")).To(BeEmpty(), "a share belongs to the FileServer of its own namespace")
		Expect(first.Spec.ServerScope).NotTo(Equal(second.Spec.ServerScope), "clients must not take them for one server")

		By("deleting one")
		Expect(admin.Delete(ctx, &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: "training"}})).To(Succeed())
		isGone(&v1alpha1.FileServer{}, two, "training")
		Consistently(func() metav1.ConditionStatus {
			return fileServerCondition(one, "training", v1alpha1.FileServerServersAvailable).Status
		}, "1s").Should(Equal(metav1.ConditionTrue))
	})
})
