package client

import (
	"bytes"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
)

// replyBytes is a reply as a server sends it.
func replyBytes(t testing.TB, results ...nfsv4.NfsResop4) []byte {
	var encoded bytes.Buffer
	message := rpcv2.RpcMsg{Xid: 1, Body: &rpcv2.RpcMsgBody_REPLY{Rbody: &rpcv2.ReplyBody_MSG_ACCEPTED{
		Areply: rpcv2.AcceptedReply{ReplyData: &rpcv2.AcceptedReplyData_SUCCESS{}},
	}}}
	if _, err := message.WriteTo(&encoded); err != nil {
		t.Fatal(err)
	}
	if _, err := (&nfsv4.Compound4res{Tag: "howdah", Resarray: results}).WriteTo(&encoded); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes()
}

// FuzzReply: whatever a server answers, the client has results or an error. What
// go-xdr reads of a reply, the client reads as well.
func FuzzReply(f *testing.F) {
	attributes := nfsv4.Fattr4{Attrmask: bitmap(nfsv4.FATTR4_TYPE, nfsv4.FATTR4_OWNER), AttrVals: []byte{0, 0, 0, 2, 0, 0, 0, 1, '0', 0, 0, 0}}
	f.Add(replyBytes(f, &nfsv4.NfsResop4_OP_PUTROOTFH{}))
	f.Add(replyBytes(f, &nfsv4.NfsResop4_OP_GETATTR{Opgetattr: &nfsv4.Getattr4res_NFS4_OK{Resok4: nfsv4.Getattr4resok{ObjAttributes: attributes}}}))
	f.Add(replyBytes(f, &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{Resok4: nfsv4.Readdir4resok{
		Reply: nfsv4.Dirlist4{Entries: &nfsv4.Entry4{Cookie: 3, Name: "a", Attrs: attributes, Nextentry: &nfsv4.Entry4{Cookie: 4, Name: "b"}}, Eof: true},
	}}}))
	f.Add(replyBytes(f, &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_default{Status: nfsv4.NFS4ERR_ACCESS}}))
	f.Fuzz(func(t *testing.T, message []byte) {
		encoded, err := decodeReply(message)
		if err != nil {
			return
		}
		r, err := decodeCompound(encoded)
		if err != nil {
			var reference nfsv4.Compound4res
			if _, refErr := reference.ReadFrom(bytes.NewReader(encoded)); refErr == nil && len(reference.Resarray) > 0 && len(reference.Tag) <= 1024 {
				t.Fatalf("go-xdr reads what the client does not: %v", err)
			}
			return
		}
		for _, res := range r.list {
			if p, ok := res.(*page); ok {
				for _, entry := range p.entries {
					_, _, _ = decodeAttributes(entry.fattr)
				}
			} else if fattr, err := attributesOf(res); err == nil {
				_, _, _ = decodeAttributes(fattr)
			}
		}
	})
}
