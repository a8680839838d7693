package dataserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// largeRequests: a request of 1 MiB that comes in 256 pieces wakes ganesha a few times. What comes after it on the connection is answered at
// once, in a packet of its own or not, whatever the request's last piece is; and a connection that ends in the middle of one ends there, too.
func largeRequests(t *testing.T) {
	s := boot(t, "large", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	mustWork(t, "make a file", os.WriteFile("/volumes/large/0/alpha/large", nil, 0o666))
	mustWork(t, "let all write", os.Chmod("/volumes/large/0/alpha/large", 0o666))
	w := wireFrom(t, "large", "10.99.0.2")
	write := func(size int) []byte {
		return w.encode(user, w.inOrder(append(lookUp("alpha", "0", "large"), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{
			Stable: nfsv4.UNSTABLE4, Data: make([]byte, size),
		}}))...)
	}
	answered := func(what string) {
		t.Helper()
		mustWork(t, "set a deadline", w.connection.SetDeadline(time.Now().Add(5*time.Second)))
		answer, err := rpc.ReadRecord(w.connection, 1<<20)
		mustWork(t, what+": receive", err)
		if status, _ := w.decode(answer); status != nfsv4.NFS4_OK {
			t.Errorf("%s: %s", what, client.StatusName(status))
		}
	}
	send := func(data []byte) {
		t.Helper()
		_, err := w.connection.Write(data)
		mustWork(t, "send", err)
	}

	const pieces = 256
	before := s.switches()
	for record := write(1 << 20); len(record) > 0; {
		n := min(len(record), 1<<20/pieces)
		send(record[:n])
		record = record[n:]
		time.Sleep(time.Millisecond)
	}
	answered("a WRITE in 256 pieces")
	switches := s.switches() - before
	t.Logf("FIGURE a WRITE of 1 MiB in %d pieces: ganesha's threads slept %d times", pieces, switches)
	if !isEmulated() && switches >= pieces {
		t.Errorf("ganesha's threads slept %d times while a request came in %d pieces: each woke one", switches, pieces)
	}

	for _, last := range []int{1, 4, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 256 << 10, 256<<10 + 1, 700_000} {
		record := write(1 << 20)
		send(record[:len(record)-last])
		time.Sleep(20 * time.Millisecond)
		send(record[len(record)-last:])
		answered(fmt.Sprintf("a WRITE whose last %d bytes come later", last))
		send(write(10))
		answered("a small WRITE after it")
	}
	send(append(write(1<<20), nullCall()...)) // The next request is in the packets of the one before.
	for range 2 {                             // In any order.
		_, err := rpc.ReadRecord(w.connection, 1<<20)
		mustWork(t, "receive an answer to a WRITE, and to the request behind it", err)
	}

	half := wireFrom(t, "half", "10.99.0.2")
	_, err := half.connection.Write(write(1 << 20)[:300_000])
	mustWork(t, "send a part", err)
	time.Sleep(20 * time.Millisecond)
	mustWork(t, "end the connection", half.connection.(*net.TCPConn).CloseWrite())
	if !isEnded(half.connection, 5*time.Second) {
		t.Error("a connection that ended in the middle of a request stays open")
	}
}

// switches is how often ganesha's threads waited for something.
func (s *dataServer) switches() (n int) {
	s.t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.pid()))
	mustWork(s.t, "list ganesha's threads", err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended.
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var own int
		if _, err := fmt.Sscan(after, &own); err != nil {
			s.t.Fatal(err)
		}
		n += own
	}
	return n
}
