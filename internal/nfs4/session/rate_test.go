package session_test

import (
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// Of changes that are beyond the rate, and too many to wait for it, one after the other is done. That gives none of the others a place.
func TestChangesBeyondTheRateDoNotRaiseIt(t *testing.T) {
	f := newFixture(t, session.Limits{ChangesPerSecond: 1, ChangeBurst: 2, ChangesPerAddress: 16, Slots: 32})
	f.handler.entered, f.handler.leave = make(chan struct{}, 100), make(chan struct{})
	mine := f.wideSession(t, 32)
	statuses := make(chan nfsv4.Nfsstat4, 32)
	sent := uint32(0)
	send := func(n int) {
		for range n {
			slot := sent
			go func() { statuses <- f.send(at(1), sequence(mine, slot, 1), putRoot, create).Status }()
			sent++
		}
	}
	// Two by the rate and one beyond it are under way, and ten more wait.
	send(13)
	for range 3 {
		<-f.handler.entered
	}
	time.Sleep(100 * time.Millisecond)
	for range 3 {
		f.handler.leave <- struct{}{}
	}
	<-f.handler.entered // One of those that waited.
	for range 4 {
		send(1)
		select {
		case <-f.handler.entered:
			t.Fatal("two changes beyond the rate are under way at once")
		case <-time.After(30 * time.Millisecond):
		}
		f.handler.leave <- struct{}{}
		<-f.handler.entered
	}
	close(f.handler.leave)
	for range sent {
		<-statuses
	}
}
