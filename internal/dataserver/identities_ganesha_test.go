package dataserver

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

const (
	clientAddress  = "10.99.0.1"
	hostileAddress = "10.99.0.2"
)

// nextClient is another client over a connection of its own, that has no client ID yet.
func nextClient(t *testing.T, address string) *wire {
	t.Helper()
	return &wire{t: t, connection: connectFrom(t, address), minor: 1}
}

// asSessionOf is a connection from an address that uses another client's IDs.
func asSessionOf(t *testing.T, address string, of *wire) *wire {
	t.Helper()
	w := nextClient(t, address)
	w.session, w.id, w.sequence = of.session, of.id, of.sequence
	return w
}

// locked opens a file so that no other client may write to it. The file must exist.
func (w *wire) locked(share, file string) nfsv4.Nfsstat4 {
	w.t.Helper()
	return w.Run(user, append(lookUp(share, "0"), &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_BOTH, ShareDeny: nfsv4.OPEN4_SHARE_DENY_WRITE,
		Owner:   nfsv4.OpenOwner4{Owner: []byte("a process")},
		Openhow: &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE},
		Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: file},
	}})...)
}

func mustBe(t *testing.T, what string, got nfsv4.Nfsstat4, want ...nfsv4.Nfsstat4) {
	t.Helper()
	for _, status := range want {
		if got == status {
			return
		}
	}
	t.Errorf("%s: %s, not %s", what, client.StatusName(got), client.StatusName(want[0]))
}

func (s *dataServer) makeFile(path string) {
	s.t.Helper()
	mustWork(s.t, "make a file", os.WriteFile(path, nil, 0o666))
	mustWork(s.t, "let all write", os.Chmod(path, 0o666))
}

// sessionsAreTheirClients: a hostile client knows another one's owner string, client ID and session ID, and is let in itself.
func sessionsAreTheirClients(t *testing.T) {
	s := boot(t, "sessions", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = 60, 60
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	s.makeFile("/volumes/sessions/0/alpha/file")
	const owner = "Linux NFSv4.2 node1"
	known := wireFrom(t, owner, clientAddress)
	known.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	mustBe(t, "the client's open", known.locked("alpha", "file"), nfsv4.NFS4_OK)
	goesOn := func(after string) {
		t.Helper()
		mustBe(t, after+": the client's next call", known.Run(user, lookUp("alpha", "0", "file")...), nfsv4.NFS4_OK)
	}
	hostile := nextClient(t, hostileAddress)
	mustBe(t, "EXCHANGE_ID with the client's owner", hostile.identify(owner, [8]byte{1}), nfsv4.NFS4_OK)
	goesOn("EXCHANGE_ID")
	mustBe(t, "CREATE_SESSION for it", hostile.createSession(), nfsv4.NFS4_OK)
	goesOn("CREATE_SESSION of the same owner")
	hostile.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	mustBe(t, "an open of what the client has open", hostile.locked("alpha", "file"), nfsv4.NFS4ERR_SHARE_DENIED)
	again := nextClient(t, hostileAddress)
	mustBe(t, "EXCHANGE_ID with the client's owner and verifier", again.identify(owner, [8]byte{}), nfsv4.NFS4_OK)
	if again.id.EirClientid == known.id.EirClientid {
		t.Error("another address is given the client's ID")
	}
	if bytes.Equal(hostile.session[:8], binary.LittleEndian.AppendUint64(nil, hostile.id.EirClientid)) {
		t.Error("a session ID begins with the client ID")
	}
	if apart := uint32(hostile.id.EirClientid) - uint32(known.id.EirClientid); apart < 1000 || apart > 1<<32-1000 {
		t.Errorf("two client IDs are %d apart", apart)
	}

	foreign := func() *wire { return asSessionOf(t, hostileAddress, known) }
	w := foreign()
	w.id.EirSequenceid--
	mustBe(t, "CREATE_SESSION once more", w.createSession(), nfsv4.NFS4ERR_DELAY)
	mustBe(t, "CREATE_SESSION for the client's ID", foreign().createSession(), nfsv4.NFS4ERR_DELAY)
	goesOn("CREATE_SESSION")
	bind := &nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{
		BctsaSessid: known.session, BctsaDir: nfsv4.CDFC4_FORE_OR_BOTH,
	}}
	w = foreign()
	status, _ := w.send(root, bind)
	mustBe(t, "BIND_CONN_TO_SESSION", status, nfsv4.NFS4ERR_DELAY)
	destroy := &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: known.session}}
	status, _ = w.send(root, destroy)
	mustBe(t, "DESTROY_SESSION", status, nfsv4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION, nfsv4.NFS4ERR_BADSESSION)
	goesOn("DESTROY_SESSION")
	mustBe(t, "SEQUENCE", foreign().Run(user, lookUp("alpha")...), nfsv4.NFS4ERR_DELAY)
	w = foreign()
	w.sequence--
	mustBe(t, "SEQUENCE once more", w.Run(user, lookUp("alpha", "0", "file")...), nfsv4.NFS4ERR_DELAY)
	goesOn("SEQUENCE")
	end := &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: known.id.EirClientid}}
	status, _ = foreign().send(root, end)
	mustBe(t, "DESTROY_CLIENTID", status, nfsv4.NFS4ERR_STALE_CLIENTID)
	goesOn("DESTROY_CLIENTID")

	// At the client's own address, by another user.
	known.sequence--
	mustBe(t, "an answer once more to another user", known.Run(client.Credentials{UID: 4711, GID: 4711}, lookUp("alpha", "0", "file")...),
		nfsv4.NFS4ERR_SEQ_FALSE_RETRY)
	goesOn("another user")
	status, _ = known.send(user, end)
	mustBe(t, "DESTROY_CLIENTID by another user", status, nfsv4.NFS4ERR_STALE_CLIENTID)

	// The supervisor's own sessions.
	for round := range byte(20) {
		w := nextClient(t, hostileAddress)
		mustBe(t, "EXCHANGE_ID as the supervisor", w.identify("howdah supervisor of training-0", [8]byte{round}), nfsv4.NFS4_OK)
		mustBe(t, "CREATE_SESSION as the supervisor", w.createSession(), nfsv4.NFS4_OK)
		if sights, err := s.prober.Look(t.Context(), []string{"/alpha/0"}); err != nil || sights[0].Err != nil {
			t.Errorf("the supervisor is disturbed: %v, %v", err, sights)
		}
	}
}

// clientsComeBack: a real client goes on from another address as soon as its old connection is gone, or its lease is over; one that restarts is
// taken at once, and has what it had as soon as its lease is over.
func clientsComeBack(t *testing.T) {
	const lease = 4 * time.Second
	s := boot(t, "moves", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = int32(lease/time.Second), 8
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	for _, file := range []string{"moved", "silent", "same", "other"} {
		s.makeFile("/volumes/moves/0/alpha/" + file)
	}
	begin := func(address, owner string, verifier byte, file string) (*wire, nfsv4.Nfsstat4) {
		w := nextClient(t, address)
		mustBe(t, owner+": EXCHANGE_ID", w.identify(owner, [8]byte{verifier}), nfsv4.NFS4_OK)
		mustBe(t, owner+": CREATE_SESSION", w.createSession(), nfsv4.NFS4_OK)
		w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		return w, w.locked("alpha", file)
	}
	must := func(w *wire, status nfsv4.Nfsstat4) *wire {
		t.Helper()
		mustBe(t, "open", status, nfsv4.NFS4_OK)
		return w
	}

	old := must(begin(clientAddress, "moved", 1, "moved"))
	mustWork(t, "close the old connection", old.connection.Close())
	time.Sleep(200 * time.Millisecond)
	mustBe(t, "the next call from another address", asSessionOf(t, hostileAddress, old).Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)

	old = must(begin(clientAddress, "silent", 1, "silent"))
	moved := asSessionOf(t, hostileAddress, old)
	mustBe(t, "a call from another address while the old connection is open", moved.Run(user, lookUp("alpha")...), nfsv4.NFS4ERR_DELAY)
	time.Sleep(lease + time.Second)
	moved.sequence = old.sequence
	mustBe(t, "the same after the lease", moved.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)

	_, _ = begin(clientAddress, "same", 1, "same")
	_, status := begin(clientAddress, "same", 2, "same")
	mustBe(t, "a client that restarts at its address", status, nfsv4.NFS4_OK)

	_, _ = begin(clientAddress, "other", 1, "other")
	restarted, status := begin(hostileAddress, "other", 2, "other")
	mustBe(t, "a client that restarts at another address", status, nfsv4.NFS4ERR_SHARE_DENIED, nfsv4.NFS4ERR_DELAY)
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if status = restarted.locked("alpha", "other"); status == nfsv4.NFS4_OK {
			t.Logf("FIGURE what a client had before it restarted at another address is free after %s, with a lease of %s", time.Since(began).Round(time.Millisecond), lease)
			break
		}
		if time.Since(began) > 2*lease+2*time.Second {
			t.Errorf("what a client had at another address is still not free: %s", client.StatusName(status))
			break
		}
	}
}

// recordedAddressesReclaimFirst: another client with a client's owner string takes its place in grace, and the client comes.
func recordedAddressesReclaimFirst(t *testing.T) {
	s := boot(t, "recorded", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.GraceSeconds = 60
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{"10.0.0.0/8"}})}
	})
	s.settle()
	pid, file := fileBeforeAKill(t, s, "/volumes/recorded/0/alpha")
	owner := "wire " + t.Name()
	s.await("another process", func(dataservertest.Reported) bool {
		return s.pid() != 0 && s.pid() != pid && s.supervisor.State().Initialized
	})
	first := wireFrom(t, owner, hostileAddress)
	mustBe(t, "the first that comes, from another address", first.Run(user, file, reclaimOpen()), nfsv4.NFS4_OK)
	second := wireFrom(t, owner, "10.98.0.1")
	mustBe(t, "the second, from another", second.Run(user, file, reclaimOpen()), nfsv4.NFS4ERR_NO_GRACE)
	recorded := wireFrom(t, owner, clientAddress)
	mustBe(t, "the client from the address that is recorded", recorded.Run(user, file, reclaimOpen()), nfsv4.NFS4_OK)
	mustBe(t, "the first, afterwards", first.Run(user, file), nfsv4.NFS4ERR_BADSESSION)
	third := wireFrom(t, owner, hostileAddress)
	mustBe(t, "one that comes after the client", third.Run(user, file, reclaimOpen()), nfsv4.NFS4ERR_NO_GRACE)
	mustBe(t, "the client", recorded.Run(user, file), nfsv4.NFS4_OK)
	recorded.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	for began := time.Now(); s.supervisor.State().InGrace; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the client has reclaimed, and the grace period does not end")
		}
		recorded.Run(user, file)
	}
}

// sessionsEndInARace: clients restart, end sessions and close connections at the same time. What it looks for is seen on a build with
// AddressSanitizer; on others ganesha must live.
func sessionsEndInARace(t *testing.T) {
	s := boot(t, "race", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	pid := s.pid()
	others := s.watch(clientAddress, "/alpha/0")
	var racers sync.WaitGroup
	for racer := range 8 {
		racers.Go(func() {
			for round := range 60 {
				raceOnce(t, "racer "+string(rune('a'+racer/2)), byte(round), racer%2 == 0)
			}
		})
	}
	racers.Wait()
	others.noticedNothing("sessions that end in a race")
	if s.pid() != pid {
		t.Error("ganesha was started again")
	}
}

// raceOnce makes a session and ends it in one of several ways. What it is answered depends on the others.
func raceOnce(t *testing.T, owner string, verifier byte, destroys bool) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(hostileAddress)}}
	connection, err := dialer.DialContext(t.Context(), "tcp", "10.99.0.1:2049")
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = connection.Close() }()
	w := &wire{t: t, connection: connection, minor: 1}
	if w.identify(owner, [8]byte{verifier}) != nfsv4.NFS4_OK || w.createSession() != nfsv4.NFS4_OK {
		return
	}
	w.Run(user, lookUp("alpha")...)
	if destroys {
		w.send(root, &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: w.session}})
		w.send(root, &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: w.id.EirClientid}})
	}
}
