package crash

import (
	"context"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// request is what a user of an NFS client does.
type request struct {
	op       string // mkdir, rmdir or rename
	path, to string
}

func (r request) String() string { return strings.TrimSpace(r.op + " " + r.path + " " + r.to) }

// answer is what the user gets. repeated: it was sent to a second server, since the first ended before it answered: then that
// a name exists already, or not any more, may be the request's own doing (RFC 8881 section 2.10.6: no reply cache survives).
type answer struct {
	status   nfsv4.Nfsstat4
	repeated bool
}

// giveUp is how long a user waits, in the end.
const giveUp = 3 * time.Minute

func walk(dir string) []nfsv4.NfsArgop4 {
	ops := []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range strings.FieldsFunc("/s/"+dir, func(r rune) bool { return r == '/' || r == '.' }) {
		ops = append(ops, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return ops
}

// compound is what Linux sends for a request, but for the attributes that it asks for.
func (r request) compound() []nfsv4.NfsArgop4 {
	ops := walk(path.Dir(r.path))
	switch r.op {
	case "mkdir":
		ops = append(ops, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: path.Base(r.path)}})
	case "rmdir":
		ops = append(ops, &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: path.Base(r.path)}})
	case "rename":
		ops = append(ops, &nfsv4.NfsArgop4_OP_SAVEFH{})
		ops = append(ops, walk(path.Dir(r.to))...)
		ops = append(ops, &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: path.Base(r.path), Newname: path.Base(r.to)}})
	}
	return ops
}

// do sends a request as Linux does: it is sent again while the server says NFS4ERR_DELAY, after a pause that doubles, and to
// another server when one is gone.
func (w *world) do(r request) answer { return w.doThrough(0, r) }

// doThrough is do through another server than the first.
func (w *world) doThrough(nth int, r request) answer {
	var a answer
	began := time.Now()
	p := w.serving(nth)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 15*time.Second) {
		answered := make(chan nfsv4.Nfsstat4, 1)
		go func() { answered <- send(p, r) }()
		select {
		case a.status = <-answered:
		case <-p.gone:
		}
		if p.isDead() {
			a.status, a.repeated = nfsv4.NFS4ERR_DELAY, true
			wait = 500 * time.Millisecond
		}
		w.note("client: %s through %s: %s", r, p.name, nfsv4.Nfsstat4_name[a.status])
		if a.status != nfsv4.NFS4ERR_DELAY && a.status != nfsv4.NFS4ERR_STALE || time.Since(began) > giveUp {
			return a
		}
		time.Sleep(wait)
		if p.isDead() {
			p = w.serving(nth)
		}
	}
}

func send(p *process, r request) nfsv4.Nfsstat4 {
	ctx := context.Background()
	c := p.handler.Begin(ctx, rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1"), UID: 1000, GID: 1000}, 1)
	for _, op := range r.compound() {
		if status := session.StatusOf(c.Do(ctx, op)); status != nfsv4.NFS4_OK {
			return status
		}
	}
	return nfsv4.NFS4_OK
}
