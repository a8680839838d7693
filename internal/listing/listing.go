// Package listing is how a namespace server learns which directories a share has without NFS, where every data server has the same:
// what ganesha lists, its client of Ceph keeps capabilities of, and from then on no data server has the directories that it owns for
// itself (docs/design/2026-11-22-backends.md). The supervisor answers at the port where namespace servers prove who they are.
//
// A request is a record of one fragment (RFC 5531 section 11) that has hello and JSON in it, an answer a line of JSON; one of each for a
// connection. A record, because what else is spoken at that port are calls in records, and an older supervisor hands this one to
// ganesha, too: for it that is a message that is neither a call nor a reply.
package listing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
	"unicode/utf8"
)

const hello = "howdah listing 1\n"

// lastFragment is set in the header of a record's last fragment, beside its length in bytes.
const (
	lastFragment = 1 << 31
	headerBytes  = 4
)

const (
	// maxRequest and maxAnswer bound, in bytes, what either side reads of the other: a share has some thousands of directories of some 100 bytes.
	maxRequest = 4 << 10
	maxAnswer  = 32 << 20
	// maxDirectories are in one answer; a share shows 100,000 at the most (spec.maxDirectories).
	maxDirectories = 1 << 17
)

// ErrTooMany tells that there are more directories than an answer has. Those that it has are there, and another may be missing in it.
var ErrTooMany = errors.New("the share has more directories, at the depth of its distributed ones and above it, than are looked at")

// ErrNotOffered tells that a data server lists nothing so: it is older, or its storage is not shared. Ask it by NFS.
var ErrNotOffered = errors.New("the data server lists directories by NFS only")

// Request asks for the directories of a share, down to a depth of at least 1 below its root.
type Request struct {
	Share string `json:"share"`
	Depth int32  `json:"depth"`
}

// Directory is one of them. Path is relative to the share's root, without a slash at either end; Mode has the permission bits.
type Directory struct {
	Path string `json:"path"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Mode uint32 `json:"mode"`
}

// withBytes is a directory whose path is not UTF-8. JSON has no such text: another character would stand in its place, and the path would be that of a directory that
// there is not.
type withBytes struct {
	directory
	PathBytes []byte `json:"pathBytes,omitempty"`
}

type directory Directory

// MarshalJSON implements json.Marshaler.
func (d Directory) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(d.Path) {
		return json.Marshal(directory(d))
	}
	return json.Marshal(withBytes{directory(d), []byte(d.Path)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Directory) UnmarshalJSON(text []byte) error {
	var read withBytes
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*d = Directory(read.directory)
	if read.PathBytes != nil {
		d.Path = string(read.PathBytes)
	}
	return nil
}

type answer struct {
	Directories []Directory `json:"directories"`
	Error       string      `json:"error,omitempty"`
	NotOffered  bool        `json:"notOffered,omitempty"`
}

// Ask asks at a connection, and leaves closing it to the caller. What never comes to an answer is ErrNotOffered: an older data server takes the
// question for the beginning of a record. With ErrTooMany there are directories, too.
func Ask(ctx context.Context, conn net.Conn, request Request) ([]Directory, error) {
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	question, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask for the directories of share %s: %w", request.Share, err)
	}
	record := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(hello)+len(question)))
	if _, err := conn.Write(append(append(record, hello...), question...)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotOffered, err)
	}
	return read(conn, maxAnswer, maxDirectories)
}

// read reads an answer directory by directory, so that no more than they are is in memory.
func read(from io.Reader, bytes int64, directories int) (found []Directory, err error) {
	left := &io.LimitedReader{R: from, N: bytes}
	decoder := json.NewDecoder(left)
	rest, err := decode(decoder, &found, directories)
	switch {
	case errors.Is(err, ErrTooMany), err != nil && left.N == 0 && len(found) > 0:
		return found, ErrTooMany
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotOffered, err)
	case rest.NotOffered:
		return nil, ErrNotOffered
	case rest.Error != "":
		return nil, errors.New(rest.Error)
	}
	return found, nil
}

// decode takes an answer apart: its directories go into found, the rest is returned.
func decode(decoder *json.Decoder, found *[]Directory, most int) (rest answer, err error) {
	if err := expect(decoder, json.Delim('{')); err != nil {
		return rest, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return rest, err
		}
		switch key {
		case "directories":
			err = decodeDirectories(decoder, found, most)
		case "error":
			err = decoder.Decode(&rest.Error)
		case "notOffered":
			err = decoder.Decode(&rest.NotOffered)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return rest, err
		}
	}
	return rest, expect(decoder, json.Delim('}'))
}

func decodeDirectories(decoder *json.Decoder, found *[]Directory, most int) error {
	begin, err := decoder.Token()
	if err != nil || begin == nil { // null: there are none.
		return err
	}
	if begin != json.Delim('[') {
		return fmt.Errorf("the directories are %v, and no list", begin)
	}
	for decoder.More() {
		if len(*found) >= most {
			return ErrTooMany
		}
		var directory Directory
		if err := decoder.Decode(&directory); err != nil {
			return err
		}
		*found = append(*found, directory)
	}
	return expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where %v is expected", got, want)
	}
	return err
}

// IsRequest reports whether the next bytes are a request. It consumes nothing, and reads no more than it needs to see that they are something else.
func IsRequest(from *bufio.Reader) (bool, error) {
	for n := 1; n <= headerBytes+len(hello); n++ {
		begun, err := from.Peek(n)
		if err != nil {
			return false, err
		}
		if n == 1 && begun[0] != lastFragment>>24 || n > headerBytes && begun[n-1] != hello[n-1-headerBytes] {
			return false, nil
		}
	}
	return true, nil
}

// Answer answers a request. The error is about the connection; that of list goes into the answer.
func Answer(from io.Reader, to io.Writer, list func(Request) ([]Directory, error)) error {
	var reply answer
	request, err := parse(from)
	if err == nil {
		reply.Directories, err = list(request)
		// One more than an answer may have tells that there are more.
		reply.Directories = reply.Directories[:min(len(reply.Directories), maxDirectories+1)]
	}
	switch {
	case errors.Is(err, ErrNotOffered):
		reply.NotOffered = true
	case err != nil:
		reply = answer{Error: err.Error()}
	}
	return json.NewEncoder(to).Encode(reply)
}

func parse(from io.Reader) (Request, error) {
	var request Request
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(from, header); err != nil {
		return request, fmt.Errorf("the request has no header: %w", err)
	}
	length := binary.BigEndian.Uint32(header) &^ lastFragment
	if length < uint32(len(hello)) || length > maxRequest {
		return request, fmt.Errorf("the request has %d bytes, and may have %d", length, maxRequest)
	}
	record := make([]byte, length)
	if _, err := io.ReadFull(from, record); err != nil {
		return request, fmt.Errorf("the request ends too early: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(record[len(hello):]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return request, fmt.Errorf("the request can't be read: %w", err)
	}
	if request.Share == "" || request.Depth < 1 {
		return request, fmt.Errorf("share %q and depth %d: want a share's name and a depth of at least 1", request.Share, request.Depth)
	}
	return request, nil
}
