package dataserver

import (
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// When Ceph shuts a mount out, what ganesha has taken and not written yet is lost. The share is exported again by the same process, with a new
// mount. Its client must learn that it has to write again, from an error or from another write verifier (RFC 8881 section 18.3.3).
func TestWritesThatCephHasDroppedAreWrittenAgainInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	s, w := c.writer()
	write := writeSynced().(*nfsv4.NfsArgop4_OP_WRITE)
	write.Opwrite.Stable = nfsv4.UNSTABLE4
	made := w.results(user, append(lookUp("alpha", "0"), openNew("dropped", "a writer"), write, &nfsv4.NfsArgop4_OP_GETFH{})...)
	handle := made[len(made)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	before := made[len(made)-2].(*nfsv4.NfsResop4_OP_WRITE).Opwrite.(*nfsv4.Write4res_NFS4_OK).Resok4
	if before.Committed != nfsv4.UNSTABLE4 {
		t.Fatal("ganesha writes at once: then there is nothing to lose, and this test shows nothing")
	}

	commit := func(what string, isNew bool) {
		t.Helper()
		status, results := w.call(user, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}, &nfsv4.NfsArgop4_OP_COMMIT{})
		verifier := before.Writeverf
		if status == nfsv4.NFS4_OK {
			verifier = results[len(results)-1].(*nfsv4.NfsResop4_OP_COMMIT).Opcommit.(*nfsv4.Commit4res_NFS4_OK).Resok4.Writeverf
		}
		t.Logf("%s: COMMIT: %s, verifier %x, before %x", what, client.StatusName(status), verifier, before.Writeverf)
		if isNew && status == nfsv4.NFS4_OK && verifier == before.Writeverf {
			t.Errorf("%s: COMMIT succeeds with the same verifier, and the data is lost", what)
		}
		if !isNew && (status != nfsv4.NFS4_OK || verifier != before.Writeverf) {
			t.Errorf("%s: COMMIT does not succeed, or has another verifier", what)
		}
	}
	commit("nothing happened", false)
	w.results(user, append(lookUp("alpha", "0"), openNew("dropped", "a writer"), write)...)
	c.send(c.volume.Evict(ceph.Subvolume(c.uid, "alpha"), ceph.ShareUser(c.uid, "alpha")))
	commit("shut out", true)
	s.await("the loss to be seen", func(now dataservertest.Reported) bool {
		_, message := readyCondition(now)
		return strings.Contains(message, "share alpha: ganesha lost its storage")
	})
	waited := 0
	s.await("the share to be served again", func(now dataservertest.Reported) bool {
		// Its client waits meanwhile, on the connection that it has.
		switch status := w.Run(user, putHandle(handle)); status {
		case nfsv4.NFS4ERR_DELAY:
			waited++
		case nfsv4.NFS4_OK, nfsv4.NFS4ERR_SERVERFAULT:
		default:
			t.Fatalf("before the share is exported again its client gets %s", client.StatusName(status))
		}
		return len(now.Exports) == 1
	})
	t.Logf("FIGURE the client was put off %d times", waited)
	if waited == 0 {
		t.Error("the export was never away, so the client did not have to wait: this test shows nothing")
	}
	commit("exported again", true)
}
