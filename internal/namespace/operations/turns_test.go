package operations

import (
	"bytes"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// kernel is a client of a session server in the same process.
type kernel struct {
	t      *testing.T
	server *session.Server
	caller rpc.Caller
	id     [16]byte

	mu       sync.Mutex
	sequence [64]uint32
}

func (k *kernel) call(ops ...nfsv4.NfsArgop4) *nfsv4.Compound4res {
	k.t.Helper()
	var args bytes.Buffer
	if _, err := (&nfsv4.Compound4args{Minorversion: 2, Argarray: ops}).WriteTo(&args); err != nil {
		k.t.Fatal(err)
	}
	encoded, _ := k.server.Compound(k.t.Context(), k.caller, args.Bytes())
	var res nfsv4.Compound4res
	if _, err := res.ReadFrom(bytes.NewReader(encoded)); err != nil {
		k.t.Fatal(err)
	}
	return &res
}

// on does operations on a slot.
func (k *kernel) on(slot uint32, ops ...nfsv4.NfsArgop4) nfsv4.Nfsstat4 {
	k.mu.Lock()
	k.sequence[slot]++
	number := k.sequence[slot]
	k.mu.Unlock()
	return k.call(append([]nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: k.id, SaSlotid: slot, SaSequenceid: number, SaHighestSlotid: slot,
	}}}, ops...)...).Status
}

func mount(t *testing.T, server *session.Server, address string) *kernel {
	t.Helper()
	k := &kernel{t: t, server: server, caller: rpc.Caller{Addr: netip.MustParseAddr(address)}}
	res := k.call(&nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: []byte(address)}, EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}})
	id := res.Resarray[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{CaMaxrequestsize: 1 << 16, CaMaxresponsesize: 1 << 16, CaMaxoperations: 64, CaMaxrequests: 64}
	res = k.call(&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
	}})
	k.id = res.Resarray[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return k
}

// One address makes 50 directories a second, begins to enter each, and has 60 processes look it up meanwhile, which are kept
// waiting. In fake time, what another address does takes no time at all unless it waits for one of them.
func TestLookupsOfAFreshDirectoryDoNotBlockOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.handler.Now = time.Now
		server, err := session.New(session.Config{Handler: w.handler, Owner: "o", Scope: "s"})
		if err != nil {
			t.Fatal(err)
		}
		busy, other := mount(t, server, "10.0.0.1"), mount(t, server, "10.0.0.2")
		end := time.Now().Add(2 * time.Second)
		var all sync.WaitGroup
		var made atomic.Int64
		all.Go(func() {
			for time.Now().Before(end) {
				name := fmt.Sprint("d", made.Load())
				if status := busy.on(0, at("/open/plain", mkdir(name))...); status != nfsv4.NFS4_OK {
					t.Errorf("mkdir: %v", status)
				}
				made.Add(1)
				if status := busy.on(0, at("/open/plain/"+name, getattr(nfsv4.FATTR4_SUPPORTED_ATTRS))...); status != nfsv4.NFS4ERR_STALE {
					t.Errorf("enter: %v", status)
				}
				time.Sleep(time.Second / 50)
			}
		})
		for slot := range uint32(60) {
			all.Go(func() {
				for time.Now().Before(end) {
					busy.on(1+slot, at(fmt.Sprint("/open/plain/d", max(made.Load()-1, 0)))...)
					time.Sleep(time.Millisecond)
				}
			})
		}
		done, longest := 0, time.Duration(0)
		for time.Now().Before(end) {
			began := time.Now()
			if status := other.on(0, at("/open/plain", getattr(nfsv4.FATTR4_TYPE))...); status != nfsv4.NFS4_OK {
				t.Errorf("another address: %v", status)
			}
			done, longest = done+1, max(longest, time.Since(began))
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		t.Logf("%d directories made, %d operations of the other address, the longest took %v", made.Load(), done, longest)
		if longest > 0 || done < 1900 {
			t.Errorf("the other address did %d operations in 2 s, the longest took %v; want 2,000 without any wait", done, longest)
		}
	})
}
