package session_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// Every operation of NFSv4.2 with every status of it.
func TestFailGivesTheResultOfTheOperation(t *testing.T) {
	if len(nfsv4.NfsOpnum4_name) < 70 || len(nfsv4.Nfsstat4_name) < 110 {
		t.Fatalf("%d operations, %d statuses", len(nfsv4.NfsOpnum4_name), len(nfsv4.Nfsstat4_name))
	}
	for number, name := range nfsv4.NfsOpnum4_name {
		t.Run(name, func(t *testing.T) {
			for status := range nfsv4.Nfsstat4_name {
				if status == nfsv4.NFS4_OK {
					continue
				}
				res := session.FailNumber(number, status)
				if res.GetResop() != number || session.StatusOf(res) != status {
					t.Fatalf("%T with status %v for %v", res, session.StatusOf(res), status)
				}
				if want := fmt.Sprintf("*nfsv4.NfsResop4_%s", name); fmt.Sprintf("%T", res) != want {
					t.Fatalf("%T, want %s", res, want)
				}
				var encoded bytes.Buffer
				if _, err := res.WriteTo(&encoded); err != nil {
					t.Fatal(err)
				}
				again, _, err := nfsv4.ReadNfsResop4(&encoded)
				if err != nil || session.StatusOf(again) != status || encoded.Len() > 0 {
					t.Fatalf("read back: %v, %d bytes left", err, encoded.Len())
				}
			}
		})
	}
}

// Fail takes the operation's arguments, of every type.
func TestFailOfArguments(t *testing.T) {
	for number, name := range nfsv4.NfsOpnum4_name {
		var head [4]byte
		head[2], head[3] = byte(number>>8), byte(number)
		op, _, err := nfsv4.ReadNfsArgop4(bytes.NewReader(append(head[:], make([]byte, 4096)...)))
		if err != nil {
			// A zero is not valid for some, such as the type of an object.
			t.Logf("%s: %v", name, err)
			continue
		}
		if res := session.Fail(op, nfsv4.NFS4ERR_PERM); res.GetResop() != number || session.StatusOf(res) != nfsv4.NFS4ERR_PERM {
			t.Errorf("%s: %T with %v", name, res, session.StatusOf(res))
		}
	}
}

func TestFailOfNoOperationIsIllegal(t *testing.T) {
	for _, number := range []nfsv4.NfsOpnum4{-1, 0, 2, 72, 10043, 1 << 30} {
		res := session.FailNumber(number, nfsv4.NFS4ERR_OP_ILLEGAL)
		if res.GetResop() != nfsv4.OP_ILLEGAL || session.StatusOf(res) != nfsv4.NFS4ERR_OP_ILLEGAL {
			t.Errorf("%d: %T with %v", number, res, session.StatusOf(res))
		}
	}
}

func TestFailWithOKIsASuccessThatReturnsNothing(t *testing.T) {
	for _, number := range []nfsv4.NfsOpnum4{nfsv4.OP_PUTFH, nfsv4.OP_PUTROOTFH, nfsv4.OP_SAVEFH, nfsv4.OP_RESTOREFH, nfsv4.OP_LOOKUP, nfsv4.OP_VERIFY} {
		if res := session.FailNumber(number, nfsv4.NFS4_OK); res.GetResop() != number || session.StatusOf(res) != nfsv4.NFS4_OK {
			t.Errorf("%d: %T with %v", number, res, session.StatusOf(res))
		}
	}
}
