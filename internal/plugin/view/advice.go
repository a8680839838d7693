package view

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// advice is what to do about a reason of a condition; "" if the user only has to wait, or the condition's message is enough. The messages
// name the field at fault; the advice adds what the operator can't know. A test checks that every reason of the API is here.
var advice = map[string]string{
	v1alpha1.ReasonReady:       "",
	v1alpha1.ReasonPending:     "",
	v1alpha1.ReasonProgressing: "",
	v1alpha1.ReasonPaused: "The object has the annotation howdah.io/paused, so the operator does not change it. To resume: " +
		"kubectl annotate OBJECT howdah.io/paused-",
	v1alpha1.ReasonDeleting:    "",
	v1alpha1.ReasonApplyFailed: "The API server refuses an object that the operator makes; the message has its answer. The usual reasons are a quota, an admission policy or Pod Security: change it, or what the object asks for. The operator retries by itself.",
	v1alpha1.ReasonNameTaken:   "An object with this name exists and does not belong to Howdah. Delete it, or use another name.",
	v1alpha1.ReasonPodsRefused: "For a ResourceQuota: raise it, or request less in spec.resources (for namespace servers: spec.namespaceServers.resources). For a LimitRange: set spec.resources within its bounds. " +
		"For Pod Security: label the namespace with a level that admits the pods (docs/operate/security.md#what-pods-may-do). For a webhook: ask its administrator. Kubernetes retries by itself, which can take minutes.",
	v1alpha1.ReasonInvalidSpec: "Correct the field that the message names.",

	v1alpha1.ReasonServersNotReady:          "",
	v1alpha1.ReasonNamespaceServersNotReady: "Clients wait until a namespace server is Ready again. Fix the pods listed above.",
	v1alpha1.ReasonStorageClassNotFound:     "Create the StorageClass, or delete the FileServer and make it with a class that exists (kubectl get storageclass). The class can't be changed.",
	v1alpha1.ReasonClaimsPending:            "A claim waits for its volume. For the provisioner's reason: kubectl describe pvc. With volumeBindingMode WaitForFirstConsumer the claim first waits until its pod is scheduled.",
	v1alpha1.ReasonExpansionRefused:         "Set allowVolumeExpansion: true in the StorageClass if its provisioner supports it. If not, set the size back to status.volumeSize. All is served meanwhile.",
	v1alpha1.ReasonExpansionFailing:         "Fix in the storage what the message quotes (kubectl describe pvc). Kubernetes tries again by itself; all is served meanwhile.",
	v1alpha1.ReasonVolumesNearlyFull:        "Raise spec.storage.volumes.size if the StorageClass can expand volumes, remove files, or add data servers for new directories. To see each volume: kubectl howdah capacity.",
	v1alpha1.ReasonVolumesFull:              "Raise spec.storage.volumes.size if the StorageClass can expand volumes, or remove files. All else goes on. To see each volume: kubectl howdah capacity.",
	internalv1.ReasonVolumeFull:             "Remove files from the volume, or raise spec.storage.volumes.size of the FileServer. Shares that are served go on. To see each volume: kubectl howdah capacity.",
	v1alpha1.ReasonVolumeRefused: "If a claim has another volume than before, restore the old volume, or give it up as the message says. If a volume is a directory of a larger file system, use volumes that are file systems of their own (a CSI driver for disks). For a trial on local-path volumes, " +
		"and only with clients that you trust, set spec.storage.volumes.sharedFileSystemPolicy: Allow. See docs/operate/security.md#file-handles.",
	v1alpha1.ReasonCephUnusable: "Fix what the message names: the Secret of spec.storage.ceph.external.sharesSecretRef, the monitors, or the user in Ceph. The data servers retry by themselves; a changed Secret reaches them within two minutes. " +
		"See docs/operate/ceph.md.",
	v1alpha1.ReasonStewardFailing:       "Existing shares are still served. Fix what the message names; the steward retries by itself. For its log: kubectl logs deployment/NAME-steward. See docs/operate/ceph.md.",
	v1alpha1.ReasonRookNotReady:         "Fix what the message names in Rook's objects; the operator continues by itself. Existing shares are still served. See docs/operate/ceph.md#a-ceph-of-rooks.",
	v1alpha1.ReasonStorageFailing:       "Fix in Ceph what the message names. Clients with hard mounts wait and then continue; writes to a full cluster fail and must be repeated. See docs/operate/ceph.md#when-ceph-fails.",
	v1alpha1.ReasonStorageDegraded:      "Everything is served. Fix in Ceph what the message names, before a second failure. See docs/operate/ceph.md#when-ceph-fails.",
	v1alpha1.ReasonSharedFileSystems:    "Use this only for trials with clients that you trust. See docs/operate/security.md#file-handles.",
	v1alpha1.ReasonConfigPending:        "",
	v1alpha1.ReasonTooFewNodes:          "Add or uncordon nodes, relax spec.placement, or lower spec.replicas.",
	v1alpha1.ReasonFailoverNotAllowed:   "Have the operator installed with failover.enabled=true, or set spec.failover.fencing to None.",
	v1alpha1.ReasonServersShareNodes:    "Add or uncordon nodes, or relax spec.placement: two data servers on one node share its network and fail together.",
	v1alpha1.ReasonConnectionsNearLimit: "Raise spec.nfs.maxConnections or the memory in spec.resources (for namespace servers: spec.namespaceServers.resources), or mount with a smaller nconnect. To see the clients: kubectl howdah clients.",
	v1alpha1.ReasonRestartPending:       "All is served. To use the new values of spec.nfs, restart the data servers one after the other: kubectl rollout restart statefulset NAME. Clients of each wait for some seconds.",
	v1alpha1.ReasonScaleInRefused:       "Directories can't move between volumes: empty and remove those that the message names, or set spec.replicas to the old value.",
	v1alpha1.ReasonDraining:             "The data server waits until its clients have unmounted. To see them: kubectl howdah clients. To end sooner, stop these clients or lower spec.drain.timeoutSeconds. To cancel, set spec.replicas or spec.drain.servers to the old value.",
	v1alpha1.ReasonTooManyNodeNetworks:  "List networks that have nodes but no pods in spec.additionalNodeNetworks: nodes in them need no entry of their own.",
	v1alpha1.ReasonInUse:                "First delete the FileShares or pods that still use it; nothing is removed before that.",

	v1alpha1.ReasonFileServerNotFound:     "Create the FileServer. If the name in fileServerRef is wrong, delete the share and make it again: the field can't be changed.",
	v1alpha1.ReasonNamespaceNotAllowed:    "Ask the owner of the FileServer to add this namespace to spec.allowedNamespaces. If the name in fileServerRef is wrong, delete the share and make it again.",
	v1alpha1.ReasonNamespaceNotWatched:    "Ask the administrator of Howdah to add the FileServer's namespace to the chart's watchNamespaces. If the name in fileServerRef is wrong, delete the share and make it again.",
	v1alpha1.ReasonFileServerNotReady:     "",
	v1alpha1.ReasonPathConflict:           "Delete this share and make it with another spec.path, or delete the other share. The path of a share can't be changed.",
	v1alpha1.ReasonLimitReached:           "Ask the owner of the FileServer to raise the field that the message names, with the memory that docs/operate/sizing.md gives for it; or remove shares, directories or access rules.",
	v1alpha1.ReasonGrowthRefused:          "The share is served without the change. Ask the owner of the FileServer to raise the field that the message names, or undo the change.",
	v1alpha1.ReasonTooManyShares:          "Delete a share of the FileServer, or make this share on another FileServer.",
	v1alpha1.ReasonInvalidDirectories:     "Correct spec.directories as the message says.",
	v1alpha1.ReasonDirectoryInUse:         "Add the directory to spec.directories again, or empty it and remove it with rmdir.",
	v1alpha1.ReasonTooManyDirectories:     "Raise spec.maxDirectories, or remove directories.",
	v1alpha1.ReasonDataServersUnavailable: "No data is lost. Clients of directories on these data servers wait; with hard mounts they continue when the server is back.",
	v1alpha1.ReasonDataOfDeletedNamespace: "Ask the owner of the FileServer to hand the data over with spec.dataHandovers, as the message says; or make the share with another name.",
	v1alpha1.ReasonClockSkewed:            "Correct the clock that the message names (NTP). Meanwhile snapshots are made, and none is deleted too early.",
	v1alpha1.ReasonInventoryPending:       "If a data server will never come back, give up its data of this share with spec.ignoreDataOn.",
	v1alpha1.ReasonDirectoriesSkipped:     "Rename these directories on the data server's volume to shorter names in UTF-8.",
	v1alpha1.ReasonDataMisplaced:          "Clients can't see these copies. Save what you need from them on the data server, then remove them there.",
	v1alpha1.ReasonDataInSeveralPlaces:    "Decide which data server has the right data, and list the others in spec.ignoreDataOn.",
	v1alpha1.ReasonStoragePending:         "",
	v1alpha1.ReasonStorageUnusable:        "Fix in Ceph what the message names; the FileServer's steward retries by itself. For the share's subvolume and user: kubectl get sharestorages. See docs/operate/ceph.md.",
	v1alpha1.ReasonExportsPending:         "",
	v1alpha1.ReasonDirectoriesMissing: "Restore the volume that had these directories, or a backup of it. To give them up, list them in spec.acceptedLosses: their data is then gone for clients, and declared directories are made again, empty. " +
		"See docs/kinds/fileshare.md#missing-directories.",
	v1alpha1.ReasonDirectoriesPending: "",
	v1alpha1.ReasonQuotaUnsupported:   "The share is served without a quota and can fill the storage. See docs/kinds/fileshare.md#quota.",
	v1alpha1.ReasonQuotaBelowUse:      "The quota is lowered by itself as soon as the share's files take less. To keep the old quota, set spec.quota.size to it.",
	v1alpha1.ReasonQuotaAboveCapacity: "Lower spec.quota.size, or add storage: the quota is then set by itself.",
	v1alpha1.ReasonQuotaNearlyUsed:    "Raise spec.quota.size, which takes effect at once, or remove files.",

	v1alpha1.ReasonSnapshotNotFound: "To list snapshots: kubectl get filesharesnapshots. If the name in spec.source is wrong, delete the share and make it again: the source can't be changed.",
	v1alpha1.ReasonCloning:          "The storage copies in the background, which can take hours. The share can be used, and gets its claim, when the copy is complete.",
	v1alpha1.ReasonCloneRefused:     "Delete the share and make it again as the message says: the source of a share can't be changed. See docs/kinds/fileshare.md#from-a-snapshot.",
	v1alpha1.ReasonCloneFailed:      "The copy is not served. Fix what the message names, then delete the share and make it again. See docs/kinds/fileshare.md#from-a-snapshot.",

	v1alpha1.ReasonSnapshotsUnsupported: "Snapshots need a FileServer with spec.storage.ceph that Howdah may provision in. For other ways see docs/kinds/filesharesnapshot.md.",
	v1alpha1.ReasonSnapshotFailed:       "The steward retries by itself. If the message says that the share has too many snapshots, delete some of its FileShareSnapshots.",
	v1alpha1.ReasonSnapshotLost:         "The snapshot is gone. Delete this object; for a new snapshot make one with another name.",
	v1alpha1.ReasonSnapshotNotReady:     "For the reason: kubectl howdah explain filesharesnapshot/NAME, with the name in the message. If you delete that snapshot, the schedule goes on without it.",

	v1alpha1.ReasonFileShareNotFound:        "Create the FileShare. If the name in fileShareRef is wrong, delete the object and make it again: the field can't be changed.",
	v1alpha1.ReasonWaitingForShare:          "",
	v1alpha1.ReasonPreparing:                "",
	v1alpha1.ReasonSuspended:                "To resume, set spec.execution of the job or schedule to Active.",
	v1alpha1.ReasonDeadlineExceeded:         "Delete the job and make it again with a larger spec.activeDeadlineSeconds or a smaller dataset.",
	v1alpha1.ReasonGeneratingDataset:        "",
	v1alpha1.ReasonDatasetReady:             "",
	v1alpha1.ReasonRunning:                  "",
	v1alpha1.ReasonCompleted:                "",
	v1alpha1.ReasonUtilizationTooLow:        "To find the slow client or server: kubectl howdah bench report. See docs/use/benchmark.md.",
	v1alpha1.ReasonMeasurementInvalid:       "Clients had too little CPU. Give them more, run fewer accelerators on each client, or use idle nodes; then make a new job.",
	v1alpha1.ReasonClientFailed:             "For the reason: kubectl logs of the pod that the message names. Then make a new job.",
	internalv1.ReasonSecretMissing:          "The operator makes the Secret again by itself.",
	internalv1.ReasonStorageLost:            "Restore the subvolume in Ceph, or delete the share. Howdah does not replace a lost subvolume with an empty one.",
	internalv1.ReasonRemovalFailing:         "Fix in Ceph what the message names; the steward retries by itself.",
	internalv1.ReasonStarting:               "",
	internalv1.ReasonStopping:               "",
	internalv1.ReasonServerDown:             "The supervisor restarts ganesha by itself. If ganesha keeps exiting: kubectl logs of the pod, and kubectl howdah support-bundle for a support request.",
	internalv1.ReasonExportIDsExhausted:     "The data server has the most exports that NFS allows. Delete shares, or make this share on another FileServer.",
	internalv1.ReasonExportsFailing:         "",
	internalv1.ReasonCertificateInvalid:     "Clients are served. For new certificates, raise the FileServer's spec.keyGeneration by one.",
	internalv1.ReasonHandleKeyMissing:       "The pod has no key to sign file handles. Delete the pod; if that does not help, raise the FileServer's spec.keyGeneration by one.",
	internalv1.ReasonUnsignedHandleAccepted: "The ganesha in the server image does not sign file handles. Use the server image of the operator's release.",
	internalv1.ReasonReloadFailed:           "The data server keeps the exports that it had. For what ganesha refused: kubectl logs of the pod.",
}

// podAdvice is what to do about a pod, by the reason of the scheduler or the kubelet.
var podAdvice = map[string]string{
	"Unschedulable":              "No node can run the pod; the message counts the reasons. Free resources, add or uncordon nodes, or relax spec.placement. A volume that is bound to a node needs that node.",
	"ErrImagePull":               "The node can't pull the image. Check its name (the chart's image values), the registry, and the pull secrets (the chart's imagePullSecrets, spec.pods.imagePullSecrets), which must exist in this namespace.",
	"ImagePullBackOff":           "The node can't pull the image. Check its name (the chart's image values), the registry, and the pull secrets (the chart's imagePullSecrets, spec.pods.imagePullSecrets), which must exist in this namespace.",
	"ErrImageNeverPull":          "The image is not on the node, and the pull policy is Never: load the image onto the node.",
	"InvalidImageName":           "Correct the image's name in the chart's values.",
	"CrashLoopBackOff":           "The container keeps exiting. For the reason: kubectl logs --previous of the pod.",
	"OOMKilled":                  "The container needs more memory: raise it in spec.resources (for namespace servers: spec.namespaceServers.resources).",
	"CreateContainerConfigError": "A Secret or ConfigMap that the pod needs is missing; the message names it.",
	"CreateContainerError":       "The container runtime can't make the container; the message has the reason.",
	"Evicted":                    "The node ran out of a resource, which the message names. Free it, or use other nodes.",
}
