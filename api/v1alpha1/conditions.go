package v1alpha1

// Conditions of every kind that users write. Reconciling and Stalled are there only while they are true, as Flux and
// kstatus read them.
const (
	// ConditionReady sums up the other conditions of an object; every kind but MLPerfStorageJob has it. It is Unknown
	// while the object is made for the first time or changed, and False when the user is needed or an outage lasts.
	ConditionReady = "Ready"
	// ConditionReconciling: something is under way, and nobody has to do anything; the message says what is waited for.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing will happen until somebody does something; the message says what.
	ConditionStalled = "Stalled"
	// ConditionPaused: the operator changes nothing of the object, because it has PausedAnnotation.
	ConditionPaused = "Paused"
)

// Conditions of a FileServer.
const (
	// FileServerServersAvailable: every data server serves with its present configuration.
	FileServerServersAvailable = "ServersAvailable"
	// FileServerNamespaceServersAvailable: at least one namespace server answers at the front door.
	FileServerNamespaceServersAvailable = "NamespaceServersAvailable"
	// FileServerStorageAvailable: every claim of every data server is bound, large enough, and not refused; or every data server uses the
	// Ceph file system.
	FileServerStorageAvailable = "StorageAvailable"
	// FileServerConfigApplied: every data server has loaded the exports that the shares ask for.
	FileServerConfigApplied = "ConfigApplied"
)

// Conditions of a FileShare.
const (
	// FileSharePlaced: every declared directory has an owner.
	FileSharePlaced = "Placed"
	// FileShareExported: every data server that owns directories of the share exports it.
	FileShareExported = "Exported"
	// FileShareInventoried: no data server can have a directory of the share that has no ShareDirectory. Nothing is placed until then.
	FileShareInventoried = "Inventoried"
	// FileShareJunctionsResolved: every known directory exists on its owner, and the namespace refers to it.
	FileShareJunctionsResolved = "JunctionsResolved"
	// FileShareClaimAvailable: the ready-made PersistentVolume and its claim exist.
	FileShareClaimAvailable = "ClaimAvailable"
	// FileShareQuotaEnforced: the storage keeps the share to spec.quota. It is there only while there is a quota, or one is to go.
	FileShareQuotaEnforced = "QuotaEnforced"
	// FileShareCloned: all that the snapshot of spec.source had in it is in the share. It is there only with a source, and once it holds it stays so.
	FileShareCloned = "Cloned"
)

// Conditions of a FileShareSnapshotSchedule.
const (
	// ScheduleClocksAgree: the clocks of the API server, of the operator and of the storage are less than a minute apart. While they are not, none of the
	// schedule's snapshots is deleted for an age that it does not have by all of them.
	ScheduleClocksAgree = "ClocksAgree"
)

// Conditions of an MLPerfStorageJob.
const (
	// JobSucceeded is Unknown while the job runs; its reason tells the step.
	JobSucceeded = "Succeeded"
	// JobDatasetReady: the whole dataset is on the share.
	JobDatasetReady = "DatasetReady"
)

// Reasons that several kinds use.
const (
	// ReasonReady: nothing is missing.
	ReasonReady = "Ready"
	// ReasonPaused: the object is paused by its annotation.
	ReasonPaused = "Paused"
	// ReasonPending: the first pass has not finished.
	ReasonPending = "Pending"
	// ReasonProgressing: something that was asked for has not happened yet; the message says what.
	ReasonProgressing = "Progressing"
	// ReasonDeleting: the object is being deleted; the message says what it waits for.
	ReasonDeleting = "Deleting"
	// ReasonApplyFailed: the API server refuses an object; the message quotes it.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNameTaken: an object of the needed name exists and is not Howdah's.
	ReasonNameTaken = "NameTaken"
	// ReasonInvalidSpec: the specification has a fault that the schema can't see; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
)

// Reasons of a FileServer's conditions.
const (
	// ReasonServersNotReady: some data servers do not serve; the message lists them with what each waits for.
	ReasonServersNotReady = "ServersNotReady"
	// ReasonNamespaceServersNotReady: no namespace server is ready.
	ReasonNamespaceServersNotReady = "NamespaceServersNotReady"
	// ReasonStorageClassNotFound: spec.storage.volumes.storageClassName names no StorageClass.
	ReasonStorageClassNotFound = "StorageClassNotFound"
	// ReasonClaimsPending: some claims are not bound.
	ReasonClaimsPending = "ClaimsPending"
	// ReasonExpansionRefused: spec.storage.volumes.size was raised and the StorageClass can't expand volumes.
	ReasonExpansionRefused = "ExpansionRefused"
	// ReasonVolumeRefused: data servers export nothing, because a volume is not a file system of its own, is another data server's, is not
	// the one that the server has its data on, or can't be used; the message says which and what to do.
	ReasonVolumeRefused = "VolumeRefused"
	// ReasonCephUnusable: data servers export nothing, because they can't use the Ceph file system of spec.storage.ceph: its Secret, its
	// monitors, its identity or a user is at fault; the message says which and what to do.
	ReasonCephUnusable = "CephUnusable"
	// ReasonStewardFailing: data servers use the Ceph file system, but the steward, which makes places for shares and fences, can't work; the
	// message says why and what to do.
	ReasonStewardFailing = "StewardFailing"
	// ReasonRookNotReady: something is missing or not well that Rook runs or makes for spec.storage.ceph.rook: Rook itself, the CephCluster,
	// the CephFilesystem, the account or the subvolume group; the message names the object and the next step. Where the condition is True
	// data servers serve all the same.
	ReasonRookNotReady = "RookNotReady"
	// ReasonStorageFailing: the storage says that clients wait or get errors; the message names what is at fault and what to do. It is a
	// FileShare's reason, too, after 10 s.
	ReasonStorageFailing = "StorageFailing"
	// ReasonStorageDegraded: the storage serves, and says that something of it is at fault or nearly full; the message names it and says what to do.
	ReasonStorageDegraded = "StorageDegraded"
	// ReasonSharedFileSystems: volumes are not file systems of their own, and spec.storage.volumes.sharedFileSystemPolicy allows it.
	ReasonSharedFileSystems = "SharedFileSystems"
	// ReasonConfigPending: some data servers have not loaded their newest configuration.
	ReasonConfigPending = "ConfigPending"
	// ReasonTooFewNodes: fewer nodes are eligible than spec.replicas asks for.
	ReasonTooFewNodes = "TooFewNodes"
	// ReasonServersShareNodes: all data servers serve, but some on one node, because fewer nodes are eligible than spec.replicas asks for.
	ReasonServersShareNodes = "ServersShareNodes"
	// ReasonConnectionsNearLimit: all data servers or namespace servers serve, but some have 80 % of the connections that they
	// take; the message lists them.
	ReasonConnectionsNearLimit = "ConnectionsNearLimit"
	// ReasonScaleInRefused: spec.replicas was lowered and the servers that would go own directories.
	ReasonScaleInRefused = "ScaleInRefused"
	// ReasonDraining: data servers are being emptied, because spec.replicas was lowered or they are in spec.drain.servers; the message says
	// how far they are.
	ReasonDraining = "Draining"
	// ReasonTooManyNodeNetworks: the nodes have more addresses than data servers can be told, so that some nodes can't mount; the message
	// says how to name them by fewer networks.
	ReasonTooManyNodeNetworks = "TooManyNodeNetworks"
	// ReasonInUse: the FileServer is being deleted and shares still use it, or a FileShare with its data and pods still use its claim.
	ReasonInUse = "InUse"
)

// Reasons of a FileShare's conditions.
const (
	// ReasonFileServerNotFound: spec.fileServerRef names no FileServer in the namespace.
	ReasonFileServerNotFound = "FileServerNotFound"
	// ReasonNamespaceNotAllowed: the FileServer of another namespace that spec.fileServerRef names does not exist, or does not allow
	// shares of this one. Which of the two is not said: nobody learns here what is in a namespace that he can't read.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonNamespaceNotWatched: spec.fileServerRef names a Kubernetes namespace that the operator was not told to look after.
	ReasonNamespaceNotWatched = "NamespaceNotWatched"
	// ReasonDataOfEarlierNamespace: the FileServer has data of a share of this name in an earlier Kubernetes namespace of this name; it is that one's until the
	// FileServer's spec.handOver gives it to this one.
	ReasonDataOfEarlierNamespace = "DataOfEarlierNamespace"
	// ReasonFileServerNotReady: the FileServer has no data server to place directories on.
	ReasonFileServerNotReady = "FileServerNotReady"
	// ReasonPathConflict: spec.path equals, contains or lies in the path of an older share.
	ReasonPathConflict = "PathConflict"
	// ReasonTooManyShares: the FileServer has as many older shares as it can have; the message names the number.
	ReasonTooManyShares = "TooManyShares"
	// ReasonLimitReached: spec.limits of the FileServer has no room for the share; the message names the limit, and the field to raise.
	ReasonLimitReached = "LimitReached"
	// ReasonGrowthRefused: spec.limits of the FileServer has no room for what was added to the share, which is served as it was; the message
	// names the limit, and the field to raise.
	ReasonGrowthRefused = "GrowthRefused"
	// ReasonInvalidDirectories: spec.directories can't be expanded; the message names the pattern.
	ReasonInvalidDirectories = "InvalidDirectories"
	// ReasonDirectoryInUse: a directory left spec.directories and holds data, so it stays.
	ReasonDirectoryInUse = "DirectoryInUse"
	// ReasonTooManyDirectories: the share has as many directories as spec.maxDirectories allows.
	ReasonTooManyDirectories = "TooManyDirectories"
	// ReasonDataServersUnavailable: data servers that own directories of the share do not answer; those directories wait, others go on.
	ReasonDataServersUnavailable = "DataServersUnavailable"
	// ReasonInventoryPending: some data servers were not asked yet which directories of the share they have; nothing is placed before.
	ReasonInventoryPending = "InventoryPending"
	// ReasonDataMisplaced: directories of the share lie on data servers where clients don't see them; the message names them.
	ReasonDataMisplaced = "DataMisplaced"
	// ReasonDirectoriesLeftOut: clients don't see some directories of the share, because their paths are too long to be recorded, or not UTF-8; the message
	// names them.
	ReasonDirectoriesLeftOut = "DirectoriesLeftOut"
	// ReasonDataInSeveralPlaces: several volumes have data of a share of layout Single, which can be on one alone.
	ReasonDataInSeveralPlaces = "DataInSeveralPlaces"
	// ReasonStoragePending: the share's place in the FileServer's storage is being made.
	ReasonStoragePending = "StoragePending"
	// ReasonStorageUnusable: the share's place in the FileServer's storage can't be made, or was there and is missed; the message says why
	// and what to do.
	ReasonStorageUnusable = "StorageUnusable"
	// ReasonExportsPending: some data servers do not export the share yet.
	ReasonExportsPending = "ExportsPending"
	// ReasonDirectoriesMissing: directories that were on their owners are not; the message says which, since when and what to do.
	ReasonDirectoriesMissing = "DirectoriesMissing"
	// ReasonDirectoriesPending: some directories do not exist on their owners yet.
	ReasonDirectoriesPending = "DirectoriesPending"
	// ReasonQuotaUnsupported: the storage can't keep a share to spec.quota; the share is served without it. The message says what to do.
	ReasonQuotaUnsupported = "QuotaUnsupported"
	// ReasonQuotaBelowUse: spec.quota.size was set below what is used, and the quota stays as it was, or is less than the snapshot of spec.source has in
	// it, which is not copied then; the message has both numbers.
	ReasonQuotaBelowUse = "QuotaBelowUse"
	// ReasonQuotaAboveCapacity: spec.quota.size is more than the storage has, and the quota stays as it was; the message has both numbers.
	ReasonQuotaAboveCapacity = "QuotaAboveCapacity"
	// ReasonQuotaNearlyUsed: the quota is enforced, and 85 % of it are used.
	ReasonQuotaNearlyUsed = "QuotaNearlyUsed"
	// ReasonSnapshotNotFound: spec.source.snapshotRef names no FileShareSnapshot in the namespace, or one that is being deleted.
	ReasonSnapshotNotFound = "SnapshotNotFound"
	// ReasonCloning: the storage copies the snapshot of spec.source; the message says since when, and how far it is where the storage tells.
	ReasonCloning = "Cloning"
	// ReasonCloneRefused: the share can't be made from the snapshot of spec.source; the message says why and what to do instead.
	ReasonCloneRefused = "CloneRefused"
	// ReasonCloneFailed: the storage ended the copy, and does not begin again; the message quotes it.
	ReasonCloneFailed = "CloneFailed"
)

// Reasons of what is done with a FileShare: of an MLPerfStorageJob's conditions and a FileShareSnapshot's.
const (
	// ReasonFileShareNotFound: spec.fileShareRef names no FileShare in the namespace.
	ReasonFileShareNotFound = "FileShareNotFound"
	// ReasonWaitingForShare: the share is not ready; the message repeats why.
	ReasonWaitingForShare = "WaitingForShare"
)

// Reasons of a FileShareSnapshot's and of a FileShareSnapshotSchedule's conditions.
const (
	// ReasonSnapshotsUnsupported: the storage of the share's FileServer has no snapshots that Howdah could make; the message says what to do instead.
	ReasonSnapshotsUnsupported = "SnapshotsUnsupported"
	// ReasonSnapshotFailed: the storage did not make, or not remove, the snapshot; the message quotes it. It is tried again.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonSnapshotLost: the snapshot was there, and what stands for it in the FileServer's namespace is gone; nothing is made in its place.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotNotReady: the schedule's last snapshot is not Ready; the next is made when it is, or is gone. Of a FileShare: that of spec.source is not.
	ReasonSnapshotNotReady = "SnapshotNotReady"
	// ReasonClockSkewed: a clock is wrong; the message says which, how far, and against what.
	ReasonClockSkewed = "ClockSkewed"
)

// Reasons of an MLPerfStorageJob's conditions.
const (
	// ReasonPreparing: what the client pods need is being made; the message says what is waited for.
	ReasonPreparing = "Preparing"
	// ReasonSuspended: spec.execution is Suspended, and there are no client pods; of a schedule, which is Ready all the same: no snapshots are made.
	ReasonSuspended = "Suspended"
	// ReasonDeadlineExceeded: the job did not end within spec.activeDeadlineSeconds, and its client pods were ended.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonGeneratingDataset: client pods write the dataset.
	ReasonGeneratingDataset = "GeneratingDataset"
	// ReasonDatasetReady: the dataset is complete.
	ReasonDatasetReady = "DatasetReady"
	// ReasonRunning: client pods run the workload.
	ReasonRunning = "Running"
	// ReasonCompleted: the run ended and AU is at or above the limit.
	ReasonCompleted = "Completed"
	// ReasonUtilizationTooLow: the run ended and AU is below the limit.
	ReasonUtilizationTooLow = "UtilizationTooLow"
	// ReasonMeasurementInvalid: the run ended, and clients were so short of CPU that it says nothing about the share.
	ReasonMeasurementInvalid = "MeasurementInvalid"
	// ReasonClientFailed: a client pod failed; the message says which and why.
	ReasonClientFailed = "ClientFailed"
)

// needsUser are the reasons that stay until somebody does something. What does not exist yet (a FileServer, a FileShare,
// a StorageClass, a Secret) is not among them: objects may be made in any order.
var needsUser = map[string]bool{
	ReasonApplyFailed:            true,
	ReasonNameTaken:              true,
	ReasonInvalidSpec:            true,
	ReasonExpansionRefused:       true,
	ReasonVolumeRefused:          true,
	ReasonTooFewNodes:            true,
	ReasonScaleInRefused:         true,
	ReasonTooManyNodeNetworks:    true,
	ReasonInUse:                  true,
	ReasonPathConflict:           true,
	ReasonNamespaceNotAllowed:    true,
	ReasonNamespaceNotWatched:    true,
	ReasonTooManyShares:          true,
	ReasonLimitReached:           true,
	ReasonGrowthRefused:          true,
	ReasonInvalidDirectories:     true,
	ReasonDataInSeveralPlaces:    true,
	ReasonQuotaUnsupported:       true,
	ReasonQuotaBelowUse:          true,
	ReasonQuotaAboveCapacity:     true,
	ReasonCloneRefused:           true,
	ReasonCloneFailed:            true,
	ReasonUtilizationTooLow:      true,
	ReasonMeasurementInvalid:     true,
	ReasonSnapshotsUnsupported:   true,
	ReasonSnapshotLost:           true,
	ReasonClockSkewed:            true,
	ReasonClientFailed:           true,
	ReasonDeadlineExceeded:       true,
	ReasonDataOfEarlierNamespace: true,
	ReasonDirectoriesMissing:     true,
}

// NeedsUser tells whether a condition that does not hold, for this reason, stays so until somebody does something.
func NeedsUser(reason string) bool { return needsUser[reason] }

// changes are the reasons of what is on its way because something was asked for, and not because something broke.
var changes = map[string]bool{
	ReasonPending:            true,
	ReasonProgressing:        true,
	ReasonClaimsPending:      true,
	ReasonConfigPending:      true,
	ReasonDraining:           true,
	ReasonDirectoriesPending: true,
	ReasonInventoryPending:   true,
	ReasonStoragePending:     true,
	ReasonCloning:            true,
}

// IsChange tells whether a reason is that of a change under way. An object that was Ready and is not, for any other
// reason, has an outage.
func IsChange(reason string) bool { return changes[reason] }
