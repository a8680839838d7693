package ownertest

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// FileServerUID is that of the FileServer of all data servers here.
const FileServerUID = "uid"

// authority is one for the process, so that servers of different tests' making know each other.
var authority = sync.OnceValues(func() (*mtls.Authority, error) { return mtls.NewAuthority(FileServerUID) })

// Certificate is a file with the certificate of a namespace server that the data servers let in.
func Certificate(t testing.TB) string {
	t.Helper()
	a, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := a.NamespaceServers()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(path, bundle, 0o400); err != nil {
		t.Fatal(err)
	}
	return path
}

// Identities are Certificate, read.
func Identities(t testing.TB) []*mtls.Identity {
	t.Helper()
	identities, err := mtls.Load(Certificate(t), "")
	if err != nil {
		t.Fatal(err)
	}
	return identities
}

func serverConfig(t testing.TB, dataServer string) *tls.Config {
	t.Helper()
	a, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := a.DataServer(dataServer)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := mtls.Parse(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return mtls.ServerConfig([]*mtls.Identity{identity}, naming.NamespaceServerTLSName(FileServerUID), nil, time.Now)
}

// bothListener takes TLS and plain connections at one port: an address of a DataServer that has a port has only one.
type bothListener struct {
	net.Listener
	config *tls.Config
}

func (l *bothListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &bothConn{Conn: conn, config: l.config, reader: bufio.NewReader(conn)}, nil
}

// bothConn is a connection that its first byte makes a TLS or a plain one.
type bothConn struct {
	net.Conn
	config *tls.Config
	reader *bufio.Reader
	once   sync.Once
	err    error
	secure *tls.Conn
}

const (
	// tlsHandshake is the first byte of a TLS connection (RFC 8446 section 5.1).
	tlsHandshake = 22
	// procedureAt is where the procedure is in the record of a call (RFC 5531 section 9), and headBytes all before its credentials.
	procedureAt, headBytes = 24, 28
)

func (c *bothConn) decide() {
	first, err := c.reader.Peek(1)
	if err != nil {
		c.err = err
		return
	}
	if first[0] == tlsHandshake {
		c.secure = tls.Server(&peeked{c.Conn, c.reader}, c.config)
		return
	}
	if head, err := c.reader.Peek(headBytes); err != nil || binary.BigEndian.Uint32(head[procedureAt:]) != 0 {
		c.err = errors.Join(errors.New("a compound without TLS"), err)
	}
}

func (c *bothConn) Read(p []byte) (int, error) {
	c.once.Do(c.decide)
	switch {
	case c.err != nil:
		return 0, c.err
	case c.secure != nil:
		return c.secure.Read(p)
	}
	return c.reader.Read(p)
}

// Write answers, so the kind of connection is known.
func (c *bothConn) Write(p []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.Conn.Write(p)
}

// peeked is a connection whose first bytes were read into a reader.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (c *peeked) Read(p []byte) (int, error) { return c.reader.Read(p) }
