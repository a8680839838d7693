package dataserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// longestStall is what a well-behaved client may notice of a hostile one at another address.
const longestStall = time.Second

// bystander is a well-behaved client that works all the time.
type bystander struct {
	t       *testing.T
	stop    context.CancelFunc
	ended   sync.WaitGroup
	mutex   sync.Mutex
	began   time.Time // Of the call that has no answer yet.
	longest time.Duration
	calls   int
	err     error
}

// watch looks at a path until the test ends.
func (s *dataServer) watch(address, path string) *bystander {
	s.t.Helper()
	c := s.from(address)
	ctx, cancel := context.WithCancel(s.t.Context())
	b := &bystander{t: s.t, stop: cancel}
	_, err := c.Stat(ctx, user, path)
	mustWork(s.t, "the well-behaved client's first call", err)
	b.ended.Go(func() {
		for ctx.Err() == nil {
			b.mutex.Lock()
			b.began = time.Now()
			b.mutex.Unlock()
			_, err := c.Stat(ctx, user, path)
			b.mutex.Lock()
			b.longest = max(b.longest, time.Since(b.began))
			b.calls++
			if err != nil && ctx.Err() == nil {
				b.err = err
			}
			b.mutex.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	})
	s.t.Cleanup(func() { cancel(); b.ended.Wait() })
	return b
}

// noticedNothing fails if the client had to wait, or was refused, since the last time.
func (b *bystander) noticedNothing(what string) {
	b.t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	longest := max(b.longest, time.Since(b.began))
	b.t.Logf("FIGURE %s: longest wait of another client %s, %d calls", what, longest.Round(time.Millisecond), b.calls)
	if longest > longestStall || b.err != nil {
		b.t.Errorf("%s: another client waited %s, error %v", what, longest, b.err)
	}
	b.longest, b.calls, b.err = 0, 0, nil
}

// connectFrom makes a bare connection to the data server.
func connectFrom(t *testing.T, local string) net.Conn {
	t.Helper()
	address, to := netip.MustParseAddr(local), "10.99.0.1"
	if address.Is6() {
		to = realtest.AddressIPv6
	}
	dialer := net.Dialer{Timeout: timeout, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0))}
	connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(to, "2049"))
	mustWork(t, "connect from "+local, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// isEnded tells whether the server ended a connection within some time.
func isEnded(connection net.Conn, within time.Duration) bool {
	_ = connection.SetReadDeadline(time.Now().Add(within))
	_, err := connection.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// residentBytes are ganesha's.
func (s *dataServer) residentBytes() int64 {
	s.t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid()) + "/statm")
	mustWork(s.t, "read ganesha's memory", err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	mustWork(s.t, "read ganesha's memory", err)
	return pages * int64(os.Getpagesize())
}

// nullCall is a call of the procedure NULL with its record mark (RFC 5531 sections 9 and 11).
func nullCall() []byte {
	var call []byte
	for _, word := range []uint32{0x80000000 | 40, 7, 0, 2, 100003, 4, 0, 0, 0, 0, 0} {
		call = binary.BigEndian.AppendUint32(call, word)
	}
	return call
}

func mustAnswerNull(t *testing.T, what string, connection net.Conn) {
	t.Helper()
	mustWork(t, "set a deadline", connection.SetDeadline(time.Now().Add(5*time.Second)))
	if _, err := io.ReadFull(connection, make([]byte, 28)); err != nil {
		t.Errorf("%s: no answer: %v", what, err)
	}
}

// unfinishedRequests: connections that begin a request and do not go on, or send one that is too long, keep nothing from others. They are of an
// address that is let in.
func unfinishedRequests(t *testing.T) {
	if isEmulated() {
		t.Skip("QEMU has no SO_COOKIE, which tells ganesha that a socket's number has a new connection (patch 0301)")
	}
	const hostile = "10.99.0.2"
	s := boot(t, "unfinished", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	pid := s.pid()
	others := s.watch("10.99.0.1", "/alpha/0")

	var silent []net.Conn
	for range 600 {
		connection := connectFrom(t, hostile)
		_, err := connection.Write([]byte{0x80})
		mustWork(t, "send one byte", err)
		silent = append(silent, connection)
	}
	oneByte := time.Now()
	time.Sleep(2 * time.Second)
	others.noticedNothing("600 connections that sent one byte each")

	// The signature of PROXY version 2, the command LOCAL, no addresses; and a record behind it in the same segment.
	for range 25 {
		connection := connectFrom(t, hostile)
		_, _ = connection.Write(append([]byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"), nullCall()...))
		if !isEnded(connection, 5*time.Second) {
			t.Error("a PROXY header does not end the connection")
		}
	}
	others.noticedNothing("25 PROXY headers")

	before := s.residentBytes()
	filler := make([]byte, 1<<20)
	for what, mark := range map[string][]byte{
		"one record of 2 GiB":       {0xff, 0xff, 0xff, 0xf0},
		"300 fragments":             {0x00, 0x10, 0x00, 0x00},
		"a record of 2 MiB and one": {0x80, 0x20, 0x00, 0x01},
	} {
		connection := connectFrom(t, hostile)
		var err error
		for sent := 0; sent < 300 && err == nil; sent++ {
			if sent == 0 || mark[0] == 0 {
				_, err = connection.Write(mark)
			}
			if err == nil {
				_, err = connection.Write(filler)
			}
		}
		if err == nil {
			t.Errorf("%s: 300 MiB were taken", what)
		}
		if more := s.residentBytes() - before; more > 64<<20 {
			t.Errorf("%s: ganesha has %d MiB more", what, more>>20)
		}
	}
	others.noticedNothing("300 MB in a record")

	slow := connectFrom(t, hostile)
	for _, b := range nullCall() {
		_, err := slow.Write([]byte{b})
		mustWork(t, "send", err)
		time.Sleep(20 * time.Millisecond)
	}
	mustAnswerNull(t, "a request that comes byte by byte", slow)
	mustWriteLargest(t, s, hostile)

	time.Sleep(time.Until(oneByte.Add(13 * time.Second)))
	for _, connection := range silent {
		if !isEnded(connection, time.Second) {
			t.Fatal("a connection that sent one byte is still open after 13 s")
		}
	}
	others.noticedNothing("the end of 600 connections")
	if s.pid() != pid {
		t.Error("ganesha was started again")
	}
}

// mustWriteLargest writes as much as Linux does in one request.
func mustWriteLargest(t *testing.T, s *dataServer, from string) {
	t.Helper()
	mustWork(t, "make a file", os.WriteFile("/volumes/unfinished/0/alpha/large", nil, 0o666))
	mustWork(t, "let all write", os.Chmod("/volumes/unfinished/0/alpha/large", 0o666))
	w := wireFrom(t, "largest", from)
	data := bytes.Repeat([]byte{'x'}, 1<<20)
	for i := range 8 {
		w.results(user, append(lookUp("alpha", "0", "large"), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{
			Offset: nfsv4.Offset4(i << 20), Stable: nfsv4.UNSTABLE4, Data: data,
		}})...)
	}
	about, err := s.from("10.99.0.1").Stat(t.Context(), user, "/alpha/0/large")
	mustWork(t, "stat", err)
	if about.Size != 8<<20 {
		t.Errorf("8 WRITEs of 1 MiB made a file of %d bytes", about.Size)
	}
}

// gateAdmits: a connection of an address that no export lets in ends before a byte of it is read; the supervisor's own is let in before there
// is any export; who is taken off the last list loses its connections.
func gateAdmits(t *testing.T) {
	const unlisted = "10.98.0.1"
	mustBeClosed := func(what, from string) {
		t.Helper()
		connection := connectFrom(t, from)
		began := time.Now()
		if !isEnded(connection, 5*time.Second) {
			t.Errorf("%s: a connection from %s stays open", what, from)
		}
		t.Logf("FIGURE %s: closed after %s", what, time.Since(began).Round(time.Microsecond))
	}
	s := boot(t, "gate", 1)
	s.apply(func(*dataservertest.Wanted) {})
	s.settle()
	mustBeClosed("before the first export", unlisted)
	mustBeClosed("loopback", "127.0.0.1")
	mustBeClosed("loopback that is not the manager's", "127.77.77.77")

	only := func(addresses ...string) internalv1.ShareExportSpec {
		spec := dataservertest.ShareSpec("alpha")
		spec.Access[0].Clients = addresses
		return spec
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{only("10.99.0.0/30"), dataservertest.ShareSpec("beta")}
	})
	s.settle()
	one := s.watch("10.99.0.1", "/alpha/0")
	leaving := connectFrom(t, "10.99.0.2")
	_, err := leaving.Write(nullCall())
	mustWork(t, "send", err)
	mustAnswerNull(t, "an address that an export lets in", leaving)
	mustBeClosed("an address in no rule", unlisted)
	for range 1000 {
		connection := connectFrom(t, unlisted)
		_, _ = connection.Write([]byte{0x80})
	}
	one.noticedNothing("1,000 connections of an address in no rule")

	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = []internalv1.ShareExportSpec{only("10.99.0.1")} })
	s.settle()
	if !isEnded(leaving, 5*time.Second) {
		t.Error("a connection of an address that was taken off the list is still open")
	}
	mustBeClosed("an address that was taken off the list", "10.99.0.2")
	one.noticedNothing("another address was taken off the list")
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{only("::/0", "10.98.0.0/24")}
	})
	one.stop()
	s.settle()
	mustBeClosed("an IPv4 address where IPv6 ones are let in", "10.99.0.1")
	_, err = s.from(unlisted).Stat(t.Context(), user, "/alpha/0")
	mustWork(t, "an address that was put on the list", err)
	_, err = s.throughTLS("10.99.0.1", dataservertest.TestAuthority).Stat(t.Context(), root, "/alpha/0")
	mustWork(t, "a namespace server", err)
}

// tableIsShared: the connection table is full of idle connections of few addresses, and another address gets in.
func tableIsShared(t *testing.T) {
	const table = 64 // The least; one address may have all of it.
	s := boot(t, "table", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.MaxConnections = table
		export := dataservertest.ShareSpec("alpha")
		export.Access[0].Clients = []string{"10.0.0.0/8"}
		spec.Exports = []internalv1.ShareExportSpec{export}
	})
	s.settle()
	idle := map[string][]net.Conn{}
	fill := func(from string, count int) {
		for range count {
			idle[from] = append(idle[from], connectFrom(t, from))
		}
	}
	open := func(from string) (count int) {
		for _, connection := range idle[from] {
			if !isEnded(connection, time.Millisecond) {
				count++
			}
		}
		return count
	}
	fill("10.99.0.2", 4*table)
	time.Sleep(time.Second)
	if first := open("10.99.0.2"); first > table || first < table/2 {
		t.Errorf("%d connections of one address are open", first)
	}
	others := s.watch("10.99.0.1", "/alpha/0")
	fill("10.98.0.1", table)
	time.Sleep(time.Second)
	t.Logf("FIGURE of %d places two idle addresses have %d and %d", table, open("10.99.0.2"), open("10.98.0.1"))
	if second := open("10.98.0.1"); second < table/3 {
		t.Errorf("the second address has %d connections", second)
	}
	others.noticedNothing("two addresses fill the connection table")
	// Clients that come now.
	for range 3 {
		c, err := client.Dial(t.Context(), "10.99.0.1:2049", client.Options{ClientOwner: "late", CallTimeout: 5 * time.Second})
		mustWork(t, "a client that comes when the table is full", err)
		_, err = c.Stat(t.Context(), user, "/alpha/0")
		mustWork(t, "its call", err)
		mustWork(t, "its end", c.Close(t.Context()))
	}
	others.noticedNothing("others come")
}
