package dataserver

import (
	"fmt"
	"sync"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// usersRaceForNames: ganesha kept files that it had opened for who may not (patch 0220), and its thread for the configuration waited for them for
// ever when their share was removed.
func usersRaceForNames(t *testing.T) {
	s := boot(t, "races", 1)
	s.apply(alphaAndBeta)
	s.settle()
	s.raceForNames(3000)
}

// On Ceph libcephfs kept pointers of such files, too (patch 0505). There the race is lost much more often.
func TestUsersWhoRaceForNamesLeaveNothingBehindInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	c.make("beta")
	s := c.boot()
	s.apply(alphaAndBeta)
	s.settle()
	s.raceForNames(400)
}

func alphaAndBeta(spec *dataservertest.Wanted) {
	spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
}

// raceForNames has two users make files of the same names at the same time, which only who is first may open. Then their share is removed.
func (s *dataServer) raceForNames(names int) {
	t := s.t
	t.Helper()
	starts := s.supervisor.State().Starts
	another := user
	another.UID, another.GID = user.UID+1, user.GID+1
	racers := map[string]client.Credentials{"one": user, "another": another}
	wires := map[string]*wire{}
	for owner := range racers {
		wires[owner] = dialWireAs(t, owner, "10.99.0.1:2049", 1)
		wires[owner].results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	}
	wires["one"].results(user, then(lookUp("alpha", "0"), create(&nfsv4.Createtype4_NF4DIR{}, "open"), setMode(0o777))...)
	answers := map[nfsv4.Nfsstat4]int{}
	for i := range names {
		var mutex sync.Mutex
		var race sync.WaitGroup
		for owner, cred := range racers {
			race.Go(func() {
				status := wires[owner].Run(cred, then(lookUp("alpha", "0", "open"), openNew(fmt.Sprint("file", i), owner), closeCurrent())...)
				mutex.Lock()
				defer mutex.Unlock()
				answers[status]++
			})
		}
		race.Wait()
	}
	t.Logf("FIGURE %d names, each made by two users at the same time: %d were let in, %d were not", names, answers[nfsv4.NFS4_OK], answers[nfsv4.NFS4ERR_ACCESS])
	if answers[nfsv4.NFS4_OK] != names || answers[nfsv4.NFS4ERR_ACCESS] != names {
		t.Errorf("answers: %v, want as many NFS4_OK as NFS4ERR_ACCESS", answers)
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("beta")}
	})
	s.await("the share to be gone", func(status dataservertest.Reported) bool { return len(status.Exports) == 1 })
	if now := s.supervisor.State().Starts; now != starts {
		t.Errorf("ganesha was started %d times more when the share was removed", now-starts)
	}
}

// closeCurrent closes what was opened before it in the same request.
func closeCurrent() operation {
	return &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: nfsv4.Stateid4{Seqid: 1}}}
}
