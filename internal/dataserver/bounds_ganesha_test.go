package dataserver

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// clientsAreBounded: one address makes as many client IDs and sessions as it can, and the next client of another one is served.
func clientsAreBounded(t *testing.T) {
	s := boot(t, "bounds", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	limits := ganesha.LimitsFor(s.memoryLimit)
	others := s.watch(clientAddress, "/alpha/0")
	before := s.residentBytes()

	// A client that is there, with something open, and so does not give way to its own address's.
	s.makeFile("/volumes/bounds/0/alpha/file")
	good := wireFrom(t, "good", hostileAddress)
	good.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	mustBe(t, "its open", good.locked("alpha", "file"), nfsv4.NFS4_OK)
	// It renews its lease, as kernels do: under QEMU, or beside other work, what follows takes longer than that.
	renew := func() {
		t.Helper()
		mustBe(t, "the client with an open of the same address", good.Run(user, lookUp("alpha", "0", "file")...), nfsv4.NFS4_OK)
	}

	began := time.Now()
	hostile := nextClient(t, hostileAddress)
	filler := make([]byte, 900)
	for i := range filler {
		filler[i] = 'x'
	}
	for i := range 6000 {
		if status := hostile.identify(fmt.Sprint(i, string(filler)), [8]byte{}); status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_DELAY {
			t.Fatalf("EXCHANGE_ID %d: %s", i, client.StatusName(status))
		}
		if i%500 == 0 {
			renew()
		}
	}
	t.Logf("FIGURE 6,000 client IDs of one address: %s, %d MiB more", time.Since(began).Round(time.Millisecond), (s.residentBytes()-before)>>20)
	others.noticedNothing("6,000 client IDs of one address")

	confirmed := 0
	for i := range 2 * int(limits.ClientsPerAddress) {
		w := nextClient(t, hostileAddress)
		status := w.identify(fmt.Sprint("confirmed ", i), [8]byte{})
		if status == nfsv4.NFS4_OK {
			status = w.createSession()
		}
		if status == nfsv4.NFS4_OK {
			confirmed++
		} else if status != nfsv4.NFS4ERR_DELAY {
			t.Fatalf("client %d: %s", i, client.StatusName(status))
		}
		if i%2 == 0 {
			_ = w.connection.Close()
		}
		renew()
	}
	recovery, err := filepath.Glob("/volumes/bounds/0/.howdah/ganesha/v4recov/training-0.*/*")
	mustWork(t, "list recovery records", err)
	t.Logf("FIGURE %d confirmed clients of one address, %d recovery records", confirmed, len(recovery))
	if len(recovery) > int(limits.ClientsPerAddress)+16 {
		t.Errorf("%d recovery records", len(recovery))
	}
	renew()
	others.noticedNothing("confirmed client IDs of one address")

	before = s.residentBytes()
	made := 0
	for range 2000 {
		switch status := good.createSession(); status {
		case nfsv4.NFS4_OK:
			made++
		case nfsv4.NFS4ERR_NOSPC, nfsv4.NFS4ERR_DELAY:
		default:
			t.Fatalf("CREATE_SESSION: %s", client.StatusName(status))
		}
	}
	if made >= int(limits.SessionsPerClient) || made == 0 {
		t.Errorf("%d sessions more of one client", made)
	}
	if more := s.residentBytes() - before; more > 16<<20 {
		t.Errorf("%d MiB more for sessions", more>>20)
	}
	others.noticedNothing("2,000 sessions of one client")
	_, err = s.from(clientAddress).Stat(t.Context(), user, "/alpha/0")
	mustWork(t, "a new client of another address", err)
}

// silentClientsAreKept: more clients than ganesha's own 256, or its default of 16, are silent for more than two leases, with something open. No client
// wants it, and they go on.
func silentClientsAreKept(t *testing.T) {
	const lease, clients = 3, 40
	s := boot(t, "silent", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = lease, 2*lease
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	var silent []*wire
	for i := range clients {
		file := fmt.Sprint("file", i)
		s.makeFile("/volumes/silent/0/alpha/" + file)
		w := wireFrom(t, "silent "+file, clientAddress)
		w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		mustBe(t, "open", w.locked("alpha", file), nfsv4.NFS4_OK)
		silent = append(silent, w)
	}
	time.Sleep((2*lease + 4) * time.Second)
	lost := 0
	for i, w := range silent {
		if status := w.Run(user, lookUp("alpha")...); status != nfsv4.NFS4_OK {
			t.Logf("client %d: %s", i, client.StatusName(status))
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d clients that were silent for 2 leases are lost", lost, clients)
	}
}
