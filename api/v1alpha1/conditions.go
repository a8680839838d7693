package v1alpha1

// Conditions of every kind that users create. Reconciling and Stalled exist only while they are True, as Flux and
// kstatus expect.
const (
	// ConditionReady sums up the other conditions of an object. Every kind except MLPerfStorageJob has it. It is
	// Unknown while the object is created or changed, and False when the user must act or an outage lasts.
	ConditionReady = "Ready"
	// ConditionReconciling: work is in progress and the user need not act. The message says what the operator waits
	// for.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing happens until the user acts. The message says what to do.
	ConditionStalled = "Stalled"
	// ConditionPaused: the operator does not change the object, because it has PausedAnnotation.
	ConditionPaused = "Paused"
)

// Conditions of a FileServer.
const (
	// FileServerServersAvailable: every data server serves with its current configuration.
	FileServerServersAvailable = "ServersAvailable"
	// FileServerNamespaceServersAvailable: at least one namespace server answers at the address that clients mount.
	FileServerNamespaceServersAvailable = "NamespaceServersAvailable"
	// FileServerStorageAvailable: every claim of every data server is bound, large enough and not refused. With Ceph:
	// every data server uses the Ceph file system.
	FileServerStorageAvailable = "StorageAvailable"
	// FileServerConfigApplied: every data server has loaded the exports that the shares need.
	FileServerConfigApplied = "ConfigApplied"
	// FileServerOutsideAddressesAvailable: the namespace servers and every data server have an address for clients outside
	// the cluster. The condition exists only while spec.network.loadBalancer is set.
	FileServerOutsideAddressesAvailable = "OutsideAddressesAvailable"
	// FileServerServersUpdated: the pods of all data servers are as the FileServer and the operator want them now. While
	// it is False, some data servers still run with earlier pods. Ready does not depend on it.
	FileServerServersUpdated = "ServersUpdated"
)

// Conditions of a FileShare.
const (
	// FileSharePlaced: every declared directory has an owner.
	FileSharePlaced = "Placed"
	// FileShareExported: every data server that owns directories of the share exports it.
	FileShareExported = "Exported"
	// FileShareInventoried: every directory of the share on every data server has a ShareDirectory. Until then no
	// directory is placed.
	FileShareInventoried = "Inventoried"
	// FileShareJunctionsResolved: every known directory exists on its owner, and the namespace refers clients to it.
	FileShareJunctionsResolved = "JunctionsResolved"
	// FileShareClaimAvailable: the ready-made PersistentVolume and its claim exist.
	FileShareClaimAvailable = "ClaimAvailable"
	// FileShareQuotaEnforced: the storage enforces spec.quota. The condition exists only while there is a quota, or one
	// is being removed.
	FileShareQuotaEnforced = "QuotaEnforced"
	// FileShareHotDirectoriesServed: as many data servers serve each of spec.hotDirectories as it asks for, or as there
	// are. The condition exists only while there are hotDirectories.
	FileShareHotDirectoriesServed = "HotDirectoriesServed"
	// FileShareCloned: the share has everything that the snapshot of spec.source has. The condition exists only if
	// spec.source is set. Once True, it stays True.
	FileShareCloned = "Cloned"
)

// Conditions of a FileShareSnapshotSchedule.
const (
	// ScheduleClocksAgree: the clocks of the API server, the operator and the storage differ by less than a minute.
	// While they differ more, a snapshot is deleted for its age only if it is old enough by all of these clocks.
	ScheduleClocksAgree = "ClocksAgree"
)

// Conditions of an MLPerfStorageJob.
const (
	// JobSucceeded is Unknown while the job runs. Its reason is the current step.
	JobSucceeded = "Succeeded"
	// JobDatasetReady: the whole dataset is on the share.
	JobDatasetReady = "DatasetReady"
)

// Reasons that several kinds use.
const (
	// ReasonReady: everything is in place.
	ReasonReady = "Ready"
	// ReasonPaused: the object has PausedAnnotation.
	ReasonPaused = "Paused"
	// ReasonPending: the operator has not finished its first pass over the object.
	ReasonPending = "Pending"
	// ReasonProgressing: a requested change is not complete. The message says what is missing.
	ReasonProgressing = "Progressing"
	// ReasonDeleting: the object is being deleted. The message says what the deletion waits for.
	ReasonDeleting = "Deleting"
	// ReasonApplyFailed: the API server refuses an object. The message quotes the error.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNameTaken: an object with the required name exists and does not belong to Howdah.
	ReasonNameTaken = "NameTaken"
	// ReasonPodsRefused: the API server refuses pods: a ResourceQuota, a LimitRange, Pod Security or an admission webhook.
	// The message quotes it.
	ReasonPodsRefused = "PodsRefused"
	// ReasonInvalidSpec: the specification has an error that the schema can't detect. The message names the field.
	ReasonInvalidSpec = "InvalidSpec"
)

// Reasons of a FileServer's conditions.
const (
	// ReasonServersNotReady: some data servers do not serve. The message lists them, with what each waits for.
	ReasonServersNotReady = "ServersNotReady"
	// ReasonNamespaceServersNotReady: no namespace server is ready.
	ReasonNamespaceServersNotReady = "NamespaceServersNotReady"
	// ReasonStorageClassNotFound: the StorageClass of spec.storage.volumes.storageClassName does not exist.
	ReasonStorageClassNotFound = "StorageClassNotFound"
	// ReasonClaimsPending: some claims are not bound.
	ReasonClaimsPending = "ClaimsPending"
	// ReasonExpansionRefused: spec.storage.volumes.size was increased, but the StorageClass does not allow expansion.
	ReasonExpansionRefused = "ExpansionRefused"
	// ReasonExpansionFailing: the storage fails to enlarge a volume to spec.storage.volumes.size. The message quotes it.
	// Kubernetes tries again by itself, and the volume is served meanwhile.
	ReasonExpansionFailing = "ExpansionFailing"
	// ReasonVolumesNearlyFull: everything is served, but 80 % of a volume are used, of its space or its inodes. The
	// message names the volumes and says what to do.
	ReasonVolumesNearlyFull = "VolumesNearlyFull"
	// ReasonVolumesFull: everything is served, but writes to a volume end with "No space left on device". The message
	// names the volumes and says what to do.
	ReasonVolumesFull = "VolumesFull"
	// ReasonVolumeRefused: data servers export nothing, because a volume has no file system of its own, belongs to
	// another data server, is not the volume that has the server's data, or is unusable. The message says which and
	// what to do.
	ReasonVolumeRefused = "VolumeRefused"
	// ReasonCephUnusable: data servers export nothing, because they can't use the Ceph file system of
	// spec.storage.ceph. The cause is its Secret, its monitors, its identity or a user. The message says which and what
	// to do.
	ReasonCephUnusable = "CephUnusable"
	// ReasonStewardFailing: data servers use the Ceph file system, but the steward, which makes directories for shares
	// and fences clients, can't work. The message says why and what to do.
	ReasonStewardFailing = "StewardFailing"
	// ReasonRookNotReady: something that Rook runs or makes for spec.storage.ceph.rook is missing or not healthy: Rook
	// itself, the CephCluster, the CephFilesystem, the account or the subvolume group. The message names the object and
	// what to do. If the condition is True, data servers still serve.
	ReasonRookNotReady = "RookNotReady"
	// ReasonStorageFailing: the storage reports that clients wait or get errors. The message says what is wrong and
	// what to do. FileShares get this reason too, after 10 s.
	ReasonStorageFailing = "StorageFailing"
	// ReasonStorageDegraded: the storage serves, but reports that a part of it has failed or is nearly full. The
	// message names it and says what to do.
	ReasonStorageDegraded = "StorageDegraded"
	// ReasonSharedFileSystems: volumes have no file systems of their own, and
	// spec.storage.volumes.sharedFileSystemPolicy allows this.
	ReasonSharedFileSystems = "SharedFileSystems"
	// ReasonConfigPending: some data servers have not loaded their latest configuration.
	ReasonConfigPending = "ConfigPending"
	// ReasonTooFewNodes: there are fewer eligible nodes than spec.replicas.
	ReasonTooFewNodes = "TooFewNodes"
	// ReasonHostPortsTaken: a data server has no node on whose network its ports are free
	// (spec.network.hostNetwork). The message has the ports.
	ReasonHostPortsTaken = "HostPortsTaken"
	// ReasonNodeAddressMissing: the node of a data server has no address in spec.network.hostNetwork.addressesIn.
	ReasonNodeAddressMissing = "NodeAddressMissing"
	// ReasonServersShareNodes: all data servers serve, but some share a node, because there are fewer eligible nodes
	// than spec.replicas.
	ReasonServersShareNodes = "ServersShareNodes"
	// ReasonFailoverNotAllowed: all data servers serve, but spec.failover asks for what the operator was installed without
	// (failover.enabled or failover.volumes of the chart).
	ReasonFailoverNotAllowed = "FailoverNotAllowed"
	// ReasonDirectoriesFrozen: all data servers serve, but some keep directories frozen for moves whose objects were lost,
	// and have not heard of the data servers that may have them. The message lists them.
	ReasonDirectoriesFrozen = "DirectoriesFrozen"
	// ReasonRestartPending: all data servers have loaded their newest configuration, but some use options of spec.nfs
	// only from their next start.
	ReasonRestartPending = "RestartPending"
	// ReasonConnectionsNearLimit: all servers serve, but some data servers or namespace servers use 80 % of their
	// connections. The message lists them.
	ReasonConnectionsNearLimit = "ConnectionsNearLimit"
	// ReasonScaleInRefused: spec.replicas was reduced, but the servers to be removed own directories.
	ReasonScaleInRefused = "ScaleInRefused"
	// ReasonDraining: data servers are being drained, because spec.replicas was reduced or they are in
	// spec.drain.servers. The message says how far each is.
	ReasonDraining = "Draining"
	// ReasonNotDrained: all data servers serve, but some in spec.drain.servers are not emptied, or do not exist. The message
	// names them, and why.
	ReasonNotDrained = "NotDrained"
	// ReasonRollingOut: the data servers' pods are being replaced, one after the other. The message says which are
	// missing, and what the next one waits for.
	ReasonRollingOut = "RollingOut"
	// ReasonRolloutWaiting: data servers have earlier pods, which stay until something else is over: another data server
	// does not serve, or another FileServer is changed first. The message names it.
	ReasonRolloutWaiting = "RolloutWaiting"
	// ReasonRolloutStopped: a data server does not serve with its new pod, so the others keep theirs; or a node can't pull
	// the image of the next pod, and all serve. The message names the data server and the image, and says what to do.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonTooManyNodeNetworks: the nodes have more addresses than a DataServer can hold, so some nodes can't mount.
	// The message says how to cover them with fewer networks.
	ReasonTooManyNodeNetworks = "TooManyNodeNetworks"
	// ReasonOutsideAddressesPending: Services of spec.network.loadBalancer have no address yet, since less than two
	// minutes.
	ReasonOutsideAddressesPending = "OutsideAddressesPending"
	// ReasonOutsideAddressesMissing: Services of spec.network.loadBalancer have had no address for two minutes. The message
	// names the Services and what to do. Clients in the cluster are served.
	ReasonOutsideAddressesMissing = "OutsideAddressesMissing"
	// ReasonInUse: the FileServer is being deleted and shares still use it, or a FileShare with reclaimPolicy Delete is
	// being deleted and pods still use its claim.
	ReasonInUse = "InUse"
)

// Reasons of a FileShare's conditions.
const (
	// ReasonFileServerNotFound: the FileServer of spec.fileServerRef does not exist in the namespace.
	ReasonFileServerNotFound = "FileServerNotFound"
	// ReasonNamespaceNotAllowed: the FileServer of spec.fileServerRef, in another namespace, does not exist or does not
	// allow shares of this namespace. The reason is the same for both, so that users can't learn what exists in
	// namespaces that they can't read.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonNamespaceNotWatched: the operator does not watch the Kubernetes namespace of spec.fileServerRef.
	ReasonNamespaceNotWatched = "NamespaceNotWatched"
	// ReasonDataOfDeletedNamespace: the FileServer has data of a share of this name from a deleted Kubernetes namespace
	// that had the same name. The data stays inaccessible until spec.dataHandovers of the FileServer gives it to this
	// namespace.
	ReasonDataOfDeletedNamespace = "DataOfDeletedNamespace"
	// ReasonFileServerNotReady: the FileServer has no data server to place directories on.
	ReasonFileServerNotReady = "FileServerNotReady"
	// ReasonPathConflict: spec.path equals, contains or lies in the path of an older share.
	ReasonPathConflict = "PathConflict"
	// ReasonTooManyShares: the FileServer already has the maximum number of shares, all older. The message has the
	// number.
	ReasonTooManyShares = "TooManyShares"
	// ReasonLimitReached: the share exceeds spec.limits of the FileServer and is not served. The message names the
	// limit and the field to raise.
	ReasonLimitReached = "LimitReached"
	// ReasonGrowthRefused: a change to the share exceeds spec.limits of the FileServer. The share is served as before
	// the change. The message names the limit and the field to raise.
	ReasonGrowthRefused = "GrowthRefused"
	// ReasonInvalidDirectories: spec.directories can't be expanded; the message names the pattern.
	ReasonInvalidDirectories = "InvalidDirectories"
	// ReasonDirectoryInUse: a directory was removed from spec.directories, but it has data, so it stays.
	ReasonDirectoryInUse = "DirectoryInUse"
	// ReasonTooManyDirectories: the share has as many directories as spec.maxDirectories allows.
	ReasonTooManyDirectories = "TooManyDirectories"
	// ReasonDataServersUnavailable: data servers that own directories of the share do not answer. Access to these
	// directories waits; other directories are not affected.
	ReasonDataServersUnavailable = "DataServersUnavailable"
	// ReasonInventoryPending: it is not yet known which directories of the share some data servers have. Until then no
	// directory is placed.
	ReasonInventoryPending = "InventoryPending"
	// ReasonDataMisplaced: some data servers have directories of the share that they do not own. Clients can't see
	// them. The message lists them.
	ReasonDataMisplaced = "DataMisplaced"
	// ReasonDirectoriesSkipped: clients can't see some directories of the share, because their paths are too long to be
	// recorded or are not UTF-8. The message lists them.
	ReasonDirectoriesSkipped = "DirectoriesSkipped"
	// ReasonDataInSeveralPlaces: several volumes have data of a share with layout Single, which can be served from one
	// volume only.
	ReasonDataInSeveralPlaces = "DataInSeveralPlaces"
	// ReasonStoragePending: the share's directory in the FileServer's storage is being made.
	ReasonStoragePending = "StoragePending"
	// ReasonStorageUnusable: the share's directory in the FileServer's storage can't be made, or existed and is
	// missing. The message says why and what to do.
	ReasonStorageUnusable = "StorageUnusable"
	// ReasonExportsPending: some data servers do not yet export the share.
	ReasonExportsPending = "ExportsPending"
	// ReasonDirectoriesMissing: directories are no longer on their owners. The message says which, since when, and what
	// to do.
	ReasonDirectoriesMissing = "DirectoriesMissing"
	// ReasonDirectoriesElsewhere: directories are no longer on their owners, and another data server or volume has some of
	// them. The message says which, and what to do.
	ReasonDirectoriesElsewhere = "DirectoriesElsewhere"
	// ReasonDirectoriesPending: some directories do not yet exist on their owners.
	ReasonDirectoriesPending = "DirectoriesPending"
	// ReasonQuotaUnsupported: the storage can't enforce spec.quota. The share is served without a quota. The message
	// says what to do.
	ReasonQuotaUnsupported = "QuotaUnsupported"
	// ReasonQuotaBelowUse: spec.quota.size is less than what the share uses, so the quota is not changed; or it is less
	// than what the snapshot of spec.source has, so the snapshot is not copied. The message has both numbers.
	ReasonQuotaBelowUse = "QuotaBelowUse"
	// ReasonQuotaAboveCapacity: spec.quota.size exceeds the capacity of the storage, so the quota is not changed. The
	// message has both numbers.
	ReasonQuotaAboveCapacity = "QuotaAboveCapacity"
	// ReasonQuotaNearlyUsed: the quota is enforced, and 85 % of it is used.
	ReasonQuotaNearlyUsed = "QuotaNearlyUsed"
	// ReasonHotDirectoriesUnsupported: only the owner of a directory can serve it on the FileServer's storage. The
	// share is served without spec.hotDirectories. The message says what to do.
	ReasonHotDirectoriesUnsupported = "HotDirectoriesUnsupported"
	// ReasonInvalidHotDirectories: an entry of spec.hotDirectories can't be expanded, and is not used; the message names
	// the pattern.
	ReasonInvalidHotDirectories = "InvalidHotDirectories"
	// ReasonSnapshotNotFound: the FileShareSnapshot of spec.source does not exist in the namespace, or is being
	// deleted.
	ReasonSnapshotNotFound = "SnapshotNotFound"
	// ReasonCloning: the storage copies the snapshot of spec.source. The message says since when, and how much is done
	// if the storage reports it.
	ReasonCloning = "Cloning"
	// ReasonCloneRefused: the share can't be made from the snapshot of spec.source. The message says why and what to do
	// instead.
	ReasonCloneRefused = "CloneRefused"
	// ReasonCloneFailed: the copy of the snapshot failed and is not retried. The message quotes the storage's error.
	ReasonCloneFailed = "CloneFailed"
)

// Reasons of conditions about a FileShare: of an MLPerfStorageJob's conditions and a FileShareSnapshot's.
const (
	// ReasonFileShareNotFound: the FileShare of spec.fileShareRef does not exist in the namespace.
	ReasonFileShareNotFound = "FileShareNotFound"
	// ReasonWaitingForShare: the share is not ready. The message repeats the share's reason.
	ReasonWaitingForShare = "WaitingForShare"
)

// Reasons of a FileShareSnapshot's and of a FileShareSnapshotSchedule's conditions.
const (
	// ReasonSnapshotsUnsupported: Howdah can't make snapshots on the storage of the share's FileServer. The message
	// says what to do instead.
	ReasonSnapshotsUnsupported = "SnapshotsUnsupported"
	// ReasonSnapshotFailed: the storage failed to make or delete the snapshot. The message quotes the error. The
	// operation is retried.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonSnapshotLost: the snapshot existed, but its ShareSnapshot in the FileServer's namespace is gone. No other
	// snapshot is made in its place.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotNotReady: of a FileShareSnapshotSchedule, the last snapshot is not Ready, and the next is made when
	// it is Ready or deleted; of a FileShare, the snapshot of spec.source is not Ready.
	ReasonSnapshotNotReady = "SnapshotNotReady"
	// ReasonClockSkewed: a clock is wrong. The message says which clock, by how much, and compared with what.
	ReasonClockSkewed = "ClockSkewed"
)

// Reasons of an MLPerfStorageJob's conditions.
const (
	// ReasonPreparing: the objects that the client pods need are being created. The message says what is missing.
	ReasonPreparing = "Preparing"
	// ReasonSuspended: spec.execution is Suspended. Of a job: there are no client pods. Of a schedule: no snapshots are
	// made; it is Ready all the same.
	ReasonSuspended = "Suspended"
	// ReasonDeadlineExceeded: the job did not finish within spec.activeDeadlineSeconds, and its client pods were
	// deleted.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonGeneratingDataset: client pods write the dataset.
	ReasonGeneratingDataset = "GeneratingDataset"
	// ReasonDatasetReady: the dataset is complete.
	ReasonDatasetReady = "DatasetReady"
	// ReasonRunning: client pods run the workload.
	ReasonRunning = "Running"
	// ReasonCompleted: the run finished, and the accelerator utilization (AU) is at or above the limit.
	ReasonCompleted = "Completed"
	// ReasonUtilizationTooLow: the run finished, and the accelerator utilization (AU) is below the limit.
	ReasonUtilizationTooLow = "UtilizationTooLow"
	// ReasonMeasurementInvalid: the run finished, but clients lacked CPU, so the result does not measure the share.
	ReasonMeasurementInvalid = "MeasurementInvalid"
	// ReasonClientFailed: a client pod failed. The message says which and why.
	ReasonClientFailed = "ClientFailed"
)
