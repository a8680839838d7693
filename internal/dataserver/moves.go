package dataserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exporter"
	"github.com/howdah/howdah/internal/dataserver/mover"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// rsync is the program in the server image.
const rsync = "/usr/bin/rsync"

// moves connects the mover with the rest of the process.
type moves struct {
	*mover.Mover
	options    Options
	identities atomic.Pointer[identity]
}

// identity is with what a data server shows who it is.
type identity struct {
	certificates []*mtls.Identity
	scope        string
}

func newMoves(options Options, reporter exporter.Reporter) *moves {
	m := &moves{options: options}
	self, err := os.Executable() // Not /proc/self/exe: rsync runs it.
	if err != nil {
		self = "/usr/local/bin/howdah"
	}
	m.Mover = mover.New(mover.Config{
		Root: options.VolumesRoot, ListFile: options.movingFile(), TakenFile: options.movingTakenFile(), Rsync: rsync, Self: []string{self}, NFS: m, Dial: m.dial, Now: time.Now,
		Report: func(ctx context.Context, reports []internalv1.MoveReport) error {
			return reporter.Report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
				status.Moves = reports
				return status
			})
		},
		Log: options.Log.With("part", "moves"),
	})
	return m
}

// Identify implements exporter.Moves.
func (m *moves) Identify(certificates []*mtls.Identity, scope string) {
	m.identities.Store(&identity{certificates, scope})
}

// dial connects to another data server of the FileServer.
func (m *moves) dial(ctx context.Context, name, address string) (net.Conn, error) {
	own := m.identities.Load()
	if own == nil || own.certificates == nil {
		return nil, errors.New("this data server has no certificate")
	}
	if address == "" {
		return nil, fmt.Errorf("data server %s has no address", name)
	}
	// It is the address of the other one's Service, which has this port wherever its pod is.
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, strconv.Itoa(v1alpha1.NFSTLSPort))
	}
	dialer := tls.Dialer{Config: mtls.ClientConfig(own.certificates, naming.DataServerTLSName(own.scope, name), time.Now)}
	return dialer.DialContext(ctx, "tcp", address)
}

// serve answers other data servers.
func (m *moves) serve(ctx context.Context, name string, conn net.Conn) {
	own := m.identities.Load()
	if own == nil {
		return
	}
	if peer := naming.DataServerOfTLSName(own.scope, name); peer != "" {
		m.Serve(ctx, peer, conn)
	}
}

// inSession runs some calls to ganesha.
func (m *moves) inSession(ctx context.Context, use func(session *nfs.Client) error) error {
	session, err := nfs.Dial(ctx, m.options.ganesha().Address(), nfs.Options{
		ClientOwner: "howdah mover of " + m.options.DataServer, Slots: 1, CallTimeout: 20 * time.Second,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) { return m.options.ganesha().Dial(ctx) },
	})
	if err != nil {
		return fmt.Errorf("connecting to ganesha: %w", err)
	}
	return errors.Join(use(session), session.Close(ctx))
}

// Rename implements mover.Changes.
func (m *moves) Rename(ctx context.Context, cred nfs.Credentials, from, to string) error {
	return m.inSession(ctx, func(session *nfs.Client) error { return session.Rename(ctx, cred, from, to) })
}

// Mkdir implements mover.Changes.
func (m *moves) Mkdir(ctx context.Context, cred nfs.Credentials, name string, options nfs.MkdirOptions) error {
	return m.inSession(ctx, func(session *nfs.Client) error { return session.Mkdir(ctx, cred, name, options) })
}

// Stat implements mover.Changes.
func (m *moves) Stat(ctx context.Context, cred nfs.Credentials, name string) (attributes nfs.Attributes, err error) {
	err = m.inSession(ctx, func(session *nfs.Client) error {
		attributes, err = session.Stat(ctx, cred, name)
		return err
	})
	return attributes, err
}

func (o Options) movingFile() string { return filepath.Join(o.RunDir, "moving") }
