package dataserver

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ceph"
	cephclient "github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// The pod of a node that hung goes on after its data server has failed over, with a supervisor that learns nothing from the API. It finds that
// ganesha lost its storage, as after minutes without a network, and must not export again: its mount would end that of the pod that serves.
func TestAPodThatWasReplacedExportsNothingInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	s.apply(alphaWithShortGrace)
	s.settle()
	s.await("the first start's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	openFile(t)
	time.Sleep(supervisor.SettledAfter + time.Second) // The health look sees who watches.
	watchers, err := c.admin.Watchers(t.Context(), cephclient.Place{Pool: c.options.RecoveryPool, Namespace: c.options.Node}, ceph.GraceObject)
	mustWork(t, "read the watchers", err)
	mustWork(t, "freeze", syscall.Kill(s.pid(), syscall.SIGSTOP))
	mustWork(t, "fence", c.Fence(t.Context(), ceph.Dead(watchers)))
	info, err := ceph.ParseInfo(c.send(c.volume.Info(ceph.Subvolume(c.uid, "alpha"))), ceph.Subvolume(c.uid, "alpha"))
	mustWork(t, "look at the subvolume", err)
	realtest.StartNamed(t, "next", ganesha.Config{
		LeaseSeconds: 8, GraceSeconds: 12, Port: 2050, MonitoringPort: 3050,
		Ceph: &ganesha.Ceph{
			ConfigFile: c.options.ConfigFile, RecoveryUser: c.options.RecoveryUser, RecoveryPool: c.options.RecoveryPool,
			RecoveryNamespace: c.options.Node, NodeID: c.options.Node,
		},
		Exports: []ganesha.Export{{
			ID: 1, Path: info.Path, Pseudo: "/alpha/0", Clients: []ganesha.Client{realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, "10.99.0.1")},
			CephFS: &ganesha.CephFS{FileSystem: c.options.FileSystem, User: ceph.ShareUser(c.uid, "alpha")},
		}},
	})
	w := dialWireAs(t, "another process", "10.99.0.1:2050", 1)
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	w.results(user, lookUp("alpha", "0", "kept")...)
	mustWork(t, "go on", syscall.Kill(s.pid(), syscall.SIGCONT))
	known := false
	serves := func(after string, limit time.Duration) {
		t.Helper()
		for began := time.Now(); time.Since(began) < limit; time.Sleep(300 * time.Millisecond) {
			if status := w.Run(user, lookUp("alpha", "0", "kept")...); status != nfsv4.NFS4_OK {
				t.Fatalf("%s after the replaced pod %s, the pod that serves answers %s", time.Since(began).Round(time.Second), after, client.StatusName(status))
			}
			reported, _ := s.status.Get()
			if _, message := readyCondition(reported); strings.Contains(message, "another pod of this data server serves") {
				known = true
			}
		}
	}
	// It looks every 30 s. Its later looks find nothing else.
	serves("went on", 80*time.Second)
	starts := s.supervisor.State().Starts
	mustWork(t, "kill the replaced pod's ganesha", syscall.Kill(s.pid(), syscall.SIGKILL))
	serves("lost its ganesha", 40*time.Second)
	if state := s.supervisor.State(); state.Starts != starts || state.PID != 0 {
		t.Errorf("the replaced pod started its ganesha again: start %d after %d, process %d", state.Starts, starts, state.PID)
	}
	if !known {
		reported, _ := s.status.Get()
		_, message := readyCondition(reported)
		t.Errorf("the replaced pod reports %q", message)
	}
}
