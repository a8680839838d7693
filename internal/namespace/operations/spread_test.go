package operations

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// spread is a hot directory of k data servers and clients that ask for it, each time in another order.
type spread struct {
	t       *testing.T
	r       *routes
	servers []string
}

func newSpread(t *testing.T, k int) *spread {
	now := time.Unix(0, 0)
	s := &spread{t: t, r: &routes{now: func() time.Time { return now }}}
	for i := range k {
		s.servers = append(s.servers, fmt.Sprint("fs-", i))
	}
	return s
}

// ask has clients ask, and gives where each is, and how many are on each data server.
func (s *spread) ask(clients int, without ...string) (at []string, count map[string]int) {
	s.t.Helper()
	at, count = make([]string, clients), map[string]int{}
	for i := range clients {
		// 7919 is prime: all clients ask, and not in the order of their addresses.
		i = (i * 7919) % clients
		address := callerAt(i).Addr
		serving := slices.DeleteFunc(slices.Clone(s.servers), func(name string) bool { return slices.Contains(without, name) })
		at[i] = s.r.of(tree.ID{1}, address, hotdirectories.Order(serving, "d", address, nil), nil)
		count[at[i]]++
	}
	if slices.Contains(at, "") {
		s.t.Fatal("not all clients have asked")
	}
	return at, count
}

// even fails unless the counts of those that serve differ by one at most.
func (s *spread) even(when string, count map[string]int, without ...string) {
	s.t.Helper()
	fewest, most := 1<<30, 0
	for _, server := range s.servers {
		if slices.Contains(without, server) {
			if count[server] > 0 {
				s.t.Errorf("%s: %s is away and has %d clients", when, server, count[server])
			}
			continue
		}
		fewest, most = min(fewest, count[server]), max(most, count[server])
	}
	if most-fewest > 1 {
		s.t.Errorf("%s: %v, which differ by more than one", when, slices.Sorted(maps.Values(count)))
	}
}

// kept fails if a client moved whose data server was not away.
func (s *spread) kept(when string, before, after []string, without ...string) {
	s.t.Helper()
	for i := range before {
		if !slices.Contains(without, before[i]) && after[i] != before[i] {
			s.t.Errorf("%s: client %d moved from %s to %s", when, i, before[i], after[i])
		}
	}
}

func TestManyClientsAreEvenlyOnThreeAndFiveDataServers(t *testing.T) {
	for _, k := range []int{3, 5} {
		for _, clients := range []int{1, k - 1, k, k + 1, 8 * k, 8*k + 2, 1000} {
			t.Run(fmt.Sprint(k, " data servers, ", clients, " clients"), func(t *testing.T) {
				s := newSpread(t, k)
				first, count := s.ask(clients)
				s.even("at first", count)
				again, _ := s.ask(clients)
				s.kept("asked again", first, again)
				for _, away := range s.servers {
					s := newSpread(t, k)
					before, _ := s.ask(clients)
					without, count := s.ask(clients, away)
					s.even(away+" goes", count, away)
					s.kept(away+" goes", before, without, away)
					back, _ := s.ask(clients)
					s.kept(away+" comes back", without, back)
					// It has none when it comes back. New clients are sent to it until it has as many as the others.
					_, count = s.ask(2*clients + k)
					s.even("as many new clients after "+away+" came back", count)
				}
			})
		}
	}
}

// Two go one after the other, and come back in the other order. Who is on a third one never moves.
func TestClientsOfDataServersThatStayDoNotMove(t *testing.T) {
	const clients = 200
	s := newSpread(t, 5)
	var before []string
	for step, without := range [][]string{nil, {"fs-1"}, {"fs-1", "fs-4"}, {"fs-1"}, nil} {
		after, count := s.ask(clients, without...)
		if before != nil {
			s.kept(fmt.Sprint("step ", step), before, after, without...)
		}
		if step < 3 {
			s.even(fmt.Sprint("step ", step), count, without...)
		}
		before = after
	}
}
