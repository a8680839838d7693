package session_test

import (
	"bytes"
	"math"
	"sync"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// RFC 8881 section 18.46.3 and 2.10.6.1.
func TestSequenceErrors(t *testing.T) {
	const ok = nfsv4.NFS4_OK
	highest := func(op *nfsv4.NfsArgop4_OP_SEQUENCE, slot uint32) nfsv4.NfsArgop4 {
		op.Opsequence.SaHighestSlotid = slot
		return op
	}
	for name, test := range map[string]struct {
		ops  func(id sessionID) []nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		"the first of a slot":    {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 3, 1)} }, ok},
		"an unknown session":     {func(sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(sessionID{}, 0, 1)} }, nfsv4.NFS4ERR_BADSESSION},
		"a slot beyond the last": {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{highest(sequence(id, 4, 1), 3)} }, nfsv4.NFS4ERR_BADSLOT},
		"a slot far beyond the last": {func(id sessionID) []nfsv4.NfsArgop4 {
			return []nfsv4.NfsArgop4{highest(sequence(id, math.MaxUint32, 1), 3)}
		}, nfsv4.NFS4ERR_BADSLOT},
		"a highest slot beyond the last": {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{highest(sequence(id, 0, 1), 4)} }, nfsv4.NFS4ERR_BAD_HIGH_SLOT},
		"sequence 0 of a new slot":       {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 0)} }, nfsv4.NFS4ERR_SEQ_MISORDERED},
		"sequence 2 of a new slot":       {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 2)} }, nfsv4.NFS4ERR_SEQ_MISORDERED},
		"as many operations as agreed": {func(id sessionID) []nfsv4.NfsArgop4 {
			return append([]nfsv4.NfsArgop4{sequence(id, 0, 1)}, repeat(putRoot, 7)...)
		}, ok},
		"one operation too many": {func(id sessionID) []nfsv4.NfsArgop4 {
			return append([]nfsv4.NfsArgop4{sequence(id, 0, 1)}, repeat(putRoot, 8)...)
		}, nfsv4.NFS4ERR_TOO_MANY_OPS},
		"a request larger than agreed":       {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 1), lookup(5000)} }, nfsv4.NFS4ERR_REQ_TOO_BIG},
		"SEQUENCE again within the compound": {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 1), sequence(id, 1, 1)} }, nfsv4.NFS4ERR_SEQUENCE_POS},
		"SEQUENCE not first":                 {func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{putRoot, sequence(id, 1, 1)} }, nfsv4.NFS4ERR_OP_NOT_IN_SESSION},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{RequestBytes: 4000})
			_, id := f.client("owner")
			res := f.send(alice, test.ops(id)...)
			if res.Status != test.want {
				t.Fatalf("%v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[test.want])
			}
			// What was refused has not used the slot.
			if test.want != ok && test.want != nfsv4.NFS4ERR_SEQUENCE_POS {
				if got := f.status(sequence(id, 0, 1)); got != ok {
					t.Errorf("the slot afterwards: %v", nfsv4.Nfsstat4_name[got])
				}
			}
		})
	}
}

func repeat(op nfsv4.NfsArgop4, n int) (ops []nfsv4.NfsArgop4) {
	for range n {
		ops = append(ops, op)
	}
	return ops
}

func lookup(bytes int) nfsv4.NfsArgop4 {
	name := make([]byte, bytes)
	for i := range name {
		name[i] = 'n'
	}
	return &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: string(name)}}
}

// RFC 8881 section 18.46.2: the result.
func TestSequenceResult(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	got := f.send(alice, sequence(id, 2, 1)).Resarray[0].(*nfsv4.NfsResop4_OP_SEQUENCE).Opsequence.(*nfsv4.Sequence4res_NFS4_OK).SrResok4
	want := nfsv4.Sequence4resok{SrSessionid: id, SrSequenceid: 1, SrSlotid: 2, SrHighestSlotid: 3, SrTargetHighestSlotid: 3}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// RFC 8881 section 2.10.6.1.3 and 2.10.6.2: exactly once.
func TestRetries(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	first, bytes1 := f.raw(alice, encode(1, sequence(id, 0, 1), putRoot, create))
	if first.Status != nfsv4.NFS4_OK {
		t.Fatal(first.Status)
	}
	// The Linux client writes its highest slot of the moment into a retry.
	retry := sequence(id, 0, 1)
	retry.Opsequence.SaHighestSlotid = 3
	if _, bytes2 := f.raw(alice, encode(1, retry, putRoot, create)); !bytes.Equal(bytes1, bytes2) {
		t.Errorf("the reply to a retry differs:\n%x\n%x", bytes1, bytes2)
	}
	if f.handler.creates != 1 {
		t.Errorf("executed %d times", f.handler.creates)
	}
	for name, test := range map[string]struct {
		res  *nfsv4.Compound4res
		want nfsv4.Nfsstat4
	}{
		"the same sequence for something else (2.10.6.1.3.1)": {f.send(alice, sequence(id, 0, 1), putRoot), nfsv4.NFS4ERR_SEQ_FALSE_RETRY},
		"the same sequence of another principal":              {f.send(bob, sequence(id, 0, 1), putRoot, create), nfsv4.NFS4ERR_SEQ_FALSE_RETRY},
		"a sequence skipped":                                  {f.send(alice, sequence(id, 0, 3)), nfsv4.NFS4ERR_SEQ_MISORDERED},
		"the sequence before":                                 {f.send(alice, sequence(id, 0, 0)), nfsv4.NFS4ERR_SEQ_MISORDERED},
		"the next sequence":                                   {f.send(alice, sequence(id, 0, 2), putRoot, create), nfsv4.NFS4_OK},
		"another slot":                                        {f.send(alice, sequence(id, 1, 1), putRoot, create), nfsv4.NFS4_OK},
	} {
		if test.res.Status != test.want {
			t.Errorf("%s: %v, want %v", name, nfsv4.Nfsstat4_name[test.res.Status], nfsv4.Nfsstat4_name[test.want])
		}
	}
	if f.handler.creates != 3 {
		t.Errorf("executed %d times", f.handler.creates)
	}
}

// A failure is the reply of its slot as much as a success is.
func TestTheRetryOfAFailureFailsAlike(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	args := encode(1, sequence(id, 0, 1), putRoot, &nfsv4.NfsArgop4_OP_LOOKUPP{})
	first, bytes1 := f.raw(alice, args)
	if _, bytes2 := f.raw(alice, args); first.Status != nfsv4.NFS4ERR_NOTSUPP || !bytes.Equal(bytes1, bytes2) {
		t.Errorf("%v:\n%x\n%x", first.Status, bytes1, bytes2)
	}
}

// Sequence IDs wrap around (RFC 8881 section 2.10.6.1).
func TestSequenceWrapsAround(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	f.SetSlotSequence(id, 0, math.MaxUint32)
	for _, number := range []uint32{0, 0, 1} {
		if got := f.status(sequence(id, 0, number), putRoot); got != nfsv4.NFS4_OK {
			t.Errorf("sequence %d: %v", number, nfsv4.Nfsstat4_name[got])
		}
	}
}

// RFC 8881 section 2.10.6.1.3: a large reply is not kept unless that was asked for.
func TestRetryOfAReplyThatWasNotKept(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	args := encode(1, uncached(sequence(id, 0, 1)), putRoot, readLink)
	if res, _ := f.raw(alice, args); res.Status != nfsv4.NFS4_OK {
		t.Fatal(nfsv4.Nfsstat4_name[res.Status])
	}
	res, _ := f.raw(alice, args)
	want := []nfsv4.Nfsstat4{nfsv4.NFS4_OK, nfsv4.NFS4ERR_RETRY_UNCACHED_REP}
	if got := statuses(res); len(got) != 2 || got[0] != want[0] || got[1] != want[1] || res.Resarray[1].GetResop() != nfsv4.OP_PUTROOTFH {
		t.Errorf("retry: %v", got)
	}
	if got := f.status(sequence(id, 0, 2)); got != nfsv4.NFS4_OK {
		t.Errorf("the next request: %v", nfsv4.Nfsstat4_name[got])
	}
}

// RFC 8881 section 2.10.6.4: the sizes of replies.
func TestReplySizes(t *testing.T) {
	for name, test := range map[string]struct {
		response, cached uint32
		ops              func(id sessionID) []nfsv4.NfsArgop4
		want             nfsv4.Nfsstat4
		creates          int
	}{
		"fits":                            {6000, 3000, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{uncached(sequence(id, 0, 1)), readLink} }, nfsv4.NFS4_OK, 0},
		"too big":                         {5000, 3000, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{uncached(sequence(id, 0, 1)), readLink} }, nfsv4.NFS4ERR_REP_TOO_BIG, 0},
		"too big to cache":                {6000, 3000, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 1), readLink} }, nfsv4.NFS4ERR_REP_TOO_BIG_TO_CACHE, 0},
		"a change that fits":              {6000, 3000, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 1), create} }, nfsv4.NFS4_OK, 1},
		"a change that might not fit":     {400, 300, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{uncached(sequence(id, 0, 1)), create} }, nfsv4.NFS4ERR_REP_TOO_BIG, 0},
		"a change that might not be kept": {6000, 300, func(id sessionID) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(id, 0, 1), create} }, nfsv4.NFS4ERR_REP_TOO_BIG_TO_CACHE, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			_, id := f.client("owner", func(a *nfsv4.CreateSession4args) {
				a.CsaForeChanAttrs.CaMaxresponsesize, a.CsaForeChanAttrs.CaMaxresponsesizeCached = test.response, test.cached
			})
			res, encoded := f.raw(alice, encode(1, test.ops(id)...))
			if res.Status != test.want || f.handler.creates != test.creates {
				t.Errorf("%v after %d changes, want %v", nfsv4.Nfsstat4_name[res.Status], f.handler.creates, nfsv4.Nfsstat4_name[test.want])
			}
			if len(encoded)+24 > int(test.response) {
				t.Errorf("%d bytes with the RPC header", len(encoded)+24)
			}
		})
	}
}

// RFC 8881 section 2.10.6.2: a retry while the request is still executed.
func TestRetryOfARequestInFlight(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	f.handler.entered, f.handler.leave = make(chan struct{}), make(chan struct{})
	done := make(chan *nfsv4.Compound4res, 1)
	go func() { done <- f.send(alice, sequence(id, 0, 1), putRoot, create) }()
	<-f.handler.entered
	if got := f.status(sequence(id, 0, 1), putRoot, create); got != nfsv4.NFS4ERR_DELAY {
		t.Errorf("the retry: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.status(sequence(id, 0, 2), putRoot); got != nfsv4.NFS4ERR_SEQ_MISORDERED {
		t.Errorf("the next one: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.status(sequence(id, 1, 1), putRoot); got != nfsv4.NFS4_OK {
		t.Errorf("another slot: %v", nfsv4.Nfsstat4_name[got])
	}
	f.handler.leave <- struct{}{}
	if res := <-done; res.Status != nfsv4.NFS4_OK {
		t.Error(res.Status)
	}
	if got := f.status(sequence(id, 0, 1), putRoot, create); got != nfsv4.NFS4_OK || f.handler.creates != 1 {
		t.Errorf("the retry afterwards: %v, executed %d times", nfsv4.Nfsstat4_name[got], f.handler.creates)
	}
}

// The session may go while its request is executed.
func TestSessionDestroyedUnderARequest(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	f.handler.entered, f.handler.leave = make(chan struct{}), make(chan struct{})
	done := make(chan *nfsv4.Compound4res, 1)
	go func() { done <- f.send(alice, sequence(id, 0, 1), putRoot, create) }()
	<-f.handler.entered
	if got := f.status(destroySession(id)); got != nfsv4.NFS4_OK {
		t.Fatal(got)
	}
	f.handler.leave <- struct{}{}
	if res := <-done; res.Status != nfsv4.NFS4_OK {
		t.Error(res.Status)
	}
	if got := f.status(sequence(id, 0, 2)); got != nfsv4.NFS4ERR_BADSESSION {
		t.Error(nfsv4.Nfsstat4_name[got])
	}
}

// Many goroutines send every request of every slot several times: each is executed once.
func TestConcurrentRetriesExecuteOnce(t *testing.T) {
	f := newFixture(t, session.Limits{})
	const slots, rounds, copies = 16, 50, 4
	_, id := f.client("owner", func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxrequests = slots })
	var senders sync.WaitGroup
	for slot := range uint32(slots) {
		senders.Go(func() {
			for number := uint32(1); number <= rounds; number++ {
				args := encode(1, sequence(id, slot, number), putRoot, create)
				var same sync.WaitGroup
				var mu sync.Mutex
				replies := map[string]int{}
				for range copies {
					same.Go(func() {
						for {
							res, encoded := f.raw(alice, args)
							if res.Status == nfsv4.NFS4ERR_DELAY {
								continue
							}
							mu.Lock()
							defer mu.Unlock()
							replies[string(encoded)]++
							return
						}
					})
				}
				same.Wait()
				if len(replies) != 1 {
					t.Errorf("slot %d, sequence %d: %d different replies", slot, number, len(replies))
				}
			}
		})
	}
	senders.Wait()
	if f.handler.creates != slots*rounds {
		t.Errorf("executed %d times, want %d", f.handler.creates, slots*rounds)
	}
}
