package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

const (
	// probePeriod and probeTimeout are for the server's own look at itself.
	probePeriod  = 2 * time.Second
	probeTimeout = 3 * time.Second
	// unservedFor is how long it must have failed before clients are sent elsewhere. Being sent elsewhere has a price: a client
	// with several connections has them at two servers then, which share no sessions.
	unservedFor = 10 * time.Second
)

// selfProbe asks the server for a NULL as any newcomer would, over a connection of its own. Being a newcomer from an
// address with nothing else is what gets it a place and a turn: there is no other way in that could be kept for it.
type selfProbe struct {
	// served is when it was last answered, in Unix nanoseconds.
	served atomic.Int64
}

// run probes until the context ends.
func (p *selfProbe) run(ctx context.Context, s *server, listening net.Addr) {
	address := reachable(listening)
	p.served.Store(s.Clock.Now().UnixNano())
	ticker := s.Clock.NewTicker(probePeriod)
	defer ticker.Stop()
	for {
		if err := probeOnce(ctx, address); err == nil {
			p.served.Store(s.Clock.Now().UnixNano())
		} else if ctx.Err() == nil {
			s.Log.Warn("this server does not answer itself", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func probeOnce(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return nfs.Null(ctx, address)
}

// check tells why clients should go elsewhere.
func (p *selfProbe) check(now time.Time) error {
	served := p.served.Load()
	if served == 0 {
		return errors.New("not serving yet")
	}
	if silent := now.Sub(time.Unix(0, served)); silent > unservedFor+probePeriod {
		return fmt.Errorf("the server has not answered itself for %s", silent.Round(time.Second))
	}
	return nil
}

// reachable is where the process reaches what listens there: on loopback, if that is everywhere.
func reachable(listening net.Addr) string {
	address, err := netip.ParseAddrPort(listening.String())
	if err != nil || !address.Addr().IsUnspecified() {
		return listening.String()
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return netip.AddrPortFrom(loopback, address.Port()).String()
}
