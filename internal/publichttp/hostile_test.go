package publichttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The kubelet's address, one of a well-behaved peer such as the operator, and those of attackers.
const (
	kubelet  = "127.0.0.9"
	operator = "127.0.0.10"
)

// probeLimit is the maximum time of a probe under attack.
const probeLimit = time.Second

// pageBytes is larger than what the kernel takes of an answer before it is read.
const pageBytes = 4 << 20

// serveHostile starts a server with a probe at /readyz and 4 MiB of metrics, and tells how often these were made.
func serveHostile(t *testing.T) (address string, made *atomic.Int32) {
	t.Helper()
	made = &atomic.Int32{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /metrics", Page(time.Second, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made.Add(1)
		_, _ = w.Write(bytes.Repeat([]byte("a_metric 1\n"), pageBytes/11))
	})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{Handler: mux, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- server.serve(ctx, newGate(listener, func(a netip.Addr) bool { return a == netip.MustParseAddr(kubelet) }))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), made
}

func dial(from, to string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 3 * time.Second}
	return dialer.Dial("tcp", to)
}

// ask makes one request on a connection of its own.
func ask(from, to, path string) (status string, body int64, err error) {
	conn, err := dial(from, to)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close() //nolint:errcheck // read only
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		return "", 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	body, err = io.Copy(io.Discard, response.Body)
	return response.Status, body, err
}

// attacks are what one attacker does with the server; each returns with the context.
var attacks = map[string]func(ctx context.Context, number int, to string){
	"silent connections": func(ctx context.Context, number int, to string) {
		hold(ctx, number, to, func(net.Conn) {})
	},
	"one byte": func(ctx context.Context, number int, to string) {
		hold(ctx, number, to, func(conn net.Conn) { _, _ = conn.Write([]byte("G")) })
	},
	"slow readers of the metrics": func(ctx context.Context, number int, to string) {
		hold(ctx, number, to, func(conn net.Conn) { _, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") })
	},
	"heads without an end": func(ctx context.Context, number int, to string) {
		hold(ctx, number, to, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n")
			for i := 0; i < 1000 && ctx.Err() == nil; i++ {
				if _, err := io.WriteString(conn, "X-A: "+strings.Repeat("a", 1000)+"\r\n"); err != nil {
					return
				}
			}
		})
	},
	"bodies without an end": func(ctx context.Context, number int, to string) {
		hold(ctx, number, to, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n"+strings.Repeat("a", 10000))
		})
	},
	"requests all the time": func(ctx context.Context, number int, to string) {
		for ctx.Err() == nil {
			_, _, _ = ask(attacker(number), to, "/metrics")
			time.Sleep(attackPace)
		}
	},
}

const (
	// attackers is the number of addresses that attack at the same time.
	attackers = 20
	// attackPace is how long each of them waits between two connections: a thousand a second in all, which the machine of the test bears beside
	// what it does for the attackers. attackTime is for 5,000 silent connections, shortTime for other attacks.
	attackPace = 20 * time.Millisecond
	attackTime = 5 * time.Second
	shortTime  = 2 * time.Second
)

func attacker(number int) string { return fmt.Sprintf("127.0.1.%d", 1+number%attackers) }

// hold makes connections, does something with each, and keeps all of them until the end.
func hold(ctx context.Context, number int, to string, do func(net.Conn)) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for ; ctx.Err() == nil; time.Sleep(attackPace) {
		conn, err := dial(attacker(number), to)
		if err != nil {
			continue
		}
		open = append(open, conn)
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		do(conn)
	}
}

// plain is a server without limits and without attackers. It shows how long a request takes on this machine at its current load.
func plain(t *testing.T) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// meanwhile asks a plain server one time after the other, at least once, until slowest is called. That waits for the last answer: a pause in which this
// process gets no processor shows in it, too, whenever it comes.
func meanwhile(from, control string) (slowest func() time.Duration) {
	ends, answer := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			began := time.Now()
			_, _, _ = ask(from, control, "/readyz")
			longest = max(longest, time.Since(began))
			select {
			case <-ends:
				answer <- longest
				return
			default:
			}
		}
	}()
	return func() time.Duration {
		close(ends)
		return <-answer
	}
}

func TestProbesAreAnsweredUnderAttack(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			to, made := serveHostile(t)
			control := plain(t)
			before := heap()
			start := time.Now()
			during := shortTime
			if name == "silent connections" {
				during = attackTime
			}
			ctx, stop := context.WithTimeout(t.Context(), during)
			defer stop()
			var group sync.WaitGroup
			for number := range attackers {
				group.Go(func() { attack(ctx, number, to) })
			}
			longest, asked, most := map[string]time.Duration{}, 0, uint64(0)
			for ctx.Err() == nil {
				for _, from := range []string{kubelet, operator} {
					slowest := meanwhile(from, control)
					began := time.Now()
					status, _, err := ask(from, to, "/readyz")
					took := time.Since(began)
					bearable := probeLimit + 5*slowest()
					if longest[from] = max(longest[from], took); took > bearable || status != "200 OK" {
						t.Errorf("%s: %q, %v after %s", from, status, err, took)
					}
				}
				asked++
				most = max(most, heap())
				time.Sleep(20 * time.Millisecond)
			}
			group.Wait()
			t.Logf("FIGURE %d probes, the longest %s of the kubelet and %s of another pod; heap %d MiB before, %d MiB at most; metrics made %d times",
				asked, longest[kubelet].Round(time.Millisecond), longest[operator].Round(time.Millisecond), before>>20, most>>20, made.Load())
			if most > before+64<<20 {
				t.Errorf("the heap grew from %d to %d MiB", before>>20, most>>20)
			}
			if made.Load() > int32(time.Since(start)/time.Second)+2 {
				t.Errorf("the metrics were made %d times in %s", made.Load(), time.Since(start))
			}
			if status, body, err := ask(operator, to, "/metrics"); err != nil || status != "200 OK" || body < pageBytes-11 {
				t.Errorf("the metrics afterwards: %s, %d bytes, %v", status, body, err)
			}
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}

func TestAHeadThatIsTooLongIsRefused(t *testing.T) {
	to, _ := serveHostile(t)
	conn, err := dial(operator, to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // read only
	_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 32<<10)+"\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // read only
	}
	if err == nil && response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", response.Status)
	}
}

func TestSilenceEndsAConnection(t *testing.T) {
	to, _ := serveHostile(t)
	conn, err := dial(operator, to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // read only
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout + 5*time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("after more than %s: %v", requestTimeout, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
