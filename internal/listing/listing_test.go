package listing

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// answered is what Ask gets of a server that takes one connection.
func answered(t *testing.T, request Request, serve func(net.Conn)) ([]Directory, error) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); defer func() { _ = far.Close() }(); serve(far) }()
	t.Cleanup(func() { _ = near.Close(); <-done })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return Ask(ctx, near, request)
}

// serving is an instance manager's port.
func serving(list func(Request) ([]Directory, error)) func(net.Conn) {
	return func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		if asked, err := Asked(reader); !asked || err != nil {
			return
		}
		_ = Answer(reader, conn, list)
	}
}

func TestAQuestionIsAnswered(t *testing.T) {
	want := []Directory{{"train", 1, 2, 0o755}, {"train/Müller \"x\"\n", 0, 1 << 31, 0o2770}}
	got, err := answered(t, Request{"s", 2}, serving(func(request Request) ([]Directory, error) {
		if request != (Request{"s", 2}) {
			t.Errorf("asked for %+v", request)
		}
		return want, nil
	}))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatTheStorageSaysIsTold(t *testing.T) {
	_, err := answered(t, Request{"s", 1}, serving(func(Request) ([]Directory, error) { return nil, errors.New("Ceph is away") }))
	if err == nil || errors.Is(err, ErrNotOffered) || !strings.Contains(err.Error(), "Ceph is away") {
		t.Errorf("%v", err)
	}
}

func TestWhoListsNothingIsAskedByNFS(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"storage that is not shared":   serving(func(Request) ([]Directory, error) { return nil, ErrNotOffered }),
		"one that ends the connection": func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4)) },
		"one that waits for a record":  func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"one that answers in RPC": func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = conn.Write([]byte{0x80, 0, 0, 4, 1, 2, 3, 4})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := answered(t, Request{"s", 1}, serve); !errors.Is(err, ErrNotOffered) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestABadQuestionIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", `{"share":"s"}`, `{"share":"s","depth":-1}`, `{"share":"s","depth":1,"user":"x"}`, "nonsense", strings.Repeat("x", 2*maxRequest)} {
		refused(t, recordOf(hello+text))
	}
	for _, record := range []string{"", "\x80", "\x80\x00\x00\x04howd", recordOf(hello + `{"share":"s","depth":1}`)[:40]} {
		refused(t, record)
	}
}

func recordOf(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(text)))) + text
}

func refused(t *testing.T, record string) {
	t.Helper()
	var told strings.Builder
	err := Answer(strings.NewReader(record), &told, func(Request) ([]Directory, error) {
		t.Errorf("%.40q was carried out", record)
		return nil, nil
	})
	if err != nil || !strings.Contains(told.String(), `"error"`) {
		t.Errorf("%.40q: %s, %v", record, told.String(), err)
	}
}

// A call is told from a question by the first byte that differs: nothing more is waited for.
func TestACallIsNoQuestion(t *testing.T) {
	for _, begins := range []string{"\x00", "\x80\x00\x00\x28\x00", "\x80\x00\x00\x28howdy"} {
		near, far := net.Pipe()
		go func() { _, _ = near.Write([]byte(begins)) }()
		_ = far.SetReadDeadline(time.Now().Add(2 * time.Second))
		reader := bufio.NewReader(far)
		if asked, err := Asked(reader); asked || err != nil {
			t.Errorf("%q: %v, %v", begins, asked, err)
		}
		rest := make([]byte, len(begins))
		if _, err := io.ReadFull(reader, rest); err != nil || string(rest) != begins {
			t.Errorf("%q: %q is left, %v", begins, rest, err)
		}
		_ = near.Close()
	}
}

func FuzzAsked(f *testing.F) {
	f.Add(recordOf(hello))
	f.Add(recordOf("howdah listing 2\n"))
	f.Add(recordOf(strings.Repeat("\x00", 40)))
	f.Fuzz(func(t *testing.T, text string) {
		reader := bufio.NewReader(strings.NewReader(text))
		asked, err := Asked(reader)
		if question := len(text) > headerBytes && text[0] == 0x80 && strings.HasPrefix(text[headerBytes:], hello); asked != question {
			t.Fatalf("%q is asked: %v (%v)", text, asked, err)
		}
		if rest, _ := io.ReadAll(reader); string(rest) != text {
			t.Fatalf("of %q %q is left", text, rest)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(recordOf(hello + `{"share":"s","depth":1}`))
	f.Add(recordOf(hello + `{"share":"","depth":1e9}`))
	f.Fuzz(func(t *testing.T, text string) {
		var told strings.Builder
		err := Answer(strings.NewReader(text), &told, func(request Request) ([]Directory, error) {
			if request.Share == "" || request.Depth < 1 {
				t.Fatalf("%+v was carried out", request)
			}
			return nil, nil
		})
		if err != nil || strings.Count(told.String(), "\n") != 1 {
			t.Fatalf("%q, %v", told.String(), err)
		}
	})
}
