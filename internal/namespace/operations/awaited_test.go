package operations

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// What lost its ShareDirectory, and may exist, is not missing for any operation; other names are.
func TestNothingTellsThatALostDirectoryIsMissing(t *testing.T) {
	list := readdir(nfsv4.Readdir4args{Maxcount: 4096})
	for name, tc := range map[string]struct {
		caller  rpc.Caller
		awaited string
		do      []nfsv4.NfsArgop4
		want    nfsv4.Nfsstat4
	}{
		"LOOKUP":                     {alice, "lost", at("/open/plain", lookup("lost")), nfsv4.NFS4ERR_DELAY},
		"OPEN":                       {alice, "lost", at("/open/plain", open("lost", plain)), nfsv4.NFS4ERR_DELAY},
		"OPEN that creates":          {alice, "lost", at("/open/plain", open("lost", creating)), nfsv4.NFS4ERR_DELAY},
		"SECINFO":                    {alice, "lost", at("/open/plain", secinfo("lost")), nfsv4.NFS4ERR_DELAY},
		"REMOVE":                     {alice, "lost", at("/open/plain", rmdir("lost")), nfsv4.NFS4ERR_DELAY},
		"READDIR":                    {alice, "", at("/open/plain", list), nfsv4.NFS4ERR_DELAY},
		"LOOKUP of what is shown":    {alice, "junction", at("/open/plain", lookup("junction")), nfsv4.NFS4_OK},
		"LOOKUP of another":          {alice, "lost", at("/open/plain", lookup("other")), nfsv4.NFS4ERR_NOENT},
		"LOOKUP without permission":  {alice, "lost", at("/closed", lookup("lost")), nfsv4.NFS4ERR_ACCESS},
		"READDIR without permission": {alice, "", at("/closed", list), nfsv4.NFS4ERR_ACCESS},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mutator.awaited = func(name string) bool { return name == tc.awaited }
			if _, got := w.do(tc.caller, tc.do...); got != tc.want {
				t.Errorf("%s, want %s", nfs.StatusName(got), nfs.StatusName(tc.want))
			}
		})
	}
}

// A LOOKUP is held until the directory is back, and its data server is not looked at all the time meanwhile.
func TestALookupOfALostDirectoryIsHeld(t *testing.T) {
	w := newWorld(t)
	w.handler.holds.limit, w.handler.holds.most = time.Minute, 1
	var back atomic.Bool
	w.mutator.awaited = func(name string) bool { return name == "lost" && !back.Load() }
	timer := time.AfterFunc(200*time.Millisecond, func() {
		w.handler.Tree.SetDirectory(directory("open", "plain/lost", "fs-0", internalv1.DirectoryReady, 77))
		back.Store(true)
	})
	defer timer.Stop()
	if _, got := w.do(alice, at("/open/plain", lookup("lost"))...); got != nfsv4.NFS4_OK {
		t.Error(nfs.StatusName(got))
	}
	if n := w.mutator.looks.Load(); n != 1 {
		t.Errorf("%d looks", n)
	}
}

// One that comes back while it is asked for is found.
func TestADirectoryThatComesBackMeanwhileIsFound(t *testing.T) {
	w := newWorld(t)
	w.mutator.awaited = func(string) bool {
		w.handler.Tree.SetDirectory(directory("open", "plain/lost", "fs-0", internalv1.DirectoryReady, 77))
		return false
	}
	if _, got := w.do(alice, at("/open/plain", lookup("lost"))...); got != nfsv4.NFS4_OK {
		t.Error(nfs.StatusName(got))
	}
}
