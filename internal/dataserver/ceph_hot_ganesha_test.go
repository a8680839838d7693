package dataserver

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ceph"
	cephstorage "github.com/howdah/howdah/internal/dataserver/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// end is a client of one of the two data servers of a hot directory.
type end struct {
	*wire
	name string
}

// twoEnds is manyEnds with two data servers.
func twoEnds(t *testing.T) (c *inCeph, first *dataServer, ends [2]*end) {
	t.Helper()
	c, first, many := manyEnds(t, 2)
	return c, first, [2]*end(many)
}

// endAddress is that of a data server of a hot directory, by its ordinal.
func endAddress(ordinal int) string { return fmt.Sprint("10.99.0.1:", 2049+ordinal) }

// manyEnds serves the share alpha by n data servers, and gives a client of each. All but the first have the configuration that the product
// writes, and no supervisor.
func manyEnds(t *testing.T, n int) (c *inCeph, first *dataServer, ends []*end) {
	t.Helper()
	c = newInCeph(t)
	c.make("alpha")
	first = c.boot()
	first.apply(alphaWithShortGrace)
	first.settle()
	for ordinal := 1; ordinal < n; ordinal++ {
		c.serveBesides(t, ordinal)
	}
	first.await("the first start's grace to end", func(dataservertest.Reported) bool { return !first.supervisor.State().InGrace })
	for i := range n {
		ends = append(ends, enter(t, fmt.Sprint("client ", i+1), endAddress(i)))
	}
	ends[0].results(user, then(lookUp("alpha", "0"), create(&nfsv4.Createtype4_NF4DIR{}, "hot"), setMode(0o777))...)
	return c, first, ends
}

func enter(t *testing.T, owner, address string) *end {
	t.Helper()
	e := &end{dialWireAs(t, owner, address, 1), owner}
	e.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	return e
}

// serveBesides starts another data server of the FileServer.
func (c *inCeph) serveBesides(t *testing.T, ordinal int) {
	t.Helper()
	other := c.another(int32(ordinal))
	server := dataservertest.DataServer(0)
	server.Spec.Ceph.Monitors = other.options.Monitors
	storage := cephstorage.New(other.options)
	mustWork(t, "judge", storage.Judge(t.Context(), server))
	mustWork(t, "claim", storage.Claim(t.Context(), server))
	info, err := ceph.ParseInfo(c.send(c.volume.Info(ceph.Subvolume(c.uid, "alpha"))), ceph.Subvolume(c.uid, "alpha"))
	mustWork(t, "look at the subvolume", err)
	config := ganesha.Config{
		LeaseSeconds: 8, GraceSeconds: 12, Port: uint16(2049 + ordinal), MonitoringPort: uint16(3049 + ordinal),
		Exports: []ganesha.Export{{
			ID: 1, Path: info.Path, Pseudo: "/alpha/0", Clients: []ganesha.Client{realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, "10.99.0.1")},
			CephFS: &ganesha.CephFS{FileSystem: c.options.FileSystem, User: ceph.ShareUser(c.uid, "alpha")},
		}},
	}
	storage.CompleteConfig(&config)
	realtest.StartNamed(t, fmt.Sprint("besides-", ordinal), config)
	began := time.Now()
	for probe := dialWireAs(t, fmt.Sprint("probe ", ordinal), endAddress(ordinal), 1); ; time.Sleep(100 * time.Millisecond) {
		status := probe.Run(user, then(lookUp("alpha", "0"), probe.open(fmt.Sprint("probe ", ordinal), nfsv4.OPEN4_SHARE_ACCESS_BOTH))...)
		if status == nfsv4.NFS4_OK {
			probe.Run(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
			probe.destroy()
			return
		}
		if status == nfsv4.NFS4ERR_GRACE {
			probe.Run(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		}
		if time.Since(began) > timeout {
			t.Fatalf("data server %d does not serve: %s", ordinal, client.StatusName(status))
		}
	}
}

// destroy ends the client, and what it has open.
func (w *wire) destroy() {
	w.t.Helper()
	_, _ = w.send(client.Credentials{}, &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: w.session}})
	_, _ = w.send(client.Credentials{}, &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: w.clientID}})
}

func hot(names ...string) []operation {
	return lookUp(append([]string{"alpha", "0", "hot"}, names...)...)
}

func getChangeAndSize() operation {
	return &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: nfsv4.Bitmap4{1<<nfsv4.FATTR4_CHANGE | 1<<nfsv4.FATTR4_SIZE}}}
}

// seen is what a client's kernel judges its cache by, and what it reads.
type seen struct {
	change, size uint64
	data         string
}

// stat gives change and size of what has a name; the empty name is the directory.
func (e *end) stat(names ...string) seen {
	e.t.Helper()
	results := e.results(user, then(hot(names...), getChangeAndSize())...)
	given := results[len(results)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	return seen{change: binary.BigEndian.Uint64(given), size: binary.BigEndian.Uint64(given[8:])}
}

// look opens a file as a client does that had it cached: it looks at its attributes, and reads what is there.
func (e *end) look(name string) seen {
	e.t.Helper()
	results := e.results(user, then(hot(), e.open(name, nfsv4.OPEN4_SHARE_ACCESS_READ), getChangeAndSize(), readAll(current), closeCurrent())...)
	given := results[len(results)-3].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	read := results[len(results)-2].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4
	return seen{binary.BigEndian.Uint64(given), binary.BigEndian.Uint64(given[8:]), string(read.Data)}
}

// current is the state ID of the same request (RFC 8881 section 16.2.3.1.2).
var current = nfsv4.Stateid4{Seqid: 1}

// put opens a file, writes all of it without a sync, commits and closes, as a client's kernel does for close-to-open.
func (e *end) put(name, data string) {
	e.t.Helper()
	e.results(user, then(hot(), e.open(name, nfsv4.OPEN4_SHARE_ACCESS_BOTH), setSize(0),
		&nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: current, Stable: nfsv4.UNSTABLE4, Data: []byte(data)}},
		&nfsv4.NfsArgop4_OP_COMMIT{}, closeCurrent())...)
}

func setSize(size uint64) operation {
	return &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{Stateid: current, ObjAttributes: nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{1 << nfsv4.FATTR4_SIZE}, AttrVals: binary.BigEndian.AppendUint64(nil, size),
	}}}
}

// list are the names in the directory.
func (e *end) list() (names []string) {
	e.t.Helper()
	results := e.results(user, then(hot(), listDirectory())...)
	reply := results[len(results)-1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply
	if !reply.Eof {
		e.t.Fatal("the list is longer than one answer")
	}
	for entry := reply.Entries; entry != nil; entry = entry.Nextentry {
		names = append(names, entry.Name)
	}
	slices.Sort(names)
	return names
}

// A hot directory is served by several data servers: their clients must find one directory there, in everything that NFS promises clients of one
// server. Ganesha's own caches must not come between them (Attr_Expiration_Time, Dir_Chunk), and Ceph keeps the rest.
func TestAHotDirectoryIsOneDirectoryInARealCephCluster(t *testing.T) {
	_, _, ends := twoEnds(t)
	for _, scenario := range []struct {
		name string
		run  func(t *testing.T, one, other *end)
	}{
		{"what one closed the other opens", closeToOpen},
		{"names", hotNames},
		{"attributes and permissions", hotAttributes},
		{"a file that is open lives without its name", openWithoutName},
		{"a directory goes away under a client", directoryThatGoes},
		{"locks", hotLocks},
		{"locks of a client that is gone end", locksOfGoneClients},
		{"share reservations", shareReservations},
	} {
		for i, direction := range []string{"", ", the other way round"} {
			t.Run(scenario.name+direction, func(t *testing.T) {
				one, other := *ends[i], *ends[1-i]
				oneWire, otherWire := *one.wire, *other.wire
				oneWire.t, otherWire.t = t, t
				one.wire, other.wire = &oneWire, &otherWire
				defer func() { ends[i].sequence, ends[1-i].sequence = oneWire.sequence, otherWire.sequence }()
				scenario.run(t, &one, &other)
			})
		}
	}
	t.Run("one maker of each name", func(t *testing.T) { oneMaker(t, ends) })
	t.Run("a counter under a lock", func(t *testing.T) { counterUnderLock(t, ends) })
	t.Run("speed", func(t *testing.T) { hotSpeed(t, ends) })
}

// hotSpeed compares clients of one data server with clients of two, in one directory: files that are made, and files that are read.
func hotSpeed(t *testing.T, ends [2]*end) {
	const files = 200
	for _, work := range []struct {
		what string
		do   func(e *end, name string)
	}{
		{"files made, with 4 KiB and a commit", func(e *end, name string) { e.put(name, strings.Repeat("x", 4096)) }},
		{"the same files opened, read and closed", func(e *end, name string) {
			if got := e.look(name); got.size != 4096 || len(got.data) != 4096 {
				t.Errorf("%s has %d bytes, and %d are read", name, got.size, len(got.data))
			}
		}},
	} {
		var rates []string
		for round, clients := range [][]*end{{ends[0]}, {ends[1]}, ends[:]} {
			began := time.Now()
			var all sync.WaitGroup
			for j, e := range clients {
				all.Go(func() {
					for i := j; i < files; i += len(clients) {
						work.do(e, fmt.Sprint("speed ", round, " ", i))
					}
				})
			}
			all.Wait()
			rates = append(rates, fmt.Sprintf("%.0f/s", files/time.Since(began).Seconds()))
		}
		t.Logf("FIGURE %s: by the first data server %s, by the second %s, by both %s", work.what, rates[0], rates[1], rates[2])
	}
}

func closeToOpen(t *testing.T, one, other *end) {
	const rounds = 50
	stale := 0
	one.put("shared", "round 0")
	before := other.look("shared")
	for round := 1; round <= rounds; round++ {
		// Longer and shorter, and in turns: who read it last writes it next.
		writer, reader := one, other
		if round%3 == 0 {
			writer, reader = other, one
		}
		data := fmt.Sprint("round ", round, strings.Repeat(".", round%7))
		writer.put("shared", data)
		now := reader.look("shared")
		if now.data != data || now.size != uint64(len(data)) || now.change == before.change {
			stale++
			t.Errorf("round %d: %+v, want %q; before: %+v", round, now, data, before)
		}
		if again := writer.look("shared"); again != now {
			t.Errorf("round %d: the writer sees %+v, the reader %+v", round, again, now)
		}
		before = now
	}
	t.Logf("FIGURE close-to-open: %d of %d rounds stale", stale, rounds)
}

func hotNames(t *testing.T, one, other *end) {
	prefix := one.name + " "
	both := func(what string, there, gone []string) {
		t.Helper()
		for _, e := range []*end{other, one} {
			listed := e.list()
			for _, name := range there {
				if status := e.Run(user, hot(name)...); status != nfsv4.NFS4_OK || !slices.Contains(listed, name) {
					t.Errorf("%s: at %s, %s: %s, in the list: %v", what, e.name, name, client.StatusName(status), slices.Contains(listed, name))
				}
			}
			for _, name := range gone {
				if status := e.Run(user, hot(name)...); status != nfsv4.NFS4ERR_NOENT || slices.Contains(listed, name) {
					t.Errorf("%s: at %s, %s: %s, in the list: %v", what, e.name, name, client.StatusName(status), slices.Contains(listed, name))
				}
			}
		}
	}
	a, b, d, l, s := prefix+"a", prefix+"b", prefix+"d", prefix+"l", prefix+"s"
	both("at first", nil, []string{a, b, d, l, s})
	for _, step := range []struct {
		what        string
		ops         []operation
		there, gone []string
	}{
		{"created", then(hot(), one.open(a, nfsv4.OPEN4_SHARE_ACCESS_BOTH), closeCurrent()), []string{a}, []string{b}},
		{"renamed", then(then(hot(), saveHandle()), rename(a, b)), []string{b}, []string{a}},
		{"linked", then(then(hot(b), saveHandle()), then(hot(), link(l))...), []string{b, l}, []string{a}},
		{"directory made", then(hot(), create(&nfsv4.Createtype4_NF4DIR{}, d)), []string{d}, nil},
		{"symbolic link made", then(hot(), create(&nfsv4.Createtype4_NF4LNK{Linkdata: []byte("x")}, s)), []string{s}, nil},
		{"one name removed", then(hot(), remove(b)), []string{l}, []string{b}},
		{"made again", then(hot(), one.open(b, nfsv4.OPEN4_SHARE_ACCESS_BOTH), closeCurrent()), []string{b, l}, []string{a}},
		{"renamed over another", then(then(hot(), saveHandle()), rename(b, l)), []string{l}, []string{b}},
		{"directory removed", then(hot(), remove(d)), nil, []string{d}},
		{"all removed", then(hot(), remove(l), remove(s)), nil, []string{a, b, d, l, s}},
	} {
		before := other.stat()
		one.results(user, step.ops...)
		if now := other.stat(); now.change == before.change {
			t.Errorf("%s: the directory's change attribute is the same for the other", step.what)
		}
		both(step.what, step.there, step.gone)
	}
}

func hotAttributes(t *testing.T, one, other *end) {
	one.put("attributes", "secret")
	another := client.Credentials{UID: 4000, GID: 4000}
	read := func() nfsv4.Nfsstat4 {
		return other.Run(another, then(hot("attributes"), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Count: 100}})...)
	}
	for i, mode := range []uint32{0o644, 0o600, 0o604, 0o600} {
		one.results(user, then(hot("attributes"), setMode(mode))...)
		want := map[bool]nfsv4.Nfsstat4{true: nfsv4.NFS4_OK, false: nfsv4.NFS4ERR_ACCESS}[mode&0o004 != 0]
		if status := read(); status != want {
			t.Errorf("step %d: of mode %o, another user's read at the other data server: %s, want %s", i, mode, client.StatusName(status), client.StatusName(want))
		}
	}
}

func openWithoutName(t *testing.T, one, other *end) {
	one.put("nameless", "still there")
	results := other.results(user, then(hot(), other.open("nameless", nfsv4.OPEN4_SHARE_ACCESS_READ), &nfsv4.NfsArgop4_OP_GETFH{})...)
	state := openedState(results[len(results)-2])
	handle := results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	one.results(user, then(hot(), remove("nameless"))...)
	if status := other.Run(user, hot("nameless")...); status != nfsv4.NFS4ERR_NOENT {
		t.Errorf("the name is still there: %s", client.StatusName(status))
	}
	status, results := other.call(user, putHandle(handle), readAll(state))
	if status != nfsv4.NFS4_OK {
		t.Fatalf("the file can't be read any more: %s", client.StatusName(status))
	}
	if read := results[len(results)-1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4; string(read.Data) != "still there" {
		t.Errorf("%q is read", read.Data)
	}
	other.results(user, putHandle(handle), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: state}})
}

// directoryThatGoes has one end rename and remove a directory whose handle the other one has: what its client has mounted, or works in.
func directoryThatGoes(t *testing.T, one, other *end) {
	one.results(user, then(hot(), create(&nfsv4.Createtype4_NF4DIR{}, "going"), setMode(0o777))...)
	handle := other.handle(user, hot("going")...)
	one.results(user, then(then(hot(), saveHandle()), rename("going", "gone"))...)
	if status := other.Run(user, putHandle(handle), other.open("in it", nfsv4.OPEN4_SHARE_ACCESS_BOTH), closeCurrent()); status != nfsv4.NFS4_OK {
		t.Errorf("a file is made in a renamed directory: %s", client.StatusName(status))
	}
	one.mustAnswer("the file in the renamed directory", user, hot("gone", "in it"), nfsv4.NFS4_OK)
	one.mustAnswer("rmdir of a directory with a file of the other's", user, then(hot(), remove("gone")), nfsv4.NFS4ERR_NOTEMPTY)
	one.results(user, then(hot("gone"), remove("in it"))...)
	one.results(user, then(hot(), remove("gone"))...)
	other.mustAnswer("a file is made in a removed directory", user, []operation{putHandle(handle), other.open("late", nfsv4.OPEN4_SHARE_ACCESS_BOTH)},
		nfsv4.NFS4ERR_NOENT, nfsv4.NFS4ERR_STALE)
}
