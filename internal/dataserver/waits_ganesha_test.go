package dataserver

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// takeAway puts a plain file in the place of a share's directory, so that it can't be exported; the result puts the directory back.
func takeAway(t *testing.T, directory string) (putBack func()) {
	t.Helper()
	mustWork(t, "move the directory away", os.Rename(directory, directory+".away"))
	mustWork(t, "put a file in its place", os.WriteFile(directory, nil, 0o600))
	return func() {
		t.Helper()
		mustWork(t, "remove the file", os.Remove(directory))
		mustWork(t, "move the directory back", os.Rename(directory+".away", directory))
	}
}

// killAgain kills ganesha and waits until it takes calls again.
func (s *dataServer) killAgain() {
	s.t.Helper()
	starts, pid := s.supervisor.State().Starts, s.pid()
	mustWork(s.t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	s.awaitStart(starts)
}

// clientsWaitForAShare: what is mounted "hard" waits for its server. A share that is left out, so that others can be served, is away as well.
func clientsWaitForAShare(t *testing.T) {
	const top = "/volumes/waits/0/alpha"
	s := boot(t, "waits", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		shortTimes(4)(spec)
		spec.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{"10.99.0.1", "10.98.0.1"}}),
			dataservertest.ShareSpec("beta", v1alpha1.AccessRule{Clients: []string{"10.99.0.0/16"}}),
		}
	})
	s.settle()
	putFile(t, top+"/file", "kept", 0o666)
	w := dialReady(t, "waits", "10.99.0.1:2049", 1)
	file := putHandle(w.handle(user, lookUp("alpha", "0", "file")...))
	other := putHandle(w.handle(user, lookUp("beta", "0")...))
	awaits := func(when string) {
		t.Helper()
		w := dialWireAs(t, "waits", "10.99.0.1:2049", 1)
		w.mustAnswer(when+": a handle", user, []operation{file}, nfsv4.NFS4ERR_DELAY)
		w.mustAnswer(when+": the share's name", user, lookUp("alpha"), nfsv4.NFS4ERR_DELAY)
		w.mustAnswer(when+": its path", user, lookUp("alpha", "0"), nfsv4.NFS4ERR_DELAY)
		w.mustAnswer(when+": a name that nothing has", user, lookUp("alph"), nfsv4.NFS4ERR_NOENT)
		w.mustAnswer(when+": the other share", user, []operation{other}, nfsv4.NFS4_OK)
		w.mustAnswer(when+": its path", user, lookUp("beta", "0"), nfsv4.NFS4_OK)
		dialWireAs(t, "only here", "10.98.0.1:2049", 1).mustAnswer(when+": a client of this share alone", user, []operation{file}, nfsv4.NFS4ERR_DELAY)
		// Others learn nothing of it.
		dialWireAs(t, "elsewhere", "10.99.0.2:2049", 1).mustAnswer(when+": a client of the other share", user, lookUp("alpha"), nfsv4.NFS4ERR_NOENT)
	}

	putBack := takeAway(t, top)
	s.killAgain()
	awaits("when ganesha can't export it")
	s.await("the share to be reported", func(dataservertest.Reported) bool { return s.hasLeftOut("alpha") })
	awaits("when it is left out")
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("gamma"))
	})
	w = dialWireAs(t, "gamma", "10.99.0.3:2049", 1)
	s.await("another share", func(dataservertest.Reported) bool { return w.Run(user, lookUp("gamma", "0")...) == nfsv4.NFS4_OK })
	awaits("after a reload")
	putBack()
	s.settle()
	w = dialWireAs(t, "waits", "10.99.0.1:2049", 1)
	w.mustAnswer("the share is back", user, []operation{file}, nfsv4.NFS4_OK)

	takeAway(t, top)
	s.killAgain()
	s.await("the share to be reported", func(dataservertest.Reported) bool { return s.hasLeftOut("alpha") })
	awaits("when it is left out once more")
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = spec.Exports[1:] })
	s.settle()
	w = dialWireAs(t, "waits", "10.99.0.1:2049", 1)
	w.mustAnswer("a handle of a deleted share", user, []operation{file}, nfsv4.NFS4ERR_STALE)
	w.mustAnswer("the path of a deleted share", user, lookUp("alpha"), nfsv4.NFS4ERR_NOENT)
}

// hasLeftOut tells whether the configuration that ganesha has loaded leaves out a share.
func (s *dataServer) hasLeftOut(share string) bool {
	text, err := os.ReadFile(s.options.configFile())
	mustWork(s.t, "read ganesha's configuration", err)
	config, err := ganeshatest.Parse(string(text))
	mustWork(s.t, "parse it", err)
	return s.probes.Fit(s.t.Context()) == nil && !slices.ContainsFunc(config.Served(), func(export ganesha.Export) bool {
		return naming.ShareOfExport(export.Pseudo) == share
	})
}

// aReclaimWaitsForAShare: grace that ends before the share is there would cost its clients their locks. It ends after a time, because clients can't
// open anything meanwhile.
func aReclaimWaitsForAShare(t *testing.T) {
	const grace, top = 4, "/volumes/reclaims/0/alpha"
	s := boot(t, "reclaims", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		shortTimes(grace)(spec)
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("beta"))
	})
	s.settle()
	before, file := clientWithFile(t, top)
	putFile(t, "/volumes/reclaims/0/beta/file", "", 0o666)
	other := putHandle(before.handle(user, lookUp("beta", "0", "file")...))
	putBack := takeAway(t, top)
	s.killAgain()
	came := dialWire(t, "10.99.0.1:2049", 1)
	began := time.Now()
	// Linux asks again after 0.1 s, then after twice that, and at last every 15 s. It renews nothing meanwhile.
	for ; time.Since(began) < (3*grace)*time.Second; time.Sleep(2 * grace * time.Second) {
		came.mustAnswer("a reclaim", user, []operation{file, reclaimOpen()}, nfsv4.NFS4ERR_DELAY)
	}
	if !s.supervisor.State().InGrace {
		t.Error("grace has ended, and a client waits to reclaim")
	}
	putBack()
	for began = time.Now(); ; time.Sleep(100 * time.Millisecond) {
		status := came.Run(user, file, reclaimOpen())
		if status == nfsv4.NFS4_OK {
			break
		}
		if status != nfsv4.NFS4ERR_DELAY || time.Since(began) > timeout {
			t.Fatalf("the share is back, and the client is refused with %s", client.StatusName(status))
		}
	}
	came.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	s.graceEndsWithin(5*time.Second, came)

	// A share that stays away: the client goes on with what it has elsewhere, in time.
	takeAway(t, top)
	s.killAgain()
	came = dialWire(t, "10.99.0.1:2049", 1)
	for began = time.Now(); ; time.Sleep(5 * time.Second) {
		status := came.Run(user, file, reclaimOpen())
		if status == nfsv4.NFS4ERR_RECLAIM_BAD {
			break
		}
		if status != nfsv4.NFS4ERR_DELAY || time.Since(began) > timeout {
			t.Fatalf("a reclaim in a share that stays away: %s", client.StatusName(status))
		}
	}
	t.Logf("FIGURE a reclaim in a share that stays away is put off for %s", time.Since(began).Round(time.Second))
	if status := came.Run(user, other, reclaimOpen()); status != nfsv4.NFS4_OK {
		t.Errorf("a reclaim in another share after that: %s", client.StatusName(status))
	}
	came.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	for s.supervisor.State().InGrace && time.Since(began) < timeout {
		came.Run(user, lookUp("beta", "0")...)
		time.Sleep(50 * time.Millisecond)
	}
	// Linux opens the file once more then, and waits.
	open := reclaimOpen().(*nfsv4.NfsArgop4_OP_OPEN)
	open.Opopen.Claim = &nfsv4.OpenClaim4_CLAIM_FH{}
	came.mustAnswer("OPEN by handle", user, []operation{file, open}, nfsv4.NFS4ERR_DELAY)
}
