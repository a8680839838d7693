package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ganesha"
)

// connections opens a number of connections, does something on each, holds them until the context ends, and returns how many were kept.
func connections(ctx context.Context, n int, from string, first []byte) (string, error) {
	var mutex sync.Mutex
	var held []*wire
	opened, last := times(n, func(int) error {
		w, err := dial(from, 1, 0)
		if err != nil {
			return err
		}
		mutex.Lock()
		held = append(held, w)
		mutex.Unlock()
		_, err = w.Write(first)
		return err
	})
	kept := 0
	for kept = stillOpen(held); kept > 0 && ctx.Err() == nil; kept = stillOpen(held) {
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	for _, w := range held {
		_ = w.Close() // It was only held.
	}
	return fmt.Sprintf("%d of %d connections were made, %d kept (%v)", opened, n, kept, last), nil
}

// stillOpen counts the connections that the server has not ended.
func stillOpen(held []*wire) (kept int) {
	for _, w := range held {
		if err := w.SetReadDeadline(time.Now().Add(50 * time.Microsecond)); err == nil {
			var timeout net.Error
			if _, err := w.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
				kept++
			}
		}
	}
	return kept
}

func oneByte(ctx context.Context, _ *world, from string) (string, error) {
	return connections(ctx, 600, from, []byte{0x80})
}

func proxyStart(ctx context.Context, _ *world, from string) (string, error) {
	return connections(ctx, 600, from, proxyV2(1)[:4])
}

func idleConnections(ctx context.Context, _ *world, from string) (string, error) {
	return connections(ctx, 5000, from, nil)
}

func comeAndGo(ctx context.Context, _ *world, from string) (string, error) {
	begun := 0
	var last error
	for ctx.Err() == nil {
		worked, err := times(64, func(i int) error {
			w, err := dial(from, 1, 0)
			if err != nil {
				return err
			}
			record := w.record(exchangeID("comes and goes", 1))
			_, err = w.Write(record[:i%len(record)])
			return errors.Join(err, w.Close())
		})
		begun += worked
		last = err
	}
	return fmt.Sprintf("%d connections (%v)", begun, last), nil
}

func silentCallbacks(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		worked, last := times(64, func(i int) error {
			s, err := login(from, 1, 0, fmt.Sprint("silent ", i))
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // Its session may be gone.
			var batch []byte
			for range 4 {
				batch = append(batch, s.record(createSession(s.clientID, 2))...)
			}
			batch = append(batch, s.record(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: s.id}})...)
			_, err = s.Write(batch)
			return err
		})
		if worked == 0 {
			return last
		}
		return nil
	}), nil
}

// unread asks on many connections and reads no answer. It holds them: what is kept for them must not grow.
func unread(ctx context.Context, w *world, from string) (string, error) {
	return askOnly(ctx, w, from, 0)
}

// unreadMegabytes does the same with answers of a megabyte.
func unreadMegabytes(ctx context.Context, w *world, from string) (string, error) {
	return askOnly(ctx, w, from, 1<<20)
}

// askOnly makes the file as long as that, if it is not 0, and asks for it until the context ends.
func askOnly(ctx context.Context, w *world, from string, length int) (string, error) {
	var mutex sync.Mutex
	asked := 0
	worked, last := times(64, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("unread ", i), 1)
		if err != nil {
			return err
		}
		defer s.leave()
		if length > 0 {
			last := &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: s.opened, Offset: uint64(length - 1), Data: []byte{1}}}
			if _, err := s.run(0, putFH(s.file), last); err != nil {
				return err
			}
		}
		for ctx.Err() == nil {
			// In slots that are in use the server may do what it likes, but for taking memory without end.
			for slot := range uint32(slots) {
				// An answer of 1 MiB is the longest; what is around the data is a part of it.
				read := &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: s.opened, Count: 1<<20 - 4096}}
				record := s.inSlot(slot, false, putFH(s.file), read)
				s.used[slot]++
				if err := s.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
					return err
				}
				if _, err := s.Write(record); err != nil {
					<-ctx.Done() // It is not read any more, or was ended: both are right. A part of a record is on its way now.
					return nil
				}
				mutex.Lock()
				asked++
				mutex.Unlock()
			}
		}
		return nil
	})
	return fmt.Sprintf("%d connections, %d questions (%v)", worked, asked, last), nil
}

func bigRecords(ctx context.Context, _ *world, from string) (string, error) {
	taken := make([]int64, 4)
	_, last := times(len(taken), func(i int) error {
		w, err := dial(from, 1, 0)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }() // It was only for this.
		if _, err := w.Write(binary.BigEndian.AppendUint32(nil, 0x80000000|300<<20)); err != nil {
			return err
		}
		taken[i], err = pour(ctx, w, 300<<20)
		return err
	})
	return fmt.Sprintf("%d MiB were taken (%v)", (taken[0]+taken[1]+taken[2]+taken[3])>>20, last), nil
}

// pour writes zeros until a number of them was taken, the context ends or the server does not take more.
func pour(ctx context.Context, w *wire, most int64) (written int64, err error) {
	block := make([]byte, 1<<20)
	for written < most && ctx.Err() == nil {
		if err := w.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			return written, err
		}
		n, err := w.Write(block)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func fragments(ctx context.Context, _ *world, from string) (string, error) {
	w, err := dial(from, 1, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }() // It was only for this.
	var block []byte
	for range 1 << 14 {
		block = append(binary.BigEndian.AppendUint32(block, 4), "abcd"...)
	}
	sent := 0
	for ctx.Err() == nil && err == nil {
		if err = w.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err == nil {
			_, err = w.Write(block)
			sent += 1 << 14
		}
	}
	return fmt.Sprintf("%d fragments (%v)", sent, err), nil
}

func manyClients(ctx context.Context, _ *world, from string) (string, error) {
	made, last := times(6000, func(i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s, err := login(from, 1, 0, fmt.Sprint("one of many ", i))
		if err != nil {
			return err
		}
		return s.Close()
	})
	return fmt.Sprintf("%d were made (%v)", made, last), nil
}

func manySessions(ctx context.Context, _ *world, from string) (string, error) {
	w, err := dial(from, 1, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }() // It was only for this.
	known, err := w.call(exchangeID("many sessions", 1))
	if err != nil || len(known.results) == 0 {
		return fmt.Sprintf("no client ID (%v)", err), nil
	}
	ok, is := known.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK)
	if !is {
		return nfsv4.Nfsstat4_name[known.status], nil
	}
	sequence, status := ok.EirResok4.EirSequenceid, nfsv4.NFS4_OK
	made := 0
	for ; made < 20000 && ctx.Err() == nil && status == nfsv4.NFS4_OK; made++ {
		answer, err := w.call(createSession(ok.EirResok4.EirClientid, sequence))
		if err != nil {
			return fmt.Sprintf("%d were made (%v)", made, err), nil
		}
		sequence++
		status = answer.status
	}
	return fmt.Sprintf("%d were made, then %s", made, nfsv4.Nfsstat4_name[status]), nil
}

// anothersOwner: a client that knows the owner string of another must not end its state from another address.
func anothersOwner(ctx context.Context, _ *world, from string) (string, error) {
	verifier := uint64(1000)
	return again(ctx, func() error {
		w, err := dial(from, 1, 0)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }() // It was only for this.
		verifier++
		known, err := w.call(exchangeID("bystander", verifier))
		if err != nil || len(known.results) == 0 {
			return err
		}
		ok, is := known.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK)
		if !is {
			return &statusError{"EXCHANGE_ID", known.status}
		}
		_, err = w.call(createSession(ok.EirResok4.EirClientid, ok.EirResok4.EirSequenceid))
		return err
	}), nil
}

// guess tries session and client IDs near its own: once they were numbers that count up.
func guess(ctx context.Context, _ *world, from string) (string, error) {
	s, err := login(from, 1, 0, "guesses")
	if err != nil {
		return fmt.Sprint(err), nil
	}
	defer s.leave()
	tried, hit := 0, 0
	for distance := int64(-24); distance <= 24 && ctx.Err() == nil; distance++ {
		other := s.clientID + uint64(distance)
		if distance == 0 {
			continue
		}
		var ids [][nfsv4.NFS4_SESSIONID_SIZE]byte
		for _, order := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
			for counter := range uint64(6) {
				id := s.id
				order.PutUint64(id[:8], other)
				order.PutUint64(id[8:], order.Uint64(s.id[8:])+counter-3)
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			for _, op := range []operation{
				&nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{BctsaSessid: id, BctsaDir: nfsv4.CDFC4_FORE_OR_BOTH}},
				&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: id}},
			} {
				answer, err := s.call(op)
				if err != nil {
					return fmt.Sprintf("%d tried (%v)", tried, err), nil
				}
				if tried++; answer.status == nfsv4.NFS4_OK {
					hit++
				}
			}
		}
		for _, op := range []operation{
			createSession(other, 1), createSession(other, 2),
			&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: other}},
		} {
			answer, err := s.call(op)
			if err != nil {
				return fmt.Sprintf("%d tried (%v)", tried, err), nil
			}
			if tried++; answer.status == nfsv4.NFS4_OK {
				hit++
			}
		}
	}
	note := fmt.Sprintf("%d tried", tried)
	if hit > 0 {
		return note, fmt.Errorf("%d guesses hit", hit)
	}
	return note, nil
}

func readOnlyChanges(_ context.Context, w *world, from string) (string, error) {
	s, err := holding(w, from, "only reads", 2)
	if err != nil {
		return "", err
	}
	defer s.leave()
	for _, stateID := range []nfsv4.Stateid4{s.opened, {}, {Seqid: 1<<32 - 1, Other: [12]byte(longBytes[:12])}} {
		for _, op := range []operation{
			&nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: stateID, DaLength: 8192}},
			&nfsv4.NfsArgop4_OP_ALLOCATE{Opallocate: nfsv4.Allocate4args{AaStateid: stateID, AaLength: 1 << 20}},
			&nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: stateID, Data: []byte("written")}},
			raw(extended(opSetXattr, values{name: "planted", bytes: []byte("here")})), raw(extended(opRemoveXattr, values{name: "planted"})),
			&nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{Stateid: stateID, ObjAttributes: modeAttr}},
		} {
			if _, err := s.run(0, putFH(s.file), op); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// held keeps connections from being collected, and with that closed, while a server stops.
var held []net.Conn

// silentMetrics asks ganesha's own exporter and reads nothing: once one such connection took the metrics from all, and kept ganesha
// from ending. It is for the supervisor beside it alone, so the attacker's address must not reach it; connections that the
// manager would have made stay silent in its place.
func silentMetrics(ctx context.Context, _ *world, from string) (string, error) {
	exporter := strconv.Itoa(ganesha.DefaultMonitoringPort)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Second}
	if connection, err := dialer.DialContext(ctx, "tcp", "10.99.0.1:"+exporter); err == nil {
		held = append(held, connection)
		return "", fmt.Errorf("%s reaches the exporter", from)
	}
	var mutex sync.Mutex
	made, last := times(16, func(i int) error {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", "127.0.0.1:"+exporter)
		if err != nil {
			return err
		}
		mutex.Lock()
		held = append(held, connection)
		mutex.Unlock()
		if i%2 == 0 {
			_, err = io.WriteString(connection, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		return err
	})
	<-ctx.Done()
	return fmt.Sprintf("%d connections (%v)", made, last), nil
}
