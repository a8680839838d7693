package dataserver

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// reclaimOpen is OPEN of what the current handle leads to, by a client that had it open for writing before its server started again.
func reclaimOpen() operation { return reclaimBy("process") }

// reclaimBy is that of an owner.
func reclaimBy(owner string) operation {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE,
		Owner:       nfsv4.OpenOwner4{Owner: []byte(owner)},
		Openhow:     &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE},
		Claim:       &nfsv4.OpenClaim4_CLAIM_PREVIOUS{DelegateType: nfsv4.OPEN_DELEGATE_NONE},
	}}
}

// fileBeforeAKill makes a client that has a file open, kills ganesha and returns the process that was and the file's handle.
func fileBeforeAKill(t *testing.T, s *dataServer, folder string) (pid int, file operation) {
	t.Helper()
	file = fileOfAClient(t, folder)
	pid = s.pid()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	return pid, file
}

// openBy opens a file of the current directory for writing, as reclaimBy claims it again.
func openBy(owner, file string) operation {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE,
		Owner:       nfsv4.OpenOwner4{Owner: []byte(owner)},
		Openhow:     &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE},
		Claim:       &nfsv4.OpenClaim4_CLAIM_NULL{File: file},
	}}
}

// fileOfAClient makes a client that ganesha remembers, and a file in the folder of share alpha. It returns the file's handle.
func fileOfAClient(t *testing.T, folder string) (file operation) {
	t.Helper()
	_, file = clientWithFile(t, folder)
	return file
}

// openFileOfAClient is fileOfAClient, and the client has the file open: after a stop in order only such are waited for.
func openFileOfAClient(t *testing.T, folder string) (file operation) {
	t.Helper()
	w, file := clientWithFile(t, folder)
	w.opens(openBy("process", "file"))
	return file
}

// opens opens a file in share alpha when grace has ended.
func (w *wire) opens(open operation) {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		status := w.Run(user, append(lookUp("alpha", "0"), open)...)
		if status == nfsv4.NFS4_OK {
			return
		}
		if status != nfsv4.NFS4ERR_GRACE || time.Since(began) > timeout {
			w.t.Fatalf("OPEN: %s", client.StatusName(status))
		}
	}
}

func clientWithFile(t *testing.T, folder string) (before *wire, file operation) {
	t.Helper()
	mustWork(t, "make a file", os.WriteFile(folder+"/file", nil, 0o666))
	mustWork(t, "let all write", os.Chmod(folder+"/file", 0o666))
	before = dialWire(t, "10.99.0.1:2049", 1) // The only client: ganesha waits for all that it had.
	before.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	return before, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: before.handle(user, lookUp("alpha", "0", "file")...)}}
}

// graceIsForClients: a start may take longer than the grace period (a storage that is slow to mount, a busy node), so that no client could have
// reclaimed anything. A lock that is not reclaimed is lost, and its client gets EIO.
func graceIsForClients(t *testing.T) {
	const grace = 4
	slow := func(name string, tries int, isFar func(pid int) bool) {
		s := boot(t, name, 1)
		s.apply(func(spec *dataservertest.Wanted) {
			spec.LeaseSeconds, spec.GraceSeconds = 2, grace
			spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
		})
		s.settle()
		s.startsSlowly(name, grace, tries, isFar)
		s.stop()
	}
	// The grace period starts again, and some microseconds later ganesha checks whether it is over. A stop between the two is not
	// handled, but no node stops a process so exactly, and three times in a row even less.
	const tries = 3
	slow("slow", tries, func(int) bool { return true })
	// After that look, and long before there is a port. On a busy machine the look may be later than that, too.
	slow("later", tries, func(int) bool { time.Sleep(10 * time.Millisecond); return true })
	// On a busy node seconds pass between the port and the first call.
	slow("bound", tries, hasPort)
}

// hasPort tells whether ganesha has made the socket that it inherited its own: it has it twice, and this process once.
func hasPort(pid int) bool {
	count := map[string]int{}
	own := socketsOf("self")
	for _, socket := range socketsOf(strconv.Itoa(pid)) {
		if count[socket]++; count[socket] > 1 && slices.Contains(own, socket) {
			return true
		}
	}
	return false
}

func socketsOf(process string) (sockets []string) {
	open, _ := filepath.Glob("/proc/" + process + "/fd/*")
	for _, path := range open {
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "socket:") {
			sockets = append(sockets, target)
		}
	}
	return sockets
}

func (s *dataServer) startsSlowly(name string, grace time.Duration, tries int, isFar func(pid int) bool) {
	t := s.t
	t.Helper()
	for range 20 {
		pid, file := fileBeforeAKill(t, s, "/volumes/"+name+"/0/alpha")
		stopped := stopInGrace(t, s, pid, isFar)
		time.Sleep(100 * time.Millisecond) // Its earlier log lines are read by then.
		tookCalls := s.supervisor.State().Initialized
		if !tookCalls {
			time.Sleep((grace + 1) * time.Second)
		}
		mustWork(t, "continue", syscall.Kill(stopped, syscall.SIGCONT))
		status := dialWire(t, "10.99.0.1:2049", 1).Run(user, file, reclaimOpen())
		if tookCalls {
			continue // It was faster than this test.
		}
		if status != nfsv4.NFS4_OK {
			if tries--; tries > 0 {
				continue
			}
			t.Errorf("%s: after a start of more than the %d s of grace a client is refused to reclaim with %s", name, int(grace), client.StatusName(status))
		}
		return
	}
	t.Error("ganesha took calls each time before it could be stopped")
}

// stopInGrace stops the next ganesha after one as soon as it says that it is in grace, when it takes no calls yet.
func stopInGrace(t *testing.T, s *dataServer, after int, isFar func(pid int) bool) int {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(100 * time.Microsecond) {
		if state := s.supervisor.State(); state.PID != 0 && state.PID != after && state.InGrace && isFar(state.PID) {
			mustWork(t, "stop", syscall.Kill(state.PID, syscall.SIGSTOP))
			return state.PID
		}
	}
	t.Fatal("no other ganesha is in grace")
	return 0
}

// clientsAreKnownByTheirOwner: pod networks may translate a client's address differently when its server's pod comes back on another node. Only the
// client owner identifies the client (RFC 8881 section 2.4); another client has nothing to reclaim.
func clientsAreKnownByTheirOwner(t *testing.T) {
	s := boot(t, "reclaim", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.GraceSeconds = 30
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	pid, file := fileBeforeAKill(t, s, "/volumes/reclaim/0/alpha")
	s.awaitAfter(pid)

	after := dialWire(t, "10.99.0.2:2049", 1)
	if status := after.Run(user, file, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Errorf("it is refused to reclaim with %s", client.StatusName(status))
	}
	if status := dialWireAs(t, "another client", "10.99.0.1:2049", 1).Run(user, file, reclaimOpen()); status != nfsv4.NFS4ERR_NO_GRACE {
		t.Errorf("another client at the same address gets %s when it reclaims", client.StatusName(status))
	}

	// Ganesha looks by itself every half lease, which is 3 s; a client that has reclaimed and goes on with its work waits for no such look.
	after.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(time.Second, after)
}

// shortTimes are a lease of 2 s and a grace period, with the share alpha.
func shortTimes(grace int32) func(*dataservertest.Wanted) {
	return func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = 2, grace
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	}
}

// awayFor is a data server's status after it has not answered for a time.
func awayFor(before dataservertest.Reported, away time.Duration) dataservertest.Reported {
	before.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(metav1.NewTime(time.Now().Add(-away))), SeenBy: "training-namespace-x"}
	return before
}

// awaitAfter waits for the process after one.
func (s *dataServer) awaitAfter(pid int) {
	s.t.Helper()
	s.await("another process", func(dataservertest.Reported) bool {
		return s.pid() != 0 && s.pid() != pid && s.supervisor.State().Initialized
	})
}

// clientsOfALongOutage: Linux waits about as long between two connections as it has waited so far. So a client of a server that was away for 20 s
// may come 20 s after the server's start, long after a configured grace period of 4 s; its locks would be lost.
func clientsOfALongOutage(t *testing.T) {
	const grace = 4
	s := boot(t, "outage", 1)
	s.apply(shortTimes(grace))
	before := s.settle()
	file := openFileOfAClient(t, "/volumes/outage/0/alpha")
	s.stop()

	s = bootAgain(t, "outage", 1, awayFor(before, 20*time.Second))
	s.apply(shortTimes(grace))
	if after := s.settle(); len(after.RestartPending) > 0 {
		t.Errorf("the settings %v are reported to wait for a restart", after.RestartPending)
	}
	time.Sleep((grace + 2) * time.Second)
	late := dialWire(t, "10.99.0.1:2049", 1)
	if status := late.Run(user, file, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Fatalf("a client that comes %d s after the start is refused to reclaim with %s", grace+2, client.StatusName(status))
	}
	// No other client has anything to reclaim.
	late.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(5*time.Second, late)
}

// lostClients: a node was lost with a data server and with clients. All others have reclaimed, and wait for new opens until grace ends. Lost clients
// get as long as after any other start.
func lostClients(t *testing.T) {
	const grace, away, lost = 4, 60, "10.99.0.2"
	s := boot(t, "lost-clients", 1)
	s.apply(shortTimes(grace))
	before := s.settle()
	file := openFileOfAClient(t, "/volumes/lost-clients/0/alpha")
	onLost := wireFrom(t, "a client on the lost node", lost)
	onLost.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	onLost.opens(openBy("another process", "file"))
	s.stop()

	s = bootAgain(t, "lost-clients", 1, awayFor(before, away*time.Second))
	s.apply(func(spec *dataservertest.Wanted) {
		shortTimes(grace)(spec)
		spec.LostNodeAddresses = []string{"10.88.0.3", lost, "10.244.2.1"}
	})
	s.settle()
	began := time.Now()
	survivor := dialWire(t, "10.99.0.1:2049", 1)
	if status := survivor.Run(user, file, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Fatalf("the survivor is refused to reclaim with %s", client.StatusName(status))
	}
	survivor.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(away/2*time.Second, survivor)
	if took := time.Since(began); took < (grace-2)*time.Second {
		t.Errorf("grace ended after %s: the lost client had not as long as after any other start", took)
	}
}

// idleClients: a client with nothing open notices a restart when it next renews its lease, seconds later. After a stop in order ganesha knows that it has nothing
// to reclaim, and others don't wait for it.
func idleClients(t *testing.T) {
	s := boot(t, "idle", 1)
	times := func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = 10, 60
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	}
	s.apply(times)
	before := s.settle()
	file := openFileOfAClient(t, "/volumes/idle/0/alpha")
	wireFrom(t, "a client that looks", "10.99.0.2").results(user, append(lookUp("alpha", "0", "file"), &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})...)
	closes := wireFrom(t, "a client that has closed its file", "10.99.0.2")
	closes.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	results := closes.results(user, append(lookUp("alpha", "0"), openBy("reader", "file"), &nfsv4.NfsArgop4_OP_GETFH{})...)
	open := openedState(results[len(results)-2])
	closes.results(user, file, &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: open}})
	s.graceEndsWithin(time.Second, closes)
	s.stop()

	s = bootAgain(t, "idle", 1, before)
	s.apply(times)
	s.settle()
	s.graceWaitsForTheOpenFile()
	came := dialWire(t, "10.99.0.1:2049", 1)
	if status := came.Run(user, file, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Fatalf("the client with an open file is refused to reclaim it with %s", client.StatusName(status))
	}
	came.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(5*time.Second, came)
}

// graceWaitsForTheOpenFile looks for a second, as another client would, whether grace goes on while the client with an open file is away.
func (s *dataServer) graceWaitsForTheOpenFile() {
	s.t.Helper()
	other := dialWireAs(s.t, "another client", "10.99.0.1:2049", 1)
	for range 20 {
		other.Run(user, lookUp("alpha", "0")...)
		time.Sleep(50 * time.Millisecond)
	}
	if !s.supervisor.State().InGrace {
		s.t.Error("grace has ended, and the client with an open file has not come back")
	}
}

// whoReclaimsMayFinish: reclaiming takes longer than grace where the storage stands still meanwhile.
func whoReclaimsMayFinish(t *testing.T) {
	const grace = 4
	s := boot(t, "finish", 1)
	s.apply(shortTimes(grace))
	s.settle()
	pid, file := fileBeforeAKill(t, s, "/volumes/finish/0/alpha")
	s.awaitAfter(pid)
	came := dialWire(t, "10.99.0.1:2049", 1)
	for began := time.Now(); time.Since(began) < (grace+3)*time.Second; time.Sleep(200 * time.Millisecond) {
		came.Run(user, lookUp("alpha", "0")...) // It lives.
	}
	if status := came.Run(user, file, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Fatalf("a client that came in time and reclaims late is refused with %s", client.StatusName(status))
	}
	came.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(5*time.Second, came)

	// One that leaves without having finished keeps no other client waiting.
	pid = s.pid()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	s.awaitAfter(pid)
	left := dialWire(t, "10.99.0.1:2049", 1)
	left.send(root, &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: left.session}})
	status, _ := left.send(root, &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: left.clientID}})
	if status != nfsv4.NFS4_OK {
		t.Fatalf("DESTROY_CLIENTID: %s", client.StatusName(status))
	}
	time.Sleep((grace + 1) * time.Second)
	s.graceEndsWithin(5*time.Second, dialWireAs(t, "another client", "10.99.0.1:2049", 1))
}

// graceEndsWithin waits for the end of grace, which calls of a client make ganesha look at.
func (s *dataServer) graceEndsWithin(limit time.Duration, w *wire) {
	s.t.Helper()
	for began := time.Now(); s.supervisor.State().InGrace; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > limit {
			s.t.Fatalf("after %s the grace period has not ended", limit)
		}
		w.Run(user, lookUp("alpha", "0")...) // By path: a first call after a start need not have a handle.
	}
}
