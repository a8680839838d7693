package dataserver

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// When a Ceph cluster becomes full, libcephfs may give up what it has taken and not written yet (Client::_handle_full_flag). Its writer must learn that
// from an error or from another write verifier (RFC 8881 section 18.3.3), or it drops its only copy.
func TestWritesThatAFullCephDropsAreReportedInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	s, w := c.writer()
	made := w.results(user, append(lookUp("alpha", "0"), openNew("dropped", "a writer"), &nfsv4.NfsArgop4_OP_GETFH{})...)
	handle := &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{
		Object: made[len(made)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object,
	}}
	state := made[len(made)-2].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid

	// An OSD takes the highest of the three for full.
	ratios := func(near, backfill, full float64) {
		t.Helper()
		for name, ratio := range map[string]float64{"nearfull": near, "backfillfull": backfill, "full": full} {
			_, err := c.admin.Command(context.Background(), ceph.Command{Target: ceph.Monitor, Arguments: map[string]any{"prefix": "osd set-" + name + "-ratio", "ratio": ratio}})
			mustWork(t, name, err)
		}
	}
	notFull := func() { ratios(0.85, 0.9, 0.95) }
	t.Cleanup(notFull)
	// Ceph sees some seconds later that it is full; libcephfs writes in the background what it has had for 5 s (client_oc_max_dirty_age).
	const block, piece = 1 << 20, 32 << 10
	var written []byte
	var verifier nfsv4.Verifier4
	for began := time.Now(); ; {
		if len(written) == 64*block {
			ratios(0.000001, 0.000001, 0.000001)
		}
		data := bytes.Repeat([]byte{byte('a' + len(written)/block%26)}, block)
		status, results := w.call(user, handle, &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: state, Offset: uint64(len(written)), Stable: nfsv4.UNSTABLE4, Data: data}})
		if status != nfsv4.NFS4_OK {
			t.Logf("WRITE: %s after %s and %d blocks", client.StatusName(status), time.Since(began).Round(time.Millisecond), len(written)/block)
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("Ceph does not become full")
		}
		answer := results[len(results)-1].(*nfsv4.NfsResop4_OP_WRITE).Opwrite.(*nfsv4.Write4res_NFS4_OK).Resok4
		if answer.Committed != nfsv4.UNSTABLE4 {
			t.Fatal("ganesha writes at once: then there is nothing to lose, and this test shows nothing")
		}
		written, verifier = append(written, data...), answer.Writeverf
	}
	reported := false
	commit := func(what string) {
		t.Helper()
		status, results := w.call(user, handle, &nfsv4.NfsArgop4_OP_COMMIT{})
		now := verifier
		if status == nfsv4.NFS4_OK {
			now = results[len(results)-1].(*nfsv4.NfsResop4_OP_COMMIT).Opcommit.(*nfsv4.Commit4res_NFS4_OK).Resok4.Writeverf
		}
		t.Logf("%s: COMMIT: %s, verifier %x, before %x", what, client.StatusName(status), now, verifier)
		reported = reported || status != nfsv4.NFS4_OK || now != verifier
	}
	commit("full")
	notFull()
	time.Sleep(8 * time.Second)
	commit("no longer full")
	// Another mount has nothing in its cache.
	pid := s.pid()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	s.await("another process, and the end of its grace", func(dataservertest.Reported) bool {
		state := s.supervisor.State()
		return state.PID != 0 && state.PID != pid && state.Initialized && !state.InGrace
	})
	s.settle()
	w = dialWireAs(t, "a reader", "10.99.0.1:2049", 1)
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	lost := 0
	for at := 0; at < len(written); at += piece {
		read := w.results(user, handle, &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Offset: uint64(at), Count: piece}})
		data := read[len(read)-1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data
		if !bytes.Equal(data, written[at:at+piece]) {
			lost++
		}
	}
	t.Logf("%d of %d blocks are lost", lost, len(written)/piece)
	if lost > 0 && !reported {
		t.Errorf("COMMIT succeeds with the same verifier, and %d of %d blocks are lost", lost, len(written)/piece)
	}
}
