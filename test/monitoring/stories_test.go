package monitoring

import (
	"fmt"
	"strings"
)

const (
	inFileServer = `namespace="storage",file_server="training"`
	inDataServer = inFileServer + `,data_server="training-0"`
	volume       = inDataServer + `,volume="0"`
	inShare      = `namespace="team-a",share="data"`
	inJob        = `namespace="team-a",storage_job="run"`
)

var (
	ofFileServer = map[string]string{"namespace": "storage", "file_server": "training"}
	ofDataServer = map[string]string{"namespace": "storage", "file_server": "training", "data_server": "training-0"}
	ofShare      = map[string]string{"namespace": "team-a", "share": "data"}
	ofVolume     = map[string]string{"namespace": "storage", "file_server": "training", "data_server": "training-0", "volume": "0"}
)

// is a sample of a value that stays.
func is(name, labels string, value float64) series {
	return series{fmt.Sprintf("%s{%s}", name, labels), fmt.Sprintf("%gx180", value)}
}

// grows is a counter.
func grows(name, labels string, by float64) series {
	return series{fmt.Sprintf("%s{%s}", name, labels), fmt.Sprintf("0+%gx180", by)}
}

// condition is that of an object, which has the status for that number of minutes of every twenty; 20: always.
func condition(kind, namespace, name, of, status string, minutes int) series {
	var values []string
	for range 9 {
		if minutes > 0 {
			values = append(values, fmt.Sprintf("1x%d", minutes-1))
		}
		if minutes < 20 {
			values = append(values, fmt.Sprintf("0x%d", 19-minutes))
		}
	}
	labels := fmt.Sprintf("kind=%q,namespace=%q,name=%q,type=%q,status=%q", kind, namespace, name, of, status)
	return series{"howdah_object_condition{" + labels + "}", strings.Join(values, " ")}
}

func ofCondition(kind, namespace, name, of, status string) map[string]string {
	return map[string]string{"kind": kind, "namespace": namespace, "name": name, "type": of, "status": status}
}

// lost is a data server as the leader sees it, with or without an operator that has the report.
func reachable(value float64) series {
	return is("howdah_namespace_data_server_reachable", inDataServer, value)
}

func full(ratio float64) []series {
	return []series{is("howdah_data_server_volume_used_bytes", volume, ratio*1e12), is("howdah_data_server_volume_size_bytes", volume, 1e12)}
}

func filesFull(ratio float64) []series {
	return []series{is("howdah_data_server_volume_files_used", volume, ratio*1e6), is("howdah_data_server_volume_files_free", volume, (1-ratio)*1e6)}
}

func quotaUsed(ratio float64) []series {
	return []series{is("howdah_file_share_used_bytes", inShare, ratio*1e12), is("howdah_file_share_quota_bytes", inShare, 1e12)}
}

func mkdirs(slowBy float64) []series {
	const labels = inFileServer + `,status="NFS4_OK"`
	return []series{
		grows("howdah_namespace_mkdir_duration_seconds_bucket", labels+`,le="4.096"`, 600-slowBy),
		grows("howdah_namespace_mkdir_duration_seconds_bucket", labels+`,le="8.192"`, 600),
		grows("howdah_namespace_mkdir_duration_seconds_bucket", labels+`,le="+Inf"`, 600),
	}
}

func turnedAway(connections, clients float64) []series {
	return []series{
		grows("howdah_namespace_connections_refused_total", inFileServer, connections),
		grows("howdah_namespace_clients_delayed_total", inFileServer, clients),
		grows("howdah_namespace_sessions_delayed_total", inFileServer, 0),
	}
}

func connections(process, labels string, used float64) []series {
	return []series{is("howdah_"+process+"_connections", labels, used), is("howdah_"+process+"_connections_limit", labels, 4096)}
}

// stories have one of each alert.
var stories = map[string]story{
	"HowdahOperatorSilent": {
		fires: []series{is("howdah_objects_collected", "", 0)}, at: "15m", labels: map[string]string{},
		silent: []series{is("howdah_objects_collected", "", 1)},
	},
	"HowdahReconcileErrors": {
		fires: []series{grows("controller_runtime_reconcile_errors_total", `controller="fileshare"`, 30)}, at: "30m", labels: map[string]string{"controller": "fileshare"},
		silent: []series{grows("controller_runtime_reconcile_errors_total", `controller="fileshare"`, 1), grows("controller_runtime_reconcile_errors_total", `controller="another"`, 60)},
	},
	"HowdahFileServerNotReady": {
		fires: []series{condition("FileServer", "storage", "training", "Ready", "false", 20)}, at: "6m", labels: ofCondition("FileServer", "storage", "training", "Ready", "false"),
		// Changes and restarts: Ready is Unknown, or not true for a moment.
		silent: []series{condition("FileServer", "storage", "training", "Ready", "false", 4), condition("FileServer", "storage", "training", "Ready", "unknown", 20)},
	},
	"HowdahFileServerNotUpdated": {
		fires: []series{condition("FileServer", "storage", "training", "ServersUpdated", "false", 90)}, at: "65m", labels: ofCondition("FileServer", "storage", "training", "ServersUpdated", "false"),
		silent: []series{condition("FileServer", "storage", "training", "ServersUpdated", "false", 50)},
	},
	"HowdahFileShareNotReady": {
		fires: []series{condition("FileShare", "team-a", "data", "Ready", "false", 20)}, at: "6m", labels: ofCondition("FileShare", "team-a", "data", "Ready", "false"),
		silent: []series{condition("FileShare", "team-a", "data", "Ready", "false", 4), condition("FileServer", "storage", "training", "Ready", "false", 20)},
	},
	"HowdahObjectStalled": {
		fires: []series{condition("FileShare", "team-a", "data", "Stalled", "true", 20)}, at: "16m", labels: ofCondition("FileShare", "team-a", "data", "Stalled", "true"),
		// A job that missed its limit stays stalled, and another alert reports it.
		silent: []series{condition("FileShare", "team-a", "data", "Stalled", "true", 10), condition("MLPerfStorageJob", "team-a", "run", "Stalled", "true", 20)},
	},
	"HowdahDeletionStuck": {
		fires: []series{is("howdah_object_deletion_timestamp_seconds", `kind="FileShare",namespace="team-a",name="data"`, 60)}, at: "70m",
		labels: map[string]string{"kind": "FileShare", "namespace": "team-a", "name": "data"},
		silent: []series{{`howdah_object_deletion_timestamp_seconds{kind="FileShare",namespace="team-a",name="data"}`, "60x30 _x149"}},
	},
	"HowdahNamespaceServersDown": {
		fires: []series{condition("FileServer", "storage", "training", "NamespaceServersAvailable", "false", 20)}, at: "3m",
		labels: ofCondition("FileServer", "storage", "training", "NamespaceServersAvailable", "false"),
		silent: []series{condition("FileServer", "storage", "training", "NamespaceServersAvailable", "false", 1)},
	},
	"HowdahNoLeader": {
		fires: []series{is("howdah_namespace_leader", inFileServer+`,pod="a"`, 0), is("howdah_namespace_leader", inFileServer+`,pod="b"`, 0)}, at: "4m", labels: ofFileServer,
		silent: []series{is("howdah_namespace_leader", inFileServer+`,pod="a"`, 0), is("howdah_namespace_leader", inFileServer+`,pod="b"`, 1)},
	},
	"HowdahDirectoriesUnfinished": {
		fires: []series{is("howdah_namespace_directories_unfinished", inFileServer, 3)}, at: "20m", labels: ofFileServer,
		silent: []series{{"howdah_namespace_directories_unfinished{" + inFileServer + "}", "5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x138"}},
	},
	"HowdahDirectoriesFrozen": {
		fires: []series{is("howdah_file_server_directories_frozen", inDataServer, 2)}, at: "3m", labels: ofDataServer,
		// Moves that go on, and one that was heard of again.
		silent: []series{is("howdah_file_server_directories_moving", inFileServer, 2), {"howdah_file_server_directories_frozen{" + inDataServer + "}", "0x20 1x0 0x159"}},
	},
	"HowdahMkdirSlow": {fires: mkdirs(60), at: "30m", labels: ofFileServer, silent: mkdirs(1)},
	"HowdahClientsTurnedAway": {
		fires: turnedAway(0, 6), at: "20m", labels: ofFileServer, silent: turnedAway(0, 0),
	},
	"HowdahNamespaceConnectionsNearLimit": {
		fires: connections("namespace", inFileServer, 3700), at: "15m", labels: ofFileServer, silent: connections("namespace", inFileServer, 3200),
	},
	"HowdahDataServerUnreachable": {
		fires: []series{reachable(0)}, at: "3m", labels: ofDataServer,
		silent: []series{reachable(1), is("howdah_file_server_data_server_unreachable", inDataServer, 0)},
	},
	"HowdahFailoverRefused": {
		fires: []series{is("howdah_file_server_failover_refused", inDataServer+`,reason="PowerUnknown"`, 1)}, at: "3m", labels: ofDataServer,
		silent: []series{is("howdah_file_server_failovers_total", inDataServer+`,outcome="begun"`, 1)},
	},
	"HowdahFailoverRepeats": {
		fires: []series{{"howdah_file_server_failovers_total{" + inDataServer + `,outcome="begun"}`, "0x10 1x20 2x200"}}, at: "60m", labels: ofFileServer,
		silent: []series{{"howdah_file_server_failovers_total{" + inDataServer + `,outcome="begun"}`, "0x10 1x220"}},
	},
	"HowdahDataServerConnectionsNearLimit": {
		fires: connections("data_server", inDataServer, 3700), at: "15m", labels: ofDataServer,
		// A ganesha that starts has no limit yet.
		silent: []series{is("howdah_data_server_connections", inDataServer, 5), is("howdah_data_server_connections_limit", inDataServer, 0)},
	},
	"HowdahVolumeFillingUp": {fires: full(0.9), at: "20m", labels: ofVolume, value: "90%", silent: full(0.97)},
	"HowdahVolumeFull": {
		fires: filesFull(0.97), at: "10m", labels: ofVolume, value: "97%", silent: full(0.9),
	},
	"HowdahVolumeFullSoon": {
		// 600 MB of 1 GB, and 2 MB more each minute.
		fires: []series{
			{"howdah_data_server_volume_used_bytes{" + volume + "}", "600+2x180"}, {"howdah_data_server_volume_free_bytes{" + volume + "}", "400-2x180"},
		},
		at: "40m", labels: ofVolume,
		// As fast, with room for longer than the alert is about.
		silent: []series{
			{"howdah_data_server_volume_used_bytes{" + volume + "}", "6000+2x180"}, {"howdah_data_server_volume_free_bytes{" + volume + "}", "4000-2x180"},
		},
	},
	"HowdahGaneshaRestarts": {
		fires: []series{{"howdah_file_server_data_server_ends_total{" + inDataServer + "}", "7x10 8x5 9x165"}}, at: "25m", labels: ofDataServer,
		silent: []series{{"howdah_file_server_data_server_ends_total{" + inDataServer + "}", "7x10 8x90 9x80"}},
	},
	"HowdahGraceTooLong": {
		fires: []series{is("howdah_data_server_in_grace", inDataServer, 1)}, at: "15m", labels: ofDataServer,
		silent: []series{{"howdah_data_server_in_grace{" + inDataServer + "}", "1x5 0x20 1x5 0x150"}},
	},
	"HowdahReloadsFail": {
		fires: []series{grows("howdah_data_server_reload_failures_total", inDataServer, 1)}, at: "20m", labels: ofDataServer,
		silent: []series{grows("howdah_data_server_reload_failures_total", inDataServer, 0)},
	},
	"HowdahSharesFailing": {
		fires: []series{is("howdah_data_server_shares_failing", inDataServer, 1)}, at: "15m", labels: ofDataServer,
		silent: []series{is("howdah_data_server_shares_failing", inDataServer, 0)},
	},
	"HowdahGaneshaSilent": {
		fires: []series{is("howdah_data_server_ganesha_scraped", inDataServer, 0)}, at: "15m", labels: ofDataServer,
		silent: []series{is("howdah_data_server_ganesha_scraped", inDataServer, 1)},
	},
	"HowdahShareNearItsDirectories": {
		fires: []series{
			is("howdah_file_share_directories", `namespace="team-a",share="data",data_server="training-0"`, 500),
			is("howdah_file_share_directories", `namespace="team-a",share="data",data_server="training-1"`, 450),
			is("howdah_file_share_directories_limit", `namespace="team-a",share="data"`, 1000),
		}, at: "15m", labels: map[string]string{"namespace": "team-a", "share": "data"},
		silent: []series{
			is("howdah_file_share_directories", `namespace="team-a",share="data",data_server="training-0"`, 500),
			is("howdah_file_share_directories_limit", `namespace="team-a",share="data"`, 1000),
		},
	},
	"HowdahShareQuotaNearlyUsed": {fires: quotaUsed(0.9), at: "20m", labels: ofShare, silent: quotaUsed(0.97)},
	// One that is nearly used, and one without a quota.
	"HowdahShareQuotaUsed": {
		fires: quotaUsed(0.97), at: "10m", labels: ofShare,
		silent: append(quotaUsed(0.9), is("howdah_file_share_used_bytes", `namespace="team-a",share="other"`, 1e15)),
	},
	"HowdahSnapshotScheduleNotReady": {
		fires: []series{condition("FileShareSnapshotSchedule", "team-a", "nightly", "Ready", "false", 20)}, at: "16m",
		labels: ofCondition("FileShareSnapshotSchedule", "team-a", "nightly", "Ready", "false"),
		silent: []series{condition("FileShareSnapshotSchedule", "team-a", "nightly", "Ready", "false", 10), condition("FileShare", "team-a", "data", "Ready", "false", 20)},
	},
	"HowdahSnapshotsStuck": {
		fires: []series{is("howdah_file_share_snapshots", `namespace="team-a",share="data",state="removing"`, 1)}, at: "40m", labels: ofShare,
		// One every hour, each of which takes its time, and many that are well.
		silent: []series{
			{`howdah_file_share_snapshots{namespace="team-a",share="data",state="pending"}`, "1x5 0x54 1x5 0x54 1x5 0x54"},
			is("howdah_file_share_snapshots", `namespace="team-a",share="data",state="ready"`, 50),
		},
	},
	"HowdahBenchmarkFailed": {
		fires: []series{
			is("howdah_mlperf_storage_job_verdict", inJob+`,verdict="Failed"`, 1), is("howdah_mlperf_storage_job_completion_timestamp_seconds", inJob, 60),
		}, at: "5m", labels: map[string]string{"namespace": "team-a", "storage_job": "run", "verdict": "Failed"},
		// One that passed, and one that failed the day before yesterday.
		silent: []series{
			is("howdah_mlperf_storage_job_verdict", inJob+`,verdict="Failed"`, 0), is("howdah_mlperf_storage_job_completion_timestamp_seconds", inJob, 60),
			is("howdah_mlperf_storage_job_verdict", `namespace="team-a",storage_job="old",verdict="Failed"`, 1),
			is("howdah_mlperf_storage_job_completion_timestamp_seconds", `namespace="team-a",storage_job="old"`, -100000),
		},
	},
}
