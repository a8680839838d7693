package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestProgressIsReported(t *testing.T) {
	p := &progress{}
	if got := p.String(); got != "compiling, no test has begun yet" {
		t.Error(got)
	}
	events := lines(end("run", "A"), end("pass", "A"), end("run", "B"), end("fail", "B"), end("run", "C"), end("skip", "C"), end("fail", ""))
	if _, err := countWith(p, strings.NewReader(events), io.Discard, false); err != nil {
		t.Fatal(err)
	}
	if got, want := p.String(), "1 packages done, 1 tests passed, 1 failed; the last that began: p C"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAReminderComesUntilItIsStopped(t *testing.T) {
	read, write := io.Pipe()
	stop := (&progress{}).remind(write, "unit", time.Millisecond)
	line := make([]byte, 200)
	n, err := read.Read(line)
	if err != nil || !bytes.HasPrefix(line[:n], []byte("... unit, 0s: compiling")) {
		t.Errorf("%q, %v", line[:n], err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	stop()
	_ = write.Close()
}
