package session

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// Config is what a Server needs. Handler, Owner and Scope are required.
type Config struct {
	Handler Handler
	// Owner and Scope are the server owner's major ID and the server scope (RFC 8881
	// section 2.10.4), each of 1 to 1024 bytes. Clients take servers of the same owner for one, which have the same
	// client IDs: no two servers may share an owner.
	Owner, Scope string
	// Lease is how long a client may be silent; default 60 s. It must be what the Handler
	// gives as the attribute lease_time. A client that is silent for longer is kept while its place is not needed.
	Lease  time.Duration
	Limits Limits
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Random gives the IDs; default crypto/rand. It is read under a lock.
	Random io.Reader
	Logger *slog.Logger
}

// Limits is what clients may make the server hold. The zero value of a field means its default. At a limit a newcomer takes
// the place of a client of the address that holds most, or is put off (NFS4ERR_DELAY).
type Limits struct {
	// Clients with a confirmed or unconfirmed client ID, in total and of one address; default 2048 and a quarter of Clients.
	Clients, ClientsPerAddress int
	// Sessions of all clients and of those of one address; default 2048 and a quarter of Sessions.
	Sessions, SessionsPerAddress int
	// SessionsPerClient; default 16.
	SessionsPerClient int
	// Slots of a session; default and most 64.
	Slots int
	// Operations of a compound; default 64.
	Operations int
	// RequestBytes and ResponseBytes with RPC headers; default 256 KiB each. RequestBytes must
	// not be above rpc.Limits.MessageBytes.
	RequestBytes, ResponseBytes int
	// CachedResponseBytes is kept for each slot; default 2 KiB, enough for every
	// operation that changes something.
	CachedResponseBytes int
	// CachedBytes is kept for all slots; default 16 MiB.
	CachedBytes int
	// ListingBytes is the most that one READDIR gives, whatever the client asks for; default 128 KiB.
	ListingBytes int
	// ChangesPerSecond is how often one address may make, remove, rename or change directories, ChangeBurst how
	// many times more at once, and ChangesPerAddress how many at a time; default 50, 250 and 16. Beyond its rate it
	// makes one after the other, up to five times as many.
	ChangesPerSecond, ChangeBurst, ChangesPerAddress int
}

func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value  *int
		preset int
	}{
		{&l.Clients, 2048},
		{&l.Sessions, 2048},
		{&l.SessionsPerClient, 16},
		{&l.Slots, maxSlots},
		{&l.Operations, 64},
		{&l.RequestBytes, 256 << 10},
		{&l.ResponseBytes, 256 << 10},
		{&l.CachedResponseBytes, 2 << 10},
		{&l.CachedBytes, 16 << 20},
		{&l.ListingBytes, 128 << 10},
		{&l.ChangeBurst, 250},
		{&l.ChangesPerAddress, 16},
	} {
		if *field.value <= 0 {
			*field.value = field.preset
		}
	}
	l.ClientsPerAddress = cmp.Or(l.ClientsPerAddress, quarter(l.Clients))
	l.SessionsPerAddress = cmp.Or(l.SessionsPerAddress, quarter(l.Sessions))
	l.Slots = min(l.Slots, maxSlots)
	return l
}

const (
	// maxSlots keeps a session's slot table small; the Linux client asks for 64.
	maxSlots = 64
	// opaqueLimit is NFS4_OPAQUE_LIMIT of RFC 8881 section 3.1.
	opaqueLimit = 1024
	// defaultLease is what most NFSv4 servers use or stay below.
	defaultLease = 60 * time.Second
)

// Server is the session layer. It implements rpc.Handler.
type Server struct {
	handler      Handler
	owner, scope []byte
	lease        time.Duration
	limits       Limits
	now          func() time.Time
	random       io.Reader
	log          *slog.Logger
	hash         maphash.Seed
	gate         *gate

	mu         sync.Mutex
	clients    map[uint64]*clientRecord
	confirmed  registry
	tentative  registry
	sessions   map[sessionID]*session
	addresses  map[netip.Addr]*addressState
	cached     int
	lastExpiry time.Time
	warned     time.Time
	// noneLapsed is when no client was found whose lease is over: any, one with sessions, one with replies.
	noneLapsed struct{ clients, sessions, replies time.Time }
	delayed    Delayed
}

// Stats are the numbers of the moment.
type Stats struct {
	Clients, ConfirmedClients, Sessions int
	// SilentClients are those of Clients whose lease is over.
	SilentClients int
	// CachedBytes are kept for retries.
	CachedBytes int
}

// Delayed counts what was put off since the start (NFS4ERR_DELAY) because there was too much of it.
type Delayed struct{ Changes, Clients, Sessions int64 }

// New makes a server with no clients.
func New(config Config) (*Server, error) {
	s := &Server{
		handler: config.Handler, owner: []byte(config.Owner), scope: []byte(config.Scope), lease: config.Lease,
		limits: config.Limits.withDefaults(), now: config.Now, random: config.Random, log: config.Logger,
		hash: maphash.MakeSeed(), gate: newGate(),
		clients: map[uint64]*clientRecord{}, confirmed: registry{}, tentative: registry{},
		sessions: map[sessionID]*session{}, addresses: map[netip.Addr]*addressState{},
	}
	for name, id := range map[string][]byte{"owner": s.owner, "scope": s.scope} {
		if len(id) == 0 || len(id) > opaqueLimit {
			return nil, fmt.Errorf("the server's %s has %d bytes: give it 1 to %d", name, len(id), opaqueLimit)
		}
	}
	if s.handler == nil {
		return nil, errors.New("a session server needs a handler for operations on files")
	}
	if s.lease <= 0 {
		s.lease = defaultLease
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.lastExpiry = s.now()
	return s, nil
}

// Limits are those that the server works with.
func (s *Server) Limits() Limits { return s.limits }

// Stats returns the numbers of the moment.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats, now := Stats{Clients: len(s.clients), Sessions: len(s.sessions), CachedBytes: s.cached}, s.now()
	for _, c := range s.clients {
		if c.isConfirmed {
			stats.ConfirmedClients++
		}
		if c.lapsed(now, s.lease) {
			stats.SilentClients++
		}
	}
	return stats
}

// Delayed returns what was counted since the start.
func (s *Server) Delayed() Delayed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delayed
}

// Expire drops clients that were silent for too long. It is also done as requests come in, so
// calling it only frees memory earlier.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
}

// expire drops the clients that were silent for longer than courtesy has it, and unconfirmed
// ones after one lease (RFC 8881 section 18.35.4).
func (s *Server) expire() {
	now := s.now()
	s.lastExpiry = now
	for _, c := range s.clients {
		if c.expired(now, s.lease) {
			s.log.Debug("A client was silent for too long", "clientid", c.id, "confirmed", c.isConfirmed)
			s.drop(c)
		}
	}
	s.forget()
}

// expireNow is expire for when room is needed, at most once a second.
func (s *Server) expireNow() {
	if s.now().Sub(s.lastExpiry) >= time.Second {
		s.expire()
	}
}

// warn writes one line a second at most: whoever is put off tries again and again.
func (s *Server) warn(text string, what ...any) {
	if now := s.now(); now.Sub(s.warned) >= time.Second {
		s.warned = now
		s.log.Warn(text, what...)
	}
}

// expireSometimes keeps the cost of expiry out of most requests.
func (s *Server) expireSometimes() {
	if s.now().Sub(s.lastExpiry) >= s.lease/2 {
		s.expire()
	}
}
