package instance

import (
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/spare"
)

// openNew is OPEN of a file in the current directory, which is made if there is none.
func openNew(file, owner string) operation {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE,
		Owner:       nfsv4.OpenOwner4{Owner: []byte(owner)},
		Openhow:     &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}},
		Claim:       &nfsv4.OpenClaim4_CLAIM_NULL{File: file},
	}}
}

// writeSynced writes by the open that came before it in the same request (RFC 8881 section 16.2.3.1.2).
func writeSynced() operation {
	return &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{
		Stateid: nfsv4.Stateid4{Seqid: 1}, Stable: nfsv4.FILE_SYNC4, Data: []byte("written and synced\n"),
	}}
}

// How long a client waits on a machine's own kernel, whose system calls don't cost what those of the lab's nodes do. The client is this test, which is
// back at once: what a kernel's client waits for on top (a connection that it takes for broken) is measured in the lab.
func TestAClientGoesOnAfterAKillInARealCephCluster(t *testing.T) {
	const ioGoal, openGoal, kills = 4 * time.Second, 7 * time.Second, 5
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	s.apply(func(spec *wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = 8, 12
		spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha")}
	})
	s.settle()
	// One client: ganesha waits in grace for all that it had.
	const own = "a process"
	before := dialWireAs(t, own, "10.99.0.1:2049", 1)
	before.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	made := before.results(user, append(lookUp("alpha", "0"), openNew("kept", own), writeSynced(), &nfsv4.NfsArgop4_OP_GETFH{})...)
	handle := made[len(made)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	file := &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
	for range kills {
		time.Sleep(settledAfter + time.Second) // As long as ganesha must have served not to be held back; the health look sees who is to be shut out.
		usage, err := spare.Now()
		mustWork(t, "look at the CPUs", err)
		began := time.Now()
		mustWork(t, "kill", syscall.Kill(s.pid(), syscall.SIGKILL))
		time.Sleep(50 * time.Millisecond) // Until its connections are closed.
		after := dialWireAs(t, own, "10.99.0.1:2049", 1)
		until := func(what string, operations ...operation) time.Duration {
			t.Helper()
			for {
				status := after.run(user, operations...)
				switch {
				case status == nfsv4.NFS4_OK:
					return time.Since(began).Round(10 * time.Millisecond)
				case status != nfsv4.NFS4ERR_GRACE && status != nfsv4.NFS4ERR_DELAY || time.Since(began) > patience:
					t.Fatalf("%s after a kill: %s", what, client.StatusName(status))
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		io := until("reclaim and write", file, reclaimBy(own), writeSynced())
		after.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		open := until("open", append(lookUp("alpha", "0"), openNew("opened", own), writeSynced())...)
		now, err := spare.Now()
		mustWork(t, "look at the CPUs", err)
		room := spare.Room{Share: 1, Stolen: now.Since(usage).Stolen}
		for what, took := range map[string][2]time.Duration{"write": {io, ioGoal}, "open": {open, openGoal}} {
			verdict, failed := spare.Judge(took[0], took[1], 1, room)
			t.Logf("FIGURE killed, first %s done: %s", what, verdict)
			if failed {
				t.Errorf("first %s after a kill: %s", what, verdict)
			}
		}
		s.settle()
	}
}
