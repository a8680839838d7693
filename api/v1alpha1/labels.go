package v1alpha1

// Keys of labels, annotations and finalizers that Howdah writes.
const (
	// FileServerLabel is the name of the FileServer that an object belongs to.
	FileServerLabel = "howdah.io/file-server"
	// FileShareLabel is the name of the FileShare that an object belongs to.
	FileShareLabel = "howdah.io/file-share"
	// FileShareNamespaceLabel is the Kubernetes namespace of that FileShare, on objects in another namespace: that of
	// the FileServer.
	FileShareNamespaceLabel = "howdah.io/file-share-namespace"
	// SnapshotScheduleLabel, on a FileShareSnapshot, is the name of the FileShareSnapshotSchedule that made it and may
	// delete it. A snapshot without the label stays until a user deletes it.
	SnapshotScheduleLabel = "howdah.io/snapshot-schedule"
	// DataServerLabel is the name of the data server that an object belongs to.
	DataServerLabel = "howdah.io/data-server"
	// JobLabel is the name of the MLPerfStorageJob that an object belongs to.
	JobLabel = "howdah.io/mlperf-storage-job"
	// ComponentLabel is the purpose of an object: data-server, namespace-server, benchmark.
	ComponentLabel = "app.kubernetes.io/component"
	// ManagedByLabel is ManagedBy on every object that Howdah creates.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel.
	ManagedBy = "howdah"
	// OwnerAnnotation is kind/namespace/name of the object for which an object was created. Unlike owner references it
	// survives a restore from a backup, and it works for kinds that must have no owner (claims, PersistentVolumes).
	OwnerAnnotation = "howdah.io/owner"
	// DeclaredAnnotation is DeclaredTrue on the ShareDirectory of a directory that is or was in its share's
	// spec.directories.
	DeclaredAnnotation = "howdah.io/declared"
	// DeclaredTrue is the value of DeclaredAnnotation.
	DeclaredTrue = "true"
	// RetainedLabel is RetainedTrue on the ShareDirectories of a deleted share whose data was retained. They record
	// where the data is, so that a share of the same name finds it and its data server is not removed. Namespace
	// servers do not show them.
	RetainedLabel = "howdah.io/retained"
	// RetainedTrue is the value of RetainedLabel.
	RetainedTrue = "true"

	// CertificatesLostAnnotation, on pods of servers, is how often their certificates were replaced because the Secret
	// was deleted. The number is part of the Secret's name.
	CertificatesLostAnnotation = "howdah.io/certificates-lost"

	// StorageSecretAnnotation, on pods of data servers, is the revision of the Secret that the steward writes for them.
	// A change of the annotation makes the kubelet update the mounted Secret at once.
	StorageSecretAnnotation = "howdah.io/storage-secret" //nolint:gosec // a name

	// NamespaceUIDAnnotation is the UID of the share's Kubernetes namespace, on retained ShareDirectories, and on
	// ShareSnapshots, of shares in another namespace than their FileServer.
	NamespaceUIDAnnotation = "howdah.io/namespace-uid"
	// PausedAnnotation, if it is PausedTrue on a FileServer or a FileShare, stops the operator from changing anything
	// of the object, including its deletion. Its status is still reported, and clients and servers keep working.
	PausedAnnotation = "howdah.io/paused"
	// PausedTrue is the value of PausedAnnotation.
	PausedTrue = "true"

	// MovesAnnotation, on a FileServer, requests moves of directories to other data servers (internal/placement,
	// Request). The operator removes requests that are done or refused. An event reports refused requests.
	MovesAnnotation = "howdah.io/move-directories"
	// RebalanceAnnotation, on a FileServer, requests that the directories of each share are distributed evenly over its
	// data servers once. The value is the maximum number of moves (1 to 500). The operator turns it into requests in
	// MovesAnnotation and removes it. An event reports the number of moves.
	RebalanceAnnotation = "howdah.io/rebalance"

	// RolloutAnnotation, on the StatefulSet of data servers, has the digest of the pod template, the generation of the
	// FileServer that has it, and who changed it: Specification or Operator (internal/rollout).
	RolloutAnnotation = "howdah.io/rollout"
	// RolloutTurnAnnotation, on that StatefulSet, has RolloutTurnTaken while it is the FileServer's turn to change its data servers' pods: from before
	// the first pod is replaced until all are done. It is there only for changes by the operator.
	RolloutTurnAnnotation = "howdah.io/rollout-turn"
	// RolloutTurnTaken is the value of RolloutTurnAnnotation.
	RolloutTurnTaken = "taken"

	// Provisioner is the provisioner of StorageClasses whose claims become FileShares.
	Provisioner = "howdah.io/share"
	// ProvisionedShareAnnotation, on a PersistentVolume for a claim of a StorageClass, is namespace/name of its
	// FileShare.
	ProvisionedShareAnnotation = "howdah.io/provisioned-share"
	// ProvisionedLayoutAnnotation, on such a PersistentVolume, is how the share's data lies: Single, or Distributed/DEPTH.
	ProvisionedLayoutAnnotation = "howdah.io/provisioned-layout"
	// ProvisionedDirectoryAnnotation, on a PersistentVolume that is a directory of a share, is namespace/name/path.
	ProvisionedDirectoryAnnotation = "howdah.io/provisioned-directory"
	// ClaimAnnotation, on the ShareDirectory of such a directory, is namespace/name/UID of its claim.
	ClaimAnnotation = "howdah.io/claim"
	// CapacityAnnotation, if it is CapacityNotEnforced on such a PersistentVolume, shows that its size is not enforced.
	CapacityAnnotation = "howdah.io/capacity"
	// CapacityNotEnforced is a value of CapacityAnnotation.
	CapacityNotEnforced = "NotEnforced"

	// VolumeFinalizer keeps the PersistentVolume of a claim of a StorageClass until its FileShare is gone or is known
	// to stay.
	VolumeFinalizer = "howdah.io/volume"
	// FileServerFinalizer keeps a FileServer until no FileShare uses it.
	FileServerFinalizer = "howdah.io/file-server"
	// FileShareFinalizer keeps a FileShare until its junctions and exports are gone.
	FileShareFinalizer = "howdah.io/file-share"
	// SnapshotFinalizer keeps a FileShareSnapshot until the snapshot is gone from the storage.
	SnapshotFinalizer = "howdah.io/file-share-snapshot"
	// StoredSnapshotFinalizer keeps a ShareSnapshot until its FileServer's steward has removed the snapshot.
	StoredSnapshotFinalizer = "howdah.io/stored-snapshot"
	// ScheduledTimeAnnotation, on a FileShareSnapshot of a schedule, is the scheduled time (RFC 3339).
	ScheduledTimeAnnotation = "howdah.io/scheduled-time"
	// ExportFinalizer keeps a ShareExport until its data server has dropped the export.
	ExportFinalizer = "howdah.io/export"
	// AttachmentFinalizer keeps a ShareAttachment until the exports of its share are gone.
	AttachmentFinalizer = "howdah.io/attachment"
	// StorageFinalizer keeps a ShareStorage until the FileServer's steward has removed what it made.
	StorageFinalizer = "howdah.io/share-storage"
	// JobFinalizer keeps an MLPerfStorageJob until its PersistentVolume is being deleted.
	JobFinalizer = "howdah.io/mlperf-storage-job"

	// EndpointSlicesManagedBy is the value of the label endpointslice.kubernetes.io/managed-by on the operator's
	// EndpointSlices. Controllers of Kubernetes ignore EndpointSlices with this value.
	EndpointSlicesManagedBy = "operator.howdah.io"

	// NFSPort is the TCP port of the namespace servers and the data servers. A referral has no port (fs_locations, RFC
	// 8881 section 11.16), so clients use this one.
	NFSPort = 2049
	// NFSOutsidePort is the TCP port of namespace servers to which the Service for clients outside the cluster leads. Its
	// own port is NFSPort.
	NFSOutsidePort = 9592
	// NFSTLSPort is the TCP port of data servers for NFS with mutual TLS, which namespace servers use.
	NFSTLSPort = 9590
	// MetricsPort is the TCP port of the supervisor that serves the metrics of ganesha's Prometheus exporter.
	MetricsPort = 9587
	// ManagerPort is the TCP port on which supervisors and namespace servers serve /healthz, /readyz and /metrics.
	ManagerPort = 9588
	// WaitingRoomPort is the TCP port of namespace servers to which the Services of data servers without a pod lead.
	// Connections to it are reset after a short time, without an answer.
	WaitingRoomPort = 9591
)
