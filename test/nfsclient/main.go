// Command nfsclient speaks NFS by itself, as any program in a pod can: the end-to-end tests run it in a pod without privileges. For
// each ADDRESS/PATH it writes the path's status, asked for from a port of the kernel's choice and from one below 1024.
//
//	nfsclient 10.96.0.9/unet3d 10.96.0.10/unet3d/0
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// timeout is for one look.
const timeout = 10 * time.Second

func main() {
	for _, target := range os.Args[1:] {
		address, path, _ := strings.Cut(target, "/")
		fmt.Printf("%s any %s\n", target, look(address, "/"+path, (&net.Dialer{}).DialContext))
		fmt.Printf("%s reserved %s\n", target, look(address, "/"+path, fromReservedPort))
	}
}

// look is OK and the number of entries, or what the server or the network says.
func look(address, path string, dial func(ctx context.Context, network, to string) (net.Conn, error)) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := nfs.Dial(ctx, net.JoinHostPort(address, "2049"), nfs.Options{
		ClientOwner: fmt.Sprint("nfsclient ", os.Getpid(), time.Now().UnixNano()),
		Dial:        func(ctx context.Context, to string) (net.Conn, error) { return dial(ctx, "tcp", to) },
	})
	if err != nil {
		return "unreachable: " + err.Error()
	}
	defer func() { _ = c.Close(ctx) }()
	root := nfs.Credentials{} // An attacker would claim to be root.
	entries, err := c.ReadDir(ctx, root, path)
	var status *nfs.StatusError
	switch {
	case errors.As(err, &status):
		return nfs.StatusName(status.Status)
	case err != nil:
		return "failed: " + err.Error()
	}
	return fmt.Sprintf("OK %d", len(entries))
}

func fromReservedPort(ctx context.Context, network, to string) (net.Conn, error) {
	var conn net.Conn
	err := error(syscall.EADDRINUSE)
	for port := 1023; port >= 665 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)); port-- {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}
		conn, err = dialer.DialContext(ctx, network, to)
	}
	return conn, err
}
