// Package serverpod has what the pods of servers and the programs in them agree on. The operator makes the pods from it
// (controllers/desired), and the supervisor and the namespace server rely on it. It imports nothing of Howdah.
package serverpod

import (
	"cmp"
	"slices"
	"time"
)

// What the pod of a server must give the program in it.
const (
	// RunDir has ganesha.conf and ganesha's pid file: an emptyDir, written again at each start.
	RunDir = "/run/ganesha"
	// TempDir is an emptyDir for libraries that need a temporary directory.
	TempDir = "/tmp"
	// StateDir is ganesha's compiled-in state directory (NFS_V4_RECOV_ROOT of its
	// build). It must be writable, but nothing in it needs to outlive the pod: the
	// recovery records are on volume 0, by ganesha's option RecoveryRoot.
	StateDir = "/var/lib/nfs/ganesha"
	// GaneshaRoot is the root directory of a ganesha with volumes: a directory in memory, with the volumes, RunDir and StateDir at the paths
	// that they have outside, RunDir a second time as EtcDir, and StateDir as TempDir. Nothing else is in it, so a ganesha that was
	// taken over has no file of the node's disk, from which it could open every other one by its handle. The supervisor goes by no path in it.
	GaneshaRoot = "/ganesha"
	// EtcDir is where libraries look for files that the supervisor writes to RunDir.
	EtcDir = "/etc"
	// GaneshaBinary is ganesha in the server image.
	GaneshaBinary = "/usr/bin/ganesha.nfsd"

	// HandleKey is the file with the data server's key for signing file handles: 16 bytes of a Secret, for root alone.
	// PreviousHandleKey is that of the key before it, while clients may have handles that it signed. They are
	// mounted by subPath ($(POD_NAME) in the Secret), so that a pod sees no other data server's, and new keys need a new pod.
	HandleKey         = "/etc/howdah/handle-key"
	PreviousHandleKey = "/etc/howdah/previous-handle-key"

	// Certificate is the file with the certificate and the key by which data servers and namespace servers know each other
	// (internal/mtls), PreviousCertificate that of the keys before. They are mounted as keys of file handles are.
	Certificate         = "/etc/howdah/certificate.pem"
	PreviousCertificate = "/etc/howdah/previous-certificate.pem"

	// CephSecrets has the keyrings of Ceph users and an entry for each share (internal/dataserver/ceph): an optional Secret. It
	// is not mounted by subPath, so that updates of the Secret arrive. The supervisor writes ceph.conf to CephConfig.
	CephSecrets = "/etc/ceph/secrets" //nolint:gosec // a folder
	CephConfig  = RunDir + "/ceph.conf"

	// IdleCommand is the command of the pods that keep others off lost nodes, and of those that have nodes pull an image.
	IdleCommand = "idle"

	// StewardCredential has the provisioning account of a steward: an optional Secret.
	StewardCredential = "/etc/howdah/provisioner" //nolint:gosec // a folder

	// EnvDataServer, EnvNamespace, EnvNodeName and EnvPodIP are the environment
	// variables that the pod sets through the downward API (metadata.name,
	// metadata.namespace, spec.nodeName, status.podIP). The DataServer has the pod's name.
	EnvDataServer = "POD_NAME"
	EnvNamespace  = "POD_NAMESPACE"
	EnvNodeName   = "NODE_NAME"
	EnvPodIP      = "POD_IP"
	// EnvPodUID has metadata.uid.
	EnvPodUID = "POD_UID"

	// HealthPath is the liveness probe: ganesha answers RPC NULL. It stays good while ganesha is
	// not meant to run yet and while it is being restarted with backoff for at most StartAllowance.
	HealthPath = "/healthz"
	// ReadyPath is the readiness probe: ganesha answers EXCHANGE_ID with its own
	// owner and scope, has loaded a generation of its DataServer, and refused a forged file handle since it started; or did
	// less than ReadyAllowance ago, and is not stopping.
	ReadyPath = "/readyz"
	// ConnectionsPath is where a namespace server reports its number of connections: Connections, in JSON.
	ConnectionsPath = "/connections"
	// ClientsPath is where servers of both kinds report which addresses have connections: Clients, in JSON.
	ClientsPath = "/clients"
	// SizesPath is where a data server reports the sizes of a share's directories, if the storage counts them: Sizes, in JSON.
	SizesPath = "/sizes"
	// SizesShare of the query is the share's key (naming.ShareKey).
	SizesShare = "share"
	// SizesDepth of the query is the depth of its directories, 0 for a share that is a single directory.
	SizesDepth = "depth"
	// ServedPath is where a data server reports how much it has served: Served, in JSON.
	ServedPath = "/served"
	// MetricsPath has the supervisor's metrics; on v1alpha1.MetricsPort it has ganesha's, which the supervisor passes on.
	MetricsPath = "/metrics"

	// ReadyAllowance is how long a data server's pod stays ready while ganesha is restarted in place. Its clients wait in the pod
	// and reach the new ganesha sooner than the network learns of a change of readiness.
	ReadyAllowance = 10 * time.Second
	// LeaveAllowance is how long a data server still serves after SIGTERM while it reports itself not Ready. Within this time
	// the kubelet, the API and kube-proxy direct new connections elsewhere.
	LeaveAllowance = 2500 * time.Millisecond
	// StopAllowance is how long the supervisor waits for ganesha after SIGTERM
	// before it kills it. The pod's terminationGracePeriodSeconds must be longer.
	StopAllowance = 20 * time.Second
	// StartAllowance is how long ganesha may take to answer after its start before the liveness probe fails.
	StartAllowance = 60 * time.Second
)

// Args starts the supervisor in the server image, whose entrypoint is the howdah binary. FlagGaneshaRoot gives ganesha a root of its own.
var Args = []string{"server"}

// FlagGaneshaRoot is the flag of "howdah server" with the root directory of ganesha.
const FlagGaneshaRoot = "ganesha-root"

// FlagFirstPort is the flag of "howdah server" with the first of its ports on its node's network.
const FlagFirstPort = "first-port"

// FlagAddressesIn is the flag of "howdah server" with the networks in which its node needs an address.
const FlagAddressesIn = "addresses-in"

// Capabilities are what the container of a data server with volumes needs after dropping ALL, with
// runAsUser 0, allowPrivilegeEscalation false and a read-only root file system; one whose data is in Ceph needs none
// (measured: without DAC_READ_SEARCH open_by_handle_at fails with EPERM; SETUID and SETGID
// are for acting as the client's user; CHOWN, FOWNER and FSETID for its chown and
// chmod; DAC_OVERRIDE for root without squash; SYS_CHROOT for GaneshaRoot, and ganesha gives it up there).
var Capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "SETGID", "SETUID", "SYS_CHROOT",
}

// WritableDirs are the emptyDirs that the read-only root file system needs, besides the volumes.
// They are in memory: a process that may open files by handle could reach the rest of the node's disk through a file on it.
var WritableDirs = []string{RunDir, TempDir, StateDir}

// WritableSizes has the size limit of each. The new configuration, which names the networks of all shares, is written beside
// the old one.
var WritableSizes = []string{"256Mi", "16Mi", "16Mi"}

// Connections are the TCP connections of a namespace server's NFS clients.
type Connections struct {
	// Used is the number of connections, Limit the maximum.
	Used  int32 `json:"used"`
	Limit int32 `json:"limit"`
}

// Sizes has the sizes of a share's directories.
type Sizes struct {
	// Bytes has the size of all files in a directory, in bytes, by the name of its ShareDirectory. It is not by path, because
	// everybody who reaches the port could read the tenants' paths. The last seconds may be missing.
	Bytes map[string]int64 `json:"bytes"`
}

// Served is how much a data server has served since the last start of ganesha.
type Served struct {
	// Start counts ganesha's starts in this pod. Bytes start at 0 after each.
	Start int `json:"start"`
	// Time is when it was counted.
	Time time.Time `json:"time"`
	// Bytes has the bytes that clients read or wrote, by share key.
	Bytes map[string]uint64 `json:"bytes"`
	// Shares has what the bytes are made of, by share key. Older releases do not report this and what follows.
	Shares map[string]ServedShare `json:"shares,omitempty"`
	// Requests are NFSv4.1 compounds, whatever is in them.
	Requests uint64 `json:"requests,omitempty"`
	// CPUSeconds is the processor time of ganesha's process at CPUTime; 0 if it is not known.
	CPUSeconds float64   `json:"cpuSeconds,omitempty"`
	CPUTime    time.Time `json:"cpuTime,omitzero"`
}

// ServedShare is how much of a share a data server has served. Ganesha counts READ and WRITE for each export, and no other operation.
type ServedShare struct {
	ReadBytes    uint64 `json:"readBytes"`
	WrittenBytes uint64 `json:"writtenBytes"`
	Reads        uint64 `json:"reads"`
	Writes       uint64 `json:"writes"`
}

// Clients are the network addresses that have TCP connections to a server.
type Clients struct {
	// Clients has at most MaxClients addresses, those with the most connections first.
	Clients []Client `json:"clients"`
	// More is how many addresses were left out.
	More int `json:"more,omitempty"`
}

// Client is a network address with its number of connections.
type Client struct {
	Address     string `json:"address"`
	Connections int    `json:"connections"`
}

// MaxClients bounds an answer.
const MaxClients = 4096

// NewClients returns the answer for the number of connections of each address.
func NewClients(connections map[string]int) Clients {
	all := make([]Client, 0, len(connections))
	for address, n := range connections {
		all = append(all, Client{address, n})
	}
	slices.SortFunc(all, func(a, b Client) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Address, b.Address))
	})
	kept := all[:min(len(all), MaxClients)]
	return Clients{kept, len(all) - len(kept)}
}
