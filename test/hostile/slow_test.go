package hostile

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// TestSlowReaders: what bounds the answers that are not read (patch 0340) takes no answer from clients that read late, or little by little:
// not from some of them, not from many, and not while others read none.
func TestSlowReaders(t *testing.T) {
	if !isInside(t) {
		return
	}
	for _, test := range []struct {
		name                 string
		connections, silent  int
		sessions             int // of a connection
		asked, length, pause int // answers of a connection, bytes of each, milliseconds before each is read
		reads                int // of them have data: far more than sockets hold, so that the rest waits for its client
	}{
		{"one connection, long answers", 1, 0, 16, 64, 1<<20 - 4096, 20, 64},
		{"one connection, short answers", 1, 0, 1, 2000, 4096, 0, 0},
		{"many connections, long answers", 12, 0, 5, 20, 1<<20 - 4096, 20, 20},
		{"many connections, short answers", 32, 0, 1, 500, 4096, 0, 0},
		{"beside connections that read nothing", 3, 32, 16, 64, 1<<20 - 4096, 5, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := begin(t)
			defer w.server.Stop()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			silent := make(chan string, 1)
			if test.silent > 0 {
				go func() {
					note, err := unread(ctx, w, readOnly) // From another address, whose replies are counted apart.
					silent <- fmt.Sprint(note, err)
				}()
				time.Sleep(2 * time.Second)
			}
			began := time.Now()
			worked, err := times(test.connections, func(i int) error {
				reads, err := readLate(w, fmt.Sprint("late ", i), test.sessions, test.asked, test.length, test.pause)
				if err == nil && reads < test.reads {
					err = fmt.Errorf("%d of %d answers have data, want %d", reads, test.asked, test.reads)
				}
				return err
			})
			if worked != test.connections {
				t.Errorf("%d of %d connections got all that they asked for: %v", worked, test.connections, err)
			}
			t.Logf("FIGURE all answers were read after %s", time.Since(began).Round(10*time.Millisecond))
			cancel()
			if test.silent > 0 {
				t.Log(<-silent)
			}
		})
	}
}

// TestClientsThatReadNothingAreClosed takes longer than a minute, so make bench-hostile alone runs it.
func TestClientsThatReadNothingAreClosed(t *testing.T) {
	if os.Getenv(envSeconds) == "" {
		t.Skip("it takes longer than a minute: make bench-hostile runs it")
	}
	if !isInside(t) {
		return
	}
	t.Run("after a minute", closedAfterAMinute)
}

func closedAfterAMinute(t *testing.T) {
	const limit, late = 60 * time.Second, 15 * time.Second
	w := begin(t)
	defer w.server.Stop()
	s, err := holding(w, readWrite, "reads nothing", 1)
	must(t, err)
	defer func() { _ = s.Close() }() // The server did.
	began := time.Now()
	for slot := uint32(0); ; slot = (slot + 1) % slots {
		record := s.inSlot(slot, false, putFH(s.file), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: s.opened, Count: 1 << 15}})
		s.used[slot]++
		must(t, s.SetWriteDeadline(began.Add(limit+late)))
		if _, err := s.Write(record); err != nil {
			after := time.Since(began)
			t.Logf("FIGURE closed after %s: %v", after.Round(time.Second), err)
			if after < limit-time.Second || after >= limit+late {
				t.Errorf("a client that reads nothing is closed after %s, want %s", after, limit)
			}
			return
		}
	}
}

// readLate asks a number of times on one connection, waits, reads all answers, and returns how many have data. With a slot for each question,
// all have; with fewer slots some say that theirs is in use. Each client has four, so several clients share the connection.
func readLate(w *world, owner string, sessions, asked, length, pause int) (reads int, err error) {
	var clients []*states
	for i := range sessions {
		s, err := holding(w, readWrite, fmt.Sprint(owner, " ", i), 1)
		if err != nil {
			return 0, err
		}
		defer s.leave()
		last := &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: s.opened, Offset: 1<<20 - 1, Data: []byte{1}}}
		if _, err := s.must(putFH(s.file), last); err != nil {
			return 0, err
		}
		clients = append(clients, s)
	}
	var questions []byte
	for n := range asked {
		s, slot := clients[n%sessions], uint32(n/sessions%slots)
		read := &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: s.opened, Count: uint32(length)}}
		questions = append(questions, s.inSlot(slot, false, putFH(s.file), read)...)
		s.used[slot]++
	}
	shared := clients[0]
	sent := make(chan error, 1)
	go func() {
		_, err := shared.Write(questions)
		sent <- err
	}()
	time.Sleep(2 * time.Second)
	for n := range asked {
		answer, err := shared.receive(answersWithin)
		if err != nil {
			return reads, fmt.Errorf("answer %d of %d: %w", n, asked, err)
		}
		if answer.status == nfsv4.NFS4_OK {
			reads++
		}
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	return reads, <-sent
}
