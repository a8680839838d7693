package integration

import (
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// jobYAML is a valid job with lines of its own below spec.
func jobYAML(lines ...string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: MLPerfStorageJob\nmetadata: {name: unet3d}\nspec:\n  fileShareRef: {name: data}\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

const twoH100 = "accelerator: {type: H100, count: 2}"

func refusals() []mistake {
	share := func(lines ...string) string { return fileShareYAML("data", "/data", lines...) }
	return []mistake{
		{"FileServer: size `10 GB`", refused(fileServerYAML("training", "size: 10 GB"))},
		{"FileServer: size `1Mi`", refused(fileServerYAML("training", "size: 1Mi"))},
		{"FileServer: sharedFileSystemPolicy `yes`", refused(fileServerYAML("training", "size: 1Gi, sharedFileSystemPolicy: \"yes\""))},
		{"FileServer: no size", refused(fileServerYAML("training", "perServer: 1"))},
		{"FileServer: no storage", refused("apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: training}\nspec: {replicas: 3}\n")},
		{"FileServer: storage without a back end", refused("apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: training}\nspec: {storage: {}}\n")},
		{"FileServer: replicas 0", refused(fileServerYAML("training", "size: 1Gi", "replicas: 0"))},
		{"FileServer: replicas 100", refused(fileServerYAML("training", "size: 1Gi", "replicas: 100"))},
		{"FileServer: a name with a dot", refused(fileServerYAML("training.v1", "size: 1Gi"))},
		{"FileServer: a name of 41 characters", refused(fileServerYAML(strings.Repeat("a", 41), "size: 1Gi"))},
		{"FileServer: a grace period shorter than the lease", refused(fileServerYAML("training", "size: 1Gi", "nfs: {leaseSeconds: 60, graceSeconds: 30}"))},
		{"FileServer: spec.namespace, the word of before", refused(fileServerYAML("training", "size: 1Gi", "namespace: {replicas: 2}"))},
		{"FileServer: a name of a host among additionalNodeNetworks", refused(fileServerYAML("training", "size: 1Gi", "additionalNodeNetworks: [node1]"))},
		{"FileServer: an address in addressesIn", refused(fileServerYAML("training", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.7]}}", "additionalNodeNetworks: [10.20.0.7]"))},
		{"FileServer: a loopback network in addressesIn", refused(fileServerYAML("training", "size: 1Gi", "network: {hostNetwork: {addressesIn: [127.0.0.0/8]}}", "additionalNodeNetworks: [127.0.0.0/8]"))},
		{"FileServer: addressesIn without these addresses in additionalNodeNetworks", refused(fileServerYAML("training", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.0/16]}}"))},
		{"FileServer: smaller volumes", refused(fileServerYAML("training", "size: 2Gi"), fileServerYAML("training", "size: 1Gi"))},
		{"FileServer: another StorageClass", refused(fileServerYAML("training", "size: 1Gi"), fileServerYAML("training", "size: 1Gi, storageClassName: fixed"))},
		{"FileServer: more volumes for each server", refused(fileServerYAML("training", "size: 1Gi"), fileServerYAML("training", "size: 1Gi, perServer: 2"))},

		{"FileServer: volumes and Ceph", refused(strings.Replace(cephYAML("training"), "storage:", "storage:\n    volumes: {size: 1Gi}", 1))},
		{"FileServer: Ceph without a cluster", refused("apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: training}\nspec: {storage: {ceph: {}}}\n")},
		{"FileServer: a Ceph monitor without a port", refused(cephYAML("training", `monitors: ["10.0.0.1"]`))},
		{"FileServer: a Ceph monitor by name", refused(cephYAML("training", `monitors: ["mon.example.org:3300"]`))},
		{"FileServer: no Ceph monitors", refused(cephYAML("training", "monitors: []"))},
		{"FileServer: a file system's name as the fsid", refused(cephYAML("training", "fsid: fs1"))},
		{"FileServer: no fsid", refused(without(cephYAML("training"), "fsid"))},
		{"FileServer: a Ceph user with client. before it", refused(cephYAML("training", "recoveryUser: client.howdah-rec"))},
		{"FileServer: another fsid", refused(cephYAML("training"), cephYAML("training", "fsid: 00000000-3b1d-4c55-9a77-0d6f7f0a1b2c"))},
		{"FileServer: another Ceph file system", refused(cephYAML("training"), cephYAML("training", "fileSystem: fs2"))},
		{"FileServer: another recovery pool", refused(cephYAML("training"), cephYAML("training", "recoveryPool: other"))},
		{"FileServer: another recovery user", refused(cephYAML("training"), cephYAML("training", "recoveryUser: other"))},
		{"FileServer: Ceph instead of volumes", refused(fileServerYAML("training", "size: 1Gi"), strings.Replace(cephYAML("training"), "storage:", "storage:\n    volumes: null", 1))},

		{"FileServer: chosen namespaces and no selector", refused(fileServerYAML("training", "size: 1Gi", "allowedNamespaces: {from: Selector}"))},
		{"FileServer: a selector without from", refused(fileServerYAML("training", "size: 1Gi", "allowedNamespaces: {selector: {matchLabels: {team: a}}}"))},
		{"FileServer: an empty selector", refused(fileServerYAML("training", "size: 1Gi", "allowedNamespaces: {from: Selector, selector: {}}"))},
		{"FileServer: a selector with operator `=`", refused(fileServerYAML("training", "size: 1Gi",
			"allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: \"=\", values: [a]}]}}"))},
		{"FileServer: a selector In without values", refused(fileServerYAML("training", "size: 1Gi",
			"allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: In}]}}"))},

		{"FileShare: path `s2`", refused(fileShareYAML("data", "s2"))},
		{"FileShare: path `/`", refused(fileShareYAML("data", "/"))},
		{"FileShare: path `/data/`", refused(fileShareYAML("data", "/data/"))},
		{"FileShare: path `/a/b/c`", refused(fileShareYAML("data", "/a/b/c"))},
		{"FileShare: a client `myhost`", refused(share("access: [{clients: [myhost]}]"))},
		{"FileShare: a client `10.0.0.0/33`", refused(share("access: [{clients: [10.0.0.0/33]}]"))},
		{"FileShare: clients `nodes`", refused(share("access: [{clients: [nodes]}]"))},
		{"FileShare: an access rule without clients", refused(share("access: [{clients: []}]"))},
		{"FileShare: access mode, the word of before", refused(share("access: [{clients: [10.0.0.1], mode: ReadOnly}]"))},
		{"FileShare: mode `\"0788\"`", refused(share(`mode: "0788"`))},
		{"FileShare: mode 0755 without quotes", refused(share(`mode: 0755`))},
		{"FileShare: uid -1", refused(share("uid: -1"))},
		{"FileShare: owner, the word of before", refused(share("owner: 1000"))},
		{"FileShare: depth 9", refused(share("depth: 9"))},
		{"FileShare: a directory `/train`", refused(share("directories: [/train]"))},
		{"FileShare: a directory `train/../x`", refused(share("depth: 3", "directories: [train/../x]"))},
		{"FileShare: a directory `my data`", refused(share("directories: [my data]"))},
		{"FileShare: the same directory twice", refused(share("directories: [a, a]"))},
		{"FileShare: layout Single and a depth", refused(share("layout: Single", "depth: 2"))},
		{"FileShare: layout `single`", refused(share("layout: single"))},
		{"FileShare: fileServerName, the word of before", refused("apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: data}\nspec: {fileServerName: training, path: /data}\n")},
		{"FileShare: a FileServer of namespace `Storage`", refused("apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: data}\n" +
			"spec: {fileServerRef: {name: training, namespace: Storage}, path: /data}\n")},
		{"FileShare: a FileServer of another namespace, later", refused(share(), "apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: data}\n"+
			"spec: {fileServerRef: {name: training, namespace: storage}, path: /data}\n")},
		{"FileShare: a quota of `10 GB`", refused(share("quota: {size: 10 GB}"))},
		{"FileShare: a quota of 1Mi", refused(share("quota: {size: 1Mi}"))},
		{"FileShare: a quota of 0", refused(share("quota: {size: 0}"))},
		{"FileShare: a quota of 2Ei", refused(share("quota: {size: 2Ei}"))},
		{"FileShare: a quota without a size", refused(share("quota: {}"))},
		{"FileShare: a source without a snapshot", refused(share("source: {}"))},
		{"FileShare: a source, later", refused(share(), share("source: {snapshotRef: {name: now}}"))},
		{"FileShare: another source", refused(share("source: {snapshotRef: {name: now}}"), share("source: {snapshotRef: {name: then}}"))},
		{"FileShare: no source any more", refused(share("source: {snapshotRef: {name: now}}"), share("source: null"))},
		{"FileShare: quota: 10Gi, without the word size", refused(share("quota: 10Gi"))},
		{"FileShare: another path", refused(share(), fileShareYAML("data", "/other"))},
		{"FileShare: another depth", refused(share(), share("depth: 2"))},

		{"FileShareSnapshot: a name with a dot", refused(snapshotYAML("before.upgrade", "data"))},
		{"FileShareSnapshot: another share", refused(snapshotYAML("now", "data"), snapshotYAML("now", "other"))},
		{"FileShareSnapshotSchedule: schedule `every night`", refused(scheduleYAML("nightly", "every night", "retention: {keepLast: 7}"))},
		{"FileShareSnapshotSchedule: schedule `@every 1h`", refused(scheduleYAML("nightly", "@every 1h", "retention: {keepLast: 7}"))},
		{"FileShareSnapshotSchedule: a time zone in the schedule", refused(scheduleYAML("nightly", "TZ=Europe/Berlin 0 3 * * *", "retention: {keepLast: 7}"))},
		{"FileShareSnapshotSchedule: timeZone `+01:00`", refused(scheduleYAML("nightly", "0 3 * * *", "retention: {keepLast: 7}", `timeZone: "+01:00"`))},
		{"FileShareSnapshotSchedule: no retention", refused(scheduleYAML("nightly", "0 3 * * *"))},
		{"FileShareSnapshotSchedule: retention of nothing", refused(scheduleYAML("nightly", "0 3 * * *", "retention: {}"))},
		{"FileShareSnapshotSchedule: suspend: true, as of CronJobs", refused(scheduleYAML("nightly", "0 3 * * *", "retention: {keepLast: 7}", "suspend: true"))},
		{"FileShareSnapshotSchedule: a name of 41 characters", refused(scheduleYAML(strings.Repeat("a", 41), "0 3 * * *", "retention: {keepLast: 7}"))},

		{"MLPerfStorageJob: no accelerator", refused(jobYAML("clients: 1"))},
		{"MLPerfStorageJob: accelerator B200", refused(jobYAML("accelerator: {type: B200, count: 1}"))},
		{"MLPerfStorageJob: 3 accelerators for 2 clients", refused(jobYAML("accelerator: {type: H100, count: 3}", "clients: 2"))},
		{"MLPerfStorageJob: 7 samples for 2 accelerators", refused(jobYAML(twoH100, "dataset: {samples: 7}"))},
		{"MLPerfStorageJob: sampleSize `400 kB`", refused(jobYAML(twoH100, "dataset: {sampleSize: 400 kB}"))},
		{"MLPerfStorageJob: 32 connections", refused(jobYAML(twoH100, "mount: {nconnect: 32}"))},
		{"MLPerfStorageJob: suspend: true, as of batch Jobs", refused(jobYAML(twoH100, "suspend: true"))},
		{"MLPerfStorageJob: other epochs", refused(jobYAML(twoH100), jobYAML(twoH100, "epochs: 1"))},
	}
}

func statuses() []mistake {
	const server, share, job = "FileServer", "FileShare", "MLPerfStorageJob"
	const snapshot, schedule = "FileShareSnapshot", "FileShareSnapshotSchedule"
	apply := func(texts ...string) func(string) {
		return func(namespace string) {
			for _, text := range texts {
				Expect(admin.Create(ctx, parse(namespace, text))).To(Succeed())
			}
		}
	}
	serving := func(namespace string, replicas int32) { servingFileServer(namespace, "training", replicas) }
	return []mistake{
		{"FileServer: a StorageClass that does not exist", summaryFor(server, "training", v1alpha1.ReasonStorageClassNotFound,
			apply(fileServerYAML("training", "size: 1Gi, storageClassName: fast")))},
		{"FileServer: the first minute", summaryFor(server, "training", v1alpha1.ReasonClaimsPending, apply(fileServerYAML("training", "size: 1Gi", "replicas: 2")))},
		{"FileServer: larger volumes of a class that can't expand them", summaryFor(server, "training", v1alpha1.ReasonExpansionRefused, func(namespace string) {
			fs := builders.FileServer(namespace, "training").Replicas(1).Class(fixedClass).Build()
			create(fs)
			runEverything(namespace, fs.Name)
			change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Storage.Volumes.Size = quantity("2Gi") })
		})},
		{"FileServer: fewer servers while directories are on them", summaryFor(server, "training", v1alpha1.ReasonScaleInRefused, func(namespace string) {
			fs := builders.FileServer(namespace, "training").Replicas(2).Build()
			create(fs)
			runEverything(namespace, fs.Name)
			createDirectory(builders.ShareDirectory(namespace, "training", "unet3d", "train/7", "training-1"))
			change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 })
		})},
		{"FileServer: volumes that are directories of the nodes' disks, as kind makes them", summaryFor(server, "training", v1alpha1.ReasonVolumeRefused,
			func(namespace string) {
				onLocalPaths(namespace, "training", "")
				expectLocalPaths(namespace, "training", metav1.ConditionFalse, v1alpha1.ReasonVolumeRefused, "2 of 2")
			})},
		{"FileServer: the same, and they are allowed", summaryFor(server, "training", v1alpha1.ReasonSharedFileSystems, func(namespace string) {
			onLocalPaths(namespace, "training", v1alpha1.SharedFileSystemAllow)
			expectLocalPaths(namespace, "training", metav1.ConditionTrue, v1alpha1.ReasonSharedFileSystems, "data-0-training-1")
		})},
		{"FileServer: a Ceph whose Secret is not there", summaryFor(server, "training", v1alpha1.ReasonCephUnusable, func(namespace string) {
			inCeph(namespace, "training", 2)
			cephAtFault(namespace, "training", "there is no Secret ceph-shares, or it is empty. "+
				"It must have an entry client.howdah-rec-training.keyring: what ceph auth get client.howdah-rec-training prints. Changes take up to two minutes to reach the pods")
		})},
		{"FileServer: it serves from Ceph", summaryFor(server, "training", v1alpha1.ReasonReady, func(namespace string) {
			inCeph(namespace, "training", 2)
			runEverything(namespace, "training")
		})},
		{"FileServer: it serves", summaryFor(server, "training", v1alpha1.ReasonReady, func(namespace string) { serving(namespace, 2) })},

		{"FileShare: a FileServer that does not exist", summaryFor(share, "data", v1alpha1.ReasonFileServerNotFound, apply(fileShareYAML("data", "/data")))},
		{"FileShare: a FileServer of another namespace, that does not exist or does not allow it", summaryFor(share, "data", v1alpha1.ReasonNamespaceNotAllowed,
			apply("apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: data}\nspec: {fileServerRef: {name: training, namespace: storage}, path: /data}\n"))},
		{"FileShare: the path of a share of another namespace", summaryFor(share, "data", v1alpha1.ReasonPathConflict, func(namespace string) {
			storage := sharedFileServer(1)
			choose(namespace, true)
			create(builders.FileShare(storage, "own", "fs").Path("/data").Build())
			readyShare(storage, "own")
			create(builders.FileShare(namespace, "data", "fs").OnNamespace(storage).Build())
		})},
		{"FileShare: a FileServer that is just being made", summaryFor(share, "data", v1alpha1.ReasonExportsPending,
			apply(fileServerYAML("training", "size: 1Gi", "replicas: 1"), fileShareYAML("data", "/data")))},
		{"FileShare: the path of another share", summaryFor(share, "other", v1alpha1.ReasonPathConflict, func(namespace string) {
			apply(fileShareYAML("data", "/data"))(namespace)
			expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonFileServerNotFound)
			apply(fileShareYAML("other", "/data"))(namespace)
			serving(namespace, 1)
		})},
		{"FileShare: a path in another share", summaryFor(share, "other", v1alpha1.ReasonPathConflict, func(namespace string) {
			apply(fileShareYAML("data", "/data"))(namespace)
			expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonFileServerNotFound)
			apply(fileShareYAML("other", "/data/more"))(namespace)
			serving(namespace, 1)
		})},
		{"FileShare: a directory of another depth", summaryFor(share, "data", v1alpha1.ReasonInvalidDirectories, func(namespace string) {
			serving(namespace, 1)
			apply(fileShareYAML("data", "/data", "depth: 2", "directories: [train]"))(namespace)
		})},
		{"FileShare: a brace that is not closed", summaryFor(share, "data", v1alpha1.ReasonInvalidDirectories, func(namespace string) {
			serving(namespace, 1)
			apply(fileShareYAML("data", "/data", `directories: ["train{0..5"]`))(namespace)
		})},
		{"FileShare: a claim of its name is there", summaryFor(share, "data", v1alpha1.ReasonNameTaken, func(namespace string) {
			create(&corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.ShareClaim("data")},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *quantity("1Gi")}},
				},
			})
			serving(namespace, 1)
			apply(fileShareYAML("data", "/data"))(namespace)
			for range 100 { // the volume is known when Kubernetes says so
				takeOnVolume(namespace, "data")
				loadConfigurations(namespace, "training")
				if shareCondition(namespace, "data", v1alpha1.ConditionReady).Reason == v1alpha1.ReasonNameTaken {
					break
				}
				Consistently(func() bool { return true }, "100ms").Should(BeTrue())
			}
		})},

		{"FileShareSnapshot: a FileShare that does not exist", summaryFor(snapshot, "now", v1alpha1.ReasonFileShareNotFound, apply(snapshotYAML("now", "data")))},
		{"FileShareSnapshot: a FileShare that is not ready", summaryFor(snapshot, "now", v1alpha1.ReasonWaitingForShare, func(namespace string) {
			apply(fileShareYAML("data", "/data"))(namespace)
			expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonFileServerNotFound)
			apply(snapshotYAML("now", "data"))(namespace)
		})},
		{"FileShareSnapshot: of a share on volumes", summaryFor(snapshot, "now", v1alpha1.ReasonSnapshotsUnsupported,
			apply(fileServerYAML("training", "size: 1Gi"), fileShareYAML("data", "/data"), snapshotYAML("now", "data")))},
		{"FileShareSnapshot: of a share in Ceph whose directories exist already", summaryFor(snapshot, "now", v1alpha1.ReasonSnapshotsUnsupported,
			apply(cephYAML("training"), fileShareYAML("data", "/data"), snapshotYAML("now", "data")))},
		{"FileShareSnapshotSchedule: of a share on volumes", summaryFor(schedule, "nightly", v1alpha1.ReasonSnapshotsUnsupported,
			apply(fileServerYAML("training", "size: 1Gi"), fileShareYAML("data", "/data"), scheduleYAML("nightly", "0 3 * * *", "retention: {keepLast: 7}")))},
		{"FileShareSnapshotSchedule: an hour that is none", summaryFor(schedule, "nightly", v1alpha1.ReasonInvalidSpec,
			apply(scheduleYAML("nightly", "0 25 * * *", "retention: {keepLast: 7}")))},
		{"FileShareSnapshotSchedule: no such time zone", summaryFor(schedule, "nightly", v1alpha1.ReasonInvalidSpec,
			apply(scheduleYAML("nightly", "0 3 * * *", "retention: {keepLast: 7}", "timeZone: Europe/Atlantis")))},
		{"FileShareSnapshotSchedule: suspended", summaryFor(schedule, "nightly", v1alpha1.ReasonSuspended,
			apply(scheduleYAML("nightly", "0 3 * * *", "retention: {keepLast: 7}", "execution: Suspended")))},

		{"MLPerfStorageJob: a FileShare that does not exist", summaryFor(job, "unet3d", v1alpha1.ReasonFileShareNotFound, apply(jobYAML(twoH100)))},
		{"MLPerfStorageJob: a FileShare that is not ready", summaryFor(job, "unet3d", v1alpha1.ReasonWaitingForShare, func(namespace string) {
			apply(fileShareYAML("data", "/data"))(namespace)
			expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonFileServerNotFound)
			apply(jobYAML(twoH100))(namespace)
		})},
		{"MLPerfStorageJob: the first moment", summaryFor(job, "verdict", v1alpha1.ReasonPreparing, func(namespace string) {
			readyBenchmarkShare(namespace)
			create(mlperfJob(namespace, "verdict", "unet3d"))
		})},
		{"MLPerfStorageJob: more clients than nodes", summaryFor(job, "unet3d", v1alpha1.ReasonGeneratingDataset, func(namespace string) {
			readyBenchmarkShare(namespace)
			create(mlperfJob(namespace, "unet3d", "unet3d"))
			clientPod(namespace, generating(namespace, "unet3d").Name, "1", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."},
			}})
			Eventually(func() string {
				return expectJob(namespace, "unet3d", metav1.ConditionUnknown, v1alpha1.ReasonGeneratingDataset)
			}, timeout).Should(ContainSubstring("client 1"))
		})},
		{"MLPerfStorageJob: suspended", summaryFor(job, "unet3d", v1alpha1.ReasonSuspended, apply(jobYAML(twoH100, "execution: Suspended")))},
		{"MLPerfStorageJob: a deadline that is over", summaryFor(job, "unet3d", v1alpha1.ReasonDeadlineExceeded, apply(jobYAML(twoH100, "activeDeadlineSeconds: 1")))},
	}
}
