package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metrics of a namespace server.
var (
	NamespaceReady = gauge(NamespaceServer, "howdah_namespace_ready",
		"1 if clients may come here.")
	NamespaceOperations = counter(NamespaceServer, "howdah_namespace_operations_total",
		"NFS operations on files and directories by name (RFC 8881) and status.", "operation", "status")
	NamespaceOperationDuration = histogram(NamespaceServer, "howdah_namespace_operation_duration_seconds",
		"Time that an NFS operation took.", prometheus.ExponentialBuckets(0.0001, 4, 10), "operation")
	NamespaceMkdirDuration = histogram(NamespaceServer, "howdah_namespace_mkdir_duration_seconds",
		"Time from a client's mkdir to its answer.", prometheus.ExponentialBuckets(0.002, 2, 14), "status")
	NamespaceLeader = gauge(NamespaceServer, "howdah_namespace_leader",
		"1 while this namespace server is the leader of its FileServer's directories.")
	NamespaceLeaderElections = counter(NamespaceServer, "howdah_namespace_leader_elections_total",
		"How often this namespace server became the leader: elections after a failure of the leader, and its first start.")
	NamespaceReachable = gauge(NamespaceServer, "howdah_namespace_data_server_reachable",
		"1 if the data server answers NFS at its address, 0 if not. Only the leader has it.", LabelDataServer)
	NamespaceOwnersDown = gauge(NamespaceServer, "howdah_namespace_owners_down",
		"Data servers that own directories and do not answer.")

	NamespaceShares = gauge(NamespaceServer, "howdah_namespace_shares",
		"Shares in the tree.")
	NamespaceDirectories = gauge(NamespaceServer, "howdah_namespace_directories",
		"Plain directories in the tree.")
	NamespaceJunctions = gauge(NamespaceServer, "howdah_namespace_junctions",
		"Junctions in the tree: directories that data servers own.")
	NamespaceUnfinished = gauge(NamespaceServer, "howdah_namespace_directories_unfinished",
		"Directories that are being made, removed or renamed.")

	NamespaceClients = gauge(NamespaceServer, "howdah_namespace_clients",
		"NFS clients.")
	NamespaceClientsLimit = gauge(NamespaceServer, "howdah_namespace_clients_limit",
		"NFS clients that there may be.")
	NamespaceSessions = gauge(NamespaceServer, "howdah_namespace_sessions",
		"NFS sessions.")
	NamespaceSessionsLimit = gauge(NamespaceServer, "howdah_namespace_sessions_limit",
		"NFS sessions that there may be.")
	NamespaceConnections = gauge(NamespaceServer, "howdah_namespace_connections",
		"Open connections of NFS clients.")
	NamespaceConnectionsLimit = gauge(NamespaceServer, "howdah_namespace_connections_limit",
		"Connections of NFS clients that there may be.")
	NamespaceAddresses = gauge(NamespaceServer, "howdah_namespace_client_addresses",
		"Addresses that NFS clients are connected from.")
	NamespaceRequests = gauge(NamespaceServer, "howdah_namespace_requests",
		"Requests that are being executed.")
	NamespaceRequestsLimit = gauge(NamespaceServer, "howdah_namespace_requests_limit",
		"Requests that may be executed at a time.")
	NamespaceReplyBytes = gauge(NamespaceServer, "howdah_namespace_reply_bytes",
		"Memory of replies that clients have not read.")
	NamespaceReplyBytesLimit = gauge(NamespaceServer, "howdah_namespace_reply_limit_bytes",
		"Memory that there may be for replies that clients have not read.")

	NamespaceConnectionsRefused = counter(NamespaceServer, "howdah_namespace_connections_refused_total",
		"Connections that were closed at once because there were too many.")
	NamespaceConnectionsDisplaced = counter(NamespaceServer, "howdah_namespace_connections_displaced_total",
		"Connections that had to make room for another client's, or were closed because their client did not read.")
	NamespaceRefusedLookups = counter(NamespaceServer, "howdah_namespace_refused_lookups_total",
		"Lookups of shares whose access rules leave the client out.")
	NamespaceWaitingRoom = counter(NamespaceServer, "howdah_namespace_waiting_room_connections_total",
		"Connections to data servers without a pod, those of namespace servers that ask for them included. Each is reset after a moment, so that its client connects again.")
	NamespaceChangesDelayed = counter(NamespaceServer, "howdah_namespace_changes_delayed_total",
		"Changes of directories that were put off (NFS4ERR_DELAY) because a client's address asked for too many.")
	NamespaceClientsDelayed = counter(NamespaceServer, "howdah_namespace_clients_delayed_total",
		"NFS clients that were put off (NFS4ERR_DELAY) because there were too many.")
	NamespaceSessionsDelayed = counter(NamespaceServer, "howdah_namespace_sessions_delayed_total",
		"NFS sessions that were put off (NFS4ERR_DELAY) because there were too many.")
)
