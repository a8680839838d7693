package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// waits are the messages about what an object waits for, or what needs a look.
func waits() []mistake {
	const server, share, job = "FileServer", "FileShare", "MLPerfStorageJob"
	silent := func(namespace, name string) {
		GinkgoHelper()
		object := exists(&internalv1.DataServer{}, namespace, name)
		before := object.DeepCopy()
		object.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)}, SeenBy: "training-namespace-x"}
		Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
	}
	// shared makes a share Ready on two data servers.
	shared := func(namespace string, object *v1alpha1.FileShare) {
		GinkgoHelper()
		servingFileServer(namespace, "training", 2)
		create(object)
		readyShare(namespace, object.Name)
	}
	found := func(namespace, name, server string, what internalv1.ShareInventory) {
		GinkgoHelper()
		Eventually(func() bool { return exportsOf(namespace, server)[name] != nil }, timeout).Should(BeTrue())
		loadConfigurations(namespace, "training")
		tellInventory(exportsOf(namespace, server)[name], what)
	}
	data := func(namespace string) *builders.FileShareBuilder {
		return builders.FileShare(namespace, "data", "training").Path("/data")
	}
	// goneOnce has the volumes keep a share of that name, and no ShareDirectory tell where.
	goneOnce := func(namespace string) {
		GinkgoHelper()
		shared(namespace, data(namespace).Directories("d0").Build())
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "data"))).To(Succeed())
		shareIsGone(namespace, "data", "training")
		Expect(admin.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, client.InNamespace(namespace))).To(Succeed())
		letGo(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim("data"))
		letGo(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, "data"))
	}
	// bounded makes a share with a quota, in Ceph, of which the steward says what it has and what is used, in MiB.
	bounded := func(namespace, quota string, has, used int64) {
		GinkgoHelper()
		provisioned(namespace, "training", 1)
		create(data(namespace).Quota(quota).Build())
		madeStorage(namespace, "data.training")
		tellQuota(namespace, "data.training", has, used)
		if has > 0 && has<<20 == quantity(quota).Value() {
			readyShare(namespace, "data")
		}
	}
	return []mistake{
		{"FileServer: no node is chosen", summaryFor(server, "training", v1alpha1.ReasonTooFewNodes, func(namespace string) {
			create(builders.FileServer(namespace, "training").NodeSelector("disk", "nvme").Build())
		})},
		{"FileServer: more data servers than chosen nodes", summaryFor(server, "training", v1alpha1.ReasonServersShareNodes, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(2).NodeSelector("kubernetes.io/hostname", "node-a").Build())
			runEverything(namespace, "training")
		})},
		{"FileServer: ports that are taken on the nodes", summaryFor(server, "training", v1alpha1.ReasonHostPortsTaken, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(1).HostNetwork(20490).Build())
			set := exists(&appsv1.StatefulSet{}, namespace, "training")
			runNamespaceServers(namespace, "training")
			runPod(namespace, "training-0", withClaims(set, "training-0"), nil, "", "10.1.0.1")
			pod := exists(&corev1.Pod{}, namespace, "training-0")
			before := pod.DeepCopy()
			pod.Status.Phase = corev1.PodPending
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.",
			}}
			Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
			for _, template := range set.Spec.VolumeClaimTemplates {
				bindClaim(namespace, template.Name+"-training-0", set, template)
			}
		})},
		{"FileServer: a node without an address in addressesIn", summaryFor(server, "training", v1alpha1.ReasonNodeAddressMissing, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(1).HostNetwork(20490, "10.20.0.0/16").Build())
			runNamespaceServers(namespace, "training")
			startDataServers(namespace, "training")
			waiting := exists(&internalv1.DataServer{}, namespace, "training-0")
			before := waiting.DeepCopy()
			waiting.Status.PodUID = string(exists(&corev1.Pod{}, namespace, "training-0").UID)
			conditions.Set(&waiting.Status.Conditions, waiting.Generation, time.Now(),
				conditions.False(v1alpha1.ConditionReady, internalv1.ReasonNodeAddressMissing, "node node-a has no address in 10.20.0.0/16"))
			Expect(admin.Status().Patch(ctx, waiting, client.MergeFrom(before))).To(Succeed())
		})},
		{"FileServer: two nodes with one address in addressesIn", summaryFor(server, "training", v1alpha1.ReasonNodeAddressMissing, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(2).HostNetwork(20490, "10.20.0.0/16").Build())
			runNamespaceServers(namespace, "training")
			runDataServers(namespace, "training")
			onNodeAddresses{namespace}.report("training-0", "10.20.0.11")
			onNodeAddresses{namespace}.report("training-1", "10.20.0.11")
		})},
		{"FileServer: addressesIn without a network of the Services' family", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(1).HostNetwork(20490, "fd00:20::/64").Build())
		})},
		{"FileServer: allowedNamespaces with a label that there can't be", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "allowedNamespaces: {from: Selector, selector: {matchLabels: {a: b c}}}")))
		})},
		{"FileServer: a nodeSelector with a value that no label can have", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "placement: {nodeSelector: {disk: my disk}}")))
		})},
		{"FileServer: a node affinity without values", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
				"{nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In}]}]}}}")))
		})},
		{"FileServer: a label of pods that there can't be", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "pods: {labels: {example.org/cost centre: a}}")))
		})},
		{"FileServer: a request of a GPU without a limit", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "resources: {requests: {nvidia.com/gpu: 1}}")))
		})},
		{"FileServer: tolerations of namespace servers without a key", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "namespaceServers: {placement: {tolerations: [{effect: NoSchedule}]}}")))
		})},
		{"FileServer: an annotation of Services that there can't be", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "network: {loadBalancer: {annotations: {metallb.io/address pool: a}}}")))
		})},
		{"FileServer: RequireDualStack where Services have IPv4 addresses only", summaryFor(server, "training", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "network: {loadBalancer: {ipFamilyPolicy: RequireDualStack}}")))
		})},
		{"FileServer: no namespace server runs yet", summaryFor(server, "training", v1alpha1.ReasonNamespaceServersNotReady, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(1).Build())
			runDataServers(namespace, "training")
		})},
		{"FileServer: 80 % of a volume are used", summaryFor(server, "training", v1alpha1.ReasonVolumesNearlyFull, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			filled(namespace, "training-1", 85, v1alpha1.FillAbove80)
		})},
		{"FileServer: a volume is full", summaryFor(server, "training", v1alpha1.ReasonVolumesFull, func(namespace string) {
			create(builders.FileServer(namespace, "training").Replicas(2).Class(fixedClass).Build())
			runEverything(namespace, "training")
			filled(namespace, "training-1", 100, v1alpha1.FillFull)
		})},
		{"FileServer: a data server that does not answer", summaryFor(server, "training", v1alpha1.ReasonServersNotReady, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			silent(namespace, "training-1")
		})},
		{"FileServer: fewer servers, with its data in Ceph, while a directory of one that goes is being removed", summaryFor(server, "training", v1alpha1.ReasonDraining, func(namespace string) {
			fs := inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
			directory := builders.ShareDirectory(namespace, "training", "unet3d", "train/7", "training-1")
			directory.Status.State = internalv1.DirectoryRemoving
			createDirectory(directory)
			change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 })
		})},
		{"FileServer: a data server to drain whose directories may not be copied, and one that there is not", summaryFor(server, "training", v1alpha1.ReasonNotDrained, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			createDirectory(builders.ShareDirectory(namespace, "training", "unet3d", "train/7", "training-1"))
			change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) {
				fs.Spec.Drain = &v1alpha1.Drain{Servers: []string{"training-1", "training-5"}}
			})
			Eventually(func() bool {
				return exists(&internalv1.DataServer{}, namespace, "training-1").RefusesNewDirectories()
			}, timeout).Should(BeTrue())
			loadConfigurations(namespace, "training")
		})},
		{"FileServer: deleted while shares use it", summaryFor(server, "training", v1alpha1.ReasonInUse, func(namespace string) {
			shared(namespace, data(namespace).Build())
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileServer{}, namespace, "training"))).To(Succeed())
		})},

		{"MLPerfStorageJob: a label of pods that there can't be", summaryFor(job, "unet3d", v1alpha1.ReasonInvalidSpec, func(namespace string) {
			create(parse(namespace, jobYAML(twoH100, "pods: {labels: {team: my team}}")))
		})},
		{"FileShare: made again, and the volumes have not been searched for its data yet", summaryFor(share, "data", v1alpha1.ReasonInventoryPending, func(namespace string) {
			goneOnce(namespace)
			create(data(namespace).Directories("d0").Build())
			for _, name := range []string{"training-0", "training-1"} {
				Eventually(func() bool { return exportsOf(namespace, name)["data"] != nil }, timeout).Should(BeTrue())
			}
			loadConfigurations(namespace, "training")
			Eventually(func() int {
				return strings.Count(shareCondition(namespace, "data", v1alpha1.FileSharePlaced).Message, "was not checked yet")
			}, timeout).Should(Equal(2))
		})},
		{"FileShare: with its data in Ceph, and the Secret has no entry of it", summaryFor(share, "data", v1alpha1.ReasonExportsPending, func(namespace string) {
			inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
			create(data(namespace).Build())
			refuseExports(namespace, "training", "data", internalv1.ReasonCephUnusable,
				`no entry data.json is in Secret ceph-shares. It must be {"path": its directory in the file system, "user": its cephx user}. Changes take up to two minutes to reach the pods`)
		})},
		{"FileShare: with its place in Ceph to be made, and the steward has not made it yet", summaryFor(share, "data", v1alpha1.ReasonStoragePending, func(namespace string) {
			provisioned(namespace, "training", 2)
			create(data(namespace).Build())
			Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareExported).Message }, timeout).
				Should(Equal("the steward has not made the share's place yet"))
		})},
		{"FileShare: with its place in Ceph to be made, and Ceph refuses", summaryFor(share, "data", v1alpha1.ReasonStorageUnusable, func(namespace string) {
			provisioned(namespace, "training", 2)
			create(data(namespace).Build())
			tellStorage(namespace, "data.training", conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable,
				"making subvolume howdah-0123456789abcdef0123: Ceph refused it: file system fs1 is full"))
		})},
		{"FileShare: made again, while a data server that may have its data does not answer", summaryFor(share, "data", v1alpha1.ReasonDataServersUnavailable, func(namespace string) {
			goneOnce(namespace)
			silent(namespace, "training-1")
			create(data(namespace).Directories("d0").Build())
			found(namespace, "data", "training-0", internalv1.ShareInventory{})
			Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareInventoried).Message }, timeout).
				Should(ContainSubstring("waiting for training-1"))
		})},
		{"FileShare: the same, and the data on that server is given up (ignoreDataOn)", summaryFor(share, "data", v1alpha1.ReasonDirectoriesPending, func(namespace string) {
			goneOnce(namespace)
			again := data(namespace).Directories("d0").Build()
			again.Spec.IgnoreDataOn = []string{"training-1"}
			create(again)
			found(namespace, "data", "training-0", internalv1.ShareInventory{})
		})},
		{"FileShare: a data server with directories of it does not answer", summaryFor(share, "data", v1alpha1.ReasonDataServersUnavailable, func(namespace string) {
			shared(namespace, data(namespace).Directories("d{0..3}").Build())
			silent(namespace, "training-1")
		})},
		{"FileShare: a directory that a second data server has, too", summaryFor(share, "data", v1alpha1.ReasonDataMisplaced, func(namespace string) {
			shared(namespace, data(namespace).Directories("d0").Build())
			found(namespace, "data", "training-1", internalv1.ShareInventory{
				Misplaced: []internalv1.MisplacedDirectory{{Volume: ptr.To(int32(0)), Path: "d0"}}, MisplacedCount: ptr.To(int32(1)),
			})
		})},
		{"FileShare: layout Single, made again, and two data servers have data of it", summaryFor(share, "data", v1alpha1.ReasonDataInSeveralPlaces, func(namespace string) {
			goneOnce(namespace)
			create(data(namespace).Single().Build())
			for _, name := range []string{"training-0", "training-1"} {
				found(namespace, "data", name, internalv1.ShareInventory{OccupiedVolumes: []int32{0}})
			}
		})},
		{"FileShare: a directory left the list and holds data", summaryFor(share, "data", v1alpha1.ReasonDirectoryInUse, func(namespace string) {
			shared(namespace, data(namespace).Directories("d0", "full").Build())
			change(exists(&v1alpha1.FileShare{}, namespace, "data"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"d0"} })
			Eventually(func() *metav1.Time {
				keepDirectories(namespace, "full")
				return directoriesOf(namespace, "data")["full"].Status.RemovalRefusedTime
			}, timeout).ShouldNot(BeNil())
		})},
		{"FileShare: as many directories as it may have", summaryFor(share, "data", v1alpha1.ReasonTooManyDirectories, func(namespace string) {
			object := data(namespace).Directories("d0").Build()
			object.Spec.MaxDirectories = 1
			shared(namespace, object)
		})},
		{"FileShare: a quota, on volumes", summaryFor(share, "data", v1alpha1.ReasonQuotaUnsupported, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			create(data(namespace).Quota("1Gi").Build())
		})},
		{"FileShare: a quota, in Ceph whose directories Howdah does not make", summaryFor(share, "data", v1alpha1.ReasonQuotaUnsupported, func(namespace string) {
			inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
			create(data(namespace).Quota("1Gi").Build())
		})},
		{"FileShare: a quota below what is used", summaryFor(share, "data", v1alpha1.ReasonQuotaBelowUse, func(namespace string) {
			bounded(namespace, "10Mi", 0, 37)
		})},
		{"FileShare: a quota lowered below what is used", summaryFor(share, "data", v1alpha1.ReasonQuotaBelowUse, func(namespace string) {
			bounded(namespace, "10Mi", 100, 37)
		})},
		{"FileShare: a quota of more than the storage has", summaryFor(share, "data", v1alpha1.ReasonQuotaAboveCapacity, func(namespace string) {
			bounded(namespace, "20Ti", 0, 0)
		})},
		{"FileShare: hot directories, on volumes", summaryFor(share, "data", v1alpha1.ReasonHotDirectoriesUnsupported, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			create(data(namespace).Hot(2).Build())
		})},
		{"FileShare: hot directories that are to be found, on volumes", summaryFor(share, "data", v1alpha1.ReasonHotDirectoriesUnsupported, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			create(data(namespace).FindHot(8, 2).Build())
		})},
		{"FileShare: a path of hot directories that can't be expanded", summaryFor(share, "data", v1alpha1.ReasonInvalidHotDirectories, func(namespace string) {
			inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
			create(data(namespace).Hot(2, "train/{0..3}").Build())
		})},
		{"FileShare: nine tenths of its quota are used", summaryFor(share, "data", v1alpha1.ReasonQuotaNearlyUsed, func(namespace string) {
			bounded(namespace, "100Mi", 100, 90)
		})},
		{"FileShare: from a snapshot that is not there", summaryFor(share, "restored", v1alpha1.ReasonSnapshotNotFound, func(namespace string) {
			provisioned(namespace, "training", 1)
			create(fromNow(namespace).Build())
		})},
		{"FileShare: from a snapshot that is not Ready", summaryFor(share, "restored", v1alpha1.ReasonSnapshotNotReady, func(namespace string) {
			stewarded(namespace, data(namespace).Build())
			create(newSnapshot(namespace, "now", "data"))
			expectSnapshot(namespace, "now", v1alpha1.ReasonProgressing)
			create(fromNow(namespace).Build())
			Eventually(func() string { return shareCondition(namespace, "restored", v1alpha1.FileSharePlaced).Message }, timeout).
				Should(ContainSubstring("has not made the snapshot yet"))
		})},
		{"FileShare: from a snapshot, on volumes", summaryFor(share, "restored", v1alpha1.ReasonCloneRefused, func(namespace string) {
			servingFileServer(namespace, "training", 2)
			create(fromNow(namespace).Build())
		})},
		{"FileShare: from a snapshot, in Ceph whose directories Howdah does not make", summaryFor(share, "restored", v1alpha1.ReasonCloneRefused, func(namespace string) {
			inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
			create(fromNow(namespace).Build())
		})},
		{"FileShare: from a snapshot of a share of another depth", summaryFor(share, "restored", v1alpha1.ReasonCloneRefused, func(namespace string) {
			snapshotted(namespace, 37)
			create(fromNow(namespace).Depth(2).Build())
		})},
		{"FileShare: from a snapshot that is larger than its quota", summaryFor(share, "restored", v1alpha1.ReasonQuotaBelowUse, func(namespace string) {
			snapshotted(namespace, 37)
			create(fromNow(namespace).Quota("10Mi").Build())
		})},
		{"FileShare: from a snapshot, while it is copied", summaryFor(share, "restored", v1alpha1.ReasonCloning, func(namespace string) {
			snapshotted(namespace, 37)
			create(fromNow(namespace).Build())
			tellClone(namespace, v1alpha1.ReasonCloning, "Ceph copies snapshot now of share data since 2026-11-22T03:04:05Z: in-progress")
			Eventually(func() string { return shareCondition(namespace, "restored", v1alpha1.FileShareCloned).Message }, timeout).Should(ContainSubstring("in-progress"))
		})},
		{"FileShare: from a snapshot, and Ceph had no room for the copy", summaryFor(share, "restored", v1alpha1.ReasonCloneFailed, func(namespace string) {
			snapshotted(namespace, 37)
			create(fromNow(namespace).Build())
			tellClone(namespace, v1alpha1.ReasonCloneFailed, "Ceph ended the copy of snapshot now of share data, failed (No space left on device (28)), and does not begin again by itself; "+
				"nothing of it is served: delete this share, which removes what there is of the copy, and make it again")
		})},
		{"FileShare: deleted, and the data servers are not done", summaryFor(share, "data", v1alpha1.ReasonDeleting, func(namespace string) {
			shared(namespace, data(namespace).Build())
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "data"))).To(Succeed())
		})},
	}
}

// withoutRow are the reasons that no row has, and where else they are tried.
var withoutRow = map[string]string{
	v1alpha1.ReasonPending:                 "only before the first pass has ended",
	v1alpha1.ReasonProgressing:             "passes within a second",
	v1alpha1.ReasonPaused:                  "is not the summary's: it has a condition of its own",
	v1alpha1.ReasonStewardFailing:          "repeats what the steward says (steward_test.go)",
	v1alpha1.ReasonExpansionFailing:        "quotes the storage (controllers/backend/volumes, capacity_test.go)",
	v1alpha1.ReasonRookNotReady:            "needs Rook's kinds of objects (rook_test.go)",
	v1alpha1.ReasonStorageFailing:          "repeats what data servers say of Ceph (ceph_test.go)",
	v1alpha1.ReasonStorageDegraded:         "repeats what data servers say of Ceph (ceph_test.go)",
	v1alpha1.ReasonPodsRefused:             "quotes the API server (refused_pods_test.go)",
	v1alpha1.ReasonApplyFailed:             "quotes the API server (apply_test.go)",
	v1alpha1.ReasonConfigPending:           "passes when a data server loads it (status_test.go)",
	v1alpha1.ReasonRollingOut:              "needs data servers that run (rollout_test.go)",
	v1alpha1.ReasonRolloutWaiting:          "needs data servers that run (rollout_test.go)",
	v1alpha1.ReasonRolloutStopped:          "needs data servers that run (rollout_test.go)",
	v1alpha1.ReasonRestartPending:          "needs a data server that runs (status_test.go, fileserver_children_test.go)",
	v1alpha1.ReasonConnectionsNearLimit:    "needs namespace servers that answer (namespace_servers_test.go)",
	v1alpha1.ReasonDirectoriesFrozen:       "needs a move whose objects are lost (controllers/fileserver, copies_test.go)",
	v1alpha1.ReasonFailoverNotAllowed:      "needs an operator without failover (controllers/fileserver, failover_test.go)",
	v1alpha1.ReasonNamespaceNotWatched:     "needs an operator of some namespaces (test/install)",
	v1alpha1.ReasonDataOfDeletedNamespace:  "needs a namespace that was deleted (tenants_test.go)",
	v1alpha1.ReasonDirectoriesMissing:      "needs a directory that was there (missing_test.go)",
	v1alpha1.ReasonDirectoriesElsewhere:    "needs a directory that was moved after the backup (missing_test.go)",
	v1alpha1.ReasonDirectoriesSkipped:      "needs a path of 1,025 characters on a volume (inventory_test.go)",
	v1alpha1.ReasonClockSkewed:             "needs a clock that is wrong (clocks_test.go)",
	v1alpha1.ReasonFileServerNotReady:      "passes when there is a data server (decide_test.go)",
	v1alpha1.ReasonOutsideAddressesPending: "needs a load balancer (outside_test.go)",
	v1alpha1.ReasonOutsideAddressesMissing: "takes two minutes without a load balancer (controllers/fileserver, status_test.go)",
	v1alpha1.ReasonTooManyNodeNetworks:     "needs 16,385 addresses of nodes (decide_test.go)",
	v1alpha1.ReasonTooManyShares:           "needs 4,097 shares (limits_test.go, make bench-shares)",
	v1alpha1.ReasonLimitReached:            "needs spec.limits (limits_test.go)",
	v1alpha1.ReasonGrowthRefused:           "needs spec.limits (limits_test.go)",
	v1alpha1.ReasonSnapshotFailed:          "quotes the storage (snapshots_test.go)",
	v1alpha1.ReasonSnapshotLost:            "needs a snapshot that was there (snapshots_test.go)",
	v1alpha1.ReasonDatasetReady:            "a step of a run (mlperfstoragejob_life_test.go)",
	v1alpha1.ReasonRunning:                 "a step of a run (mlperfstoragejob_life_test.go)",
	v1alpha1.ReasonCompleted:               "the end of a run (mlperfstoragejob_run_test.go)",
	v1alpha1.ReasonUtilizationTooLow:       "the end of a run (mlperfstoragejob_run_test.go)",
	v1alpha1.ReasonMeasurementInvalid:      "the end of a run (mlperfstoragejob_run_test.go)",
	v1alpha1.ReasonClientFailed:            "the end of a run (mlperfstoragejob_run_test.go)",
}

// reasonsOfAPI are the values of all constants Reason… of the package that users see.
func reasonsOfAPI() (reasons []string) {
	GinkgoHelper()
	folder := filepath.Join("..", "..", "api", "v1alpha1")
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) == 0 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				Expect(err).NotTo(HaveOccurred())
				reasons = append(reasons, value)
			}
			return true
		})
	}
	Expect(len(reasons)).To(BeNumerically(">", 40))
	return reasons
}

var _ = Describe("Each reason", func() {
	It("is in the catalogue of messages, or the test is named that has it", func() {
		text, err := os.ReadFile(filepath.Join("testdata", "messages.md"))
		Expect(err).NotTo(HaveOccurred())
		left := maps.Clone(withoutRow)
		for _, reason := range reasonsOfAPI() {
			hasRow := strings.Contains(string(text), ", "+reason+")") || strings.Contains(string(text), ", "+reason+", ")
			_, excused := withoutRow[reason]
			Expect(hasRow).NotTo(Equal(excused), "reason %s: a row in messages_cases_test.go or messages_waits_test.go (then -update), or an entry of withoutRow; not both", reason)
			delete(left, reason)
		}
		Expect(slices.Collect(maps.Keys(left))).To(BeEmpty(), "these reasons are no more")
	})
})
