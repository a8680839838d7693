package dataserver

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// lateClientsAreKept: a client that calls a moment after its lease ended keeps its state, if no other client wanted it. Ganesha alone keeps who is
// later than its reaper, which comes every half lease, and expires who is earlier. So clients come at different moments between two of its
// visits: of those the reaper can have seen one.
func lateClientsAreKept(t *testing.T) {
	const lease, clients = 6, 3
	s := boot(t, "late", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.LeaseSeconds, spec.GraceSeconds = lease, lease
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	late := [clients]*wire{}
	came := [clients]time.Time{}
	for i := range late {
		late[i] = dialWireAs(t, fmt.Sprint("late ", i), "10.99.0.1:2049", 1)
		late[i].results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		came[i] = time.Now()
		time.Sleep(lease * time.Second / 2 / clients)
	}
	for i, w := range late {
		time.Sleep(time.Until(came[i].Add(lease*time.Second + 100*time.Millisecond)))
		if status := w.Run(user, lookUp("alpha")...); status != nfsv4.NFS4_OK {
			t.Errorf("client %d, %s after its last call, with a lease of %d s: %s", i, time.Since(came[i]).Round(time.Millisecond), lease, client.StatusName(status))
		}
	}
}

// aRestartIsPending: ganesha takes another lease only when it starts. The status names the field until then, and the
// generation counts as loaded.
func aRestartIsPending(t *testing.T) {
	s := boot(t, "pending", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	pending := func(what string, want ...string) {
		t.Helper()
		s.await(what, func(dataservertest.Reported) bool {
			status, _ := s.status.Get()
			return slices.Equal(status.RestartPending, want)
		})
	}
	pending("nothing at first")
	s.apply(func(spec *dataservertest.Wanted) { spec.LeaseSeconds, spec.GraceSeconds = 11, 22 })
	s.settle()
	pending("the lease and the grace period", "graceSeconds", "leaseSeconds")
	mustWork(t, "kill ganesha", syscall.Kill(s.pid(), syscall.SIGKILL))
	pending("nothing after a start")
	if text := s.supervisor.State().Config; !strings.Contains(text, "Lease_Lifetime = 11;") {
		t.Errorf("ganesha was started with:\n%.2000s", text)
	}
}
