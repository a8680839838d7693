package sys

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// listener gets the lines that commands write, while they write them.
var listener atomic.Pointer[func(line string)]

// Listen passes on every line that commands write from now on, for progress reports. The
// function may be called from several goroutines; nil ends it.
func Listen(hear func(line string)) {
	if hear == nil {
		listener.Store(nil)
		return
	}
	listener.Store(&hear)
}

// lines tells the listener of each line that is written to it.
type lines struct {
	mu   sync.Mutex
	rest []byte
}

func (l *lines) Write(data []byte) (int, error) {
	hear := listener.Load()
	if hear == nil {
		return len(data), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, data...)
	for {
		// Programs that show progress themselves end their lines with a carriage return.
		end := bytes.IndexAny(l.rest, "\r\n")
		if end < 0 {
			return len(data), nil
		}
		if line := bytes.TrimSpace(l.rest[:end]); len(line) > 0 {
			(*hear)(string(line))
		}
		l.rest = l.rest[end+1:]
	}
}
