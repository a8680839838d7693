package metrics

// Metrics of the operator: what the API objects say. "kind" is that of the object; its Kubernetes namespace and name are
// namespace and name, or namespace and the kind's own label.
var (
	ObjectsCollected = gauge(Operator, "howdah_objects_collected",
		"1 if this scrape has read all objects, 0 if the metrics of objects are missing. Only the elected operator has it.")
	ObjectCondition = gauge(Operator, "howdah_object_condition",
		"1 for the present status (true, false or unknown) of a condition of a FileServer, FileShare, FileShareSnapshotSchedule, MLPerfStorageJob or DataServer. Status true is always there, 0 if it is another; the others are there while they are the present one.",
		"kind", LabelNamespace, "name", "type", "status")
	ObjectTransition = gauge(Operator, "howdah_object_condition_transition_timestamp_seconds",
		"When the status of Ready, or of a job's Succeeded, last changed, in seconds since 1970.", "kind", LabelNamespace, "name", "type")
	ObjectGeneration = gauge(Operator, "howdah_object_generation",
		"How often what is wanted of an object was changed.", "kind", LabelNamespace, "name")
	ObjectObserved = gauge(Operator, "howdah_object_observed_generation",
		"The generation of an object that its status is about.", "kind", LabelNamespace, "name")
	ObjectDeletion = gauge(Operator, "howdah_object_deletion_timestamp_seconds",
		"When the deletion of an object was asked for, in seconds since 1970, while it is being deleted.", "kind", LabelNamespace, "name")

	FileServerWanted = gauge(Operator, "howdah_file_server_data_servers_wanted",
		"Data servers that there should be.", LabelNamespace, LabelFileServer)
	FileServerReady = gauge(Operator, "howdah_file_server_data_servers_ready",
		"Data servers that serve.", LabelNamespace, LabelFileServer)
	FileServerCapacity = gauge(Operator, "howdah_file_server_capacity_bytes",
		"Size of the volumes of all data servers.", LabelNamespace, LabelFileServer)
	FileServerUsed = gauge(Operator, "howdah_file_server_used_bytes",
		"What is used of the volumes of all data servers, in steps of 1/64 of a volume.", LabelNamespace, LabelFileServer)
	FileServerProvisioned = gauge(Operator, "howdah_file_server_provisioned_bytes",
		"Size that the claims of all data servers have in Kubernetes. With storage.ceph there are none.", LabelNamespace, LabelFileServer)
	FileServerDirectories = gauge(Operator, "howdah_file_server_directories",
		"Directories of shares that a data server owns: their placement.", LabelNamespace, LabelFileServer, LabelDataServer)
	DirectoriesMoving = gauge(Operator, "howdah_file_server_directories_moving",
		"Directories that are still to get another data server.", LabelNamespace, LabelFileServer)
	DirectoriesMoved = counter(Operator, "howdah_file_server_directories_moved_total",
		"Directories that got another data server since the FileServer was made.", LabelNamespace, LabelFileServer)
	DirectoriesFrozen = gauge(Operator, "howdah_file_server_directories_frozen",
		"Directories that a data server keeps from its clients for moves whose objects were lost, until the other data server of the move is heard of.", LabelNamespace, LabelFileServer, LabelDataServer)
	DataServerInfo = gauge(Operator, "howdah_file_server_data_server_info",
		"1; the node that a data server runs on. Another node after a failover.", LabelNamespace, LabelFileServer, LabelDataServer, "node")
	DataServerUnreachable = gauge(Operator, "howdah_file_server_data_server_unreachable",
		"1 while the namespace servers get no answer from a data server.", LabelNamespace, LabelFileServer, LabelDataServer)
	DataServerEnds = counter(Operator, "howdah_file_server_data_server_ends_total",
		"How often a data server ended since it was made, without having been stopped in order: its ganesha, its container or its pod.", LabelNamespace, LabelFileServer, LabelDataServer)
	Failovers = counter(Operator, "howdah_file_server_failovers_total",
		"Failovers of a data server to another node since the FileServer was created, by outcome: begun, and completed (it served again). Only FileServers with failover.",
		LabelNamespace, LabelFileServer, LabelDataServer, "outcome")
	LastFailover = gauge(Operator, "howdah_file_server_last_failover_seconds",
		"How long the directories of a data server were not served in its last failover, from its last answer to its next.", LabelNamespace, LabelFileServer, LabelDataServer)
	LastFailoverInfo = gauge(Operator, "howdah_file_server_last_failover_info",
		"1; the node that a data server's last failover left, and why the data server there can't write any more: StorageFenced, OutOfServiceTaint, ShutdownTaint or NetworkFence.",
		LabelNamespace, LabelFileServer, LabelDataServer, "node", "evidence")
	FailoverRefused = gauge(Operator, "howdah_file_server_failover_refused",
		"1 while a data server does not answer and is not started on another node, by reason.", LabelNamespace, LabelFileServer, LabelDataServer, "reason")

	FileShareInfo = gauge(Operator, "howdah_file_share_info",
		"1; the FileServer of a FileShare, and the Kubernetes namespace of that FileServer.", LabelNamespace, "share", "server_namespace", LabelFileServer)
	FileShareDirectories = gauge(Operator, "howdah_file_share_directories",
		"Directories of a share that a data server owns.", LabelNamespace, "share", LabelDataServer)
	FileShareReadyDirectories = gauge(Operator, "howdah_file_share_directories_ready",
		"Directories of a share that exist on their data servers.", LabelNamespace, "share")
	FileShareDirectoriesLimit = gauge(Operator, "howdah_file_share_directories_limit",
		"Directories that a share may have at its depth and above it.", LabelNamespace, "share")
	FileShareQuota = gauge(Operator, "howdah_file_share_quota_bytes",
		"What the storage keeps a share to. Only shares with a quota that is enforced have it.", LabelNamespace, "share")
	FileShareUsed = gauge(Operator, "howdah_file_share_used_bytes",
		"What the files of a share take, in steps of at most 1/64 of its quota. Only shares whose storage counts it have it.", LabelNamespace, "share")
	FileShareExports = gauge(Operator, "howdah_file_share_exports",
		"Data servers that export a share, by state: serving, pending or removing.", LabelNamespace, "share", "state")

	FileShareSnapshots = gauge(Operator, "howdah_file_share_snapshots",
		"FileShareSnapshots of a share, by state: ready, pending, stalled (the user must act) or removing.", LabelNamespace, "share", "state")
	FileShareNewestSnapshot = gauge(Operator, "howdah_file_share_newest_snapshot_timestamp_seconds",
		"The moment of the newest snapshot of a share that can be read, in seconds since 1970.", LabelNamespace, "share")

	JobInfo = gauge(Operator, "howdah_mlperf_storage_job_info",
		"1; what a job measures.", LabelNamespace, "storage_job", "share", "workload", "accelerator")
	JobAccelerators = gauge(Operator, "howdah_mlperf_storage_job_accelerators",
		"Accelerators that a job emulates.", LabelNamespace, "storage_job")
	JobStarted = gauge(Operator, "howdah_mlperf_storage_job_start_timestamp_seconds",
		"When a job began, in seconds since 1970.", LabelNamespace, "storage_job")
	JobCompleted = gauge(Operator, "howdah_mlperf_storage_job_completion_timestamp_seconds",
		"When a job ended, in seconds since 1970.", LabelNamespace, "storage_job")
	JobUtilization = gauge(Operator, "howdah_mlperf_storage_job_accelerator_utilization_ratio",
		"Mean accelerator utilization (AU) of a run, from 0 to 1; MLPerf Storage asks for 0.9.", LabelNamespace, "storage_job")
	JobSamples = gauge(Operator, "howdah_mlperf_storage_job_samples_per_second",
		"Samples that all accelerators of a run took in a second, in the mean.", LabelNamespace, "storage_job")
	JobThroughput = gauge(Operator, "howdah_mlperf_storage_job_read_bytes_per_second",
		"Bytes that all clients of a run read in a second, in the mean.", LabelNamespace, "storage_job")
	JobServerRead = gauge(Operator, "howdah_mlperf_storage_job_server_read_bytes",
		"Bytes of a run that a data server delivered, by its own count.", LabelNamespace, "storage_job", LabelDataServer)
	JobVerdict = gauge(Operator, "howdah_mlperf_storage_job_verdict",
		"1 for the verdict of a run (Passed, Failed or Invalid), 0 for the two others; nothing before the end.", LabelNamespace, "storage_job", "verdict")
)
