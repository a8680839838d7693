package v1alpha1

// Keys of labels, annotations and finalizers that Howdah writes.
const (
	// FileServerLabel carries the name of the FileServer that an object belongs to.
	FileServerLabel = "howdah.io/file-server"
	// FileShareLabel carries the name of the FileShare that an object belongs to.
	FileShareLabel = "howdah.io/file-share"
	// FileShareNamespaceLabel carries the Kubernetes namespace of that FileShare, on objects that are in another one: with its FileServer.
	FileShareNamespaceLabel = "howdah.io/file-share-namespace"
	// SnapshotScheduleLabel carries, on a FileShareSnapshot, the name of the FileShareSnapshotSchedule that made it and may delete it. Without it the
	// snapshot stays until somebody deletes it.
	SnapshotScheduleLabel = "howdah.io/snapshot-schedule"
	// DataServerLabel carries the name of the data server that an object belongs to.
	DataServerLabel = "howdah.io/data-server"
	// JobLabel carries the name of the MLPerfStorageJob that an object belongs to.
	JobLabel = "howdah.io/mlperf-storage-job"
	// ComponentLabel tells what an object is for: data-server, namespace-server, benchmark.
	ComponentLabel = "app.kubernetes.io/component"
	// ManagedByLabel is ManagedBy on every object that Howdah makes.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel.
	ManagedBy = "howdah"
	// OwnerAnnotation carries kind/namespace/name of the object that an object was made for. It outlives
	// what owner references do not: a restore from a backup, and kinds that must have no owner (claims, PersistentVolumes).
	OwnerAnnotation = "howdah.io/owner"
	// DeclaredAnnotation is DeclaredTrue on the ShareDirectory of a directory that its share's spec.directories asks for, or once did.
	DeclaredAnnotation = "howdah.io/declared"
	// DeclaredTrue is the value of DeclaredAnnotation.
	DeclaredTrue = "true"
	// RetainedLabel is RetainedTrue on the ShareDirectories of a deleted share whose data was retained: they tell where it is, so that a share
	// of the same name finds it again, and that a data server must not go. No namespace server shows them.
	RetainedLabel = "howdah.io/retained"
	// RetainedTrue is the value of RetainedLabel.
	RetainedTrue = "true"

	// CertificatesLostAnnotation is on the pods of servers whose certificates were made anew because their Secret was deleted: how often.
	// The name of the Secret that they mount has this number.
	CertificatesLostAnnotation = "howdah.io/certificates-lost"

	// StorageSecretAnnotation is on the pods of data servers whose storage's Secret is written by a steward: which contents of it they are
	// to have. A change of it has the kubelet bring the Secret at once.
	StorageSecretAnnotation = "howdah.io/storage-secret" //nolint:gosec // a name

	// NamespaceUIDAnnotation is on retained ShareDirectories of shares of another Kubernetes namespace than their FileServer's: the UID of that namespace, whose data
	// they tell of.
	NamespaceUIDAnnotation = "howdah.io/namespace-uid"
	// PausedAnnotation, if it is PausedTrue on a FileServer or a FileShare, keeps the operator from changing anything of it, deletion
	// included. Its status is still reported; clients and servers go on.
	PausedAnnotation = "howdah.io/paused"
	// PausedTrue is the value of PausedAnnotation.
	PausedTrue = "true"

	// MovesAnnotation on a FileServer asks for directories to be given to other data servers (internal/placement,
	// Request). The operator takes off what is done or refused; an event tells of what is refused.
	MovesAnnotation = "howdah.io/move-directories"
	// RebalanceAnnotation on a FileServer asks for the directories of each share to be spread evenly over its data servers once: a number, how
	// many may move at most (1 to 500). The operator turns it into requests in MovesAnnotation and takes it off; an event tells how many there are.
	RebalanceAnnotation = "howdah.io/rebalance"

	// Provisioner is the provisioner of StorageClasses whose claims become FileShares.
	Provisioner = "howdah.io/share"
	// ProvisionedShareAnnotation is on a PersistentVolume that was made for a claim of a StorageClass: namespace/name of its FileShare.
	ProvisionedShareAnnotation = "howdah.io/provisioned-share"
	// ProvisionedDirectoryAnnotation is on one that is a directory of a share: namespace/name/path.
	ProvisionedDirectoryAnnotation = "howdah.io/provisioned-directory"
	// ClaimAnnotation is on the ShareDirectory of such a directory: namespace/name/UID of the claim that it was made for.
	ClaimAnnotation = "howdah.io/claim"
	// CapacityAnnotation, if it is CapacityNotEnforced on such a PersistentVolume, says that nothing keeps pods to its size.
	CapacityAnnotation = "howdah.io/capacity"
	// CapacityNotEnforced is a value of CapacityAnnotation.
	CapacityNotEnforced = "NotEnforced"

	// VolumeFinalizer keeps the PersistentVolume of a claim of a StorageClass until its FileShare is gone, or known to stay.
	VolumeFinalizer = "howdah.io/volume"
	// FileServerFinalizer keeps a FileServer until no FileShare uses it.
	FileServerFinalizer = "howdah.io/file-server"
	// FileShareFinalizer keeps a FileShare until its junctions and exports are gone.
	FileShareFinalizer = "howdah.io/file-share"
	// SnapshotFinalizer keeps a FileShareSnapshot until the snapshot is gone from the storage.
	SnapshotFinalizer = "howdah.io/file-share-snapshot"
	// StoredSnapshotFinalizer keeps a ShareSnapshot until its FileServer's steward says that it has removed the snapshot.
	StoredSnapshotFinalizer = "howdah.io/stored-snapshot"
	// ScheduledTimeAnnotation is on a FileShareSnapshot that a schedule made: the time of the schedule that it was made for (RFC 3339).
	ScheduledTimeAnnotation = "howdah.io/scheduled-time"
	// ExportFinalizer keeps a ShareExport until its data server has dropped the export.
	ExportFinalizer = "howdah.io/export"
	// AttachmentFinalizer keeps a ShareAttachment until the exports of its share are gone.
	AttachmentFinalizer = "howdah.io/attachment"
	// StorageFinalizer keeps a ShareStorage until the FileServer's steward is done with it.
	StorageFinalizer = "howdah.io/share-storage"
	// JobFinalizer keeps an MLPerfStorageJob until its PersistentVolume is being deleted.
	JobFinalizer = "howdah.io/mlperf-storage-job"

	// EndpointSlicesManagedBy is the value of the label endpointslice.kubernetes.io/managed-by on the operator's EndpointSlices: Kubernetes'
	// own controllers leave these alone.
	EndpointSlicesManagedBy = "operator.howdah.io"

	// NFSPort is the TCP port of the namespace servers and of the data servers:
	// a referral (fs_locations, RFC 8881 section 11.16) carries no port, so clients use this one.
	NFSPort = 2049
	// NFSTLSPort is the TCP port of data servers at which namespace servers speak NFS in mutual TLS.
	NFSTLSPort = 9590
	// MetricsPort is the TCP port at which the instance manager gives out what ganesha's own Prometheus exporter says.
	MetricsPort = 9587
	// ManagerPort is the TCP port on which instance managers and namespace servers
	// answer /healthz, /readyz and /metrics.
	ManagerPort = 9588
	// WaitingRoomPort is the TCP port of namespace servers to which Services of data servers lead while
	// these have no pod: who connects is reset after a moment, and gets no answer.
	WaitingRoomPort = 9591
)
