package namespace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/peertest"
)

var getattr = &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{0x0010011a, 0x00b0a23a}}}

// readdir asks for as much of a listing as there is.
func readdir() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 1 << 20, Maxcount: 1 << 20, AttrRequest: []uint32{0x0018091a, 0x00b0a23a},
	}}
}

// wellBehaved is the address of the clients that the attacks are to leave in peace.
const wellBehaved = "127.0.0.1"

// stalls is the longest that a well-behaved client waited for anything.
type stalls struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	longest time.Duration
	failed  []string
}

// watchWellBehaved runs two clients: one with a session of its own that walks about, and one that comes, lists, and goes.
func watchWellBehaved(s *target) *stalls {
	ctx, cancel := context.WithCancel(s.Context())
	w := &stalls{cancel: cancel}
	w.workers.Go(func() { w.resident(ctx, s.address) })
	w.workers.Go(func() { w.newcomer(ctx, s.address) })
	return w
}

// timed does something until it is done; what the server wants repeated is repeated, as a kernel would.
func (w *stalls) timed(what string, do func() (nfsv4.Nfsstat4, error)) bool {
	began := time.Now()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.longest = max(w.longest, time.Since(began))
	}()
	for {
		status, err := do()
		switch {
		case err == nil && status == nfsv4.NFS4_OK:
			return true
		case err == nil && status == nfsv4.NFS4ERR_DELAY && time.Since(began) < time.Minute:
			time.Sleep(50 * time.Millisecond)
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = append(w.failed, fmt.Sprintf("%s: %s, %v", what, nfs.StatusName(status), err))
		return false
	}
}

func (w *stalls) resident(ctx context.Context, server string) {
	p := &peertest.Peer{}
	defer func() { _ = p.Logout() }()
	enter := func() (status nfsv4.Nfsstat4, err error) {
		if p, err = peertest.Connect(ctx, server, wellBehaved); err != nil {
			p = &peertest.Peer{}
			return nfsv4.NFS4ERR_IO, err
		}
		return p.Login("resident")
	}
	if !w.timed("the resident's mount", enter) {
		return
	}
	for ctx.Err() == nil {
		if !w.timed("the resident's walk", func() (nfsv4.Nfsstat4, error) {
			res, err := p.Call(append([]nfsv4.NfsArgop4{p.Sequence(0)}, append(walk("/data"), getattr)...)...)
			return peertest.Status(res), err
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *stalls) newcomer(ctx context.Context, server string) {
	for i := 0; ctx.Err() == nil; i++ {
		var p *peertest.Peer
		ok := w.timed("a newcomer's mount", func() (status nfsv4.Nfsstat4, err error) {
			if p, err = peertest.Connect(ctx, server, wellBehaved); err != nil {
				return nfsv4.NFS4ERR_IO, err
			}
			status, err = p.Login(fmt.Sprint("newcomer ", i))
			if status != nfsv4.NFS4_OK {
				_ = p.Close()
			}
			return status, err
		})
		if !ok {
			if ctx.Err() != nil { // It was cut short by the end.
				w.forgive()
			}
			return
		}
		w.timed("a newcomer's listing", func() (nfsv4.Nfsstat4, error) {
			res, err := p.Call(append([]nfsv4.NfsArgop4{p.Sequence(0)}, append(walk("/data"), readdir())...)...)
			return peertest.Status(res), err
		})
		_ = p.Logout()
		time.Sleep(50 * time.Millisecond)
	}
}

// forgive takes the last failure back.
func (w *stalls) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = w.failed[:len(w.failed)-1]
}

// end stops the clients and gives the longest stall, and what failed.
func (w *stalls) end() (time.Duration, string) {
	w.cancel()
	w.workers.Wait()
	return w.longest, strings.Join(w.failed, "; ")
}
