package lab

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// ForwardCommand is the hidden command of the tool that is the forwarder.
const ForwardCommand = "__forward"

const (
	forwarder  = "forward"
	listenerFD = 3 // The first of exec.Cmd's ExtraFiles.
)

// ensureForwarder makes the API server reachable at a loopback port of the host.
// The socket is opened here, in the host's namespace, and handed to a process in
// the lab's: so one port joins the two, and no route.
func (l *Lab) ensureForwarder() error {
	if l.table().Alive(forwarder) {
		return nil
	}
	listener, err := listen(l.rec.Port, plan.PreferredPort(l.Name))
	if err != nil {
		return err
	}
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	l.rec.Port = listener.Addr().(*net.TCPAddr).Port
	if err := l.save(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return l.table().Start(sys.Daemon{
		Name:  forwarder,
		Path:  self,
		Args:  []string{ForwardCommand, l.rec.Settings.Family.APIServerAddress()},
		Log:   l.path("logs", forwarder+".log"),
		NetNS: plan.NetNS(l.Name),
		Files: []*os.File{file},
	})
}

// listen takes the first of the ports that is free, at last any.
func listen(ports ...int) (*net.TCPListener, error) {
	for _, port := range ports {
		if port == 0 {
			continue // Not chosen yet.
		}
		if listener, err := listenOn(port); err == nil {
			return listener, nil
		}
	}
	return listenOn(0)
}

func listenOn(port int) (*net.TCPListener, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("port for the API server: %w", err)
	}
	return listener.(*net.TCPListener), nil
}

// Forward serves the inherited socket: it connects clients with the API server's address. It runs in the lab's namespace.
func Forward(target string) error {
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go join(conn.(*net.TCPConn), target)
	}
}

func join(client *net.TCPConn, target string) {
	defer client.Close()
	conn, err := net.Dial("tcp", target)
	if err != nil {
		return // The client sees the connection end, as it would with no server.
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { pump(server, client) })
	both.Go(func() { pump(client, server) })
	both.Wait()
}

// pump copies one direction and passes on its end, which streams such as
// `kubectl exec` wait for.
func pump(to, from *net.TCPConn) {
	_, err := io.Copy(to, from)
	if err != nil {
		to.Close()
		from.Close()
		return
	}
	_ = to.CloseWrite() // It may be closed already.
}
