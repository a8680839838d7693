package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsPrintedEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, 2)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.run(ctx); close(done) }()
		time.Sleep(10500 * time.Millisecond) // Nothing is under way yet.
		p.begin("waiting for share %s", "all")
		time.Sleep(4 * time.Second)
		p.note("its claim is pending")
		time.Sleep(8 * time.Second)
		p.begin("reading")
		p.note("for 20 s")
		time.Sleep(6 * time.Second)
		p.end("17.7 MB/s")
		stop()
		<-done
		want := strings.Join([]string{
			"   10 s  step 1 of 2: waiting for share all",
			"   16 s  step 1 of 2: waiting for share all: 6 s, its claim is pending",
			"   21 s  step 1 of 2: waiting for share all: 10 s, its claim is pending",
			"   22 s  step 2 of 2: reading",
			"   28 s  step 2 of 2: reading: 6 s, for 20 s",
			"   28 s  step 2 of 2: reading: 17.7 MB/s",
		}, "\n") + "\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}
