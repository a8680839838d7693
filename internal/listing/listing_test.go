package listing

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
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

// serving is a supervisor's port.
func serving(list func(Request) ([]Directory, error)) func(net.Conn) {
	return func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		if asked, err := IsRequest(reader); !asked || err != nil {
			return
		}
		_ = Answer(reader, conn, list)
	}
}

func TestAQuestionIsAnswered(t *testing.T) {
	want := []Directory{{"train", 1, 2, 0o755}, {"train/Müller \"x\"\n", 0, 1 << 31, 0o2770}, {"train/\xff", 0, 0, 0o755}}
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

func TestAnswersHaveTheStoragesErrors(t *testing.T) {
	_, err := answered(t, Request{"s", 1}, serving(func(Request) ([]Directory, error) { return nil, errors.New("Ceph is away") }))
	if err == nil || errors.Is(err, ErrNotOffered) || !strings.Contains(err.Error(), "Ceph is away") {
		t.Errorf("%v", err)
	}
}

func TestAServerThatDoesNotListIsReadByNFS(t *testing.T) {
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

// endless is an answer with directories that never end.
type endless struct {
	begun bool
	rest  []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if !e.begun {
		e.begun, e.rest = true, []byte(`{"directories":[{"path":"first"}`)
	}
	if len(e.rest) == 0 {
		e.rest = []byte(`,{"path":"train/Müller","uid":1,"gid":2,"mode":493}`)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestAnAnswerIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64
		most  int
		want  int
	}{
		"by directories":     {maxAnswer, maxDirectories, maxDirectories},
		"by bytes":           {5200, maxDirectories, 98},
		"by bytes of a few":  {100, maxDirectories, 2},
		"by few directories": {maxAnswer, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := read(&endless{}, test.bytes, test.most)
			if !errors.Is(err, ErrTooMany) || len(found) < test.want-2 || len(found) > test.want+2 {
				t.Errorf("%d directories, %v", len(found), err)
			}
		})
	}
	if _, err := read(strings.NewReader(`{"directories":[`+strings.Repeat("[", 1<<20)), maxAnswer, 3); !errors.Is(err, ErrNotOffered) {
		t.Errorf("nonsense: %.100v", err)
	}
	// A data server sends one more than an answer has, so that it differs from one that just fits.
	many := make([]Directory, maxDirectories+1000)
	var reply strings.Builder
	if err := Answer(strings.NewReader(recordOf(hello+`{"share":"s","depth":1}`)), &reply, func(Request) ([]Directory, error) { return many, nil }); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(reply.String(), "path"); n != maxDirectories+1 {
		t.Errorf("%d directories are sent", n)
	}
	if found, err := read(strings.NewReader(reply.String()), maxAnswer, maxDirectories); !errors.Is(err, ErrTooMany) || len(found) != maxDirectories {
		t.Errorf("%d directories are read, %v", len(found), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"directories":[{"path":"a","uid":1,"gid":2,"mode":493}],"more":{"x":[1]}}`)
	f.Add(`{"directories":null,"error":"Ceph is away"}`)
	f.Add(`{"notOffered":true}`)
	f.Add(`{"directories":[`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := read(strings.NewReader(text), 1000, 3)
		if len(found) > 3 || err != nil && found != nil && !errors.Is(err, ErrTooMany) {
			t.Fatalf("%d directories, %v", len(found), err)
		}
		var whole answer
		if old := json.Unmarshal([]byte(text), &whole); old == nil && err == nil && len(whole.Directories) != len(found) && strings.Count(text, "directories") == 1 {
			t.Fatalf("%d directories of %q", len(found), text)
		}
	})
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
	var reply strings.Builder
	err := Answer(strings.NewReader(record), &reply, func(Request) ([]Directory, error) {
		t.Errorf("%.40q was carried out", record)
		return nil, nil
	})
	if err != nil || !strings.Contains(reply.String(), `"error"`) {
		t.Errorf("%.40q: %s, %v", record, reply.String(), err)
	}
}

// The first byte that differs shows that it is a call: nothing more is read.
func TestACallIsNoQuestion(t *testing.T) {
	for _, begins := range []string{"\x00", "\x80\x00\x00\x28\x00", "\x80\x00\x00\x28howdy"} {
		near, far := net.Pipe()
		go func() { _, _ = near.Write([]byte(begins)) }()
		_ = far.SetReadDeadline(time.Now().Add(2 * time.Second))
		reader := bufio.NewReader(far)
		if asked, err := IsRequest(reader); asked || err != nil {
			t.Errorf("%q: %v, %v", begins, asked, err)
		}
		rest := make([]byte, len(begins))
		if _, err := io.ReadFull(reader, rest); err != nil || string(rest) != begins {
			t.Errorf("%q: %q is left, %v", begins, rest, err)
		}
		_ = near.Close()
	}
}

func FuzzIsRequest(f *testing.F) {
	f.Add(recordOf(hello))
	f.Add(recordOf("howdah listing 2\n"))
	f.Add(recordOf(strings.Repeat("\x00", 40)))
	f.Fuzz(func(t *testing.T, text string) {
		reader := bufio.NewReader(strings.NewReader(text))
		asked, err := IsRequest(reader)
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
		var reply strings.Builder
		err := Answer(strings.NewReader(text), &reply, func(request Request) ([]Directory, error) {
			if request.Share == "" || request.Depth < 1 {
				t.Fatalf("%+v was carried out", request)
			}
			return nil, nil
		})
		if err != nil || strings.Count(reply.String(), "\n") != 1 {
			t.Fatalf("%q, %v", reply.String(), err)
		}
	})
}
