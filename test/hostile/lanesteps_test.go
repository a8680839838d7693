package hostile

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

var generatedOnce = func() func(uint32) []nfsv4.NfsArgop4 {
	all := sync.OnceValue(func() [][]nfsv4.NfsArgop4 {
		var all [][]nfsv4.NfsArgop4
		for code := range uint32(lastOperation + 1) {
			all = append(all, generated(code))
		}
		return all
	})
	return func(code uint32) []nfsv4.NfsArgop4 { return all()[code] }
}()

// sendAgain repeats the last record, as a client does that lost its connection.
func (l *lane) sendAgain(s *session) error {
	if l.sent == nil {
		return nil
	}
	record := slices.Clone(l.sent)
	if len(record) > 8 && l.random.IntN(4) == 0 {
		record[7] ^= 1 // Another XID.
	}
	if _, err := s.Write(record); err != nil {
		return err
	}
	_, err := s.receive(answersOfFuzz)
	return err
}

// pipeline sends calls in all slots before it reads.
func (l *lane) pipeline(s *session) error {
	var batch []byte
	for slot := range uint32(slots) {
		batch = append(batch, s.inSlot(slot, l.random.IntN(2) == 0, l.operations(s)...)...)
	}
	if _, err := s.Write(batch); err != nil {
		return err
	}
	// Answers come in any order; what is not known by its order is known by its results.
	for range slots {
		answer, err := s.receive(answersOfFuzz)
		if err != nil {
			return err
		}
		l.learn(answer)
		if len(answer.results) > 0 {
			if sequence, is := answer.results[0].(*nfsv4.NfsResop4_OP_SEQUENCE); is {
				if ok, done := sequence.Opsequence.(*nfsv4.Sequence4res_NFS4_OK); done && ok.SrResok4.SrSlotid < slots {
					s.used[ok.SrResok4.SrSlotid]++
				}
			}
		}
	}
	return nil
}

// race has a second connection of the same session do what the first does, at the same moment.
func (l *lane) race(s *session) error {
	other, err := dial(l.role.address, s.minor, s.uid)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // It was only for this.
	if _, err := other.call(&nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{
		BctsaSessid: s.id, BctsaDir: nfsv4.CDFC4_FORE_OR_BOTH,
	}}); err != nil {
		return err
	}
	record := s.inSlot(3, true, l.operations(s)...)
	second := record
	if l.random.IntN(2) == 0 {
		second = s.inSlot(2, false, l.operations(s)...)
	}
	end := l.random.IntN(4) == 0
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := other.Write(second); err == nil {
			_, _ = other.receive(answersOfFuzz) // Whether it is answered is seen on the first.
		}
	})
	if end {
		record = append(slices.Clone(record), s.record(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: s.id}})...)
	}
	_, err = s.Write(record)
	if err == nil {
		_, err = s.receive(answersOfFuzz)
	}
	both.Wait()
	l.drop(s) // Which of its slots were used is not known.
	return err
}

// sessionStep makes another session of the client, or ends or binds one.
func (l *lane) sessionStep(s *session) error {
	switch l.random.IntN(5) {
	case 0:
		second, err := dial(l.role.address, s.minor, s.uid)
		if err != nil {
			return err
		}
		made := &session{wire: second, owner: l.owner}
		if err := made.openAs(l.owner, l.verifier); err != nil || len(l.sessions) > 3 {
			return second.Close()
		}
		l.sessions = append(l.sessions, made)
		return nil
	case 1:
		_, err := s.call(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: s.id}})
		l.drop(s)
		return err
	case 2:
		_, err := s.call(&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: s.clientID}})
		return err
	case 3:
		record := s.record(createSession(s.clientID, l.random.Uint32N(4), choose(l, nil, []uint32{1})...))
		for range 2 {
			if _, err := s.exchange(record); err != nil {
				return err
			}
		}
		return nil
	default:
		_, err := s.run(0, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		return err
	}
}

// instance has the client begin again while calls of its former instance are under way.
func (l *lane) instance(s *session) error {
	l.verifier++
	err := beginAgain(s, l.verifier, func(uint32, int) operation { return l.someOperation(s) }, putFH(l.handles["share/dir/file"]))
	for len(l.sessions) > 0 {
		l.drop(l.sessions[0])
	}
	return err
}

// rpcStep speaks RPC badly, on a connection of its own.
func (l *lane) rpcStep(s *session) error {
	other, err := dial(l.role.address, s.minor, s.uid)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // It was only for this.
	record := other.record(l.operations(s)...)
	switch l.random.IntN(7) {
	case 0: // Any word of the head: type, version, program, procedure, flavor, length of the credentials.
		binary.BigEndian.PutUint32(record[8+4*l.random.IntN(8):], choose[uint32](l, 0, 1, 2, 6, 7, 390004, 1<<31, 1<<32-1))
	case 1: // RPCSEC_GSS with a body of anything.
		record = gssCall(l.random.Uint32N(5), l.random.Uint32(), l.random.Uint32N(4))
	case 2: // Fragments.
		var cut []byte
		for rest := record[4:]; len(rest) > 0; {
			n := min(len(rest), 1+l.random.IntN(40))
			last := uint32(0)
			if n == len(rest) {
				last = 1 << 31
			}
			cut = append(binary.BigEndian.AppendUint32(cut, last|uint32(n)), rest[:n]...)
			rest = rest[n:]
		}
		record = cut
	case 3:
		record = record[:l.random.IntN(len(record))]
	case 4:
		binary.BigEndian.PutUint32(record, choose[uint32](l, 0, 1, 1<<31, 1<<31|1, 1<<31|1<<30, 1<<32-1))
	case 5:
		for range 4 {
			record[4+l.random.IntN(len(record)-4)] ^= 1 << l.random.IntN(8)
		}
	default:
		for i := range record {
			record[i] = byte(l.random.Uint32())
		}
		record[0] &= 0x80
	}
	if _, err := other.Write(record); err != nil {
		return nil //nolint:nilerr // ended by the server, which is right
	}
	_, _ = other.receive(time.Duration(1+l.random.IntN(5)) * time.Millisecond) // Nonsense has no right to an answer.
	return nil
}

func (l *lane) proxyStep(s *session) error {
	other, err := dial(l.role.address, s.minor, s.uid)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // It was only for this.
	header := proxyV2(choose[byte](l, 0, 1, 2, 15), choose(l, nil, []byte{10, 99, 0, 1, 10, 99, 0, 1, 3, 1, 8, 1}, longBytes[:36], longBytes[:200])...)
	if l.random.IntN(3) == 0 {
		header = header[:l.random.IntN(len(header))]
	}
	if _, err := other.Write(append(header, other.record(exchangeID("proxied", 1))...)); err == nil {
		_, _ = other.receive(2 * time.Millisecond) // It has no right to an answer.
	}
	return nil
}

// callback sends what could be an answer to a callback.
func (l *lane) callback(s *session) error {
	record := rpc.NewRecord(40)
	for _, word := range []uint32{l.random.Uint32N(20), 1, l.random.Uint32N(3), l.random.Uint32N(3), choose[uint32](l, 0, 4, 1<<31), l.random.Uint32N(7)} {
		record = binary.BigEndian.AppendUint32(record, word)
	}
	if _, err := s.Write(rpc.FinishRecord(record)); err != nil {
		return err
	}
	_, err := s.run(0, &nfsv4.NfsArgop4_OP_PUTROOTFH{})
	return err
}

func (l *lane) hangUp(s *session) error {
	record := s.inSlot(0, true, l.operations(s)...)
	_, err := s.Write(record[:l.random.IntN(len(record))])
	l.drop(s)
	return err
}
