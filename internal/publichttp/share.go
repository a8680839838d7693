package publichttp

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/subnet"
)

// Shared runs a check at most once at a time, and shares its result with all callers until it has a given age: probes come once
// a second, and any client that reaches the port may ask all the time. The timeout limits a check; a caller waits no longer
// than its own context.
func Shared(age, timeout time.Duration, check func(context.Context) error) func(context.Context) error {
	var mutex sync.Mutex
	var last *answer
	return func(ctx context.Context) error {
		mutex.Lock()
		if last == nil || last.isOlderThan(age) {
			last = &answer{done: make(chan struct{})}
			go last.find(context.WithoutCancel(ctx), timeout, check)
		}
		current := last
		mutex.Unlock()
		select {
		case <-current.done:
			return current.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type answer struct {
	done chan struct{}
	// err and at are valid once done is closed.
	err error
	at  time.Time
}

func (a *answer) find(ctx context.Context, timeout time.Duration, check func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a.err = check(ctx)
	a.at = time.Now()
	close(a.done)
}

func (a *answer) isOlderThan(age time.Duration) bool {
	select {
	case <-a.done:
		return time.Since(a.at) >= age
	default:
		return false
	}
}

// AtOnce limits the requests that are in a handler at a time, in total and to one for each address. The others are asked to
// retry.
func AtOnce(most int, handler http.Handler) http.Handler {
	var mutex sync.Mutex
	inside := map[netip.Addr]bool{}
	enter := func(from netip.Addr) bool {
		mutex.Lock()
		defer mutex.Unlock()
		if inside[from] || len(inside) >= most {
			return false
		}
		inside[from] = true
		return true
	}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		from, _ := netip.ParseAddrPort(request.RemoteAddr)
		network := subnet.Of(from.Addr().Unmap().WithZone(""))
		if !enter(network) {
			writer.Header().Set("Retry-After", "1")
			http.Error(writer, "others ask for the same, or you do: ask again in a second", http.StatusServiceUnavailable)
			return
		}
		defer func() {
			mutex.Lock()
			defer mutex.Unlock()
			delete(inside, network)
		}()
		handler.ServeHTTP(writer, request)
	})
}
