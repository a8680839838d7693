package mtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/naming"
)

const (
	uid   = "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c"
	other = "11111111-2c57-4d6e-9c0e-0d6f7f0a1b2c"
)

// today is the time of the tests. Certificates do not expire, so any day is right.
func today() time.Time { return time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC) }

func authority(t *testing.T, fileServerUID string) *Authority {
	t.Helper()
	a, err := NewAuthority(fileServerUID)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func dataServer(t *testing.T, name string, from ...*Authority) (identities []*Identity) {
	t.Helper()
	for _, a := range from {
		identities = append(identities, parsed(t, func() ([]byte, error) { return a.DataServer(name) }))
	}
	return identities
}

func namespaceServer(t *testing.T, from ...*Authority) (identities []*Identity) {
	t.Helper()
	for _, a := range from {
		identities = append(identities, parsed(t, a.NamespaceServers))
	}
	return identities
}

func parsed(t *testing.T, issue func() ([]byte, error)) *Identity {
	t.Helper()
	bundle, err := issue()
	if err != nil {
		t.Fatal(err)
	}
	identity, err := Parse(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// meet makes a client and a server do a TLS handshake and exchange a byte, and returns the error of each.
func meet(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		secured := tls.Server(conn, server)
		_, err = secured.Write([]byte{1})
		_ = secured.Close()
		done <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	secured := tls.Client(conn, client)
	_, clientErr = secured.Read(make([]byte, 1))
	_ = secured.Close()
	return <-done, clientErr
}

func TestOnlyServersOfTheFileServerAreAccepted(t *testing.T) {
	first, second, third, foreign := authority(t, uid), authority(t, uid), authority(t, uid), authority(t, other)
	short := authority(t, uid)
	// The same authority, with certificates that expire.
	*short = *first
	short.NotAfter = today().Add(-time.Second)
	peer := naming.NamespaceServerTLSName(uid)
	server := func(identities []*Identity) *tls.Config { return ServerConfig(identities, peer, nil, today) }
	client := func(identities []*Identity) *tls.Config {
		return ClientConfig(identities, naming.DataServerTLSName(uid, "training-0"), today)
	}
	ordinary := server(dataServer(t, "training-0", first))
	old := client(namespaceServer(t, first))
	old.MaxVersion, old.MinVersion = tls.VersionTLS12, tls.VersionTLS12
	anonymous := client(namespaceServer(t, first))
	anonymous.GetClientCertificate = nil
	// A client that always sends its certificate, as if it had the server's authority.
	insistent := func(identity *Identity) *tls.Config {
		return &tls.Config{
			InsecureSkipVerify: true, NextProtos: ordinary.NextProtos,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &identity.certificate, nil },
		}
	}
	for name, tc := range map[string]struct {
		server, client         *tls.Config
		serverSays, clientSays string // "": no error
	}{
		"the right ones": {ordinary, client(namespaceServer(t, first)), "", ""},
		"no certificate": {ordinary, anonymous, "client didn't provide a certificate", "certificate required"},
		"another FileServer's client": {
			ordinary, client(namespaceServer(t, foreign)), "unsupported application protocols", "no application protocol",
		},
		"another FileServer's client that pretends": {
			ordinary, insistent(namespaceServer(t, foreign)[0]), "unknown authority", "unknown certificate authority",
		},
		"a data server as a client": {ordinary, insistent(dataServer(t, "training-1", first)[0]), "incompatible key usage", "bad certificate"},
		"an expired client": {
			ordinary, insistent(namespaceServer(t, short)[0]), "certificate has expired", "expired certificate",
		},
		"another data server": {
			server(dataServer(t, "training-1", first)), client(namespaceServer(t, first)), "bad certificate", "not training-0",
		},
		"an expired server": {
			server(dataServer(t, "training-0", short)), client(namespaceServer(t, first)), "bad certificate", "certificate has expired",
		},
		"a client as a server": {
			server(namespaceServer(t, first)), client(namespaceServer(t, first)), "bad certificate", "not training-0",
		},
		"TLS 1.2": {ordinary, old, "unsupported versions", "protocol version not supported"},
		"a server that has new keys": {
			server(dataServer(t, "training-0", second, first)), client(namespaceServer(t, first)), "", "",
		},
		"a client that has new keys": {
			ordinary, client(namespaceServer(t, second, first)), "", "",
		},
		"both have new keys": {
			server(dataServer(t, "training-0", second, first)), client(namespaceServer(t, second, first)), "", "",
		},
		"keys that were replaced twice": {
			server(dataServer(t, "training-0", third, second)), client(namespaceServer(t, first)), "unsupported application protocols", "no application protocol",
		},
	} {
		t.Run(name, func(t *testing.T) {
			serverErr, clientErr := meet(t, tc.server, tc.client)
			for who, pair := range map[string][2]any{"server": {serverErr, tc.serverSays}, "client": {clientErr, tc.clientSays}} {
				err, _ := pair[0].(error)
				want, _ := pair[1].(string)
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the %s says %v, not %q", who, err, want)
				}
			}
		})
	}
}

func TestCertificatesDoNotExpire(t *testing.T) {
	a := authority(t, uid)
	identities := dataServer(t, "training-0", a)
	name := naming.DataServerTLSName(uid, "training-0")
	for _, moment := range []time.Time{time.Unix(0, 0), today(), today().AddDate(1000, 0, 0)} {
		if err := Check(identities, name, AsServer, moment); err != nil {
			t.Errorf("at %v: %v", moment, err)
		}
	}
	a.NotAfter = today()
	for what, err := range map[string]error{
		"it is valid from 1970-01-01T00:00:00Z to 2026-11-22T00:00:00Z": Check(dataServer(t, "training-0", a), name, AsServer, today().Add(time.Second)),
		"not training-1.":        Check(identities, naming.DataServerTLSName(uid, "training-1"), AsServer, today()),
		"incompatible key usage": Check(identities, name, AsClient, today()),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

func TestAnInvalidBundleIsReported(t *testing.T) {
	a := authority(t, uid)
	good, err := a.NamespaceServers()
	if err != nil {
		t.Fatal(err)
	}
	another, err := a.DataServer("training-0")
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := bytes.Cut(another, []byte("-----BEGIN PRIVATE KEY"))
	certificates, _, _ := bytes.Cut(good, []byte("-----BEGIN PRIVATE KEY"))
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":       {nil, "0 certificates"},
		"other text":    {[]byte("key"), "not PEM"},
		"no key":        {certificates, "no ECDSA key"},
		"another's key": {append(bytes.Clone(certificates), append([]byte("-----BEGIN PRIVATE KEY"), key...)...), "not that of its certificate"},
		"cut":           {good[:len(good)-40], "not PEM"},
	} {
		if _, err := Parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	folder := t.TempDir()
	current := filepath.Join(folder, "current")
	if _, err := Load(current, filepath.Join(folder, "none")); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(current, good, 0o400); err != nil {
		t.Fatal(err)
	}
	if identities, err := Load(current, filepath.Join(folder, "none")); err != nil || len(identities) != 1 {
		t.Errorf("%d identities, %v", len(identities), err)
	}
	if identities, err := Load(current, current); err != nil || len(identities) != 2 {
		t.Errorf("%d identities, %v", len(identities), err)
	}
	if leaf := parsed(t, a.NamespaceServers).certificate.Leaf; leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("a server's certificate could sign others")
	}
}

// The clock advances while both serve. Certificates with an end are refused after it. Those of the next generation are accepted
// before and after it. Howdah's own are still valid in the year 9999.
func TestAnExpiringCertificateIsReplacedByTheNextGeneration(t *testing.T) {
	own, next := authority(t, uid), authority(t, uid)
	ending := authority(t, uid)
	ending.NotAfter = today().AddDate(0, 0, 90)
	now := today()
	clock := func() time.Time { return now }
	pair := func(from ...*Authority) (server, client *tls.Config) {
		return ServerConfig(dataServer(t, "training-0", from...), naming.NamespaceServerTLSName(uid), nil, clock),
			ClientConfig(namespaceServer(t, from...), naming.DataServerTLSName(uid, "training-0"), clock)
	}
	endingServer, endingClient := pair(ending)
	renewedServer, renewedClient := pair(next, ending)
	ownServer, ownClient := pair(own)
	know := func(what string, server, client *tls.Config, want bool) {
		t.Helper()
		if serverErr, clientErr := meet(t, server, client); (serverErr == nil && clientErr == nil) != want {
			t.Errorf("on %s %s: %v, %v", now.Format(time.DateOnly), what, serverErr, clientErr)
		}
	}
	for days, good := range map[int]bool{0: true, 89: true, 91: false, 400: false} {
		now = today().AddDate(0, 0, days)
		know("the ones that end", endingServer, endingClient, good)
		know("an old server and a new client", endingServer, renewedClient, good)
		know("a new server and an old client", renewedServer, endingClient, good)
		know("the new ones", renewedServer, renewedClient, true)
	}
	now = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	know("Howdah's own", ownServer, ownClient, true)
}

// Another data server of the FileServer is a peer where the server says so, though its certificate is for servers.
func TestDataServersMayBePeers(t *testing.T) {
	first, second := authority(t, uid), authority(t, uid)
	isPeer := func(name string) bool { return naming.DataServerOfTLSName(uid, name) != "" }
	for name, tc := range map[string]struct {
		isPeer func(string) bool
		client []*Identity
		good   bool
	}{
		"another data server":             {isPeer, dataServer(t, "training-1", first), true},
		"a namespace server":              {isPeer, namespaceServer(t, first), true},
		"one of another authority":        {isPeer, dataServer(t, "training-1", second), false},
		"one where no data server may":    {nil, dataServer(t, "training-1", first), false},
		"one of another FileServer's UID": {func(string) bool { return false }, dataServer(t, "training-1", first), false},
	} {
		server := ServerConfig(dataServer(t, "training-0", first), naming.NamespaceServerTLSName(uid), tc.isPeer, today)
		serverErr, clientErr := meet(t, server, ClientConfig(tc.client, naming.DataServerTLSName(uid, "training-0"), today))
		if good := serverErr == nil && clientErr == nil; good != tc.good {
			t.Errorf("%s: %v, %v", name, serverErr, clientErr)
		}
	}
}
