package view

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// advice is what to do about a reason. Where it is "" nothing is to be done but to wait, or the message says it all. Messages of
// conditions name the field at fault; this says what they can't know. A test holds it to all reasons of the API.
var advice = map[string]string{
	v1alpha1.ReasonReady:       "",
	v1alpha1.ReasonPending:     "",
	v1alpha1.ReasonProgressing: "",
	v1alpha1.ReasonPaused: "The object has the annotation howdah.io/paused: the operator changes nothing of it. To go on: " +
		"kubectl annotate OBJECT howdah.io/paused-",
	v1alpha1.ReasonDeleting:    "",
	v1alpha1.ReasonApplyFailed: "The API server refuses an object that the operator makes; the message quotes it. A quota, an admission policy or Pod Security is the usual reason: change that, or what the object asks for. The operator tries again by itself.",
	v1alpha1.ReasonNameTaken:   "An object of that name exists and is not Howdah's. Delete or rename it, or choose another name.",
	v1alpha1.ReasonInvalidSpec: "Correct the field that the message names.",

	v1alpha1.ReasonServersNotReady:          "",
	v1alpha1.ReasonNamespaceServersNotReady: "Clients that have mounted wait until a namespace server is back; look at the pods above.",
	v1alpha1.ReasonStorageClassNotFound:     "Create the StorageClass, or make the FileServer again with one that exists (kubectl get storageclass); the class can't be changed.",
	v1alpha1.ReasonClaimsPending:            "A claim waits for its volume: kubectl describe pvc names the provisioner's reason. With volumeBindingMode WaitForFirstConsumer it waits for the pod first.",
	v1alpha1.ReasonExpansionRefused:         "Set spec.storage.volumes.size back, or allow expansion in the StorageClass (allowVolumeExpansion: true) if its provisioner can.",
	v1alpha1.ReasonVolumeRefused: "A claim that has another volume than before: bring the volume back, or give it up as the message says. A volume that is no file system of its own: give the data server volumes that are file systems of their own (a CSI driver for disks). For a trial on local-path volumes, " +
		"and only with clients that you trust: spec.storage.volumes.sharedFileSystemPolicy: Allow. See docs/operate/security.md#file-handles.",
	v1alpha1.ReasonCephUnusable: "Mend what the message names: the Secret of spec.storage.ceph.external.sharesSecretRef, the monitors, or the user in Ceph. The data servers try again by themselves, a changed Secret reaches them within two minutes. " +
		"See docs/operate/ceph.md.",
	v1alpha1.ReasonStewardFailing:       "Shares that are served go on. Mend what the message names; the steward tries again by itself. kubectl logs deployment/NAME-steward has its log. See docs/operate/ceph.md.",
	v1alpha1.ReasonRookNotReady:         "Mend what the message names with Rook's own objects; the operator goes on by itself. Shares that are served go on. See docs/operate/ceph.md#a-ceph-of-rooks.",
	v1alpha1.ReasonStorageFailing:       "Mend in Ceph what the message names. Clients with hard mounts go on by themselves; writes to a full cluster end with an error, and have to be done again. See docs/operate/ceph.md#when-ceph-fails.",
	v1alpha1.ReasonStorageDegraded:      "Everything is served. Mend in Ceph what the message names before a second fault meets it. See docs/operate/ceph.md#when-ceph-fails.",
	v1alpha1.ReasonSharedFileSystems:    "Fine for trials with clients that you trust; see docs/operate/security.md#file-handles.",
	v1alpha1.ReasonConfigPending:        "",
	v1alpha1.ReasonTooFewNodes:          "Add nodes, uncordon them, loosen spec.placement, or lower spec.replicas.",
	v1alpha1.ReasonServersShareNodes:    "Add nodes, uncordon them or loosen spec.placement: two data servers on one node share its network and fall together.",
	v1alpha1.ReasonConnectionsNearLimit: "Raise spec.nfs.maxConnections or the memory in spec.resources (of the front door: spec.namespaceServers.resources), or mount with a smaller nconnect. kubectl howdah clients shows who has them.",
	v1alpha1.ReasonScaleInRefused:       "Directories can't move between volumes: empty those that the message names (rmdir), or set spec.replicas back.",
	v1alpha1.ReasonDraining:             "Clients that have a data server mounted are waited for: kubectl howdah clients shows who they are. Ending them, or a smaller spec.drain.timeoutSeconds, makes it shorter; setting spec.replicas or spec.drain.servers back ends it.",
	v1alpha1.ReasonTooManyNodeNetworks:  "Name the networks that nodes are in, and no pods, in spec.additionalNodeNetworks: what is inside of them needs no place of its own.",
	v1alpha1.ReasonInUse:                "Delete the FileShares, or the pods, that still use it first; until then nothing is removed.",

	v1alpha1.ReasonFileServerNotFound:     "Create the FileServer. A share's fileServerRef can't be changed: if the name is wrong make the share again.",
	v1alpha1.ReasonNamespaceNotAllowed:    "Whoever keeps the FileServer must allow this namespace in its spec.allowedNamespaces; or the name is wrong: then make the share again.",
	v1alpha1.ReasonNamespaceNotWatched:    "Whoever installed Howdah must add the FileServer's namespace to the chart's watchNamespaces; or the name is wrong: then make the share again.",
	v1alpha1.ReasonFileServerNotReady:     "",
	v1alpha1.ReasonPathConflict:           "Paths can't be changed: make this share again with another spec.path, or delete the other share.",
	v1alpha1.ReasonLimitReached:           "Whoever runs the FileServer raises the field that the message names, and the memory that docs/operate/sizing.md has for it; or remove shares, directories or access rules.",
	v1alpha1.ReasonGrowthRefused:          "The share is served as it was. Whoever runs the FileServer raises the field that the message names; or take back what was added.",
	v1alpha1.ReasonTooManyShares:          "Delete a share of the FileServer, or make this one on another FileServer.",
	v1alpha1.ReasonInvalidDirectories:     "Correct spec.directories as the message says.",
	v1alpha1.ReasonDirectoryInUse:         "List the directory again, or empty it and remove it with rmdir.",
	v1alpha1.ReasonTooManyDirectories:     "Raise spec.maxDirectories, or remove directories.",
	v1alpha1.ReasonDataServersUnavailable: "Directories of those data servers wait, nothing of them is lost; clients with hard mounts go on by themselves.",
	v1alpha1.ReasonDataOfDeletedNamespace: "The FileServer's administrator hands the data over by spec.dataHandovers, as the message says, or the share gets another name.",
	v1alpha1.ReasonClockSkewed:            "Set the clock that the message names (NTP) on its machine; snapshots are made meanwhile, and none is deleted too early.",
	v1alpha1.ReasonInventoryPending:       "If a data server never comes back, give up its data of this share by spec.ignoreDataOn.",
	v1alpha1.ReasonDirectoriesSkipped:     "Rename those directories on the data server's volume: shorter, and in UTF-8.",
	v1alpha1.ReasonDataMisplaced:          "Clients don't see those copies. Look at them on the data server, keep what is needed, and remove them there.",
	v1alpha1.ReasonDataInSeveralPlaces:    "Decide which data server's data counts, and name the others in spec.ignoreDataOn.",
	v1alpha1.ReasonStoragePending:         "",
	v1alpha1.ReasonStorageUnusable:        "Mend in Ceph what the message names; the FileServer's steward tries again by itself. kubectl get sharestorages has the share's subvolume and user. See docs/operate/ceph.md.",
	v1alpha1.ReasonExportsPending:         "",
	v1alpha1.ReasonDirectoriesMissing: "Bring back the volume that had them, or a restored copy. What is given up by spec.acceptedLosses is gone for clients: declared directories are made again, empty. " +
		"See docs/kinds/fileshare.md#missing-directories.",
	v1alpha1.ReasonDirectoriesPending: "",
	v1alpha1.ReasonQuotaUnsupported:   "The share is served, and may fill what the storage has. See docs/kinds/fileshare.md#quota.",
	v1alpha1.ReasonQuotaBelowUse:      "The quota is lowered by itself as soon as the share's files take less. Who wants it as it was sets spec.quota.size back.",
	v1alpha1.ReasonQuotaAboveCapacity: "Lower spec.quota.size. It is set by itself as soon as the storage has that much.",
	v1alpha1.ReasonQuotaNearlyUsed:    "Raise spec.quota.size, which counts at once, or remove files.",

	v1alpha1.ReasonSnapshotNotFound: "kubectl get filesharesnapshots. A share's source can't be changed: if the name is wrong make the share again.",
	v1alpha1.ReasonCloning:          "The storage copies in the background, and hours may pass. Nothing of the share can be used before; its claim comes when it can.",
	v1alpha1.ReasonCloneRefused:     "A share's source can't be changed: make the share again as the message says. See docs/kinds/fileshare.md#from-a-snapshot.",
	v1alpha1.ReasonCloneFailed:      "Nothing of the copy is served. Mend what the storage says, then delete the share and make it again. See docs/kinds/fileshare.md#from-a-snapshot.",

	v1alpha1.ReasonSnapshotsUnsupported: "Snapshots need a FileServer with spec.storage.ceph that Howdah may provision in. docs/kinds/filesharesnapshot.md says what else there is.",
	v1alpha1.ReasonSnapshotFailed:       "The steward tries again by itself. The message quotes the storage: too many snapshots of the share go away by deleting FileShareSnapshots of it.",
	v1alpha1.ReasonSnapshotLost:         "The snapshot is gone. Delete this object, and make one of another name for a new snapshot.",
	v1alpha1.ReasonSnapshotNotReady:     "kubectl howdah explain the FileShareSnapshot that the message names. Deleting it lets a schedule go on without it.",

	v1alpha1.ReasonFileShareNotFound:        "Create the FileShare. What refers to it can't be changed: if the name is wrong make the job, the snapshot or the schedule again.",
	v1alpha1.ReasonWaitingForShare:          "",
	v1alpha1.ReasonPreparing:                "",
	v1alpha1.ReasonSuspended:                "To go on: kubectl patch the job, or the schedule, with spec.execution: Active.",
	v1alpha1.ReasonDeadlineExceeded:         "Make the job again with a longer spec.activeDeadlineSeconds, or a smaller dataset.",
	v1alpha1.ReasonGeneratingDataset:        "",
	v1alpha1.ReasonDatasetReady:             "",
	v1alpha1.ReasonRunning:                  "",
	v1alpha1.ReasonCompleted:                "",
	v1alpha1.ReasonUtilizationTooLow:        "kubectl howdah bench report shows which client or server was slow; docs/use/benchmark.md says what to look at.",
	v1alpha1.ReasonMeasurementInvalid:       "Clients were short of CPU: give them more, run fewer accelerators for each client, or use idle nodes; then make a new job.",
	v1alpha1.ReasonClientFailed:             "The client's log says why: kubectl logs of the pod that the message names. Then make a new job.",
	internalv1.ReasonSecretMissing:          "The operator makes the Secret again by itself.",
	internalv1.ReasonStorageLost:            "Bring the subvolume back in Ceph, or delete the share: it is not made again, empty.",
	internalv1.ReasonRemovalFailing:         "Mend in Ceph what the message names; the steward tries again by itself.",
	internalv1.ReasonStarting:               "",
	internalv1.ReasonStopping:               "",
	internalv1.ReasonServerDown:             "It is started again by itself. If it keeps ending: kubectl logs of the pod, and kubectl howdah support-bundle.",
	internalv1.ReasonExportIDsExhausted:     "The data server has as many exports as NFS allows: delete shares, or make this one on another FileServer.",
	internalv1.ReasonExportsFailing:         "",
	internalv1.ReasonCertificateInvalid:     "Clients are served. For new certificates raise the FileServer's spec.keyGeneration by one.",
	internalv1.ReasonHandleKeyMissing:       "The pod has no key to sign file handles with. Delete the pod; if that does not help raise the FileServer's spec.keyGeneration by one.",
	internalv1.ReasonUnsignedHandleAccepted: "The server image does not fit: its ganesha signs no file handles. Use the image of the same release as the operator.",
	internalv1.ReasonReloadFailed:           "It goes on with the exports it had. The pod's log says what ganesha refused: kubectl logs.",
}

// podAdvice is what to do about a pod, by the reason of the scheduler or the kubelet.
var podAdvice = map[string]string{
	"Unschedulable":              "No node fits; the message counts why for each. Free resources, add or uncordon nodes, or loosen spec.placement. A volume that is bound to a node needs that node.",
	"ErrImagePull":               "The node can't get the image: look at its name (the chart's image values), the registry and the pull secrets (the chart's imagePullSecrets, spec.pods.imagePullSecrets), which this namespace must have.",
	"ImagePullBackOff":           "The node can't get the image: look at its name (the chart's image values), the registry and the pull secrets (the chart's imagePullSecrets, spec.pods.imagePullSecrets), which this namespace must have.",
	"ErrImageNeverPull":          "The image is not on the node, and the pull policy is Never: load it there.",
	"InvalidImageName":           "Correct the image's name in the chart's values.",
	"CrashLoopBackOff":           "The container ends again and again: kubectl logs --previous of the pod says why.",
	"OOMKilled":                  "It needs more memory: raise it in spec.resources (of namespace servers: spec.namespaceServers.resources).",
	"CreateContainerConfigError": "Something that the pod mounts is missing; the message names it.",
	"CreateContainerError":       "The container runtime refuses the container; the message says why.",
	"Evicted":                    "The node was short of something; the message says of what.",
}
