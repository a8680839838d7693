package namespace

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/utils/clock"

	"github.com/howdah/howdah/internal/memory"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// Options are those of Run.
type Options struct {
	// FileServer is the one whose namespace is served, KubeNamespace where it is.
	FileServer, KubeNamespace string
	// Gateways are the addresses from which the pod's own node comes to it.
	Gateways []netip.Addr
	// Replica names this namespace server among those of the FileServer: the pod's name.
	Replica string
	// Identity is the server scope, and with the replica's name the server owner. Empty: made from the FileServer's UID, which the
	// DataServers have; then nothing is served before the first of them exists.
	Identity string
	// Certificate and PreviousCertificate are files with the certificates by which data servers know this server
	// (internal/mtls). The first is required; the second is there while keys are being replaced.
	Certificate, PreviousCertificate string
	// Listen and Manager are the addresses for NFS and for probes and metrics.
	Listen, Manager string
	// ListenOutside is the address for NFS clients outside the cluster: their referrals have the addresses that data servers
	// have there. Empty: there are no such clients.
	ListenOutside string
	// WaitingRoom is the address at which clients of data servers without a pod wait. Empty: there is none.
	WaitingRoom string

	// Lease of clients. There is no state to lose, but Linux gives up a silent connection by it (DefaultLease).
	Lease time.Duration
	// MaxWait is how long clients are put off while an owner does not serve. 0: for as long as they wait.
	MaxWait time.Duration
	// Hold is how long a client's question for a directory that no data server serves yet is held before it is put off. 0: not at all.
	Hold time.Duration
	// Linger is how long clients are still served after the order to stop, so that new
	// connections go elsewhere first. A pod that is deleted with force has 2 s in all, and what is not closed
	// in order by then is cut off by SIGKILL. Some reconnects were refused after that, and a refusal costs the client's kernel 3 s.
	Linger time.Duration
	// Changes is the greatest number of directories that are changed at a time.
	Changes int
	// ChangeTimeout bounds the change of one directory.
	ChangeTimeout time.Duration
	// Memory is what the process may use, in bytes; 0 means what the pod may. Limits that are not given follow it.
	Memory int64
	// RPC and Sessions limit what clients may make the server hold.
	RPC      rpc.Limits
	Sessions session.Limits

	Clock clock.WithTicker
	Log   *slog.Logger
}

// Defaults of Options.
const (
	// DefaultLease is also how long Linux waits until it gives up a connection on which nothing is acknowledged: nfs4_set_lease_period sets
	// TCP_USER_TIMEOUT by it, and no mount option does. When a node is lost with its namespace server, a client with several connections
	// gives up one after the other: that of the request, that of the renewal, and its main one. In all that is up to 8/3 of a lease
	// and the pause before a new connection: with 60 s it was 160 s, with 10 s still up to 33 s (test/kernels). Less than 7 s gains
	// little, because Linux lets 5 s pass between two looks at the lease.
	DefaultLease  = 7 * time.Second
	DefaultLinger = 1 * time.Second
	// DefaultHold is well below what Linux gives an answer (60 s), and as long as the most that a client waits too long.
	DefaultHold    = 2 * time.Second
	DefaultChanges = 64
	// DefaultChangesPerSecond is for one client address: each change is an object in the API and a call to a data
	// server. One unprivileged user made 230 a second, 1,024 at a time, before there was a limit. Beyond it changes are made
	// one after the other: who waits for each takes little from others.
	DefaultChangesPerSecond = 50
	DefaultChangeTimeout    = 12 * time.Second
)

// renewalDelay is how much later than a lease Linux may renew it: it looks at its age every 5 s at most (nfs4_schedule_state_renewal).
// Until then a client does not count as silent.
const renewalDelay = 5 * time.Second

// messageBytes is the size of the largest request and response. Nothing so large is ever needed here, but a Linux
// client gives the rsize and wsize that this session allows to the mounts of the data
// servers below (nfs_server_copy_userdata): with less than 1 MiB and the overhead they would be slow.
const messageBytes = 1<<20 + 16<<10

// complete fills in what is not given.
func (o *Options) complete() error {
	switch {
	case o.FileServer == "":
		return errors.New("no FileServer is given: use --file-server")
	case o.KubeNamespace == "":
		return errors.New("no Kubernetes namespace is given: set POD_NAMESPACE or use --namespace")
	case o.Replica == "":
		return errors.New("this server has no name: set POD_NAME or use --replica")
	case o.Certificate == "":
		return errors.New("this server has no certificate for data servers to know it by: use --certificate")
	}
	setDefault(&o.Lease, DefaultLease)
	setDefault(&o.Changes, DefaultChanges)
	setDefault(&o.ChangeTimeout, DefaultChangeTimeout)
	setDefault(&o.Memory, memory.Limit())
	limitsFor(o.Memory, &o.RPC, &o.Sessions)
	setDefault(&o.RPC.MessageBytes, messageBytes)
	setDefault(&o.Sessions.RequestBytes, messageBytes)
	setDefault(&o.Sessions.ResponseBytes, messageBytes)
	setDefault(&o.Sessions.ChangesPerSecond, DefaultChangesPerSecond)
	setDefault(&o.Sessions.ChangeBurst, 5*o.Sessions.ChangesPerSecond)
	setDefault(&o.Sessions.ChangesPerAddress, max(1, o.Changes/4))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
