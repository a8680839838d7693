package mover

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a request or the head of an answer, in bytes. It fits the arguments of rsync and a path.
const maxLine = 16 << 10

// kinds of requests to the source of a move.
const (
	// askMeasure: how large is the directory? The answer's head has it, and nothing follows.
	askMeasure = "measure"
	// askCopy: the rest of the connection is rsync's. The head has the source's time.
	askCopy = "copy"
	// askFreeze: which freeze holds? The answer's head has it, and nothing follows.
	askFreeze = "freeze"
	// askPromise: the source must not end the freeze by itself any more. Nothing follows the head.
	askPromise = "promise"
	// askPlaced: the target has the directory. askNothing: it has neither the directory nor a record of it. Nothing follows the head of either.
	askPlaced  = "placed"
	askNothing = "nothing"
	// askManifest: lines of entries follow.
	askManifest = "manifest"
)

// ask is a request of a move's target to its source.
type ask struct {
	Move string `json:"move"`
	Kind string `json:"kind"`
	// Attempt is the freeze that must hold, 0 if none needs to.
	Attempt int32 `json:"attempt,omitempty"`
	// Freeze is what askFreeze has answered.
	Freeze string `json:"freeze,omitempty"`
	// Args are rsync's, as it gives them to a remote shell.
	Args []string `json:"args,omitempty"`
	// Since asks for digests of the files that changed after it, in the source's time: nanoseconds since 1970. 0: of all.
	Since int64 `json:"since,omitempty"`
}

// reply is the head of an answer.
type reply struct {
	Error string `json:"error,omitempty"`
	// NotYet: it may be possible later.
	NotYet bool `json:"notYet,omitempty"`
	// Ended: this freeze has ended. Unknown: nothing is known of it.
	Ended   bool `json:"ended,omitempty"`
	Unknown bool `json:"unknown,omitempty"`
	// Absent: the source has neither the directory nor a record of it.
	Absent bool `json:"absent,omitempty"`
	// Freeze is different for each freeze.
	Freeze string `json:"freeze,omitempty"`
	// Time is the source's, in nanoseconds since 1970.
	Time int64 `json:"time,omitempty"`
	// Bytes are what the directory uses, Files how many files and directories it has.
	Bytes int64 `json:"bytes,omitempty"`
	Files int64 `json:"files,omitempty"`
	// Parents are the directories above it, from the share's root down.
	Parents []parent `json:"parents,omitempty"`
}

// parent is a directory above the one that moves.
type parent struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Mode uint32 `json:"mode"`
}

// errNotYet is a refusal that may end by itself.
var errNotYet = errors.New("not yet")

// errAbsent: a data server that is the source of a move has neither the directory nor a record of it. It has left, long ago, or it is lost.
var errAbsent = errors.New("the directory is not there, and there is no record of it")

// refusal is the head of an answer that is no.
func refusal(err error) reply {
	return reply{Error: err.Error(), NotYet: errors.Is(err, errNotYet), Ended: errors.Is(err, errEnded), Unknown: errors.Is(err, errUnknown), Absent: errors.Is(err, errAbsent)}
}

func (r *reply) err() error {
	switch {
	case r.Error == "":
		return nil
	case r.Ended:
		return errEnded
	case r.Unknown:
		return errUnknown
	case r.Absent:
		return fmt.Errorf("%w, on the source: %w", errNotYet, errAbsent)
	case r.NotYet:
		return fmt.Errorf("%w: %s", errNotYet, r.Error)
	}
	return errors.New("the source refuses: " + r.Error)
}

// readLine reads a line of JSON, and not a byte more than it.
func readLine(from *bufio.Reader, into any) error {
	var line bytes.Buffer
	for line.Len() < maxLine {
		next, err := from.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && line.Len() > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if next == '\n' {
			return json.Unmarshal(line.Bytes(), into)
		}
		line.WriteByte(next)
	}
	return fmt.Errorf("a line has more than %d bytes", maxLine)
}

func writeLine(to io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}
