package dataserver

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
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

// opener has a file open, and is one client: ganesha waits in grace for all that it had.
const opener = "a process"

// openFile is the file of a client that has it open, by its handle.
func openFile(t *testing.T) operation {
	t.Helper()
	w := dialWireAs(t, opener, "10.99.0.1:2049", 1)
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	made := w.results(user, append(lookUp("alpha", "0"), openNew("kept", opener), writeSynced(), &nfsv4.NfsArgop4_OP_GETFH{})...)
	handle := made[len(made)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
}

// goesOn has the client come back at once, reclaim, write and open another file, and judges how long that took since its data server went. What a
// kernel's client waits for on top (a connection that it takes for broken) is measured in the lab.
func goesOn(t *testing.T, what string, file operation, goes func()) {
	t.Helper()
	const ioGoal, openGoal = 4 * time.Second, 7 * time.Second
	usage, err := spare.Now()
	mustWork(t, "look at the CPUs", err)
	began := time.Now()
	goes()
	const address = "10.99.0.1:2049"
	for time.Since(began) < timeout { // Between two pods no process listens; in a cluster clients wait with the namespace servers then.
		if probe, err := net.Dial("tcp", address); err == nil {
			_ = probe.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w := dialWireAs(t, opener, address, 1)
	until := func(doing string, operations ...operation) time.Duration {
		t.Helper()
		for {
			status := w.Run(user, operations...)
			switch {
			case status == nfsv4.NFS4_OK:
				return time.Since(began).Round(10 * time.Millisecond)
			case status != nfsv4.NFS4ERR_GRACE && status != nfsv4.NFS4ERR_DELAY || time.Since(began) > timeout:
				t.Fatalf("%s: %s: %s", what, doing, client.StatusName(status))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	io := until("reclaim and write", file, reclaimBy(opener), writeSynced())
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	open := until("open", append(lookUp("alpha", "0"), openNew("opened", opener), writeSynced())...)
	now, err := spare.Now()
	mustWork(t, "look at the CPUs", err)
	room := spare.Room{Share: 1, Stolen: now.Since(usage).Stolen}
	for doing, took := range map[string][2]time.Duration{"write": {io, ioGoal}, "open": {open, openGoal}} {
		verdict, failed := spare.Judge(took[0], took[1], 1, room)
		t.Logf("FIGURE %s, first %s done: %s", what, doing, verdict)
		if failed {
			t.Errorf("%s, first %s: %s", what, doing, verdict)
		}
	}
}

// alphaWithShortGrace asks for the share alpha, with times as short as are allowed.
func alphaWithShortGrace(spec *dataservertest.Wanted) {
	spec.LeaseSeconds, spec.GraceSeconds = 8, 12
	spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
}

// How long a client waits on a machine's own kernel, whose system calls don't cost what those of the lab's nodes do.
func TestAClientGoesOnInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	s.apply(alphaWithShortGrace)
	s.settle()
	s.await("the first start's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	file := openFile(t)
	for range 5 {
		time.Sleep(supervisor.SettledAfter + time.Second) // As long as ganesha must have served not to be held back; the health look sees who is to be shut out.
		goesOn(t, "ganesha killed", file, func() {
			mustWork(t, "kill", syscall.Kill(s.pid(), syscall.SIGKILL))
			time.Sleep(50 * time.Millisecond) // Until its connections are closed.
		})
		s.settle()
	}
	// Howdah's part of a pod that starts on another node: the rest is Kubernetes'.
	for range 3 {
		goesOn(t, "stopped, and started in a new pod that is there", file, func() {
			s.stop()
			s = c.boot()
			s.apply(alphaWithShortGrace)
		})
		s.settle()
	}
}

// Another data server is a Ceph client of its own: nothing that it does ends the sessions of the one that stopped.
func TestAStoppedServerLeavesNothingToWaitForInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	s.apply(alphaWithShortGrace)
	s.settle()
	s.await("the first start's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	openFile(t)
	began := time.Now()
	since := func() time.Duration { return time.Since(began).Round(10 * time.Millisecond) }
	s.stop()
	t.Logf("FIGURE stopped after %s", since())
	s = c.another(1).boot()
	s.apply(alphaWithShortGrace)
	s.settle()
	t.Logf("FIGURE another data server has loaded its exports after %s", since())
	s.await("the other's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	w := dialWireAs(t, "another process", "10.99.0.1:2049", 1)
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	w.results(user, append(lookUp("alpha", "0"), openNew("kept", "another process"), writeSynced())...)
	t.Logf("FIGURE first write through it to a file that was open on the one that stopped: %s", since())
	if since() > 30*time.Second {
		t.Error("Ceph waited for the sessions of the ganesha that stopped")
	}
}

// As idleClients on volumes: the records are in RADOS here, and a process is another epoch there.
func TestIdleClientsAreNotWaitedForInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	times := func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = 10, 60
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	}
	s := c.boot()
	s.apply(times)
	s.settle()
	s.await("the first start's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	file := openFile(t)
	looks := wireFrom(t, "a client that looks", "10.99.0.2")
	looks.results(user, append(lookUp("alpha", "0", "kept"), &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})...)
	s.stop()

	s = c.boot()
	s.apply(times)
	s.settle()
	s.graceWaitsForTheOpenFile()
	came := dialWireAs(t, opener, "10.99.0.1:2049", 1)
	if status := came.Run(user, file, reclaimBy(opener)); status != nfsv4.NFS4_OK {
		t.Fatalf("the client with an open file is refused to reclaim it with %s", client.StatusName(status))
	}
	came.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(5*time.Second, came)
}
