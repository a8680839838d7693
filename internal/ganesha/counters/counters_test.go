package counters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFindsWhatMatters(t *testing.T) {
	const text = `# HELP x y
mdcache_cache_hits_total{operation="lookup"} 8
mdcache_cache_hits_by_export_total{export="export_id=4",operation="getattr"} 99
mdcache_cache_misses_total{operation="lookup"} 12
rpcs_in_flight 2
nfsv4__op_count{op="READ",status="NFS4_OK"} 2
nfsv4__op_count{op="READ",status="NFS4ERR_IO"} 1
nfsv4__op_latency_count{op="READ",status="NFS4_OK"} 2
nfsv4__op_latency_sum{op="READ",status="NFS4_OK"} 3
nfsv4__op_latency_bucket{op="READ",status="NFS4_OK",le="1"} 1
nfsv4__op_latency_bucket{op="READ",status="NFS4_OK",le="2"} 2
nfsv4__op_latency_bucket{op="READ",status="NFS4_OK",le="+Inf"} 2
nfsv4__op_latency_count{op="READ",status="NFS4ERR_IO"} 1
nfsv4__op_latency_sum{op="READ",status="NFS4ERR_IO"} 2
nfsv4__op_latency_bucket{op="READ",status="NFS4ERR_IO",le="2"} 1
clients__confirmed_count 4
clients__lease_expire_count 5
locks__count{lock_type="waiters"} 6
locks__count{lock_type="holders"} 7
client_bytes_received_total{client="10.99.0.1",operation="read"} 4000
nfs_bytes_received_by_export_total{export="export_id=1",operation="read",path="/alpha/0"} 4e+06
nfs_bytes_sent_by_export_total{export="export_id=1",operation="write",path="/alpha/0"} 300
nfs_request_size_by_export_bytes_count{export="export_id=1",operation="write",path="/alpha/0"} 3
nfs_request_size_by_export_bytes_count{export="export_id=1",operation="read",path="/alpha/0"} 9
nfs_request_size_by_export_bytes_sum{export="export_id=1",operation="read",path="/alpha/0"} 4000
`
	got, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Counters{
		Operations: map[Operation]uint64{{"READ", "NFS4_OK"}: 2, {"READ", "NFS4ERR_IO"}: 1},
		Durations:  map[string]*Duration{"READ": {Count: 3, Millisecond: 5, AtMost: map[float64]uint64{1: 1, 2: 3}}},
		Exports:    map[string]*Export{"/alpha/0": {ReadBytes: 4_000_000, WrittenBytes: 300, Reads: 9, Writes: 3}},
		CacheHits:  map[string]uint64{"lookup": 8}, CacheMisses: map[string]uint64{"lookup": 12},
		Clients: 4, LeasesExpired: 5, Requests: 2, LocksHeld: 7, LocksAwaited: 6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadRefusesWhatIsNotGaneshas(t *testing.T) {
	for _, text := range []string{"", "<html>", "go_goroutines 5\n"} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("nfsv4__op_latency_bucket{op=\"READ\",le=\"1\"} 5\n")
	f.Add("locks__count{lock_type=\"\\")
	f.Add("clients__confirmed_count 1e400\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = Read(strings.NewReader(text)) })
}
