package engine

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/internal/benchmark"
)

// A client without the token keeps its connection, and the memory for it, no longer than it takes to show the token.
func TestAHeartbeatIsNoGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		refused := make(chan error, 1)
		go func() {
			_, err := (&coordinator{plan: benchmark.Plan{Clients: 1}, token: "token"}).greet(far)
			_ = far.Close()
			refused <- err
		}()
		l := newLink(near)
		if _, err := l.receive(maxHello); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for time.Since(began) < 5*silence {
			if err := l.send(message{Kind: kindAlive}); err != nil {
				break
			}
			time.Sleep(heartbeat)
		}
		if took := time.Since(began); took > silence {
			t.Errorf("the connection stayed for %s", took)
		}
		if err := <-refused; err == nil {
			t.Error("it was greeted")
		}
	})
}
