package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
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

// fifo: opening it waits for a process that writes.
func fifo(_ context.Context, w *world, from string) (string, error) {
	answered, last := times(50, func(i int) error {
		s, err := login(from, 2, 1000, fmt.Sprint("fifo ", i))
		if err != nil {
			return err
		}
		defer s.leave()
		for code := uint32(opGetXattr); code <= opRemoveXattr; code++ {
			if _, err := s.run(0, putFH(w.handles["share/dir/fifo"]), raw(extended(code, values{name: "a"}))); err != nil {
				return err
			}
		}
		for _, shape := range generated(uint32(nfsv4.OP_OPEN)) {
			op := encode(uint32(nfsv4.OP_OPEN), shape, values{client: s.clientID, name: "fifo", attributes: modeAttr, bytes: []byte("12345678")})
			if _, err := s.run(0, putFH(w.handles["share/dir/fifo"]), raw(op)); err != nil {
				return err
			}
		}
		return nil
	})
	if answered == 0 {
		return "", fmt.Errorf("calls about a FIFO are not answered: %w", last)
	}
	return fmt.Sprintf("%d of 50 clients had all answers (%v)", answered, last), nil
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

// sparse: walks of holes, and writes at the far end, must not take the time that the length suggests.
func sparse(ctx context.Context, w *world, from string) (string, error) {
	path := filepath.Join(w.storage.path(share), "dir", "sparse")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return "", err
	}
	size, err := longest(path)
	if err != nil {
		return "", err
	}
	s, err := login(from, 2, 0, "sparse")
	if err != nil {
		return "", err
	}
	defer s.leave()
	handle, err := s.handle(share, "dir", "sparse")
	if err != nil {
		return "", err
	}
	opened, err := s.openFile("sparse", handle, nfsv4.OPEN4_SHARE_ACCESS_BOTH)
	if err != nil {
		return "", err
	}
	note := again(ctx, func() error {
		for _, offset := range []uint64{0, 4096, uint64(size) - 1, uint64(size), 1 << 63, 1<<64 - 1} {
			for _, op := range []operation{
				&nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: opened, SaOffset: offset, SaWhat: nfsv4.NFS4_CONTENT_DATA}},
				&nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: opened, SaOffset: offset, SaWhat: nfsv4.NFS4_CONTENT_HOLE}},
				&nfsv4.NfsArgop4_OP_READ_PLUS{OpreadPlus: nfsv4.ReadPlus4args{RpaStateid: opened, RpaOffset: offset, RpaCount: 1 << 20}},
				&nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: opened, Offset: offset, Count: 1<<32 - 1}},
				&nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: opened, Offset: offset, Data: []byte("far")}},
				&nfsv4.NfsArgop4_OP_COMMIT{Opcommit: nfsv4.Commit4args{Offset: offset, Count: 1<<32 - 1}},
				&nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: opened, DaOffset: offset, DaLength: 1<<64 - 1 - offset}},
			} {
				if _, err := s.run(0, putFH(handle), op); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return fmt.Sprintf("%d GiB; %s", size>>30, note), os.Remove(path)
}

// longHoles makes holes in a small file, most of them where it has ended. Each must be answered as soon as any other call.
func longHoles(ctx context.Context, w *world, from string) (string, error) {
	var mutex sync.Mutex
	var slowest time.Duration
	answered, last := times(20, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("holes ", i), 2)
		if err != nil {
			return err
		}
		defer s.leave()
		for _, length := range []uint64{1 << 36, 1 << 40, 1 << 45, 1 << 50, 1<<62 - 1, 1 << 62, 1<<63 - 1 - 4096, 1<<63 - 1} {
			for _, offset := range []uint64{0, 4096, 1 << 40} {
				if ctx.Err() != nil {
					return nil
				}
				began := time.Now()
				_, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: s.opened, DaOffset: offset, DaLength: length}})
				if err != nil {
					return fmt.Errorf("%d bytes from %d: %w", length, offset, err)
				}
				mutex.Lock()
				slowest = max(slowest, time.Since(began))
				mutex.Unlock()
			}
		}
		return nil
	})
	note := fmt.Sprintf("%d of 20 clients were answered, the slowest after %s", answered, slowest.Round(time.Millisecond))
	if errors.Is(last, errSilent) || slowest > looseStall {
		return note, fmt.Errorf("a hole took %s (%w)", slowest, last)
	}
	return note, nil
}

// longFiles asks for room behind the largest size that the file system has.
func longFiles(_ context.Context, w *world, from string) (string, error) {
	path := filepath.Join(w.storage.path(share), "dir", "file")
	s, err := holding(w, from, "long", 2)
	if err != nil {
		return "", err
	}
	defer s.leave()
	refused := 0
	for _, length := range []uint64{1 << 41, 1 << 45, 1 << 50, 1<<62 - 1, 1 << 62, 1<<63 - 1} {
		if os.Truncate(path, int64(length)) == nil {
			if err := os.Truncate(path, 4096); err != nil {
				return "", err
			}
			continue // The file system has such files.
		}
		answer, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_ALLOCATE{Opallocate: nfsv4.Allocate4args{AaStateid: s.opened, AaLength: length}})
		if err != nil {
			return "", err
		}
		if answer.status == nfsv4.NFS4_OK {
			return "", fmt.Errorf("ALLOCATE made %d bytes, which the file system refuses", length)
		}
		refused++
	}
	return fmt.Sprintf("%d were refused", refused), nil
}

// longest makes a file as long as the file system takes.
func longest(path string) (size int64, err error) {
	// The largest file of ext4 has 16 TiB, that of CephFS less than 1 TiB; other file systems take 8 EiB.
	for _, size = range []int64{1<<63 - 1, 1 << 62, 1 << 50, 1 << 43, 1<<40 - 4096} {
		if err = os.Truncate(path, size); err == nil {
			break
		}
	}
	return size, err
}

// wholeHoles makes holes of a whole file that is as long as files can be. Some clients may be told to come later; others must be served.
func wholeHoles(_ context.Context, w *world, from string) (string, error) {
	size, err := longest(filepath.Join(w.storage.path(share), "dir", "file"))
	if err != nil {
		return "", err
	}
	var mutex sync.Mutex
	answers := map[string]int{}
	worked, last := times(50, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("whole ", i), 2)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // It may be busy.
		answer, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: s.opened, DaLength: uint64(size)}})
		mutex.Lock()
		defer mutex.Unlock()
		if errors.Is(err, errSilent) {
			answers["none"]++
			return nil
		}
		answers[nfsv4.Nfsstat4_name[answer.status]]++
		return err
	})
	return fmt.Sprintf("%d of 50 clients, %d GiB, answers %v (%v)", worked, size>>30, answers, last), nil
}

// unread asks for megabytes on many connections and reads none of them.
func unread(ctx context.Context, w *world, from string) (string, error) {
	var mutex sync.Mutex
	asked := 0
	worked, last := times(16, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("unread ", i), 1)
		if err != nil {
			return err
		}
		defer s.leave()
		for ctx.Err() == nil {
			// In slots that are in use the server may do what it likes, but for taking memory without end.
			for slot := range uint32(slots) {
				record := s.inSlot(slot, false, putFH(s.file), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: s.opened, Count: 1 << 20}})
				s.used[slot]++
				if err := s.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
					return err
				}
				if _, err := s.Write(record); err != nil {
					return nil //nolint:nilerr // it is not read any more, or was ended: both are right
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
// from ending. It is for the instance manager beside it alone, so the attacker's address must not reach it; connections that the
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
