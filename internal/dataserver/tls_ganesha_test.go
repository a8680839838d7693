package dataserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// certificateOf is the file with the certificate of the data server that boot makes of the name.
func certificateOf(t *testing.T, name string, from func() (*mtls.Authority, error)) string {
	t.Helper()
	path := "/run/certificate-" + name
	bundle := dataservertest.Issue(t, from, func(a *mtls.Authority) ([]byte, error) { return a.DataServer("training-0") })
	mustWork(t, "write a certificate", os.WriteFile(path, bundle, 0o600))
	return path
}

// throughTLS is a namespace server with a certificate of the authority. The test ends if it is not let in.
func (s *dataServer) throughTLS(host string, from func() (*mtls.Authority, error)) *client.Client {
	s.t.Helper()
	config := dataservertest.TLSConfig(s.t, dataservertest.Issue(s.t, from, (*mtls.Authority).NamespaceServers))
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	address := net.JoinHostPort(host, strconv.Itoa(v1alpha1.NFSTLSPort))
	c, err := client.Dial(ctx, address, client.Options{
		ClientOwner: "namespace server " + s.t.Name(),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
		},
	})
	mustWork(s.t, "connect through TLS", err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// comeFrom is a plain client that comes from a local address.
func (s *dataServer) comeFrom(local, server string) (*client.Client, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	c, err := client.Dial(ctx, server, client.Options{
		ClientOwner: "plain " + local + server + s.t.Name(),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(local), 0))}
			return dialer.DialContext(ctx, "tcp", address)
		},
	})
	if err == nil {
		s.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.Close(ctx)
		})
	}
	return c, err
}

func trustByProof(t *testing.T) {
	s := boot(t, "proof", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("closed"),
			dataservertest.ShareSpec("open", v1alpha1.AccessRule{Clients: []string{"0.0.0.0/0", "::/0"}}),
			dataservertest.ShareSpec("loop", v1alpha1.AccessRule{Clients: []string{"127.0.0.0/8", "::1"}}),
		}
	})
	s.settle()
	shares := []string{"closed", "open", "loop"}

	// What port-forward is like, in both families, and other loopback addresses: as whoever is in no rule, also where the rules
	// would let it in.
	for _, plain := range []struct{ from, server string }{
		{"127.0.0.1", "127.0.0.1:2049"},
		{"::1", "[::1]:2049"},
		{"127.0.0.6", "127.0.0.1:2049"},
		{"127.77.77.77", "127.0.0.1:2049"},
	} {
		dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(plain.from), 0))}
		connection, err := dialer.DialContext(t.Context(), "tcp", plain.server)
		mustWork(t, "connect from "+plain.from, err)
		if !isEnded(connection, 5*time.Second) {
			t.Errorf("a connection from %s stays open", plain.from)
		}
		_ = connection.Close()
	}
	unlisted, err := s.comeFrom("10.98.0.1", "10.98.0.1:2049")
	mustWork(t, "connect from an address that one share lets in", err)
	for _, share := range []string{"closed", "loop"} {
		_, err := unlisted.Stat(t.Context(), root, "/"+share+"/0")
		mustFailWith(t, "its look at share "+share, err, nfsv4.NFS4ERR_NOENT)
		mustNotReach(t, "/"+share+"/0", err)
		mustFailWith(t, "its mkdir there", unlisted.Mkdir(t.Context(), root, "/"+share+"/0/x", client.MkdirOptions{Mode: 0o755}), nfsv4.NFS4ERR_NOENT)
	}

	// The certificate is all that counts, wherever the client is.
	for _, host := range []string{"127.0.0.1", "::1", "10.99.0.1", "fd00:99::1"} {
		trusted := s.throughTLS(host, dataservertest.TestAuthority)
		for _, share := range shares {
			path := "/" + share + "/0/by-" + strings.NewReplacer(":", "-", ".", "-").Replace(host)
			mustWork(t, "mkdir of root through "+host, trusted.Mkdir(t.Context(), root, path, client.MkdirOptions{Mode: 0o755}))
		}
	}
	expired := func(a *mtls.Authority) ([]byte, error) {
		short := *a
		short.NotAfter = time.Now().Add(-time.Hour)
		return short.NamespaceServers()
	}
	for _, tc := range []struct {
		who    string
		bundle []byte
		reason string
	}{
		{"another FileServer", dataservertest.Issue(t, dataservertest.ForeignAuthority, (*mtls.Authority).NamespaceServers), "unsupported application protocols"},
		{"expired", dataservertest.Issue(t, dataservertest.TestAuthority, expired), "certificate has expired"},
		{"a data server", dataservertest.Issue(t, dataservertest.TestAuthority, func(a *mtls.Authority) ([]byte, error) { return a.DataServer("training-1") }), "asks for a move that can't be read"},
	} {
		mustBeRefused(t, tc.who, tc.bundle)
		// The client gets the answer before the log has it.
		for deadline := time.Now().Add(timeout); !strings.Contains(s.logged.String(), tc.reason); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the log does not say %q: %s", tc.who, tc.reason, &s.logged)
			}
		}
	}
	// Without TLS nothing is answered.
	if err := client.Null(t.Context(), "10.99.0.1:"+strconv.Itoa(v1alpha1.NFSTLSPort)); err == nil {
		t.Error("NULL was answered without TLS")
	}
}

// A namespace server that is newer than the supervisor asks ganesha what it means to ask the manager. It learns soon that there is
// no answer, and ganesha takes no harm; neither does who asks for what volumes don't offer.
func askedForDirectories(t *testing.T) {
	s := boot(t, "directories", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("data")}
	})
	s.settle()
	config := dataservertest.TLSConfig(t, dataservertest.Issue(t, dataservertest.TestAuthority, (*mtls.Authority).NamespaceServers))
	started := s.supervisor.State().PID
	for port, dial := range map[int]func(ctx context.Context, network, address string) (net.Conn, error){
		v1alpha1.NFSPort:    new(net.Dialer).DialContext,
		v1alpha1.NFSTLSPort: (&tls.Dialer{Config: config}).DialContext,
	} {
		conn, err := dial(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		mustWork(t, "connect", err)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err = listing.Ask(ctx, conn, listing.Request{Share: "data", Depth: 1})
		if !errors.Is(err, listing.ErrNotOffered) || ctx.Err() != nil {
			t.Errorf("port %d, after %s: %v", port, time.Since(began), err)
		}
		t.Logf("FIGURE no answer at port %d: an error after %s", port, time.Since(began).Round(time.Millisecond))
		cancel()
		_ = conn.Close()
	}
	trusted := s.throughTLS("127.0.0.1", dataservertest.TestAuthority)
	mustWork(t, "mkdir afterwards", trusted.Mkdir(t.Context(), root, "/data/0/x", client.MkdirOptions{Mode: 0o755}))
	if now := s.supervisor.State().PID; now != started {
		t.Errorf("ganesha was process %d and is %d", started, now)
	}
}

// mustBeRefused fails if a client with this certificate gets an answer to NULL.
func mustBeRefused(t *testing.T, who string, bundle []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: dataservertest.TLSConfig(t, bundle)}).DialContext(ctx, "tcp", net.JoinHostPort("10.99.0.1", strconv.Itoa(v1alpha1.NFSTLSPort)))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	// In TLS 1.3 a client gets only now the server's verdict on its certificate.
	null := []byte{0x80, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4, 27: 0, 43: 0}
	_, _ = conn.Write(null)
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("%s: was answered with %d bytes", who, n)
	}
}

func comingAndGoing(t *testing.T) {
	s := boot(t, "coming", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	_, writes := s.status.Get()
	loads, pid := loadsOf(t, s), s.pid()
	for i := range 5 {
		c := s.throughTLS("10.99.0.1", dataservertest.TestAuthority)
		mustWork(t, "mkdir", c.Mkdir(t.Context(), root, "/alpha/0/"+strconv.Itoa(i), client.MkdirOptions{Mode: 0o755}))
		mustWork(t, "leave", c.Close(t.Context()))
	}
	direct, err := s.comeFrom(s.options.own.String(), "127.0.0.1:2049")
	mustWork(t, "connect as the supervisor does", err)
	for who, c := range map[string]*client.Client{"without": direct, "in": s.throughTLS("10.99.0.1", dataservertest.TestAuthority)} {
		began := time.Now()
		for i := range 300 {
			mustWork(t, "mkdir", c.Mkdir(t.Context(), root, "/alpha/0/"+who+strconv.Itoa(i), client.MkdirOptions{Mode: 0o755}))
		}
		t.Logf("FIGURE a mkdir %s TLS: %s", who, (time.Since(began) / 300).Round(time.Microsecond))
	}
	s.exporter.Wake()
	time.Sleep(100 * time.Millisecond)
	if _, after := s.status.Get(); after != writes || loadsOf(t, s) != loads || s.pid() != pid {
		t.Errorf("%d writes of the status became %d, %v reloads %v", writes, after, loads, loadsOf(t, s))
	}
}

// loadsOf is how often ganesha has reloaded.
func loadsOf(t *testing.T, s *dataServer) float64 {
	t.Helper()
	return dataservertest.MetricOf(t, s.metrics.Registry, "howdah_data_server_reload_duration_seconds")
}

func ownClientsAreForgotten(t *testing.T) {
	s := boot(t, "forgotten", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	s.throughTLS("10.99.0.1", dataservertest.TestAuthority)
	s.from("10.99.0.1")
	mustHaveRecords(t, "while both are there", s.options.own.String(), "10.99.0.1")
	mustWork(t, "kill", syscall.Kill(s.pid(), syscall.SIGKILL))
	s.stop()
	if s.supervisor.State().Starts == 1 { // Else ganesha was started again before the stop, and has removed them by then.
		mustHaveRecords(t, "after the stop", s.options.own.String(), "10.99.0.1")
	}
	again := boot(t, "forgotten", 1)
	again.apply(func(*dataservertest.Wanted) {})
	again.settle()
	mustHaveRecords(t, "after the start", "10.99.0.1")
	if again.options.own == s.options.own {
		t.Errorf("two starts with the address %s", again.options.own)
	}
}

// mustHaveRecords fails unless ganesha's recovery records are of clients with these addresses.
func mustHaveRecords(t *testing.T, when string, addresses ...string) {
	t.Helper()
	entries, err := filepath.Glob("/volumes/forgotten/0/.howdah/ganesha/v4recov/training-0/*")
	mustWork(t, "list the records", err)
	var found []string
	for _, entry := range entries {
		text, _, _ := strings.Cut(filepath.Base(entry), "-(")
		found = append(found, strings.TrimPrefix(text, "::ffff:"))
	}
	slices.Sort(found)
	slices.Sort(addresses)
	if !slices.Equal(found, addresses) {
		t.Errorf("%s there are records of %v, not of %v", when, found, addresses)
	}
}

func servedWithoutCertificate(t *testing.T) {
	for name, bundle := range map[string][]byte{
		"expired": dataservertest.Issue(t, dataservertest.TestAuthority, func(a *mtls.Authority) ([]byte, error) {
			short := *a
			short.NotAfter = time.Now().Add(-time.Hour)
			return short.DataServer("training-0")
		}),
		"of-another-data-server": dataservertest.Issue(t, dataservertest.TestAuthority, func(a *mtls.Authority) ([]byte, error) { return a.DataServer("training-1") }),
		"of-another-file-server": dataservertest.Issue(t, dataservertest.ForeignAuthority, func(a *mtls.Authority) ([]byte, error) { return a.DataServer("training-0") }),
		"none":                   nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := boot(t, name, 1)
			s.apply(func(spec *dataservertest.Wanted) {
				spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
			})
			s.settle()
			path := s.options.Certificate
			if bundle == nil {
				mustWork(t, "remove the certificate", os.Remove(path))
			} else {
				mustWork(t, "write another certificate", os.WriteFile(path, bundle, 0o600))
			}
			s.exporter.Wake()
			status := s.await("the status to say so", func(status dataservertest.Reported) bool {
				condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
				return condition != nil && condition.Reason == internalv1.ReasonCertificateInvalid
			})
			condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			if condition.Status != "True" || !strings.Contains(condition.Message, "clients are served") {
				t.Errorf("the condition: %+v", condition)
			}
			t.Logf("%s", condition.Message)
			if err := s.probes.Fit(t.Context()); err != nil {
				t.Errorf("its Service leads no client to it: %v", err)
			}
			mustWork(t, "a client", s.from("10.99.0.1").Mkdir(t.Context(), user, "/alpha/0/here", client.MkdirOptions{Mode: 0o755}))
			mustBeRefused(t, "a namespace server", dataservertest.Issue(t, dataservertest.TestAuthority, (*mtls.Authority).NamespaceServers))
			certificateOf(t, name, dataservertest.TestAuthority)
			s.exporter.Wake()
			s.await("all to be well", func(status dataservertest.Reported) bool {
				condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
				return condition != nil && condition.Reason != internalv1.ReasonCertificateInvalid
			})
		})
	}
}
