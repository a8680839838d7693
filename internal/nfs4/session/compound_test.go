package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// words are 32-bit numbers in network order.
func words(numbers ...uint32) (encoded []byte) {
	for _, number := range numbers {
		encoded = binary.BigEndian.AppendUint32(encoded, number)
	}
	return encoded
}

// opaque is a length, bytes and padding.
func opaque(text string) []byte {
	return append(append(words(uint32(len(text))), text...), make([]byte, -len(text)&3)...)
}

// arguments are COMPOUND4args of minor version 1 with a SEQUENCE and raw operations.
func arguments(f *fixture, count uint32, ops ...[]byte) []byte {
	_, id := f.client("owner")
	var first bytes.Buffer
	if _, err := sequence(id, 0, 1).WriteTo(&first); err != nil {
		panic(err)
	}
	return slicesConcat(append([][]byte{opaque("tag"), words(1, count+1), first.Bytes()}, ops...)...)
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// RFC 8881 section 16.2.3 and 2.7: the header of a compound.
func TestCompoundHeader(t *testing.T) {
	for name, test := range map[string]struct {
		args   []byte
		status nfsv4.Nfsstat4
		tag    string
	}{
		"no operations":                        {slicesConcat(opaque("x"), words(1, 0)), nfsv4.NFS4_OK, "x"},
		"minor version 0":                      {slicesConcat(opaque("x"), words(0, 1, uint32(nfsv4.OP_PUTROOTFH))), nfsv4.NFS4ERR_MINOR_VERS_MISMATCH, "x"},
		"minor version 3":                      {slicesConcat(opaque("x"), words(3, 1, uint32(nfsv4.OP_PUTROOTFH))), nfsv4.NFS4ERR_MINOR_VERS_MISMATCH, "x"},
		"minor version 2^32-1":                 {slicesConcat(opaque(""), words(1<<32-1, 0)), nfsv4.NFS4ERR_MINOR_VERS_MISMATCH, ""},
		"a tag of 1024 bytes":                  {slicesConcat(opaque(strings.Repeat("t", 1024)), words(1, 0)), nfsv4.NFS4_OK, strings.Repeat("t", 1024)},
		"a longer tag":                         {slicesConcat(opaque(strings.Repeat("t", 1025)), words(1, 0)), nfsv4.NFS4ERR_INVAL, ""},
		"a tag that is not UTF-8 (14.6)":       {slicesConcat(opaque("\xff"), words(1, 0)), nfsv4.NFS4ERR_INVAL, ""},
		"fewer operations than the count says": {slicesConcat(opaque("x"), words(1, 2)), nfsv4.NFS4ERR_BADXDR, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			res, _ := newFixture(t, session.Limits{}).raw(alice, test.args)
			if res.Status != test.status || res.Tag != test.tag {
				t.Errorf("%v with tag %q, want %v", nfsv4.Nfsstat4_name[res.Status], res.Tag, nfsv4.Nfsstat4_name[test.status])
			}
			if wantResults := test.status == nfsv4.NFS4ERR_BADXDR; (len(res.Resarray) > 0) != wantResults {
				t.Errorf("%d results", len(res.Resarray))
			}
		})
	}
}

// RFC 5531 section 9: what is no COMPOUND at all.
func TestGarbageArguments(t *testing.T) {
	for name, args := range map[string][]byte{
		"nothing":                  nil,
		"a cut tag":                words(8, 0),
		"a tag longer than all":    words(1<<32-1, 0, 0, 0),
		"no minor version":         opaque("tag"),
		"no number of operations":  slicesConcat(opaque("tag"), words(1)),
		"a number that is cut off": slicesConcat(opaque("tag"), words(1), []byte{0}),
	} {
		t.Run(name, func(t *testing.T) {
			if res, stat := newFixture(t, session.Limits{}).Compound(context.Background(), alice, args); stat != rpcv2.GARBAGE_ARGS || res != nil {
				t.Errorf("%v with %d bytes", stat, len(res))
			}
		})
	}
}

// RFC 8881 section 2.10.6.4, 15.1.3, 18.52 and 17: operations where and as they may not be.
func TestOperationsWithoutSequence(t *testing.T) {
	for name, test := range map[string]struct {
		args []byte
		op   nfsv4.NfsOpnum4
		want nfsv4.Nfsstat4
	}{
		"an ordinary operation":                          {encode(1, putRoot), nfsv4.OP_PUTROOTFH, nfsv4.NFS4ERR_OP_NOT_IN_SESSION},
		"RECLAIM_COMPLETE":                               {encode(1, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}), nfsv4.OP_RECLAIM_COMPLETE, nfsv4.NFS4ERR_OP_NOT_IN_SESSION},
		"EXCHANGE_ID and more":                           {encode(1, exchangeID("o", 1, 0), putRoot), nfsv4.OP_EXCHANGE_ID, nfsv4.NFS4ERR_NOT_ONLY_OP},
		"CREATE_SESSION and more":                        {encode(1, createSession(1, 1), putRoot), nfsv4.OP_CREATE_SESSION, nfsv4.NFS4ERR_NOT_ONLY_OP},
		"DESTROY_SESSION and more":                       {encode(1, destroySession(sessionID{}), putRoot), nfsv4.OP_DESTROY_SESSION, nfsv4.NFS4ERR_NOT_ONLY_OP},
		"DESTROY_CLIENTID and more":                      {encode(1, destroyClient(1), putRoot), nfsv4.OP_DESTROY_CLIENTID, nfsv4.NFS4ERR_NOT_ONLY_OP},
		"not an operation":                               {slicesConcat(opaque(""), words(1, 1, 2)), nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"OP_ILLEGAL itself":                              {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_ILLEGAL))), nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"an operation of 4.2 in 4.1":                     {encode(1, &nfsv4.NfsArgop4_OP_SEEK{}), nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"an operation of 4.2 in 4.2":                     {encode(2, &nfsv4.NfsArgop4_OP_SEEK{}), nfsv4.OP_SEEK, nfsv4.NFS4ERR_OP_NOT_IN_SESSION},
		"an operation of 4.0 (17)":                       {encode(1, &nfsv4.NfsArgop4_OP_RENEW{}), nfsv4.OP_RENEW, nfsv4.NFS4ERR_NOTSUPP},
		"EXCHANGE_ID cut off (15.1.1.1)":                 {encode(1, exchangeID("o", 1, 0))[:30], nfsv4.OP_EXCHANGE_ID, nfsv4.NFS4ERR_BADXDR},
		"EXCHANGE_ID with a long owner":                  {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_EXCHANGE_ID), 0, 0), opaque(strings.Repeat("o", 1025)), words(0, 0, 0)), nfsv4.OP_EXCHANGE_ID, nfsv4.NFS4ERR_BADXDR},
		"EXCHANGE_ID with two implementations (18.35.1)": {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_EXCHANGE_ID), 0, 0), opaque("o"), words(0, 0, 2)), nfsv4.OP_EXCHANGE_ID, nfsv4.NFS4ERR_BADXDR},
		"EXCHANGE_ID with an unknown protection":         {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_EXCHANGE_ID), 0, 0), opaque("o"), words(0, 7, 0)), nfsv4.OP_EXCHANGE_ID, nfsv4.NFS4ERR_BADXDR},
		"CREATE_SESSION with two RDMA depths (18.36.1)":  {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_CREATE_SESSION)), make([]byte, 8+4+4+6*4), words(2, 1, 1), make([]byte, 60)), nfsv4.OP_CREATE_SESSION, nfsv4.NFS4ERR_BADXDR},
		"BIND_CONN_TO_SESSION with a flag that is 2":     {slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_BIND_CONN_TO_SESSION)), make([]byte, 16), words(1, 2)), nfsv4.OP_BIND_CONN_TO_SESSION, nfsv4.NFS4ERR_BADXDR},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			res, _ := f.raw(alice, test.args)
			if res.Status != test.want || len(res.Resarray) != 1 || res.Resarray[0].GetResop() != test.op {
				t.Errorf("%v, %d results, want %v", nfsv4.Nfsstat4_name[res.Status], len(res.Resarray), nfsv4.Nfsstat4_name[test.want])
			}
			if got := f.Stats(); got != (session.Stats{}) {
				t.Errorf("it left %+v", got)
			}
		})
	}
}

// RFC 8881 section 15.2, 18.52, 14.4: within a session the operations before the bad one are executed.
func TestBadOperationsInASession(t *testing.T) {
	putRootWord := words(uint32(nfsv4.OP_PUTROOTFH))
	for name, test := range map[string]struct {
		ops   [][]byte
		count uint32
		op    nfsv4.NfsOpnum4
		want  nfsv4.Nfsstat4
	}{
		"not an operation":                {[][]byte{putRootWord, words(9999)}, 2, nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"a negative number":               {[][]byte{putRootWord, words(1<<32 - 5)}, 2, nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"an operation of 4.2":             {[][]byte{putRootWord, words(uint32(nfsv4.OP_CLONE))}, 2, nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL},
		"cut off":                         {[][]byte{putRootWord, words(uint32(nfsv4.OP_LOOKUP), 50)}, 2, nfsv4.OP_LOOKUP, nfsv4.NFS4ERR_BADXDR},
		"a name that is not UTF-8 (14.4)": {[][]byte{putRootWord, words(uint32(nfsv4.OP_REMOVE)), opaque("a\xff")}, 2, nfsv4.OP_REMOVE, nfsv4.NFS4ERR_INVAL},
		"a look for such a name":          {[][]byte{putRootWord, words(uint32(nfsv4.OP_LOOKUP)), opaque("a\xff")}, 2, nfsv4.OP_LOOKUP, nfsv4.NFS4ERR_NOENT},
		"a handle of 129 bytes":           {[][]byte{putRootWord, words(uint32(nfsv4.OP_PUTFH)), opaque(strings.Repeat("h", 129))}, 2, nfsv4.OP_PUTFH, nfsv4.NFS4ERR_BADXDR},
		"fewer than the count says":       {[][]byte{putRootWord}, 2, nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_BADXDR},
		"SET_SSV (18.47.3)":               {[][]byte{putRootWord, words(uint32(nfsv4.OP_SET_SSV), 0, 0)}, 2, nfsv4.OP_SET_SSV, nfsv4.NFS4ERR_INVAL},
		"FREE_STATEID (18.38)":            {[][]byte{putRootWord, words(uint32(nfsv4.OP_FREE_STATEID), 1, 2, 3, 4)}, 2, nfsv4.OP_FREE_STATEID, nfsv4.NFS4ERR_BAD_STATEID},
		"a handler that panics":           {[][]byte{putRootWord, words(uint32(nfsv4.OP_GETFH))}, 2, nfsv4.OP_GETFH, nfsv4.NFS4ERR_SERVERFAULT},
		"a handler without a result":      {[][]byte{putRootWord, words(uint32(nfsv4.OP_SAVEFH))}, 2, nfsv4.OP_SAVEFH, nfsv4.NFS4ERR_SERVERFAULT},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			args := arguments(f, test.count, test.ops...)
			res, encoded := f.raw(alice, args)
			if res.Status != test.want || len(res.Resarray) != 3 || res.Resarray[2].GetResop() != test.op {
				t.Fatalf("%v, %d results, want %v", nfsv4.Nfsstat4_name[res.Status], len(res.Resarray), nfsv4.Nfsstat4_name[test.want])
			}
			if _, again := f.raw(alice, args); !bytes.Equal(encoded, again) {
				t.Error("the retry is answered differently")
			}
		})
	}
}

// RFC 8881 section 18.48 and 18.33: answers for a server without state IDs and back channel.
func TestOperationsOnStateThatIsNotThere(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	res := f.send(alice, sequence(id, 0, 1), &nfsv4.NfsArgop4_OP_TEST_STATEID{OptestStateid: nfsv4.TestStateid4args{
		TsStateids: make([]nfsv4.Stateid4, 3),
	}}, &nfsv4.NfsArgop4_OP_BACKCHANNEL_CTL{})
	if res.Status != nfsv4.NFS4_OK || len(res.Resarray) != 3 {
		t.Fatal(nfsv4.Nfsstat4_name[res.Status])
	}
	codes := res.Resarray[1].(*nfsv4.NfsResop4_OP_TEST_STATEID).OptestStateid.(*nfsv4.TestStateid4res_NFS4_OK).TsrResok4.TsrStatusCodes
	if len(codes) != 3 || codes[0] != nfsv4.NFS4ERR_BAD_STATEID || codes[2] != nfsv4.NFS4ERR_BAD_STATEID {
		t.Errorf("codes %v", codes)
	}
}

// Small messages that claim or contain very many parts must not cost much memory.
func TestMessagesThatClaimToBeLarge(t *testing.T) {
	const size = 256 << 10
	manyEmpty := slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_CREATE_SESSION)), make([]byte, 8+4+4+28+28+4), words(size/20),
		bytes.Repeat(words(6, 1, 0, 0, 0), size/20))
	shortOpaques := slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_EXCHANGE_ID), 0, 0), opaque("o"), words(0, 2),
		words(0, 0), words(size/8), bytes.Repeat(opaque("x"), size/8))
	for name, args := range map[string][]byte{
		"2^32-1 operations":                        slicesConcat(opaque(""), words(1, 1<<32-1, uint32(nfsv4.OP_PUTROOTFH))),
		"a list of 2^32-1":                         slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_CREATE_SESSION)), make([]byte, 8+4+4+28+28+4), words(1<<32-1)),
		"a name of 2^32-1 bytes":                   slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_LOOKUP), 1<<32-1), make([]byte, 64)),
		"an opaque of 2^32-1":                      slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_SET_SSV), 1<<32-1), make([]byte, 64)),
		"thousands of empty callback handles":      manyEmpty,
		"thousands of one-byte hash algorithms":    shortOpaques,
		"a bitmap of all that fits":                slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_GETATTR), size/4), make([]byte, size)),
		"a list of state IDs as long as a message": slicesConcat(opaque(""), words(1, 1, uint32(nfsv4.OP_TEST_STATEID), size/16), make([]byte, size)),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, _ := f.raw(alice, args)
			runtime.ReadMemStats(&after)
			// The message itself is not counted: it was there before.
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 6<<20 {
				t.Errorf("%d KiB allocated for a message of %d KiB", allocated>>10, len(args)>>10)
			}
			if res.Status == nfsv4.NFS4_OK {
				t.Error("it was accepted")
			}
		})
	}
}
