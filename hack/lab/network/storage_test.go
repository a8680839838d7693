package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testVolume = "pvc-00000000-0000-0000-0000-000000000001"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testStorage has one volume of 1 MiB, and serves it on the loopback interface.
func testStorage(t *testing.T) (*storage, string) {
	t.Helper()
	s, err := openStorage(t.TempDir())
	must(t, err)
	must(t, s.create(testVolume, 1<<20))
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = s.serveNBD(listener) }()
	return s, listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := net.DialTimeout("tcp4", address, 10*time.Second)
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	must(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	return connection
}

// ask sends a request as the kernel does, and returns the number of its error, and what was read.
func ask(connection net.Conn, command uint16, offset uint64, data []byte, length uint32) (uint32, []byte, error) {
	message := binary.BigEndian.AppendUint32(nil, magicRequest)
	message = binary.BigEndian.AppendUint16(message, 0)
	message = binary.BigEndian.AppendUint16(message, command)
	message = binary.BigEndian.AppendUint64(message, 77)
	message = binary.BigEndian.AppendUint64(message, offset)
	message = binary.BigEndian.AppendUint32(message, length)
	if _, err := connection.Write(append(message, data...)); err != nil {
		return 0, nil, err
	}
	var header struct {
		Magic, Fault uint32
		Handle       uint64
	}
	if err := binary.Read(connection, binary.BigEndian, &header); err != nil {
		return 0, nil, err
	}
	if header.Magic != magicAnswer || header.Handle != 77 {
		return 0, nil, errors.New("not the answer")
	}
	if command != commandRead || header.Fault != 0 {
		return header.Fault, nil, nil
	}
	got := make([]byte, length)
	_, err := io.ReadFull(connection, got)
	return 0, got, err
}

func TestANodeReadsWhatItWrote(t *testing.T) {
	s, address := testStorage(t)
	must(t, s.publish(testVolume, "node1"))
	connection := dial(t, address)
	e, err := connect(connection, testVolume, "node1")
	must(t, err)
	if e.size != 1<<20 || e.flags&flagSendFlush == 0 {
		t.Errorf("%+v", e)
	}
	text := []byte(strings.Repeat("block of data, ", 300))
	if fault, _, err := ask(connection, commandWrite, 4096, text, uint32(len(text))); fault != 0 || err != nil {
		t.Fatal(fault, err)
	}
	if fault, _, err := ask(connection, commandFlush, 0, nil, 0); fault != 0 || err != nil {
		t.Fatal(fault, err)
	}
	if _, got, err := ask(connection, commandRead, 4096, nil, uint32(len(text))); err != nil || string(got) != string(text) {
		t.Fatalf("%q, %v", got, err)
	}
	if fault, _, err := ask(connection, commandTrim, 4096, nil, 4096); fault != 0 || err != nil {
		t.Fatal(fault, err)
	}
	if _, got, err := ask(connection, commandRead, 4096, nil, 4096); err != nil || strings.Trim(string(got), "\x00") != "" {
		t.Fatalf("after a trim: %q, %v", got, err)
	}
	if fault, _, err := ask(connection, commandWrite, 1<<20-1, []byte("xx"), 2); fault == 0 || err != nil {
		t.Fatalf("a write behind the end: %v, %v", fault, err)
	}
	if stat, err := os.Stat(s.file(testVolume)); err != nil || stat.Size() != 1<<20 {
		t.Errorf("%v, %v", stat, err)
	}
}

// That is what makes a failover safe even if a machine is on that should be off.
func TestADetachedNodeIsCutOff(t *testing.T) {
	s, address := testStorage(t)
	must(t, s.publish(testVolume, "node1"))
	old := dial(t, address)
	_, err := connect(old, testVolume, "node1")
	must(t, err)
	if err := s.publish(testVolume, "node2"); !errors.Is(err, os.ErrExist) {
		t.Fatalf("two nodes have it: %v", err)
	}
	must(t, s.unpublish(testVolume, "node2")) // It has nothing, so it takes nothing from the other one.
	if fault, _, err := ask(old, commandWrite, 0, []byte("old"), 3); fault != 0 || err != nil {
		t.Fatal(fault, err)
	}
	must(t, s.unpublish(testVolume, "node1"))
	must(t, s.publish(testVolume, "node2"))
	next := dial(t, address)
	_, err = connect(next, testVolume, "node2")
	must(t, err)
	if fault, _, err := ask(next, commandWrite, 0, []byte("new"), 3); fault != 0 || err != nil {
		t.Fatal(fault, err)
	}
	if fault, _, err := ask(old, commandWrite, 0, []byte("bad"), 3); err == nil {
		t.Errorf("the old node has an answer: %d", fault)
	}
	if _, err := connect(dial(t, address), testVolume, "node1"); err == nil || !strings.Contains(err.Error(), "not attached to this node") {
		t.Errorf("the old node may come back: %v", err)
	}
	if _, got, err := ask(next, commandRead, 0, nil, 3); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
}

// A request may have been read before the cut, and be carried out after it.
func TestARequestThatWasReadBeforeTheCutChangesNothing(t *testing.T) {
	s, _ := testStorage(t)
	must(t, s.publish(testVolume, "node1"))
	must(t, s.unpublish(testVolume, "node1"))
	done := false
	if err := s.change(testVolume, "node1", func() error { done = true; return nil }); !errors.Is(err, errNotPublished) || done {
		t.Errorf("%v, %v", done, err)
	}
}

func TestWhatIsAttachedOutlivesTheProcess(t *testing.T) {
	s, _ := testStorage(t)
	must(t, s.publish(testVolume, "node1"))
	again, err := openStorage(s.dir)
	must(t, err)
	if err := again.publish(testVolume, "node2"); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v", err)
	}
	if err := again.remove(testVolume); err == nil {
		t.Error("an attached volume is removed")
	}
	must(t, again.unpublish(testVolume, ""))
	must(t, again.remove(testVolume))
	if err := again.publish(testVolume, "node2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestNamesThatAreNoVolumesAreRefused(t *testing.T) {
	s, address := testStorage(t)
	for _, name := range []string{"", "../published", "pvc-1", testVolume + "/x"} {
		if s.create(name, 1) == nil || s.publish(name, "node1") == nil {
			t.Errorf("%q is taken", name)
		}
		if _, err := connect(dial(t, address), name, "node1"); err == nil {
			t.Errorf("%q is served", name)
		}
	}
	if _, err := connect(dial(t, address), testVolume, ""); err == nil {
		t.Error("a node without a name has a volume that is attached to none")
	}
}

// A volume that can't be read for a moment must not be formatted.
func TestOnlyAnEmptyVolumeIsNew(t *testing.T) {
	const start = 64 << 10
	for name, tc := range map[string]struct {
		size  int
		at    int // -1: all zeros.
		isNew bool
		fault bool
	}{
		"zeros":                        {size: 2 * start, at: -1, isNew: true},
		"the superblock of ext4":       {size: 2 * start, at: 1024 + 0x38},
		"the last byte that is read":   {size: 2 * start, at: start - 1},
		"less than can be read":        {size: start - 1, at: -1, fault: true},
		"a device that has no content": {fault: true, at: -1},
	} {
		t.Run(name, func(t *testing.T) {
			content := make([]byte, tc.size)
			if tc.at >= 0 {
				content[tc.at] = 1
			}
			path := filepath.Join(t.TempDir(), "device")
			must(t, os.WriteFile(path, content, 0o600))
			isNew, err := isEmpty(path)
			if isNew != tc.isNew || (err != nil) != tc.fault {
				t.Errorf("%v, %v", isNew, err)
			}
		})
	}
	if _, err := isEmpty(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no device is no error")
	}
}
