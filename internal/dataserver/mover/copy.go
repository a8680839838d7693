package mover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/child"
)

// dialWait is how long reaching the source may take.
const dialWait = 10 * time.Second

// copyOptions make the copy the same as the source. Not -D: a data server's container may not make device nodes. In place, so that a large file that
// was half copied is not copied again; the copy is not used before it is whole.
// Times are compared to the nanosecond (--modify-window=-1), not to the second. With --xattrs once rsync leaves out those of its own backups
// (user.rsync.%stat of --fake-super).
var copyOptions = []string{
	"--recursive", "--links", "--perms", "--times", "--group", "--owner", "--specials", "--hard-links", "--acls", "--xattrs", "--xattrs",
	"--filter=-x! user.*", "--sparse", "--numeric-ids", "--inplace", "--delete", "--modify-window=-1",
}

// pass is one run of rsync.
type pass struct {
	task string
	peer func(ctx context.Context) (net.Conn, error)
	to   string
	// attempt is the freeze that must hold, 0 if none needs to.
	attempt int32
	freeze  string
	// checksum compares the content of every file, and not its size and time.
	checksum bool
	// megabytes bounds the megabytes in a second; 0: nothing does.
	megabytes int32
}

// copy makes the copy the same as the source is while it runs. It returns the source's time at its beginning, and what was sent.
func (m *Mover) copy(ctx context.Context, p pass) (began int64, sent int64, err error) {
	directory, err := os.MkdirTemp(filepath.Dir(m.ListFile), "move-")
	if err != nil {
		return 0, 0, fmt.Errorf("making a socket for rsync: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	socket := filepath.Join(directory, "s")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return 0, 0, fmt.Errorf("making a socket for rsync: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var tunnels sync.WaitGroup
	var refused error
	tunnels.Go(func() { began, sent, refused = m.tunnel(ctx, listener, p) })
	err = m.rsync(ctx, p, socket)
	cancel()
	_ = listener.Close()
	tunnels.Wait()
	switch {
	case refused != nil && err != nil:
		return began, sent, refused // Rsync only knows that the connection ended.
	case isVanished(err) && p.attempt == 0:
		return began, sent, nil
	}
	return began, sent, err
}

func (m *Mover) rsync(ctx context.Context, p pass, socket string) error {
	arguments := append([]string{}, copyOptions...)
	if p.checksum {
		arguments = append(arguments, "--checksum")
	}
	if p.megabytes > 0 {
		arguments = append(arguments, "--bwlimit="+strconv.FormatInt(max(1, int64(p.megabytes)*1_000_000/1024), 10))
	}
	arguments = append(arguments, "--rsh="+strings.Join(append(append([]string{}, m.Self...), TunnelCommand, socket), " "), "source:.", p.to+"/")
	command := exec.CommandContext(ctx, m.Rsync, arguments...)
	command.Env = []string{"LANG=C", "PATH=/usr/bin:/bin"}
	var complaints strings.Builder
	command.Stderr = &limited{to: &complaints, left: maxLine}
	wait, err := child.Start(command)
	if err != nil {
		return fmt.Errorf("starting rsync: %w", err)
	}
	yield(command.Process.Pid)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = command.Process.Kill() })()
	go keepSpare(ctx, p.to, cancel)
	if err := wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("rsync: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return nil
}

// yield lets the kernel end this process first when there is not enough memory: clients need the others.
func yield(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0) // Then it is as others are.
}

// spareEvery is how often it is looked whether the target's volume still has room for its own clients.
const spareEvery = 200 * time.Millisecond

// keepSpare ends a copy before it takes the last room of the target's volume: what has grown meanwhile must not fill it.
func keepSpare(ctx context.Context, path string, end context.CancelCauseFunc) {
	ticker := time.NewTicker(spareEvery)
	defer ticker.Stop()
	for {
		var volume unix.Statfs_t
		if err := unix.Statfs(path, &volume); err == nil && volume.Bavail < volume.Blocks/spareOfVolume {
			end(&errRefused{noRoom: true, why: fmt.Sprintf("the target's volume has %d MB free, and 1/%d of it stays free", int64(volume.Bavail)*volume.Bsize/1e6, spareOfVolume)})
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// tunnel connects rsync with the source.
func (m *Mover) tunnel(ctx context.Context, listener net.Listener, p pass) (began, sent int64, err error) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	near, err := listener.Accept()
	if err != nil {
		return 0, 0, nil // Rsync has failed before.
	}
	defer func() { _ = near.Close() }()
	reader := bufio.NewReader(near)
	var arguments []string
	if err := readLine(reader, &arguments); err != nil {
		return 0, 0, fmt.Errorf("reading rsync's arguments: %w", err)
	}
	far, answer, head, err := m.askSource(ctx, p.peer, ask{Move: p.task, Kind: askCopy, Attempt: p.attempt, Freeze: p.freeze, Args: arguments})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = far.Close() }()
	defer context.AfterFunc(ctx, func() { _ = far.Close(); _ = near.Close() })()
	go func() {
		_, _ = io.Copy(far, reader)
		if half, ok := far.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	sent, _ = io.Copy(near, answer) // Rsync notices if it ends too early.
	return head.Time, sent, nil
}

// askSource sends a request, and returns the connection with the head of the answer. After an error there is no connection.
func (m *Mover) askSource(ctx context.Context, dial func(ctx context.Context) (net.Conn, error), request ask) (net.Conn, *bufio.Reader, reply, error) {
	dialing, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	conn, err := dial(dialing)
	if err != nil {
		return nil, nil, reply{}, fmt.Errorf("%w: connecting to the source: %w", errNotYet, err)
	}
	answering, cancel := ctx, context.CancelFunc(func() {})
	if m.settling(request.Kind) != nil {
		answering, cancel = context.WithTimeout(ctx, answerWait)
	}
	defer cancel()
	stop := context.AfterFunc(answering, func() { _ = conn.Close() })
	defer stop()
	reader := bufio.NewReader(conn)
	var head reply
	err = writeLine(conn, request)
	if err == nil {
		err = readLine(reader, &head)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, head, fmt.Errorf("%w: asking the source: %w", errNotYet, err)
	}
	if err := head.err(); err != nil {
		_ = conn.Close()
		return nil, nil, head, err
	}
	return conn, reader, head, nil
}

// isNotYet tells that trying again may help at once.
func isNotYet(err error) bool { return errors.Is(err, errNotYet) }
