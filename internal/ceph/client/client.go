// Package client talks to a Ceph cluster through the program howdah-ceph (internal/ceph/helper), because Ceph's
// libraries abort their process on internal errors. internal/ceph decides the commands.
package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/child"
	"github.com/howdah/howdah/internal/listing"
)

// Binary is the program in the server image.
const Binary = "/usr/libexec/howdah-ceph"

// Options are the user and the cluster of a connection.
type Options struct {
	// Binary is the program; unset means the constant Binary.
	Binary string
	// User is the cephx user without "client.". Required.
	User string
	// Config is the path of ceph.conf. Keyring is a file with the user's key; unset: ceph.conf has it.
	Config, Keyring string
	// Timeout is how long the monitors, an OSD and a mount may take; unset means the program's default.
	Timeout time.Duration
	// Memory is what the program may have while it lists directories, in bytes; unset means usualMemory.
	Memory int64
}

// Error is an error answer of Ceph.
type Error struct {
	Code  syscall.Errno
	Words string
}

func (e *Error) Error() string { return e.Words }

// Is makes errors.Is(err, syscall.ENOENT) work.
func (e *Error) Is(target error) bool { return target == e.Code }

// IsRefusal reports whether Ceph answered with one of the codes. Other errors are local, for example a missing program.
func IsRefusal(err error, codes ...syscall.Errno) bool {
	var answer *Error
	return errors.As(err, &answer) && slices.Contains(codes, answer.Code)
}

// ErrGone means that the program has ended: make a new Client.
var ErrGone = errors.New("the program that speaks to Ceph has ended")

// Client is one connection. Its methods may be called from several goroutines, and run one after the other.
type Client struct {
	command *exec.Cmd
	wait    func() error
	input   io.WriteCloser
	output  *bufio.Reader
	turn    chan struct{} // Has the one token.
	stop    sync.Once
	words   *tail
	memory  int64
}

// Connect starts the program and waits for the cluster.
func Connect(ctx context.Context, options Options) (*Client, error) {
	binary := options.Binary
	if binary == "" {
		binary = Binary
	}
	arguments := []string{"--user", options.User}
	for _, option := range [][2]string{{"--config", options.Config}, {"--keyring", options.Keyring}, {"--timeout", seconds(options.Timeout)}} {
		if option[1] != "" {
			arguments = append(arguments, option[:]...)
		}
	}
	// Not CommandContext: the context is only for connecting.
	c := &Client{command: exec.Command(binary, arguments...), turn: make(chan struct{}, 1), words: &tail{}, memory: cmp.Or(options.Memory, usualMemory)}
	c.command.Stderr = c.words
	input, err := c.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	c.input, c.output = input, bufio.NewReader(output)
	if c.wait, err = child.Start(c.command); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	if err := c.exchange(ctx, nil, nil); err != nil {
		c.Close()
		if answer := (*Error)(nil); errors.As(err, &answer) {
			return nil, err // Ceph's message has the user.
		}
		return nil, fmt.Errorf("connecting to Ceph as client.%s: %w", options.User, err)
	}
	c.turn <- struct{}{}
	return c, nil
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(max(d, time.Second)/time.Second), 10)
}

// Close ends the program. It does not wait for the cluster.
func (c *Client) Close() {
	c.stop.Do(func() {
		_ = c.input.Close()
		_ = c.command.Process.Kill() // Fails only if it has just ended.
		_ = c.wait()
	})
}

// request sends a request and waits for the answer. If the context ends first, the client can't be used any more,
// because the next answer would belong to another request. So it is after a manager did not answer in time: librados has its late answer
// written where the next command of the same program waits for its own.
func (c *Client) request(ctx context.Context, request map[string]any, result any) error {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("asking Ceph: %w", err)
	}
	err = c.exchange(ctx, append(line, '\n'), result)
	if request["op"] == ceph.Manager && IsRefusal(err, syscall.ETIMEDOUT) {
		c.Close()
	}
	return err
}

func (c *Client) exchange(ctx context.Context, line []byte, result any) error {
	finished := context.AfterFunc(ctx, c.Close)
	defer finished()
	if _, err := c.input.Write(line); err != nil {
		return c.gone(ctx)
	}
	text, err := c.line()
	if errors.Is(err, errTooMany) {
		c.Close()
		return err
	}
	if err != nil {
		return c.gone(ctx)
	}
	answer := struct {
		Code   int             `json:"code"`
		Words  string          `json:"words"`
		Result json.RawMessage `json:"result"`
	}{}
	if err := json.Unmarshal(text, &answer); err != nil {
		c.Close()
		return errors.New("the program that speaks to Ceph gave an answer that can't be read") // It may contain a key.
	}
	if answer.Code != 0 {
		return &Error{syscall.Errno(answer.Code), answer.Words}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return errors.New("the program that speaks to Ceph answered something else than was asked")
	}
	return nil
}

func (c *Client) gone(ctx context.Context) error {
	c.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if words := c.words.String(); words != "" {
		return fmt.Errorf("%w: %s", ErrGone, words)
	}
	return ErrGone
}

// tail keeps the end of the program's last output.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const most = 1024
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > most {
		t.text = t.text[len(t.text)-most:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "?")
}

// FSID is the cluster's identity.
func (c *Client) FSID(ctx context.Context) (string, error) {
	var id string
	err := c.request(ctx, map[string]any{"op": "fsid"}, &id)
	return id, err
}

// Command runs a command and returns its output.
func (c *Client) Command(ctx context.Context, command ceph.Command) (string, error) {
	var result struct {
		Out string `json:"out"`
	}
	if err := c.request(ctx, map[string]any{"op": command.Target, "command": command.Arguments}, &result); err != nil {
		return "", fmt.Errorf("%v: %w", command.Arguments["prefix"], err)
	}
	return result.Out, nil
}

// Place is a RADOS namespace of a pool.
type Place struct{ Pool, Namespace string }

func (p Place) request(op, object string) map[string]any {
	return map[string]any{"op": op, "pool": p.Pool, "namespace": p.Namespace, "object": object}
}

// Watchers returns the clients that watch an object.
func (c *Client) Watchers(ctx context.Context, place Place, object string) ([]ceph.Watcher, error) {
	var watchers []ceph.Watcher
	err := c.request(ctx, place.request("watchers", object), &watchers)
	return watchers, err
}

// Objects returns the names of all objects.
func (c *Client) Objects(ctx context.Context, place Place) ([]string, error) {
	var names []string
	err := c.request(ctx, place.request("objects", ""), &names)
	return names, err
}

// Read returns an object; nil if there is none.
func (c *Client) Read(ctx context.Context, place Place, object string) (*ceph.Object, error) {
	var result struct {
		Data    string            `json:"data"`
		Keys    map[string]string `json:"keys"`
		Version uint64            `json:"version"`
	}
	if err := c.request(ctx, place.request("read", object), &result); errors.Is(err, syscall.ENOENT) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	found := &ceph.Object{Keys: map[string][]byte{}, Version: result.Version}
	var err error
	if found.Data, err = hex.DecodeString(result.Data); err != nil {
		return nil, fmt.Errorf("reading object %s: %w", object, err)
	}
	for key, value := range result.Keys {
		if found.Keys[key], err = hex.DecodeString(value); err != nil {
			return nil, fmt.Errorf("reading key %s of object %s: %w", key, object, err)
		}
	}
	return found, nil
}

// Change changes an object, and returns its new version. The error IsConflict if the object has another version than the change needs.
func (c *Client) Change(ctx context.Context, place Place, object string, change ceph.Change) (version uint64, err error) {
	request := place.request("write", object)
	if change.Create {
		request["create"] = true
	}
	if change.Version > 0 {
		request["version"] = change.Version
	}
	if change.Data != nil {
		request["data"] = hex.EncodeToString(change.Data)
	}
	if len(change.Set) > 0 {
		values := map[string]string{}
		for key, value := range change.Set {
			values[key] = hex.EncodeToString(value)
		}
		request["set"] = values
	}
	var result struct {
		Version uint64 `json:"version"`
	}
	err = c.request(ctx, request, &result)
	return result.Version, err
}

// IsConflict reports whether a Change was refused because the object was changed by another client since it was read (assert_version of
// librados: ERANGE if the object is newer, EOVERFLOW if it is older or gone), or was made by one.
func IsConflict(err error) bool {
	return IsRefusal(err, syscall.ERANGE, syscall.EOVERFLOW, syscall.EEXIST)
}

// Remove removes an object.
func (c *Client) Remove(ctx context.Context, place Place, object string) error {
	return c.request(ctx, place.request("remove", object), nil)
}

// Directory is a directory of a file system, as this user sees it.
type Directory struct{ FileSystem, Root string }

// Attributes are a directory's owner, group and mode.
type Attributes struct {
	UID, GID int64
	Mode     uint32
}

// Attributes reads the attributes of a directory.
func (c *Client) Attributes(ctx context.Context, directory Directory) (Attributes, error) {
	var found Attributes
	err := c.request(ctx, map[string]any{"op": "fs.stat", "fileSystem": directory.FileSystem, "root": directory.Root}, &found)
	return found, err
}

// SetAttributes sets a directory's owner, group and permission bits.
func (c *Client) SetAttributes(ctx context.Context, directory Directory, wanted Attributes) error {
	return c.request(ctx, map[string]any{
		"op": "fs.attributes", "fileSystem": directory.FileSystem, "root": directory.Root,
		"uid": wanted.UID, "gid": wanted.GID, "mode": wanted.Mode,
	}, nil)
}

// List returns the names in a directory, unsorted. "/.snap" has the snapshots.
func (c *Client) List(ctx context.Context, directory Directory, path string) ([]string, error) {
	var names []string
	err := c.request(ctx, map[string]any{"op": "fs.list", "fileSystem": directory.FileSystem, "root": directory.Root, "path": path}, &names)
	return names, err
}

// Tree returns the directories below a directory, down to a depth of at least 1, unsorted. It skips directories whose
// names begin with skip. The mount ends with the request, so the client keeps no capabilities.
func (c *Client) Tree(ctx context.Context, directory Directory, depth int32, skip string) ([]listing.Directory, error) {
	var found []listing.Directory
	err := c.list(ctx, map[string]any{
		"op": "fs.tree", "fileSystem": directory.FileSystem, "root": directory.Root, "depth": depth, "skip": skip,
	}, &found)
	return found, err
}

// Sizes returns the bytes in each directory at a depth below a directory, by relative path; depth 0 is the directory
// itself, as "". Ceph's numbers are some seconds old. It skips directories whose names begin with skip.
func (c *Client) Sizes(ctx context.Context, directory Directory, depth int32, skip string) (map[string]int64, error) {
	var found map[string]int64
	err := c.list(ctx, map[string]any{
		"op": "fs.sizes", "fileSystem": directory.FileSystem, "root": directory.Root, "depth": depth, "skip": skip,
	}, &found)
	return found, err
}
