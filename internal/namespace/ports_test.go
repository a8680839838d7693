package namespace

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/api/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A rule for reserved ports allows a kernel's mount and refuses a program of a user, at namespace servers as at data servers
// (firstClientBlockCounts of internal/dataserver).
func TestARuleForReservedPortsTakesNoOther(t *testing.T) {
	w := newWorld(t, 1)
	share := w.share("data", 1)
	share.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"127.0.0.1"}, SourcePorts: v1alpha1.SourcePortsReserved}, {Clients: []string{"0.0.0.0/0"}}}
	if err := w.api.Update(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	server := w.serve("a")
	program := w.mount(server)
	_, err := program.Stat(t.Context(), user, "/data")
	if !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("from any port: %v", err)
	}
	kernel, err := nfs.Dial(t.Context(), server.address, nfs.Options{ClientOwner: t.Name(), Dial: fromReservedPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close(context.Background()) })
	if _, err := kernel.Stat(t.Context(), user, "/data"); err != nil {
		t.Errorf("from a reserved port: %v", err)
	}
}

// fromReservedPort connects as Linux' NFS client does. It takes root.
func fromReservedPort(ctx context.Context, to string) (net.Conn, error) {
	var conn net.Conn
	err := error(syscall.EADDRINUSE)
	for port := 1023; port >= 665 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)); port-- {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
		conn, err = dialer.DialContext(ctx, "tcp", to)
	}
	return conn, err
}
