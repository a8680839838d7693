package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	lastSteps = 30
	// answersOfFuzz bounds an answer to what may be nonsense.
	answersOfFuzz = 20 * time.Second
)

// lane is a client that does anything.
type lane struct {
	*world
	role   role
	name   string
	owner  string
	random *rand.Rand
	// sessions share a client; the second is made by steps.
	sessions []*session
	// states are state IDs that were given out, the newest last; sent is the last record.
	states []nfsv4.Stateid4
	sent   []byte
	// verifier is that of the client's instance.
	verifier uint64
	last     []string
	silent   []string
}

func newLane(w *world, r role, seed, index uint64) *lane {
	return &lane{
		world: w, role: r, name: fmt.Sprintf("lane %d, %s", index, r.name), owner: fmt.Sprint("lane ", index),
		random: rand.New(rand.NewPCG(seed, index)), verifier: 1,
	}
}

// steps are what a lane can do, with how often it does.
var laneSteps = []struct {
	name   string
	weight int
	do     func(*lane, *session) error
}{
	{"compound", 40, (*lane).compound},
	{"open", 8, (*lane).openStep},
	{"lock", 8, (*lane).lockStep},
	{"give back", 6, (*lane).giveBack},
	{"again", 8, (*lane).sendAgain},
	{"pipeline", 6, (*lane).pipeline},
	{"race", 4, (*lane).race},
	{"sessions", 5, (*lane).sessionStep},
	{"begin again", 2, (*lane).instance},
	{"rpc", 5, (*lane).rpcStep},
	{"proxy", 2, (*lane).proxyStep},
	{"callback", 2, (*lane).callback},
	{"hang up", 1, (*lane).hangUp},
	{"on the disk", 2, (*lane).disk},
}

func (l *lane) run(steps int, count *atomic.Int64) {
	all := 0
	for _, s := range laneSteps {
		all += s.weight
	}
	away := 0
	for range steps {
		if l.server.Ended() != nil || len(l.silent) > 5 {
			return
		}
		s, err := l.session()
		if err != nil {
			// A gate that takes no connection of an unlisted client ends its lane; others are put off while something expires.
			if away++; away > 40 && l.role.address == unlisted || away > 400 {
				return
			}
			time.Sleep(25 * time.Millisecond)
			continue
		}
		pick, chosen := l.random.IntN(all), 0
		for pick >= laneSteps[chosen].weight {
			pick -= laneSteps[chosen].weight
			chosen++
		}
		l.note(laneSteps[chosen].name)
		count.Add(1)
		if err := laneSteps[chosen].do(l, s); err != nil {
			l.note(err.Error())
			if errors.Is(err, errSilent) {
				l.silent = append(l.silent, l.name+": "+laneSteps[chosen].name)
			}
			l.drop(s)
		}
	}
}

func (l *lane) note(text string) {
	if l.last = append(l.last, text); len(l.last) > lastSteps {
		l.last = l.last[1:]
	}
}

func (l *lane) end() {
	for _, s := range l.sessions {
		_ = s.Close() // It was only for this.
	}
}

// session is one of the lane's; it makes the first.
func (l *lane) session() (*session, error) {
	if len(l.sessions) > 0 {
		return l.sessions[l.random.IntN(len(l.sessions))], nil
	}
	w, err := dial(l.role.address, uint32(1+l.random.IntN(2)), []uint32{0, 1000}[l.random.IntN(2)])
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, owner: l.owner}
	if err := s.openAs(l.owner, l.verifier); err != nil {
		_ = w.Close() // The first error counts.
		return nil, err
	}
	l.sessions = append(l.sessions, s)
	return s, nil
}

func (l *lane) drop(s *session) {
	_ = s.Close() // It is not used any more.
	l.sessions = slices.DeleteFunc(l.sessions, func(other *session) bool { return other == s })
}

// exchange sends a call and waits for its answer. An error other than silence means that the connection is gone.
func (l *lane) exchange(s *session, slot uint32, record []byte) (reply, error) {
	l.sent = record
	if err := s.SetWriteDeadline(time.Now().Add(answersOfFuzz)); err != nil {
		return reply{}, err
	}
	if _, err := s.Write(record); err != nil {
		return reply{}, err
	}
	answer, err := s.receive(answersOfFuzz)
	if err != nil {
		return answer, err
	}
	s.settle(slot, answer)
	l.learn(answer)
	switch answer.status {
	case nfsv4.NFS4ERR_BADSESSION, nfsv4.NFS4ERR_DEADSESSION, nfsv4.NFS4ERR_SEQ_MISORDERED, nfsv4.NFS4ERR_STALE_CLIENTID:
		return answer, errors.New("the session is gone")
	}
	return answer, nil
}

// learn keeps state IDs of an answer.
func (l *lane) learn(answer reply) {
	for _, result := range answer.results {
		switch r := result.(type) {
		case *nfsv4.NfsResop4_OP_OPEN:
			if ok, is := r.Opopen.(*nfsv4.Open4res_NFS4_OK); is {
				l.keep(ok.Resok4.Stateid)
			}
		case *nfsv4.NfsResop4_OP_LOCK:
			if ok, is := r.Oplock.(*nfsv4.Lock4res_NFS4_OK); is {
				l.keep(ok.Resok4.LockStateid)
			}
		}
	}
}

func (l *lane) keep(stateID nfsv4.Stateid4) {
	if l.states = append(l.states, stateID); len(l.states) > 12 {
		l.states = l.states[1:]
	}
}

// stateID is a known one, a special one or a changed one.
func (l *lane) stateID() nfsv4.Stateid4 {
	var id nfsv4.Stateid4
	if len(l.states) > 0 && l.random.IntN(5) > 0 {
		id = l.states[l.random.IntN(len(l.states))]
	} else if l.random.IntN(2) == 0 {
		id = nfsv4.Stateid4{Seqid: 1<<32 - 1, Other: [12]byte(longBytes[:12])}
	}
	switch l.random.IntN(10) {
	case 0:
		id.Seqid += l.random.Uint32N(5) - 2
	case 1:
		id.Other[l.random.IntN(12)] ^= 1 << l.random.IntN(8)
	case 2:
		id.Seqid = 0
	}
	return id
}

func choose[T any](l *lane, from ...T) T { return from[l.random.IntN(len(from))] }

func (l *lane) someHandle() []byte {
	handle := slices.Clone(l.handles[choose(l, l.paths...)])
	switch l.random.IntN(20) {
	case 0:
		handle[l.random.IntN(len(handle))] ^= 1 << l.random.IntN(8)
	case 1:
		handle = handle[:l.random.IntN(len(handle))]
	}
	return handle
}

// someOperation is any of the protocol's, with any values.
func (l *lane) someOperation(s *session) operation {
	code := uint32(firstOperation + l.random.IntN(lastOperation-firstOperation+1))
	if l.random.IntN(100) == 0 {
		code = choose[uint32](l, 0, 2, 76, 10044, 1<<32-1)
		return raw(binary.BigEndian.AppendUint32(nil, code))
	}
	all := generatedOnce(code)
	with := values{
		stateID: l.stateID(), session: s.id, client: s.clientID, handle: l.someHandle(), attributes: choose(l, modeAttr, allAttrs, nfsv4.Fattr4{}, l.someAttributes()),
		name: choose(l, l.names...), other: choose(l, "made", "file", "sub", "other"),
		bytes: choose(l, nil, []byte("1234"), []byte("12345678"), longBytes),
	}
	if l.random.IntN(2) == 0 {
		number := choose[uint64](l, 0, 1, 2, 4095, 4096, 1<<31-1, 1<<31, 1<<32-1, 1<<62, 1<<63-1, 1<<63, 1<<64-1, l.random.Uint64())
		with.number = &number
	}
	if l.random.IntN(10) == 0 {
		with.client += uint64(l.random.IntN(5)) - 2
		with.session[l.random.IntN(16)] ^= 1
	}
	encoded := slices.Clone(encode(code, all[l.random.IntN(len(all))], with))
	if words := len(encoded)/4 - 1; words > 0 && l.random.IntN(5) == 0 {
		at := 4 + 4*l.random.IntN(words)
		binary.BigEndian.PutUint32(encoded[at:], choose[uint32](l, 0, 1, 2, 3, 7, 1<<31-1, 1<<31, 1<<32-1, l.random.Uint32()))
	}
	return raw(encoded)
}

func (l *lane) someAttributes() nfsv4.Fattr4 {
	mask := make([]uint32, l.random.IntN(5))
	for i := range mask {
		mask[i] = 1 << l.random.IntN(32)
	}
	return nfsv4.Fattr4{Attrmask: mask, AttrVals: longBytes[:4*l.random.IntN(20)]}
}

// operations are a handle, perhaps a saved one, and some more.
func (l *lane) operations(s *session) []operation {
	var ops []operation
	handle := func() operation {
		if l.random.IntN(6) == 0 {
			return &nfsv4.NfsArgop4_OP_PUTROOTFH{}
		}
		return putFH(l.someHandle())
	}
	if l.random.IntN(8) > 0 {
		ops = append(ops, handle())
	}
	if l.random.IntN(4) == 0 {
		ops = append(ops, &nfsv4.NfsArgop4_OP_SAVEFH{}, handle())
	}
	for range 1 + l.random.IntN(4) {
		ops = append(ops, l.someOperation(s))
	}
	return ops
}

func (l *lane) compound(s *session) error {
	slot := l.random.Uint32N(slots)
	record := s.inSlot(slot, l.random.IntN(2) == 0, l.operations(s)...)
	switch l.random.IntN(25) {
	case 0:
		record = s.record(l.operations(s)...) // Without SEQUENCE.
	case 1:
		record = record[:4+(len(record)-4)/8*4]
		binary.BigEndian.PutUint32(record, 0x80000000|uint32(len(record)-4))
	}
	_, err := l.exchange(s, slot, record)
	return err
}

func (l *lane) openStep(s *session) error {
	file := l.handles[choose(l, "share/dir/file", "elsewhere/dir/file")]
	access := choose[uint32](l, nfsv4.OPEN4_SHARE_ACCESS_READ, nfsv4.OPEN4_SHARE_ACCESS_BOTH)
	_, err := l.exchange(s, 0, s.inSlot(0, l.random.IntN(2) == 0, putFH(file),
		open(fmt.Sprint("owner ", l.random.IntN(3)), s.clientID, access, &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, &nfsv4.OpenClaim4_CLAIM_FH{})))
	return err
}

func (l *lane) lockStep(s *session) error {
	file := l.handles[choose(l, "share/dir/file", "elsewhere/dir/file")]
	args := nfsv4.Lock4args{
		Locktype: choose(l, nfsv4.READ_LT, nfsv4.WRITE_LT, nfsv4.READW_LT, nfsv4.WRITEW_LT), Offset: uint64(l.random.IntN(20)),
		Length: choose[uint64](l, 1, 10, 1<<64-1), Locker: &nfsv4.Locker4_FALSE{LockOwner: nfsv4.ExistLockOwner4{LockStateid: l.stateID()}},
	}
	if l.random.IntN(3) > 0 {
		args.Locker = &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{
			OpenStateid: l.stateID(), LockOwner: nfsv4.StateOwner4{Clientid: s.clientID, Owner: fmt.Append(nil, "locker ", l.random.IntN(3))},
		}}
	}
	_, err := l.exchange(s, 1, s.inSlot(1, l.random.IntN(2) == 0, putFH(file), &nfsv4.NfsArgop4_OP_LOCK{Oplock: args}))
	return err
}

func (l *lane) giveBack(s *session) error {
	file, id := l.handles[choose(l, "share/dir/file", "elsewhere/dir/file")], l.stateID()
	op := choose[operation](l,
		&nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: id}},
		&nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{LockStateid: id, Length: 1<<64 - 1}},
		&nfsv4.NfsArgop4_OP_FREE_STATEID{OpfreeStateid: nfsv4.FreeStateid4args{FsaStateid: id}},
		&nfsv4.NfsArgop4_OP_OPEN_DOWNGRADE{OpopenDowngrade: nfsv4.OpenDowngrade4args{OpenStateid: id, ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_READ}},
	)
	_, err := l.exchange(s, 2, s.inSlot(2, l.random.IntN(2) == 0, putFH(file), op))
	return err
}

// disk changes files behind ganesha's back.
func (l *lane) disk(*session) error {
	if !l.role.changes {
		return nil
	}
	path := filepath.Join(l.storage.path(share), "dir", "file")
	return choose(l,
		func() error { return os.Truncate(path, int64(l.random.IntN(100000))) },
		func() error { return os.Chmod(path, 0o666) },
		func() error { return os.Truncate(path, 60000) },
	)()
}
