// Package agent is how the host runs commands inside a node: a few frames over
// one TCP connection. It is neither ssh (a daemon and keys more in the image)
// nor the serial console (one command at a time, and text alone).
package agent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Request is the first frame that the host sends.
type Request struct {
	// Token is the instance's secret: pods can reach the port as well.
	Token string   `json:"token"`
	Args  []string `json:"args"`
}

const (
	frameRequest = iota
	frameStdin
	frameStdinEnd
	frameStdout
	frameStderr
	frameExit
)

const maxFrame = 1 << 20

// framer writes frames of several writers to one stream.
type framer struct {
	mu  sync.Mutex
	out io.Writer
}

func (f *framer) write(kind byte, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	frame := make([]byte, 5, 5+len(data))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(data)))
	_, err := f.out.Write(append(frame, data...))
	return err
}

func (f *framer) writeJSON(kind byte, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return f.write(kind, data)
}

// stream returns a writer whose every Write becomes frames of one kind.
func (f *framer) stream(kind byte) io.Writer {
	return frameWriter{framer: f, kind: kind}
}

type frameWriter struct {
	framer *framer
	kind   byte
}

func (w frameWriter) Write(data []byte) (int, error) {
	for sent := 0; sent < len(data); {
		end := min(sent+maxFrame, len(data))
		if err := w.framer.write(w.kind, data[sent:end]); err != nil {
			return sent, err
		}
		sent = end
	}
	return len(data), nil
}

func readFrame(in io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes", size)
	}
	data := make([]byte, size)
	_, err := io.ReadFull(in, data)
	return head[0], data, err
}
