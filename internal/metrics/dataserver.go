package metrics

import "github.com/prometheus/client_golang/prometheus"

// shareLabels tell a share, whose Kubernetes namespace may be another one than its FileServer's, and the volume of the data server.
var shareLabels = []string{"share_namespace", "share", "volume"}

// Metrics of a data server: of its supervisor, and what ganesha counts.
var (
	DataServerReady = gauge(DataServer, "howdah_data_server_ready",
		"1 if ganesha serves everything that is asked for.")
	DataServerGeneration = gauge(DataServer, "howdah_data_server_generation",
		"Generation of the DataServer that the last pass was about.")
	DataServerShares = gauge(DataServer, "howdah_data_server_shares",
		"Shares that are served on every volume.")
	DataServerSharesFailing = gauge(DataServer, "howdah_data_server_shares_failing",
		"Shares that something is wrong with.")
	DataServerStarts = counter(DataServer, "howdah_data_server_ganesha_starts_total",
		"Starts of ganesha since the container started.")
	DataServerGaneshaEnds = counter(DataServer, "howdah_data_server_ganesha_ends_total",
		"Ends of ganesha that its supervisor did not ask for since the container started, by the signal that killed it, or exit.", "signal")
	DataServerInGrace = gauge(DataServer, "howdah_data_server_in_grace",
		"1 while ganesha waits for clients to reclaim what they had before it was started; new opens wait.")
	DataServerReloadDuration = histogram(DataServer, "howdah_data_server_reload_duration_seconds",
		"Time that ganesha took to reload its configuration.", prometheus.ExponentialBuckets(0.01, 2, 11))
	DataServerReloadFailures = counter(DataServer, "howdah_data_server_reload_failures_total",
		"Reloads of the configuration that ganesha refused or did not finish.")
	DataServerConnections = gauge(DataServer, "howdah_data_server_connections",
		"Connections of NFS clients.")
	DataServerConnectionsLimit = gauge(DataServer, "howdah_data_server_connections_limit",
		"Connections of NFS clients that there may be; 0 until ganesha has started.")
	DataServerTLSConnections = gauge(DataServer, "howdah_data_server_tls_connections",
		"Connections of namespace servers.")
	DataServerTLSRefused = counter(DataServer, "howdah_data_server_tls_refused_total",
		"Connections to the port for namespace servers that were refused.")
	VolumeSize = gauge(DataServer, "howdah_data_server_volume_size_bytes",
		"Size of the volume's file system.", "volume")
	VolumeUsed = gauge(DataServer, "howdah_data_server_volume_used_bytes",
		"Bytes used of the volume's file system, at most a minute ago.", "volume")
	VolumeFree = gauge(DataServer, "howdah_data_server_volume_free_bytes",
		"Bytes of the volume's file system that clients can still use, at most a minute ago.", "volume")
	VolumeFilesUsed = gauge(DataServer, "howdah_data_server_volume_files_used",
		"Inodes used of the volume's file system, at most a minute ago. File systems without a fixed number do not have it.", "volume")
	VolumeFilesFree = gauge(DataServer, "howdah_data_server_volume_files_free",
		"Inodes of the volume's file system that clients can still use, at most a minute ago. File systems without a fixed number do not have it.", "volume")

	GaneshaScraped = gauge(DataServer, "howdah_data_server_ganesha_scraped",
		"1 if ganesha's counters could be read, 0 if they are missing here.")
	GaneshaOperations = counter(DataServer, "howdah_data_server_operations_total",
		"NFS operations that ganesha executed, by name (RFC 8881) and status.", "operation", "status")
	// GaneshaOperationDuration has ganesha's own bounds, from 1 ms.
	GaneshaOperationDuration = histogram(DataServer, "howdah_data_server_operation_duration_seconds",
		"Time that ganesha took for an NFS operation. Ganesha counts whole milliseconds, so the sum is too small for quick operations.",
		prometheus.ExponentialBuckets(0.001, 2, 17), "operation")
	GaneshaClients = gauge(DataServer, "howdah_data_server_clients",
		"NFS clients with a confirmed client ID, the data server's own probe among them.")
	GaneshaLeasesExpired = counter(DataServer, "howdah_data_server_leases_expired_total",
		"Clients whose lease ended because they were silent.")
	GaneshaRequests = gauge(DataServer, "howdah_data_server_requests",
		"RPC requests that ganesha is executing.")
	GaneshaLocks = gauge(DataServer, "howdah_data_server_locks",
		"Byte-range locks by state: held, or waited for.", "state")
	GaneshaCache = counter(DataServer, "howdah_data_server_cache_lookups_total",
		"Look-ups in ganesha's cache of attributes and names, by operation and result (hit or miss).", "operation", "result")

	ShareReadBytes = counter(DataServer, "howdah_share_read_bytes_total",
		"Bytes that clients read of a share from this data server.", shareLabels...)
	ShareWrittenBytes = counter(DataServer, "howdah_share_written_bytes_total",
		"Bytes that clients wrote to a share on this data server.", shareLabels...)
	ShareReads = counter(DataServer, "howdah_share_reads_total",
		"READ operations on a share.", shareLabels...)
	ShareWrites = counter(DataServer, "howdah_share_writes_total",
		"WRITE operations on a share.", shareLabels...)
)
