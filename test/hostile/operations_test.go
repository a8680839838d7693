package hostile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// place is what comes before an operation.
type place struct {
	name string
	// alone: not even SEQUENCE.
	alone bool
	// brief: only the smallest shapes of each operation.
	brief  bool
	before []operation
}

func (w *world) places() []place {
	h := func(path string) operation { return putFH(w.handles[path]) }
	save, top := operation(&nfsv4.NfsArgop4_OP_SAVEFH{}), operation(&nfsv4.NfsArgop4_OP_PUTROOTFH{})
	return []place{
		{name: "without SEQUENCE", alone: true, brief: true},
		{name: "without a handle"},
		{name: "on the pseudo root", before: []operation{top}},
		{name: "on a directory", before: []operation{h("share/dir")}},
		{name: "on a file", before: []operation{h("share/dir/file")}},
		{name: "on a link", brief: true, before: []operation{h("share/dir/link")}},
		{name: "on a FIFO", brief: true, before: []operation{h("share/dir/fifo")}},
		{name: "on a device", brief: true, before: []operation{h("share/dir/device")}},
		{name: "in another export", brief: true, before: []operation{h("elsewhere/dir")}},
		{name: "with a saved directory, at the root", brief: true, before: []operation{h("share/dir"), save, top}},
		{name: "with a saved file, in a directory", brief: true, before: []operation{h("share/dir/file"), save, h("share/dir")}},
		{name: "with a saved file, in another export", brief: true, before: []operation{h("share/dir/file"), save, h("elsewhere/dir")}},
		{name: "brought back from another export", brief: true, before: []operation{h("share/dir"), save, h("elsewhere/dir"), &nfsv4.NfsArgop4_OP_RESTOREFH{}}},
	}
}

// argument is how the fields of an operation are filled.
type argument struct {
	name string
	fill func(*states) values
	// cut leaves out the second half of the arguments.
	cut bool
	// again sends the same once more, in the same slot.
	again bool
}

var (
	zero, huge = uint64(0), uint64(math.MaxUint64)
	modeAttr   = nfsv4.Fattr4{Attrmask: []uint32{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: []byte{0, 0, 1, 0o377}}
	allAttrs   = nfsv4.Fattr4{Attrmask: []uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32}, AttrVals: []byte(strings.Repeat("\xff", 64))}
	longBytes  = []byte(strings.Repeat("\xff", 1024))
)

var arguments = []argument{
	{name: "valid", again: true, fill: func(s *states) values {
		return values{stateID: s.opened, session: s.id, client: s.clientID, handle: s.file, name: "made", other: "made too", bytes: []byte("12345678"), attributes: modeAttr}
	}},
	{name: "huge", fill: func(s *states) values {
		v := values{client: huge, number: &huge, handle: longBytes[:128], name: strings.Repeat("n", 255), other: "..", bytes: longBytes, attributes: allAttrs}
		v.stateID = nfsv4.Stateid4{Seqid: math.MaxUint32, Other: [12]byte(longBytes[:12])}
		return v
	}},
	{name: "zero", fill: func(*states) values { return values{number: &zero} }},
	{name: "cut", cut: true, fill: func(s *states) values {
		return values{stateID: s.opened, session: s.id, client: s.clientID, handle: s.file, name: "file", other: "link", bytes: []byte("1234"), attributes: modeAttr}
	}},
	{name: "with a lock's state ID", again: true, fill: func(s *states) values {
		return values{stateID: s.locked, session: s.id, client: s.clientID, handle: s.file, name: "file", other: "made", bytes: []byte("1234"), attributes: allAttrs}
	}},
}

// states is a session with a file that is open and locked, as far as the client may.
type states struct {
	*session
	role           role
	file           []byte
	opened, locked nfsv4.Stateid4
}

type role struct {
	name, address string
	// lets tells whether the role may open the file to write, to read, or not at all.
	access uint32
	// changes is whether it may change the share.
	changes bool
}

var roles = []role{
	{"read-write client", readWrite, nfsv4.OPEN4_SHARE_ACCESS_BOTH, true},
	{"read-only client", readOnly, nfsv4.OPEN4_SHARE_ACCESS_READ, false},
	{"guest of another share", guest, 0, false},
	{"unlisted client", unlisted, 0, false},
}

// table tries all cells of one role.
type table struct {
	*world
	t     testing.TB
	role  role
	minor uint32
	s     *states
	// calls are those that were answered, closed those that ended the connection instead, away how often there was none to be had.
	calls, closed, away int
	slowest             time.Duration
}

// enter gets a session again; false: the server takes no connection of this client.
func (c *table) enter() bool {
	c.t.Helper()
	if c.s != nil {
		return true
	}
	owner := fmt.Sprintf("%s %d", c.role.name, c.minor)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		s, err := login(c.role.address, c.minor, 0, owner)
		if err == nil {
			c.s = &states{session: s, role: c.role, file: c.handles["share/dir/file"]}
			if err = c.renew(); err == nil {
				return true
			}
			_ = s.Close() // It is not used any more.
			c.s = nil
		}
		if c.role.address == unlisted && closed(err) {
			c.away++
			return false
		}
		if c.server.Ended() != nil || time.Since(began) > answersWithin {
			c.t.Fatalf("%s gets no session: %v (%v)", c.role.name, err, c.server.Ended())
		}
	}
}

func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// renew opens and locks again.
func (c *table) renew() error {
	if c.role.access == 0 {
		return nil
	}
	var err error
	if c.s.opened, err = c.s.openFile("owner", c.s.file, c.role.access); err != nil {
		return err
	}
	c.s.locked, err = c.s.lockFile("owner", c.s.file, c.s.opened, nfsv4.READ_LT, uint64(c.minor))
	return err
}

// cell tries one operation. It returns what has gone wrong.
func (c *table) cell(p place, code uint32, shape nfsv4.NfsArgop4, a argument) error {
	if !c.enter() {
		return nil
	}
	op := encode(code, shape, a.fill(c.s))
	if op == nil {
		return nil
	}
	if a.cut {
		op = op[:4+(len(op)-4)/8*4]
	}
	before := p.before
	if uses := nfsv4.NfsOpnum4(code); uses == nfsv4.OP_PUTFH {
		before = nil
	}
	operations := append(append([]operation{}, before...), raw(op))
	record := c.s.record(operations...)
	if !p.alone {
		record = c.s.inSlot(0, a.again, operations...)
	}
	began := time.Now()
	answer, err := c.s.exchange(record)
	c.calls++
	if err == nil && a.again && !p.alone {
		_, err = c.s.exchange(record)
		c.calls++
	}
	c.slowest = max(c.slowest, time.Since(began))
	switch {
	case err != nil && closed(err):
		c.closed++
		c.drop()
	case err != nil:
		c.drop()
		return err
	default:
		if !p.alone {
			c.s.settle(0, answer)
		}
		c.after(code, answer)
	}
	return c.server.Ended()
}

func (c *table) drop() {
	_ = c.s.Close() // It is not used any more.
	c.s = nil
}

// after puts back what the operation may have taken.
func (c *table) after(code uint32, answer reply) {
	switch nfsv4.NfsOpnum4(code) {
	case nfsv4.OP_DESTROY_SESSION, nfsv4.OP_DESTROY_CLIENTID, nfsv4.OP_EXCHANGE_ID, nfsv4.OP_CREATE_SESSION, nfsv4.OP_BIND_CONN_TO_SESSION, nfsv4.OP_BACKCHANNEL_CTL,
		nfsv4.OP_SEQUENCE, nfsv4.OP_SET_SSV:
		c.drop()
	case nfsv4.OP_CLOSE, nfsv4.OP_FREE_STATEID, nfsv4.OP_OPEN_DOWNGRADE, nfsv4.OP_LOCKU, nfsv4.OP_LOCK, nfsv4.OP_OPEN, nfsv4.OP_LAYOUTRETURN, nfsv4.OP_DELEGRETURN:
		if c.renew() != nil {
			c.drop()
		}
	default:
		switch answer.status {
		case nfsv4.NFS4ERR_BADSESSION, nfsv4.NFS4ERR_DEADSESSION, nfsv4.NFS4ERR_SEQ_MISORDERED, nfsv4.NFS4ERR_STALE_CLIENTID, nfsv4.NFS4ERR_EXPIRED:
			c.drop()
		}
	}
}

// fill tries all cells.
func (c *table) fill() (faults []string) {
	for code := uint32(firstOperation); code <= lastOperation; code++ {
		all := generated(code)
		for _, p := range c.places() {
			for i, shape := range all {
				if p.brief && i >= 3 {
					break
				}
				for _, a := range arguments {
					// A client that is closed out before a byte is read has no cells to try.
					if c.calls == 0 && c.away >= 500 {
						return faults
					}
					if err := c.cell(p, code, shape, a); err != nil {
						faults = append(faults, fmt.Sprintf("%s, 4.%d: %s %s, %s, shape %d: %v", c.role.name, c.minor, nameOf(code), p.name, a.name, i, err))
						if len(faults) > 20 || c.server.Ended() != nil {
							return faults
						}
					}
				}
			}
		}
	}
	return faults
}

// TestOperations tries all operations of 4.1 and 4.2 on all kinds of handles, with all kinds of arguments, as all kinds of clients.
func TestOperations(t *testing.T) {
	if !isInside(t) {
		return
	}
	for _, r := range roles {
		t.Run(r.name, func(t *testing.T) { tryAs(t, r) })
	}
}

func tryAs(t *testing.T, r role) {
	w := begin(t)
	watched := w.watching()
	before := w.contents(share)
	began := time.Now()
	var tables []*table
	var all sync.WaitGroup
	faults := make([][]string, 2)
	for i := range 2 { // 4.1 and 4.2, beside each other.
		c := &table{world: w, t: t, role: r, minor: uint32(i + 1)}
		tables = append(tables, c)
		all.Go(func() { faults[i] = c.fill() })
	}
	all.Wait()
	watched.end()
	calls := 0
	for i, c := range tables {
		calls += c.calls
		for _, fault := range faults[i] {
			t.Error(fault)
		}
		if c.s != nil && w.server.Ended() == nil {
			c.s.leave()
		}
	}
	t.Logf("FIGURE %s: %d calls in %s (%d ended the connection, %d times none was taken); the slowest took %s; the bystander made %d calls, the longest took %s",
		r.name, calls, time.Since(began).Round(time.Second), tables[0].closed+tables[1].closed, tables[0].away+tables[1].away,
		max(tables[0].slowest, tables[1].slowest).Round(time.Millisecond), watched.calls, watched.longest.Round(time.Millisecond))
	watched.unharmed(t, answersWithin)
	if !r.changes {
		w.unchanged(share, before)
	}
	findings, err := w.server.Findings()
	must(t, err)
	if findings != "" {
		t.Errorf("sanitizers: %s", findings[:min(len(findings), 6000)])
	}
}
