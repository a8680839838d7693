package dataserver

import (
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// A metadata server answers before it has written its journal, and its client tells it again if it dies. A node that loses its power may have had
// both: the metadata server and the data server. What an NFS client has the answer to must be there all the same.
func TestNamesOutliveAMetadataServerAndADataServerInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	s.apply(alphaWithShortGrace)
	s.settle()
	at := lookUp("alpha", "0")
	for _, change := range []struct {
		what        string
		ops         []operation
		there, gone []string
	}{
		{"CREATE of a directory", then(at, create(&nfsv4.Createtype4_NF4DIR{}, "directory")), []string{"directory"}, nil},
		{"CREATE of a symbolic link", then(at, create(&nfsv4.Createtype4_NF4LNK{Linkdata: []byte("x")}, "symbolic")), []string{"symbolic"}, nil},
		{"CREATE of a FIFO", then(at, create(&nfsv4.Createtype4_NF4FIFO{}, "fifo")), []string{"fifo"}, nil},
		{"OPEN that creates", then(at, openNew("opened", "an opener")), []string{"opened"}, nil},
		{
			"LINK", then(then(lookUp("alpha", "0", "opened"), saveHandle()), then(at, link("linked"))...),
			[]string{"opened", "linked"},
			nil,
		},
		{"RENAME", then(at, saveHandle(), rename("opened", "renamed")), []string{"renamed"}, []string{"opened"}},
		{
			"RENAME into another directory", then(then(at, saveHandle()), then(lookUp("alpha", "0", "directory"), setMode(0o755), rename("renamed", "again"))...),
			nil,
			[]string{"renamed"},
		},
		{"REMOVE of a file", then(at, remove("linked")), nil, []string{"linked"}},
		{"REMOVE of a directory's last name", then(lookUp("alpha", "0", "directory"), remove("again")), []string{"directory"}, nil},
		{"REMOVE of a directory", then(at, remove("directory")), nil, []string{"directory"}},
	} {
		s.await("grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
		w := dialWireAs(t, "a maker", "10.99.0.1:2049", 1)
		w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		pid, starts := s.pid(), s.supervisor.State().Starts
		began := time.Now()
		w.results(user, change.ops...)
		took := time.Since(began)
		mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
		c.send(ceph.Command{Target: ceph.Monitor, Arguments: map[string]any{"prefix": "mds fail", "role_or_gid": "fs1:0", "format": "json"}})
		s.awaitStart(starts)
		s.settle()
		w = dialWireAs(t, "a looker", "10.99.0.1:2049", 1)
		for _, name := range change.there {
			if status := w.Run(user, lookUp("alpha", "0", name)...); status != nfsv4.NFS4_OK {
				t.Errorf("%s has its answer, and %s is not there any more: %s", change.what, name, client.StatusName(status))
			}
		}
		for _, name := range change.gone {
			if status := w.Run(user, lookUp("alpha", "0", name)...); status != nfsv4.NFS4ERR_NOENT {
				t.Errorf("%s has its answer, and %s is there again: %s", change.what, name, client.StatusName(status))
			}
		}
		t.Logf("FIGURE %s was answered after %s", change.what, took.Round(100*time.Microsecond))
	}
}
