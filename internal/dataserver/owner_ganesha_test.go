package dataserver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// ownersAreSeen: ganesha makes a directory and then gives it its owner, and whoever lists the one above in between has it keep attributes that are
// not true any more. So did namespace servers that looked for directories while they made them: its owner was refused.
func ownersAreSeen(t *testing.T) {
	s := boot(t, "owners", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	root, uid, gid := client.Credentials{}, uint32(1000), uint32(2000)
	maker, judge := s.from("10.99.0.1"), s.from("10.99.0.2")
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	var made atomic.Int64
	for _, looker := range []*client.Client{maker, judge} {
		for _, look := range []func() error{
			func() error { _, err := looker.ReadDir(ctx, root, "/alpha/0"); return err },
			func() error { _, err := looker.Stat(ctx, root, fmt.Sprint("/alpha/0/d", made.Load())); return err },
		} {
			looking.Go(func() {
				for ctx.Err() == nil {
					_ = look() // It may not be there yet.
				}
			})
		}
	}
	const directories = 400 // Of as many 8 to 22 were wrong.
	wrong := 0
	for i := range directories {
		made.Store(int64(i))
		name := fmt.Sprint("/alpha/0/d", i)
		mustWork(t, "mkdir", maker.Mkdir(t.Context(), root, name, client.MkdirOptions{Mode: 0o750, Owner: &uid, Group: &gid}))
		seen, err := judge.Stat(t.Context(), root, name)
		mustWork(t, "stat", err)
		if seen.Owner != uid || seen.Group != gid || seen.Mode&0o7777 != 0o750 {
			wrong++
		}
	}
	stop()
	looking.Wait()
	if wrong > 0 {
		t.Errorf("%d of %d directories show an owner, a group or a mode that they had for a moment", wrong, directories)
	}
}
