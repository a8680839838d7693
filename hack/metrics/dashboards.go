package main

// Units in Grafana's words.
const (
	count   = "short"
	bytes   = "bytes"
	rate    = "Bps"
	perSec  = "ops"
	seconds = "s"
	ratio   = "percentunit"
	yesNo   = "bool_yes_no"
)

var (
	ofNamespace  = variable{"namespace", "Kubernetes namespace", `label_values(howdah_object_generation, namespace)`}
	ofFileServer = variable{"file_server", "FileServer", `label_values(howdah_file_server_data_servers_wanted{namespace=~"$namespace"}, file_server)`}
	ofDataServer = variable{"data_server", "data server", `label_values(howdah_data_server_ready{namespace=~"$namespace", file_server=~"$file_server"}, data_server)`}
	ofShare      = variable{"share", "FileShare", `label_values(howdah_file_share_info{namespace=~"$namespace"}, share)`}
	ofJob        = variable{"storage_job", "MLPerfStorageJob", `label_values(howdah_mlperf_storage_job_info{namespace=~"$namespace"}, storage_job)`}
)

const (
	fileServers = `namespace=~"$namespace", file_server=~"$file_server"`
	dataServers = fileServers + `, data_server=~"$data_server"`
	// inShare is for the operator's metrics, onShare for those of data servers, whose own namespace may be another.
	inShare = `namespace=~"$namespace", share=~"$share"`
	onShare = `share_namespace=~"$namespace", share=~"$share"`
	jobs    = `namespace=~"$namespace", storage_job=~"$storage_job"`
)

var dashboards = []dashboard{overview, server, share, benchmark}

var overview = dashboard{
	"overview", "Howdah / overview", "All FileServers: are they Ready, how busy, how full, and does the operator keep up.",
	[]variable{ofNamespace, ofFileServer},
	[]row{
		{"State", []panel{
			stat("FileServers not Ready", count, "", query{`sum(1 - howdah_object_condition{kind="FileServer", type="Ready", status="true", namespace=~"$namespace"})`, ""}),
			stat("FileShares not Ready", count, "", query{`sum(1 - howdah_object_condition{kind="FileShare", type="Ready", status="true", namespace=~"$namespace"})`, ""}),
			stat("Data servers that serve", count, "", query{`sum(howdah_file_server_data_servers_ready{` + fileServers + `})`, "serve"}, query{`sum(howdah_file_server_data_servers_wanted{` + fileServers + `})`, "wanted"}),
			stat("Data servers that don't answer", count, "As the namespace servers see them.", query{`sum(howdah_file_server_data_server_unreachable{` + fileServers + `})`, ""}),
			graph("Ready", yesNo, "Condition Ready of each FileServer.", query{`howdah_object_condition{kind="FileServer", type="Ready", status="true", namespace=~"$namespace", name=~"$file_server"}`, "{{namespace}}/{{name}}"}),
			graph("Moves of data servers within a day", count, "How many other nodes each data server was on: failovers.", query{`howdah:data_server_moves:count1d{` + fileServers + `}`, "{{namespace}} {{data_server}}"}),
		}},
		{"Data", []panel{
			graph("Read", rate, "", query{`sum by (namespace, file_server) (howdah:data_server_read_bytes:rate5m{` + fileServers + `})`, "{{namespace}}/{{file_server}}"}),
			graph("Written", rate, "", query{`sum by (namespace, file_server) (howdah:data_server_written_bytes:rate5m{` + fileServers + `})`, "{{namespace}}/{{file_server}}"}),
			graph("Used", ratio, "", query{`howdah:file_server_used:ratio{` + fileServers + `}`, "{{namespace}}/{{file_server}}"}),
			graph("Directories by data server", count, "Where directories were placed.", query{`howdah_file_server_directories{` + fileServers + `}`, "{{namespace}} {{data_server}}"}),
		}},
		{"Namespace servers", []panel{
			graph("Operations", perSec, "", query{`sum by (operation) (rate(howdah_namespace_operations_total{` + fileServers + `}[$__rate_interval]))`, "{{operation}}"}),
			graph("mkdir, slowest hundredth", seconds, "", query{`howdah:namespace_mkdir_duration_seconds:p99_5m{` + fileServers + `}`, "{{namespace}}/{{file_server}}"}),
			graph("Connections used of those allowed", ratio, "", query{`howdah:namespace_connections:ratio{` + fileServers + `}`, "{{namespace}}/{{file_server}} {{pod}}"}),
			graph("Turned away or put off", perSec, "Too many connections, clients, sessions, or changes of one address.",
				query{`sum(rate(howdah_namespace_connections_refused_total{` + fileServers + `}[$__rate_interval]))`, "connections refused"},
				query{`sum(rate(howdah_namespace_connections_displaced_total{` + fileServers + `}[$__rate_interval]))`, "connections displaced"},
				query{`sum(rate(howdah_namespace_clients_delayed_total{` + fileServers + `}[$__rate_interval]))`, "clients"},
				query{`sum(rate(howdah_namespace_sessions_delayed_total{` + fileServers + `}[$__rate_interval]))`, "sessions"},
				query{`sum(rate(howdah_namespace_changes_delayed_total{` + fileServers + `}[$__rate_interval]))`, "changes"}),
			graph("Clients and sessions", count, "",
				query{`sum by (namespace, file_server) (howdah_namespace_clients{` + fileServers + `})`, "clients of {{namespace}}/{{file_server}}"},
				query{`sum by (namespace, file_server) (howdah_namespace_sessions{` + fileServers + `})`, "sessions of {{namespace}}/{{file_server}}"}),
			graph("Memory", bytes, "", query{`process_resident_memory_bytes{` + fileServers + `, data_server=""}`, "{{pod}}"}),
		}},
		{"Operator", []panel{
			graph("Reconciles", perSec, "", query{`sum by (controller, result) (rate(controller_runtime_reconcile_total[$__rate_interval]))`, "{{controller}} {{result}}"}),
			graph("A reconcile, slowest hundredth", seconds, "", query{`histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval])))`, "{{controller}}"}),
			graph("Objects that wait", count, "", query{`sum by (name) (workqueue_depth)`, "{{name}}"}),
			graph("Requests to the API server", perSec, "", query{`sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]))`, "{{method}} {{code}}"}),
		}},
	},
}

var server = dashboard{
	"server", "Howdah / server", "Data servers: what they serve, how quick they are, and what they run out of.",
	[]variable{ofNamespace, ofFileServer, ofDataServer},
	[]row{
		{"State", []panel{
			stat("Ready", count, "", query{`sum(howdah_data_server_ready{` + dataServers + `})`, ""}),
			stat("In grace", count, "New opens wait on these.", query{`sum(howdah_data_server_in_grace{` + dataServers + `})`, ""}),
			stat("Clients", count, "", query{`sum(howdah_data_server_clients{` + dataServers + `})`, ""}),
			stat("Shares that something is wrong with", count, "", query{`sum(howdah_data_server_shares_failing{` + dataServers + `})`, ""}),
		}},
		{"Data", []panel{
			graph("Read", rate, "", query{`howdah:data_server_read_bytes:rate5m{` + dataServers + `}`, "{{data_server}}"}),
			graph("Written", rate, "", query{`howdah:data_server_written_bytes:rate5m{` + dataServers + `}`, "{{data_server}}"}),
			graph("Operations", perSec, "", query{`sum by (data_server, operation) (rate(howdah_data_server_operations_total{` + dataServers + `}[$__rate_interval]))`, "{{data_server}} {{operation}}"}),
			graph("Operations that failed", perSec, "NOENT is not counted: looking for what is not there is everyday.", query{`sum by (data_server, operation, status) (rate(howdah_data_server_operations_total{` + dataServers + `, status!~"NFS4_OK|NFS4ERR_NOENT"}[$__rate_interval]))`, "{{data_server}} {{operation}} {{status}}"}),
			graph("READ and WRITE, slowest hundredth", seconds, "Ganesha counts whole milliseconds.", query{`howdah:data_server_operation_duration_seconds:p99_5m{` + dataServers + `, operation=~"READ|WRITE"}`, "{{data_server}} {{operation}}"}),
			graph("Found in ganesha's cache", ratio, "", query{`sum by (data_server) (rate(howdah_data_server_cache_lookups_total{` + dataServers + `, result="hit"}[$__rate_interval])) / sum by (data_server) (rate(howdah_data_server_cache_lookups_total{` + dataServers + `}[$__rate_interval]))`, "{{data_server}}"}),
		}},
		{"What runs out", []panel{
			graph("Volumes used", ratio, "Of what clients can have, space and inodes.", query{`howdah:volume_used:ratio{` + dataServers + `}`, "{{data_server}} volume {{volume}}"}, query{`howdah:volume_files_used:ratio{` + dataServers + `}`, "inodes {{data_server}} volume {{volume}}"}),
			graph("Free on volumes", bytes, "", query{`howdah_data_server_volume_free_bytes{` + dataServers + `}`, "{{data_server}} volume {{volume}}"}),
			graph("Connections", count, "", query{`howdah_data_server_connections{` + dataServers + `}`, "{{data_server}}"}, query{`howdah_data_server_connections_limit{` + dataServers + `}`, "limit of {{data_server}}"}),
			graph("Memory of ganesha", bytes, "", query{`ganesha_process_resident_memory_bytes{` + dataServers + `}`, "{{data_server}}"}),
			graph("CPU of ganesha", count, "Cores.", query{`rate(ganesha_process_cpu_seconds_total{` + dataServers + `}[$__rate_interval])`, "{{data_server}}"}),
			graph("Requests in execution, locks", count, "", query{`howdah_data_server_requests{` + dataServers + `}`, "requests {{data_server}}"}, query{`howdah_data_server_locks{` + dataServers + `}`, "locks {{state}} {{data_server}}"}),
			graph("Starts and reloads of ganesha", count, "", query{`howdah_data_server_ganesha_starts_total{` + dataServers + `}`, "starts {{data_server}}"}, query{`howdah_file_server_data_server_ends_total{` + dataServers + `}`, "ends that were not asked for {{data_server}}"}, query{`howdah_data_server_reload_duration_seconds_count{` + dataServers + `}`, "reloads {{data_server}}"}, query{`howdah_data_server_reload_failures_total{` + dataServers + `}`, "reloads that failed {{data_server}}"}),
		}},
	},
}

var share = dashboard{
	"share", "Howdah / share", "FileShares: who reads and writes how much, from where, and where the directories are.",
	[]variable{ofNamespace, ofShare},
	[]row{
		{"Data", []panel{
			graph("Read", rate, "", query{`sum by (share_namespace, share) (howdah:share_read_bytes:rate5m{` + onShare + `})`, "{{share_namespace}}/{{share}}"}),
			graph("Written", rate, "", query{`sum by (share_namespace, share) (howdah:share_written_bytes:rate5m{` + onShare + `})`, "{{share_namespace}}/{{share}}"}),
			graph("Read, by data server", rate, "Even if the load is.", query{`sum by (share, data_server) (rate(howdah_share_read_bytes_total{` + onShare + `}[$__rate_interval]))`, "{{share}} on {{data_server}}"}),
			graph("READ and WRITE", perSec, "", query{`sum by (share) (rate(howdah_share_reads_total{` + onShare + `}[$__rate_interval]))`, "READ {{share}}"}, query{`sum by (share) (rate(howdah_share_writes_total{` + onShare + `}[$__rate_interval]))`, "WRITE {{share}}"}),
		}},
		{"Directories", []panel{
			graph("Directories by data server", count, "", query{`howdah_file_share_directories{` + inShare + `}`, "{{share}} on {{data_server}}"}),
			graph("Directories of those allowed", ratio, "", query{`sum by (namespace, share) (howdah_file_share_directories{` + inShare + `}) / on (namespace, share) howdah_file_share_directories_limit{` + inShare + `}`, "{{namespace}}/{{share}}"}),
			graph("Quota used", ratio, "Of shares with a quota that the storage enforces.", query{`howdah:file_share_quota_used:ratio{` + inShare + `}`, "{{namespace}}/{{share}}"}),
			graph("Exports", count, "Data servers that serve the share, or are to.", query{`howdah_file_share_exports{` + inShare + `}`, "{{share}} {{state}}"}),
			graph("Ready", yesNo, "", query{`howdah_object_condition{kind="FileShare", type="Ready", status="true", namespace=~"$namespace", name=~"$share"}`, "{{namespace}}/{{name}}"}),
		}},
	},
}

var benchmark = dashboard{
	"benchmark", "Howdah / benchmark", "Runs of MLPerfStorageJobs. None is an MLPerf result.",
	[]variable{ofNamespace, ofJob},
	[]row{
		{"Results", []panel{
			graph("Accelerator utilization", ratio, "MLPerf Storage asks for 90 %.", query{`howdah_mlperf_storage_job_accelerator_utilization_ratio{` + jobs + `}`, "{{namespace}}/{{storage_job}}"}),
			graph("Throughput", rate, "Bytes that all clients read in a second.", query{`howdah_mlperf_storage_job_read_bytes_per_second{` + jobs + `}`, "{{namespace}}/{{storage_job}}"}),
			graph("Samples a second", count, "", query{`howdah_mlperf_storage_job_samples_per_second{` + jobs + `}`, "{{namespace}}/{{storage_job}}"}),
			graph("Verdicts", yesNo, "", query{`howdah_mlperf_storage_job_verdict{` + jobs + `}`, "{{storage_job}} {{verdict}}"}),
			graph("Read from each data server", bytes, "Even if the directories are.", query{`howdah_mlperf_storage_job_server_read_bytes{` + jobs + `}`, "{{storage_job}} {{data_server}}"}),
			graph("Time that runs took", seconds, "", query{`howdah_mlperf_storage_job_completion_timestamp_seconds{` + jobs + `} - howdah_mlperf_storage_job_start_timestamp_seconds{` + jobs + `}`, "{{namespace}}/{{storage_job}}"}),
		}},
		{"Meanwhile", []panel{
			graph("Read, by data server", rate, "Of all shares.", query{`sum by (namespace, data_server) (rate(howdah_share_read_bytes_total[$__rate_interval]))`, "{{namespace}} {{data_server}}"}),
			graph("CPU of ganesha", count, "Cores.", query{`rate(ganesha_process_cpu_seconds_total[$__rate_interval])`, "{{namespace}} {{data_server}}"}),
		}},
	},
}
