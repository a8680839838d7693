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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/child"
)

// askWait is how long the target may take for its request.
const askWait = 10 * time.Second

// senderFlags are the bundle of options that rsync gives a sender: letters, and after "e." what the client can do. None of them changes a file.
// senderOptions are the long ones.
var (
	senderFlags   = regexp.MustCompile(`^(-[a-zA-Z]+(e[0-9]*\.[a-zA-Z]*)?|--bwlimit=[0-9]+)$`)
	senderOptions = map[string]bool{"--numeric-ids": true, "--inplace": true, "--specials": true}
)

// Serve answers the data server of that name, which has shown its certificate: the target of a move of which this one is the source.
func (m *Mover) Serve(ctx context.Context, peer string, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(askWait))
	reader := bufio.NewReader(conn)
	var request ask
	if err := readLine(reader, &request); err != nil {
		m.Log.Warn("a data server asks for a move that can't be read", "peer", peer, "err", err)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if err := m.answer(ctx, peer, &request, reader, conn); err != nil {
		m.Log.Warn("answering the target of a move", "move", request.Move, "peer", peer, "kind", request.Kind, "err", err)
	}
}

// answer answers one request.
func (m *Mover) answer(ctx context.Context, peer string, request *ask, reader *bufio.Reader, conn net.Conn) error {
	if settle := m.settling(request.Kind); settle != nil {
		if err := settle(peer, request); err != nil {
			return writeLine(conn, refusal(err))
		}
		return writeLine(conn, reply{Time: m.Now().UnixNano()})
	}
	at, release, err := m.admit(peer, request)
	if err != nil {
		return writeLine(conn, refusal(err))
	}
	defer release()
	head := reply{Time: m.Now().UnixNano(), Freeze: at.freeze}
	switch request.Kind {
	case askFreeze:
		if head.Parents, err = parentsOf(at.place); err != nil {
			return writeLine(conn, reply{Error: err.Error(), NotYet: true})
		}
		return writeLine(conn, head)
	case askMeasure:
		if head.Bytes, head.Files, err = measure(at.directory); err != nil {
			head = reply{Error: err.Error(), NotYet: true}
		}
		return writeLine(conn, head)
	case askManifest:
		if err := writeLine(conn, head); err != nil {
			return err
		}
		return writeManifest(conn, at.directory, time.Unix(0, request.Since).Add(-clockMargin))
	case askCopy:
		return m.send(ctx, request.Args, at.directory, head, reader, conn)
	}
	return writeLine(conn, reply{Error: fmt.Sprintf("this version knows no request %q", request.Kind)})
}

// asked is the directory that a request is about.
type asked struct {
	place     place
	directory string
	// freeze is the one that holds, "" if none does.
	freeze string
}

// admit finds the directory, if the peer may have it now.
func (m *Mover) admit(peer string, request *ask) (at asked, release func(), err error) {
	task := m.task(request.Move)
	if task == nil || task.Role != internalv1.MoveSource {
		return at, nil, fmt.Errorf("%w: this data server knows no move %q of which it is the source", errNotYet, request.Move)
	}
	if task.Peer.Name != peer {
		return at, nil, fmt.Errorf("the target of move %q is data server %s, not %s", request.Move, task.Peer.Name, peer)
	}
	at.place = m.placeFor(task)
	j, err := at.place.read()
	if err != nil {
		return at, nil, err
	}
	frozen := j != nil && (j.Stage == stageFrozen || j.Stage == stagePromised)
	switch {
	case request.Attempt > 0 && (!frozen || j.Attempt != request.Attempt || task.Attempt != request.Attempt),
		request.Freeze != "" && j.Freeze != request.Freeze:
		return at, nil, fmt.Errorf("%w: the directory is not frozen for attempt %d", errNotYet, request.Attempt)
	case frozen:
		at.directory, at.freeze = at.place.hidden(), j.Freeze
	case j != nil && j.Stage != stageReleased:
		return at, nil, fmt.Errorf("%w: the directory is %s", errNotYet, j.Stage)
	default:
		at.directory = at.place.shown()
	}
	// A link in the place of a directory leads elsewhere.
	if resolved, err := filepath.EvalSymlinks(at.directory); err != nil {
		if j == nil && hasGone(at.place) == nil {
			err = errAbsent
		}
		return at, nil, fmt.Errorf("%w: %w", errNotYet, err)
	} else if resolved != at.directory {
		return at, nil, fmt.Errorf("%q leads to another place", at.place.path)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.sending[request.Move] >= mostSenders {
		return at, nil, fmt.Errorf("%w: the source answers another request of this move", errNotYet)
	}
	m.sending[request.Move]++
	return at, func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		if m.sending[request.Move]--; m.sending[request.Move] == 0 {
			delete(m.sending, request.Move)
		}
	}, nil
}

// send runs rsync as the sender of one directory, with the other end of the connection as its client.
func (m *Mover) send(ctx context.Context, args []string, directory string, head reply, reader *bufio.Reader, conn net.Conn) error {
	arguments, err := senderArguments(args)
	if err != nil {
		return writeLine(conn, reply{Error: err.Error()})
	}
	if err := writeLine(conn, head); err != nil {
		return err
	}
	words := slices.Concat([]string{m.Rsync}, arguments, []string{".", "./"})
	if m.confines {
		words = slices.Concat(m.Self, []string{ConfinedCommand, directory}, words)
	}
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = directory
	command.Env = []string{"LANG=C", "PATH=/usr/bin:/bin"}
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	var complaints strings.Builder
	command.Stdout, command.Stderr = conn, &limited{to: &complaints, left: maxLine}
	wait, err := child.Start(command)
	if err != nil {
		return fmt.Errorf("starting rsync: %w", err)
	}
	yield(command.Process.Pid)
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	go func() {
		_, _ = io.Copy(input, reader) // It ends with the connection, and rsync with its input.
		_ = input.Close()
	}()
	if err := wait(); err != nil && !isVanished(err) {
		return fmt.Errorf("rsync, sending: %w: %s", err, complaints.String())
	}
	return nil
}

// senderArguments are the arguments of a client's remote shell that a sender gets: "rsync --server --sender FLAGS . PATH", whose path is not used.
func senderArguments(args []string) ([]string, error) {
	if len(args) < 5 || args[0] != "rsync" || args[1] != "--server" || args[2] != "--sender" || args[len(args)-2] != "." {
		return nil, fmt.Errorf("these are no arguments of a sender: %q", args)
	}
	for _, arg := range args[3 : len(args)-2] {
		if !senderFlags.MatchString(arg) && !senderOptions[arg] {
			return nil, fmt.Errorf("a sender takes no argument %q", arg)
		}
	}
	return args[1 : len(args)-2], nil
}

// isVanished tells that all rsync had to complain about is files that were removed while it ran.
func isVanished(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 24
}

// limited keeps the beginning of what is written.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(text []byte) (int, error) {
	if n := min(l.left, len(text)); n > 0 {
		l.left -= n
		if _, err := l.to.Write(text[:n]); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// parentsOf are the directories above a moving one.
func parentsOf(where place) (parents []parent, err error) {
	names := strings.Split(where.path, "/")
	at := where.export()
	for _, name := range names[:len(names)-1] {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		stat := info.Sys().(*syscall.Stat_t)
		parents = append(parents, parent{Name: name, UID: stat.Uid, GID: stat.Gid, Mode: stat.Mode & 0o7777})
	}
	return parents, nil
}
