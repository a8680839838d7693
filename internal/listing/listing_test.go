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
	for _, line := range []string{"", "{}\n", `{"share":"s"}` + "\n", `{"share":"s","depth":-1}` + "\n", `{"share":"s","depth":1,"user":"x"}` + "\n", "nonsense\n", strings.Repeat("x", 2*maxRequest) + "\n"} {
		var told strings.Builder
		err := Answer(strings.NewReader(line), &told, func(Request) ([]Directory, error) {
			t.Errorf("%.40q was carried out", line)
			return nil, nil
		})
		if err != nil || !strings.Contains(told.String(), `"error"`) {
			t.Errorf("%.40q: %s, %v", line, told.String(), err)
		}
	}
}

// A record's first byte tells that it is none of this: nothing more is waited for.
func TestARecordIsNoQuestion(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	go func() { _, _ = near.Write([]byte{0x80}) }()
	_ = far.SetReadDeadline(time.Now().Add(2 * time.Second))
	reader := bufio.NewReader(far)
	asked, err := Asked(reader)
	if asked || err != nil {
		t.Fatalf("%v, %v", asked, err)
	}
	if b, err := reader.ReadByte(); b != 0x80 || err != nil {
		t.Errorf("the record begins with %x, %v", b, err)
	}
}

func FuzzAsked(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte("howdah listing 2\n"))
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31|40))
	f.Fuzz(func(t *testing.T, text []byte) {
		reader := bufio.NewReader(strings.NewReader(string(text)))
		asked, err := Asked(reader)
		rest, _ := io.ReadAll(reader)
		if whole := strings.HasPrefix(string(text), hello); asked != whole {
			t.Fatalf("%q is asked: %v (%v)", text, asked, err)
		}
		if asked {
			rest = append([]byte(hello), rest...)
		}
		if string(rest) != string(text) {
			t.Fatalf("of %q %q is left", text, rest)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"share":"s","depth":1}` + "\n")
	f.Add(`{"share":"","depth":1e9}` + "\n")
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
