package operations

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// A client that is put off asks again after a time that doubles: a directory that is served 100 ms after it asked must not cost it more.
func TestALookupIsHeldUntilTheOwnerServes(t *testing.T) {
	for name, tc := range map[string]struct {
		hold, after time.Duration
		ends        bool
		want        nfsv4.Nfsstat4
		least, most time.Duration
	}{
		"the owner comes meanwhile": {time.Minute, 100 * time.Millisecond, false, nfsv4.NFS4ERR_MOVED, 100 * time.Millisecond, 10 * time.Second},
		"it does not":               {200 * time.Millisecond, time.Hour, false, nfsv4.NFS4ERR_DELAY, 200 * time.Millisecond, 10 * time.Second},
		"nothing is held":           {0, 0, false, nfsv4.NFS4ERR_DELAY, 0, 10 * time.Second},
		"the server stops":          {time.Minute, time.Hour, true, nfsv4.NFS4ERR_DELAY, 0, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var up atomic.Bool
			config := w.handler.Config
			config.Hold, config.Held, config.Reachable = tc.hold, 1, func(string) bool { return up.Load() }
			if ends := make(chan struct{}); tc.ends {
				config.Ends = ends
				close(ends)
			}
			w.handler = New(config)
			began := time.Now()
			if tc.after > 0 {
				timer := time.AfterFunc(tc.after, func() { up.Store(true) })
				defer timer.Stop()
			}
			_, got := w.do(alice, at("/open/plain/junction", getfh)...)
			if took := time.Since(began); got != tc.want || took < tc.least || took > tc.most {
				t.Errorf("%s after %s, want %s after %s to %s", nfs.StatusName(got), took, nfs.StatusName(tc.want), tc.least, tc.most)
			}
			if w.handler.holds.all != 0 || len(w.handler.holds.of) != 0 {
				t.Errorf("held afterwards: %d, %v", w.handler.holds.all, w.handler.holds.of)
			}
		})
	}
}

func TestANameThatIsBeingMadeIsHeld(t *testing.T) {
	w := newWorld(t)
	w.handler.holds.limit, w.handler.holds.most = time.Minute, 1
	timer := time.AfterFunc(100*time.Millisecond, func() {
		made := directory("open", "plain/making", "fs-0", internalv1.DirectoryReady, 4)
		made.ResourceVersion = "500"
		w.handler.Tree.SetDirectory(made)
	})
	defer timer.Stop()
	if _, got := w.do(alice, at("/open/plain/making", getfh)...); got != nfsv4.NFS4ERR_MOVED {
		t.Errorf("%s", nfs.StatusName(got))
	}
}

func TestWhatIsHeldIsBoundedForEachAddressAndInAll(t *testing.T) {
	h := holds{limit: time.Minute, most: 2*heldEach + 1, of: map[netip.Addr]int{}}
	from := func(address string) rpc.Caller { return rpc.Caller{Addr: netip.MustParseAddr(address)} }
	a, sameNetwork := from("2001:db8::1"), from("2001:db8::2")
	for i, step := range []struct {
		client rpc.Caller
		want   bool
	}{{a, true}, {sameNetwork, true}, {a, false}, {sameNetwork, false}, {from("10.0.0.1"), true}} {
		if got := h.take(step.client); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	for i := 3; i < h.most; i++ {
		h.take(from(fmt.Sprintf("10.1.0.%d", i)))
	}
	b := from("10.0.0.2")
	if h.all != h.most || h.take(b) {
		t.Errorf("%d are held, and one more", h.all)
	}
	if began := time.Now(); h.until(context.Background(), a, func() bool { return true }) || time.Since(began) > 10*time.Second {
		t.Error("one too many is held")
	}
	h.give(a)
	if !h.until(context.Background(), b, func() bool { return true }) {
		t.Error("none is held although there is room")
	}
	h.give(sameNetwork)
	if h.all != h.most-2 || len(h.of) != h.all {
		t.Errorf("left: %d, %v", h.all, h.of)
	}
}
