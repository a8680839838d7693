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
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/mover"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// runSubcommand is what a data server runs of itself during a move. The test binary stands in for the program.
func runSubcommand() {
	if len(os.Args) < 3 {
		return
	}
	var err error
	switch os.Args[1] {
	case mover.TunnelCommand:
		err = mover.Tunnel(os.Args[2], os.Args[3:])
	case mover.ConfinedCommand:
		err = mover.Confined(os.Args[2], os.Args[3:])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// otherServer is a second data server: its mover, and volumes that no ganesha serves.
type otherServer struct {
	root    string
	reports chan []internalv1.MoveReport
}

func (o *otherServer) onDisk(name string) string {
	parts := strings.SplitN(strings.TrimPrefix(name, "/"), "/", 3)
	return filepath.Join(o.root, parts[1], parts[0], parts[2])
}

func (o *otherServer) Rename(_ context.Context, _ client.Credentials, from, to string) error {
	return os.Rename(o.onDisk(from), o.onDisk(to))
}

func (o *otherServer) Mkdir(_ context.Context, _ client.Credentials, name string, options client.MkdirOptions) error {
	return os.Mkdir(o.onDisk(name), os.FileMode(options.Mode))
}

func (o *otherServer) Stat(_ context.Context, _ client.Credentials, name string) (client.Attributes, error) {
	_, err := os.Stat(o.onDisk(name))
	return client.Attributes{}, err
}

// asDataServer connects to the port for servers with the certificate of a data server.
func (s *dataServer) asDataServer(ctx context.Context, name string) (net.Conn, error) {
	config := dataservertest.TLSConfig(s.t, dataservertest.Issue(s.t, dataservertest.TestAuthority, func(a *mtls.Authority) ([]byte, error) { return a.DataServer(name) }))
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort("10.99.0.1", strconv.Itoa(v1alpha1.NFSTLSPort)))
}

// copiedThroughTheTunnel: a directory of a real ganesha moves to another data server, over the port for servers and with rsync. Data servers get
// nothing else there.
func copiedThroughTheTunnel(t *testing.T) {
	s := exported(t, "tunnel")
	const directory = "/volumes/tunnel/0/alpha/d"
	mustWork(t, "mkdir", os.MkdirAll(directory+"/deep", 0o755))
	for i := range 50 {
		putFile(t, fmt.Sprintf("%s/deep/file%d", directory, i), strings.Repeat(strconv.Itoa(i), 10000), 0o640)
	}
	other := &otherServer{root: "/volumes/tunnel-target", reports: make(chan []internalv1.MoveReport, 100)}
	mustWork(t, "mkdir", os.MkdirAll(other.root+"/0/alpha", 0o755))
	mustWork(t, "mkdir", os.MkdirAll("/run/other", 0o700))
	self, err := os.Executable()
	mustWork(t, "find this program", err)
	target := mover.New(mover.Config{
		Root: other.root, ListFile: "/run/other/moving", TakenFile: "/run/other/moving.taken", Rsync: rsync, Self: []string{self}, NFS: other, Now: time.Now, Log: quiet,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.asDataServer(ctx, "training-1") },
		Report: func(_ context.Context, reports []internalv1.MoveReport) error {
			other.reports <- reports
			return nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go target.Run(ctx)

	move := internalv1.DirectoryMove{ID: "move-0123", Step: internalv1.MoveCopying, Sequence: 1, StepTime: &metav1.Time{Time: time.Now()}}
	task := func(role internalv1.MoveRole, peer string) []internalv1.MoveTask {
		return []internalv1.MoveTask{{
			ID: move.ID, Role: role, FileShareRef: internalv1.FileShareReference{Name: "alpha"}, Path: "d", Volume: ptr.To(int32(0)), Step: move.Step,
			Attempt: move.Attempt, Sequence: move.Sequence, Peer: internalv1.DataServerReference{Name: peer}, PeerAddress: "unused",
		}}
	}
	give := func() {
		s.apply(func(spec *dataservertest.Wanted) { spec.Moves = task(internalv1.MoveSource, "training-1") })
		target.Set(task(internalv1.MoveTarget, "training-0"))
	}
	give()
	var steps []internalv1.MoveStep
	var seen []internalv1.MoveReport
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		for len(other.reports) > 0 {
			seen = <-other.reports
		}
		in := moving.Input{Wanted: true, Now: time.Now()}
		status, _ := s.status.Get()
		if len(status.Moves) > 0 {
			in.Source = &status.Moves[0]
		}
		if len(seen) > 0 {
			in.Target = &seen[0]
		}
		next, outcome := moving.Next(move, in)
		if outcome == moving.Done {
			break
		}
		if outcome != moving.Stay {
			move = next
			steps = append(steps, move.Step)
			give()
		}
		if time.Now().After(deadline) {
			t.Fatalf("step %s does not end: the source reports %+v, the target %+v", move.Step, in.Source, in.Target)
		}
	}
	t.Logf("steps: %v", steps)
	for i := range 50 {
		text, err := os.ReadFile(fmt.Sprintf("%s/0/alpha/d/deep/file%d", other.root, i))
		if err != nil || string(text) != strings.Repeat(strconv.Itoa(i), 10000) {
			t.Errorf("file%d: %d bytes, %v", i, len(text), err)
		}
	}
	if _, err := os.Stat(directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the source still has it: %v", err)
	}
	onlyMoves(t, s)
}

// onlyMoves: a data server's certificate opens no way to ganesha, and not to the moves of others.
func onlyMoves(t *testing.T, s *dataServer) {
	t.Helper()
	for name, request := range map[string]string{
		"a call to ganesha":      "\x80\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01\x86\xa3\x00\x00\x00\x04" + strings.Repeat("\x00", 20) + "\n",
		"a move that is unknown": `{"move":"another-move","kind":"measure"}` + "\n",
		"another's move":         `{"move":"move-0123","kind":"measure"}` + "\n",
	} {
		conn, err := s.asDataServer(t.Context(), "training-2")
		mustWork(t, "connect", err)
		_, err = conn.Write([]byte(request))
		mustWork(t, "ask", err)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer := make([]byte, 1000)
		n, _ := conn.Read(answer)
		if n > 0 && !strings.HasPrefix(string(answer[:n]), `{"error":`) {
			t.Errorf("%s is answered with %q", name, answer[:n])
		}
		_ = conn.Close()
	}
}
