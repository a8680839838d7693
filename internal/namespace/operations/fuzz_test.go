package operations

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// sessionOperations are those that the session layer does itself: they never get here.
var sessionOperations = map[nfsv4.NfsOpnum4]bool{
	nfsv4.OP_EXCHANGE_ID: true, nfsv4.OP_CREATE_SESSION: true, nfsv4.OP_DESTROY_SESSION: true, nfsv4.OP_DESTROY_CLIENTID: true,
	nfsv4.OP_BIND_CONN_TO_SESSION: true, nfsv4.OP_BACKCHANNEL_CTL: true, nfsv4.OP_SET_SSV: true, nfsv4.OP_SEQUENCE: true,
	nfsv4.OP_RECLAIM_COMPLETE: true, nfsv4.OP_TEST_STATEID: true, nfsv4.OP_FREE_STATEID: true, nfsv4.OP_ILLEGAL: true,
}

// FuzzCompound runs whatever operations the bytes have on a tree: nothing panics, every result is one of
// its operation, can be encoded, and is not larger than a READDIR may be.
func FuzzCompound(f *testing.F) {
	encode := func(list ...nfsv4.NfsArgop4) []byte {
		var b bytes.Buffer
		for _, op := range list {
			if _, err := op.WriteTo(&b); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes()
	}
	f.Add(encode(at("/open/plain", savefh, rename("junction", "x"), getfh, getattr(typeBit))...), uint32(1000), byte(0))
	f.Add(encode(at("/open", mkdir("x", uid5), getfh, getattr(typeBit, nfsv4.FATTR4_FS_LOCATIONS))...), uint32(0), byte(0))
	f.Add(encode(at("/", readdir(nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: kernelAttributes}))...), uint32(5), byte(1))
	f.Add(encode(at("/open", open("x", creating), rmdir("plain"), lookupp, restore, secinfo("x"))...), uint32(5), byte(2))
	f.Add(encode(at("/deep/single", verify(typeBit, nfsv4.NF4DIR), putfh(tree.EncodeHandle(tree.HandleDirectory, tree.ID{1})))...), uint32(5), byte(2))
	place := newWorld(f).placeFor(idle)
	for _, op := range []nfsv4.NfsArgop4{readdir(nfsv4.Readdir4args{Maxcount: 4096}), lookup("idle"), lookup("junction"), lookup("none"), mkdir("x"), rmdir("x"), open("x", creating), lookupp, secinfo("x")} {
		f.Add(encode(at(place, getfh, savefh, op)...), uint32(5), byte(2))
	}
	f.Add(encode(at(idle, getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_OWNER), getfh)...), uint32(5), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, uid uint32, network byte) {
		w := newWorld(t)
		w.handler.Own = func(string) []string { return []string{"10.96.0.1"} }
		c := w.handler.Begin(context.Background(), rpc.Caller{Addr: netip.AddrFrom4([4]byte{10, network, 0, 1}), UID: uid, GID: uid}, 1)
		r := bytes.NewReader(b)
		for range 64 {
			op, _, err := nfsv4.ReadNfsArgop4(r)
			if err != nil || sessionOperations[op.GetArgop()] {
				return
			}
			res := c.Do(context.Background(), op)
			if res.GetResop() != op.GetArgop() {
				t.Fatalf("%T got %T", op, res)
			}
			var out bytes.Buffer
			if _, err := res.WriteTo(&out); err != nil {
				t.Fatalf("%T: %v", res, err)
			}
			if out.Len() > maxReaddir+64 {
				t.Fatalf("%T has %d bytes", res, out.Len())
			}
			if session.StatusOf(res) != nfsv4.NFS4_OK {
				return
			}
		}
	})
}
