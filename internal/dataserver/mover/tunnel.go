package mover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Tunnel is what rsync runs in place of a remote shell: it gives the arguments of the sender to the supervisor at a socket, and then what rsync says.
func Tunnel(socket string, arguments []string) error {
	conn, err := (&net.Dialer{}).Dial("unix", socket) //nolint:noctx // It ends with its process.
	if err != nil {
		return fmt.Errorf("reaching the supervisor: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if len(arguments) == 0 {
		return errors.New("rsync gives no host")
	}
	if err := writeLine(conn, arguments[1:]); err != nil { // The first is the host.
		return fmt.Errorf("telling the supervisor what to send: %w", err)
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}
