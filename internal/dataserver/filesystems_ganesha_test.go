package dataserver

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// readyCondition is what the server says of itself.
func readyCondition(status dataservertest.Reported) (reason, message string) {
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason, c.Message
	}
	return "", ""
}

func (s *dataServer) awaitRefusal() (message string) {
	s.t.Helper()
	s.await("the volume to be refused", func(status dataservertest.Reported) bool {
		var reason string
		reason, message = readyCondition(status)
		return (reason == internalv1.ReasonVolumeRefused || reason == internalv1.ReasonCephUnusable) && s.probes.Fit(s.t.Context()) != nil
	})
	return message
}

// sharedVolumesAreRefused: a folder of a larger disk is neither written to nor exported unless the DataServer allows it. It is
// no longer exported when the DataServer stops allowing it.
func sharedVolumesAreRefused(t *testing.T) {
	s := boot(t, "folder", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.SharedFileSystemPolicy = v1alpha1.SharedFileSystemForbid
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
	})
	message := s.awaitRefusal()
	for _, part := range []string{"claim data-0-training-0 ", "/volumes/folder/0 is a directory of the file system", "StorageClass", "sharedFileSystemPolicy to Allow"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	if entries, err := os.ReadDir("/volumes/folder/0"); err != nil || len(entries) > 0 || s.pid() != 0 {
		t.Errorf("%v was written to the volume (%v), and ganesha is process %d", entries, err, s.pid())
	}
	// What was never served can go, with data that was never there.
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports, spec.Removals = spec.Exports[:1], []string{"beta"} })
	s.await("a share to be let go", func(status dataservertest.Reported) bool { return len(status.Removed) == 1 })

	s.apply(func(spec *dataservertest.Wanted) {
		spec.SharedFileSystemPolicy, spec.Removals = v1alpha1.SharedFileSystemAllow, nil
	})
	allowed := s.settle()
	if allowed.Volumes[0].SharedFileSystem == "" {
		t.Error("the status does not say that the file system is shared")
	}
	c := s.from("10.99.0.1")
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/kept", client.MkdirOptions{Mode: 0o755}))

	s.apply(func(spec *dataservertest.Wanted) {
		spec.SharedFileSystemPolicy = v1alpha1.SharedFileSystemForbid
		spec.Exports, spec.Removals = nil, []string{"alpha"}
	})
	s.awaitRefusal()
	s.await("the exports to be taken back, after which no address is let in", func(dataservertest.Reported) bool {
		return isEnded(connectFrom(t, "10.99.0.1"), time.Second)
	})
	if status, _ := s.status.Get(); len(status.Removed) > 0 {
		t.Error("a share that is to go with its data is called removed, and the data is there")
	}
	if _, err := os.Stat("/volumes/folder/0/alpha/kept"); err != nil {
		t.Errorf("data of a refused volume: %v", err)
	}
	s.apply(func(spec *dataservertest.Wanted) { spec.SharedFileSystemPolicy = v1alpha1.SharedFileSystemAllow })
	s.settle()
	if _, err := os.Stat("/volumes/folder/0/alpha"); err == nil {
		t.Error("allowed again, the share's data is still there")
	}
}

// ownVolumesServe: the volume is an ext4 of its own, on a loop device.
func ownVolumesServe(t *testing.T) {
	s := boot(t, "own", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.SharedFileSystemPolicy = "" // Unset forbids.
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	status := s.settle()
	if shared := status.Volumes[0].SharedFileSystem; shared != "" {
		t.Errorf("a file system of its own is called shared: %s", shared)
	}
	c := s.from("10.99.0.1")
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/made", client.MkdirOptions{Mode: 0o755}))
	_, err := c.Stat(t.Context(), user, "/alpha/0/made")
	mustWork(t, "stat", err)
	if total := *status.Volumes[0].TotalBytes; total > ownBytes || total < ownBytes*8/10 {
		t.Errorf("%d bytes in all, and the file system has %d", total, ownBytes)
	}
}

// aForgedHandleEndsAtTheVolume is about the second line alone: ganesha is Debian's, which signs nothing, and is let to serve. On
// a folder of a larger disk a client of a share gets at a file beside the volume; the same handle leads nowhere on a file system of its own.
func aForgedHandleEndsAtTheVolume(t *testing.T) {
	secret := "/volumes/secret-of-the-node"
	mustWork(t, "write", os.WriteFile(secret, []byte("not for clients"), 0o600))
	var node unix.Stat_t
	mustWork(t, "stat", unix.Stat(secret, &node))
	leaked := stealFrom(t, "leaky", secret, nil)
	if seen := leaked[0].seen; leaked[0].err != nil || seen.FileID != node.Ino || seen.Size != uint64(node.Size) {
		t.Fatalf("on a folder the forged handle should lead to the node's file, or this test shows nothing: %+v, %v", seen, leaked[0].err)
	}
	for i, stolen := range stealFrom(t, "own", secret, leaked[0].handle) {
		if !client.IsStatus(stolen.err, nfsv4.NFS4ERR_STALE, nfsv4.NFS4ERR_BADHANDLE) {
			t.Errorf("on a file system of its own handle %d leads to %+v, %v", i, stolen.seen, stolen.err)
		}
	}
}

// trusting does not try whether ganesha takes forged handles: one that does would be stopped.
type trusting struct{ server.Prober }

func (trusting) Forge(context.Context, string) error { return nil }

// theft is a try to get at a file through a handle that the server did not make.
type theft struct {
	handle []byte
	seen   client.Attributes
	err    error
}

// stealFrom tries a handle for a file that is not on the volume of the data server, and another one that leaked.
func stealFrom(t *testing.T, name, path string, leaked []byte) (thefts []theft) {
	t.Helper()
	ganeshaOf[name] = unsignedGanesha
	defer delete(ganeshaOf, name)
	proberOf[name] = func(ganesha server.Ganesha) server.Prober {
		return trusting{server.NewNFSProber("training-0", ganesha)}
	}
	defer delete(proberOf, name)
	s := boot(t, name, 1)
	defer s.stop()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	c := s.from("10.99.0.1")
	mine := volumesOf(name) + "/0/alpha/mine"
	mustWork(t, "write", os.WriteFile(mine, []byte("mine"), 0o644))
	own, err := c.Handle(t.Context(), user, "/alpha/0/mine")
	mustWork(t, "GETFH", err)
	forged := bytes.Replace(own, inodeOf(t, mine), inodeOf(t, path), 1)
	if bytes.Equal(forged, own) {
		t.Fatalf("%x has not %x in it", own, inodeOf(t, mine))
	}
	for _, handle := range [][]byte{forged, leaked} {
		stolen := theft{handle: handle}
		if handle != nil {
			stolen.seen, stolen.err = c.StatHandle(t.Context(), root, handle)
			thefts = append(thefts, stolen)
		}
	}
	return thefts
}
