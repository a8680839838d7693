package operations

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// While a process of the maker's machine is led from what mkdir showed to the referral, all that look the directory up are kept
// waiting and then walk again: one that got the referral now would mount it on what is being dropped.
func TestALookupOfAFreshDirectoryThatIsBeingEnteredIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		path := "/open/plain/fresh"
		if _, status := w.do(alice, at("/open/plain", mkdir("fresh"))...); status != nfsv4.NFS4_OK {
			t.Fatal(status)
		}
		expect := func(what string, want nfsv4.Nfsstat4, after time.Duration) {
			t.Helper()
			began := time.Now()
			if _, status := w.do(alice, at(path, getfh)...); status != want {
				t.Errorf("%s: %v, want %v", what, status, want)
			}
			if took := time.Since(began); took != after {
				t.Errorf("%s: after %v, want %v", what, took, after)
			}
		}
		expect("before anybody enters it", nfsv4.NFS4_OK, 0)
		if _, status := w.do(alice, at(path, getattr(nfsv4.FATTR4_SUPPORTED_ATTRS))...); status != nfsv4.NFS4ERR_STALE {
			t.Errorf("the first who enters it: %v", status)
		}
		other := alice
		other.Addr = netip.MustParseAddr("10.0.0.2")
		if _, status := w.do(other, at(path, getfh)...); status != nfsv4.NFS4ERR_MOVED {
			t.Errorf("another client: %v", status)
		}
		// Each that comes has the others wait for it, too.
		go func() {
			time.Sleep(settleEntry / 2)
			_, _ = w.do(alice, at(path, getfh)...)
		}()
		expect("while it is entered", nfsv4.NFS4ERR_STALE, settleEntry*3/2)
		expect("after that", nfsv4.NFS4ERR_MOVED, 0)
		synctest.Wait()
	})
}

func TestEnteringAFreshDirectoryTakesNotLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		path := "/open/plain/fresh"
		w.do(alice, at("/open/plain", mkdir("fresh"))...)
		w.do(alice, at(path, getattr(nfsv4.FATTR4_SUPPORTED_ATTRS))...)
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for time.Since(began) < 2*settleMost {
				go func() { w.do(alice, at(path, getfh)...) }()
				time.Sleep(settleEntry / 4)
			}
		}()
		w.do(alice, at(path, getfh)...)
		if took := time.Since(began); took > settleMost {
			t.Errorf("it took %v while others kept coming, want at most %v", took, settleMost)
		}
		<-done
	})
}
