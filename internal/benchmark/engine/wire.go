package engine

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/benchmark"
)

const (
	// heartbeat is how often each side sends a message, silence how long the other side waits for one. The end of a process shows at once in
	// its connection, the loss of a node after silence.
	heartbeat = time.Second
	silence   = 10 * time.Second
	// maxHello is the largest message of a client that has not proved its token, maxMessage of others, in bytes.
	maxHello   = 4 << 10
	maxMessage = 64 << 20
	nonceSize  = 16
)

// kind is the kind of a message.
type kind string

const (
	// From the coordinator: a challenge, the release of a barrier, the end.
	kindChallenge kind = "challenge"
	kindRelease   kind = "release"
	kindAbort     kind = "abort"
	kindDone      kind = "done"
	// From a client: the answer, the arrival at a barrier, its measurements, its failure.
	kindHello  kind = "hello"
	kindArrive kind = "arrive"
	kindReport kind = "report"
	kindFail   kind = "fail"
	// From both.
	kindAlive kind = "alive"
)

// message is a line of JSON.
type message struct {
	Kind    kind                    `json:"kind"`
	Nonce   []byte                  `json:"nonce,omitempty"`
	Proof   []byte                  `json:"proof,omitempty"`
	Client  int                     `json:"client,omitempty"`
	Name    string                  `json:"name,omitempty"`
	Barrier int                     `json:"barrier,omitempty"`
	Bytes   int64                   `json:"bytes,omitempty"`
	Report  *benchmark.ClientReport `json:"report,omitempty"`
	Reason  string                  `json:"reason,omitempty"`
}

// link is a connection of messages.
type link struct {
	conn   net.Conn
	reader *bufio.Reader
	mutex  sync.Mutex // of writes
}

func newLink(conn net.Conn) *link { return &link{conn: conn, reader: bufio.NewReader(conn)} }

func (l *link) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err = l.conn.Write(append(line, '\n'))
	return err
}

var errTooLong = errors.New("the message is too long")

// receive gets the next message that is not just a heartbeat.
func (l *link) receive(limit int) (message, error) {
	for {
		m, err := l.next(limit)
		if err != nil || m.Kind != kindAlive {
			return m, err
		}
	}
}

// next gets the next message, within silence.
func (l *link) next(limit int) (message, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return message{}, err
	}
	line, err := l.line(limit)
	if err != nil {
		return message{}, err
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("the message is not JSON of a message: %w", err)
	}
	return m, nil
}

func (l *link) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := l.reader.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// keepAlive sends heartbeats until the context or the connection ends.
func (l *link) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if l.send(message{Kind: kindAlive}) != nil {
				return // the receiving side has the reason
			}
		}
	}
}

func (l *link) close() { _ = l.conn.Close() } // every message has been written

// lossReason is why a connection ended.
func lossReason(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return "it closed the connection"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no message for %s", silence)
	default:
		return err.Error()
	}
}

func newNonce() []byte {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails (crypto/rand)
	return nonce
}

// proof proves that the sender has the token, without sending it.
func proof(token string, nonce []byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(nonce)
	return mac.Sum(nil)
}
