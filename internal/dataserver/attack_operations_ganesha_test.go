package dataserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// exported is a data server with one share that 10.99.0.1 may change and 10.99.0.2 may read, and one for 10.98.0.1 alone.
func exported(t *testing.T, name string) *dataServer {
	t.Helper()
	s := boot(t, name, 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{"10.99.0.1"}, AccessType: v1alpha1.AccessReadWrite},
				v1alpha1.AccessRule{Clients: []string{"10.99.0.2"}, AccessType: v1alpha1.AccessReadOnly}),
			dataservertest.ShareSpec("hidden", v1alpha1.AccessRule{Clients: []string{"10.98.0.1"}}),
		}
	})
	s.settle()
	graceIsOver(t)
	return s
}

// graceIsOver waits until clients may open files.
func graceIsOver(t *testing.T) {
	t.Helper()
	w := dialReady(t, "waits for grace to end", "10.99.0.1:2049", 1)
	for w.Run(user, then(lookUp("alpha", "0"), setMode(0o777))...) == nfsv4.NFS4ERR_GRACE {
		time.Sleep(50 * time.Millisecond)
	}
}

// putFile makes a file of uid 1000 on the volume.
func putFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	mustWork(t, "write", os.WriteFile(path, []byte(text), mode))
	mustWork(t, "chmod", os.Chmod(path, mode))
	mustWork(t, "chown", os.Chown(path, 1000, 1000))
}

// readersChangeNothing: each operation of the protocol that changes something, by a client that may read.
func readersChangeNothing(t *testing.T) {
	s := exported(t, "readers")
	file := "/volumes/readers/0/alpha/file"
	text := strings.Repeat("x", 8192)
	putFile(t, file, text, 0o666)
	mustWork(t, "setxattr", unix.Setxattr(file, "user.kept", []byte("value"), 0))
	w := dialReady(t, "wire "+t.Name(), "10.99.0.2:2049", 2)
	directory, here := lookUp("alpha", "0"), lookUp("alpha", "0", "file")
	for what, operations := range map[string][]operation{
		"ALLOCATE":     then(here, allocate(opAllocate, anonymous, 0, 1<<20)),
		"DEALLOCATE":   then(here, allocate(opDeallocate, anonymous, 0, 4096)),
		"SETXATTR":     then(here, setXattr("planted", "value")),
		"REMOVEXATTR":  then(here, raw(opRemoveXattr, "kept")),
		"WRITE":        then(here, write(anonymous, "changed")),
		"SETATTR":      then(here, setMode(0o600)),
		"CREATE":       then(directory, create(&nfsv4.Createtype4_NF4DIR{}, "made")),
		"OPEN, making": then(directory, w.open("made", nfsv4.OPEN4_SHARE_ACCESS_READ)),
		"OPEN, to write": then(directory, &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
			ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE, Owner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("writer")},
			Openhow: &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: "file"},
		}}),
		"REMOVE": then(directory, remove("file")),
		"RENAME": then(directory, saveHandle(), &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "file", Newname: "moved"}}),
		"LINK": then(then(here, saveHandle()), then(directory, &nfsv4.NfsArgop4_OP_LINK{
			Oplink: nfsv4.Link4args{Newname: "linked"},
		})...),
	} {
		for _, cred := range []client.Credentials{root, user} {
			w.mustAnswer(fmt.Sprintf("%s by uid %d", what, cred.UID), cred, operations, nfsv4.NFS4ERR_ROFS)
		}
	}
	now, err := os.ReadFile(file)
	mustWork(t, "read", err)
	if string(now) != text {
		t.Error("the file has changed")
	}
	names := make([]byte, 256)
	n, err := unix.Listxattr(file, names)
	mustWork(t, "listxattr", err)
	if string(names[:n]) != "user.kept\x00" {
		t.Errorf("extended attributes: %q", names[:n])
	}
	w.mustAnswer("a read", user, then(here, readAll(anonymous)), nfsv4.NFS4_OK)
	w.mustAnswer("a read of an extended attribute", user, then(here, raw(opGetXattr, "kept")), nfsv4.NFS4_OK)
	s.mustLive(t, s.pid())
}

// withoutAHandle sends what needs a current handle, as clients with and without access, on no handle and on the root of everything.
func withoutAHandle(t *testing.T) {
	s := exported(t, "handleless")
	pid := s.pid()
	for _, address := range []string{"10.99.0.1", "10.99.0.2"} {
		for what, op := range map[string]operation{
			"ALLOCATE": allocate(opAllocate, anonymous, 0, 1<<62), "DEALLOCATE": allocate(opDeallocate, anonymous, 0, 1<<62),
			"READ_PLUS": raw(opReadPlus, anonymous, uint64(0), 4096), "SEEK": raw(opSeek, anonymous, uint64(0), 0),
			"GETXATTR": raw(opGetXattr, "name"), "SETXATTR": setXattr("name", "value"),
			"LISTXATTRS": raw(opListXattrs, uint64(0), 4096), "REMOVEXATTR": raw(opRemoveXattr, "name"),
		} {
			w := dialReady(t, "wire "+what+address, address+":2049", 2)
			w.mustAnswer(what+" without a handle", user, []operation{op}, nfsv4.NFS4ERR_NOFILEHANDLE, nfsv4.NFS4ERR_NOTSUPP)
			if w.Run(user, putRoot(), op) == nfsv4.NFS4_OK {
				t.Errorf("%s on the root of everything works", what)
			}
		}
	}
	s.mustLive(t, pid)
}

// operationsThatAreOff: what no client needs is not there.
func operationsThatAreOff(t *testing.T) {
	s := exported(t, "off")
	pid := s.pid()
	putFile(t, "/volumes/off/0/alpha/file", "text", 0o644)
	zeros := string(make([]byte, 12))
	off := map[string]rawOperation{
		"LAYOUTRETURN of type FSID": raw(51, 0, 1, 3, 2), "LAYOUTRETURN of type ALL": raw(51, 0, 1, 3, 3),
		"LAYOUTRETURN of type FILE": raw(51, 0, 1, 3, 1, uint64(0), uint64(1), anonymous, ""),
		"LAYOUTGET":                 raw(50, 0, 1, 1, uint64(0), uint64(1), uint64(1), anonymous, 4096),
		"LAYOUTCOMMIT":              raw(49, uint64(0), uint64(1), 0, anonymous, 0, 0, 1, ""),
		"GETDEVICEINFO":             raw(47, uint64(0), uint64(0), 1, 4096, 0), "GETDEVICELIST": raw(48, 1, 16, uint64(0), uint64(0)),
		"SET_SSV": raw(54, zeros, zeros), "DELEGRETURN": raw(8, anonymous), "DELEGPURGE": raw(7, uint64(0)), "OPENATTR": raw(19, 0),
		"RENEW": raw(30, uint64(0)), "OPEN_CONFIRM": raw(20, anonymous, 0), "RELEASE_LOCKOWNER": raw(39, uint64(0), "owner"),
		"SETCLIENTID":         raw(35, uint64(0), "client", 1, "tcp", "0.0.0.0.0.0", 1),
		"SETCLIENTID_CONFIRM": raw(36, uint64(0), uint64(0)),
	}
	later := map[string]rawOperation{
		"READ_PLUS": raw(opReadPlus, anonymous, uint64(0), 4096), "IO_ADVISE": raw(63, anonymous, uint64(0), uint64(1), 1, 1),
		"COPY":           raw(60, anonymous, anonymous, uint64(0), uint64(0), uint64(1), 1, 1, 0),
		"CLONE":          raw(71, anonymous, anonymous, uint64(0), uint64(0), uint64(1)),
		"OFFLOAD_STATUS": raw(67, anonymous), "OFFLOAD_CANCEL": raw(66, anonymous),
	}
	for minor := range uint32(3) {
		if minor == 0 {
			continue
		}
		w := dialReady(t, fmt.Sprintf("off %d", minor), "10.99.0.1:2049", minor)
		for what, op := range off {
			w.mustAnswer(what, user, []operation{op}, nfsv4.NFS4ERR_NOTSUPP)
			w.mustAnswer(what+" on a file", user, then(lookUp("alpha", "0", "file"), op), nfsv4.NFS4ERR_NOTSUPP)
		}
		if minor == 2 {
			for what, op := range later {
				w.mustAnswer(what+" on a file", user, then(lookUp("alpha", "0", "file"), op), nfsv4.NFS4ERR_NOTSUPP)
			}
		}
	}
	s.mustLive(t, pid)
}

// sentAgain: requests whose answers hold memory that is freed, sent once more on their slot.
func sentAgain(t *testing.T) {
	s := exported(t, "again")
	pid := s.pid()
	putFile(t, "/volumes/again/0/alpha/file", "text", 0o644)
	for what, operations := range map[string][]operation{
		"READDIR of the root": {putRoot(), listDirectory()}, "READDIR": then(lookUp("alpha", "0"), listDirectory()),
		"READ": then(lookUp("alpha", "0", "file"), readAll(anonymous)),
	} {
		w := dialReady(t, "again "+what, "10.99.0.2:2049", 1)
		record := w.inSlot(user, operations...)
		first, err := w.exchange(record)
		mustWork(t, what, err)
		if status, _ := w.decode(first); status != nfsv4.NFS4_OK {
			t.Errorf("%s: %s", what, client.StatusName(status))
		}
		for range 3 {
			again, err := w.exchange(record)
			if err != nil {
				t.Fatalf("%s, sent again: %v", what, err)
			}
			if status, _ := w.decode(again); status != nfsv4.NFS4ERR_RETRY_UNCACHED_REP && !bytes.Equal(first, again) {
				t.Errorf("%s, sent again: %s, and another answer", what, client.StatusName(status))
			}
		}
		w.mustAnswer("the next request on the slot of "+what, user, operations, nfsv4.NFS4_OK)
	}
	// What changes something is answered as before, and not done again.
	w := dialReady(t, "again CREATE", "10.99.0.1:2049", 1)
	record := w.inSlot(user, then(lookUp("alpha", "0"), create(&nfsv4.Createtype4_NF4DIR{}, "once"))...)
	for range 3 {
		answer, err := w.exchange(record)
		mustWork(t, "CREATE", err)
		if status, _ := w.decode(answer); status != nfsv4.NFS4_OK {
			t.Errorf("CREATE, sent again: %s", client.StatusName(status))
		}
	}
	sessionsAreAnsweredAgain(t)
	s.mustLive(t, pid)
}

// sessionsAreAnsweredAgain: the answer to CREATE_SESSION has nothing of the request's memory.
func sessionsAreAnsweredAgain(t *testing.T) {
	w := dialReady(t, "again a session", "10.99.0.2:2049", 1)
	for round := range 50 {
		_, known := w.send(root, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
			EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: fmt.Appendf(nil, "with RDMA %d", round)}, EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
		}})
		id := known[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
		channel := nfsv4.ChannelAttrs4{
			CaMaxrequestsize: 1 << 16, CaMaxresponsesize: 1 << 16, CaMaxresponsesizeCached: 4096, CaMaxoperations: 8, CaMaxrequests: 1,
			CaRdmaIrd: []uint32{0xdeadbeef},
		}
		record := w.encode(root, &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
			CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
			CsaCbProgram: 0x40000000, CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
		}})
		for range 2 {
			answer, err := w.exchange(record)
			mustWork(t, "CREATE_SESSION", err)
			_, made := w.decode(answer)
			session := made[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4
			if fore, back := session.CsrForeChanAttrs.CaRdmaIrd, session.CsrBackChanAttrs.CaRdmaIrd; len(fore)+len(back) > 0 {
				t.Fatalf("a session has RDMA: %x, %x", fore, back)
			}
		}
	}
}

// busySlots: while a request is at work, the next ones on its slot are put off, and hold no thread.
func busySlots(t *testing.T) {
	s := exported(t, "busy")
	putFile(t, "/volumes/busy/0/alpha/file", "text", 0o644)
	w := dialReady(t, "busy", "10.99.0.1:2049", 1)
	slow := lookUp("alpha", "0", "file")
	for range 20 {
		slow = append(slow, write(anonymous, "to the disk, each time"))
	}
	putOff := 0
	for try := 0; try < 40 && putOff == 0; try++ {
		records := slowAndNext(w, slow)
		mustWork(t, "set a deadline", w.connection.SetDeadline(time.Now().Add(timeout)))
		_, err := w.connection.Write(records)
		mustWork(t, "send", err)
		for range 2 {
			answer, err := readAnswer(w.connection)
			mustWork(t, "receive", err)
			switch status, _ := w.decode(answer); status {
			case nfsv4.NFS4_OK:
			case nfsv4.NFS4ERR_DELAY:
				putOff++
				w.sequence--
			case nfsv4.NFS4ERR_SEQ_MISORDERED: // Another thread came to the second one first.
				w.sequence--
			default:
				t.Fatal(client.StatusName(status))
			}
		}
	}
	if putOff == 0 {
		t.Error("no request was put off: they wait for each other's slot")
	}
	s.mustLive(t, s.pid())
}

func slowAndNext(w *wire, slow []operation) []byte {
	return append(w.inSlot(user, slow...), w.inSlot(user, putRoot())...)
}

func readAnswer(from net.Conn) ([]byte, error) { return rpc.ReadRecord(from, 1<<20) }

// verifyIsBounded: VERIFY looks at what the client sent, and no further.
func verifyIsBounded(t *testing.T) {
	s := exported(t, "verify")
	putFile(t, "/volumes/verify/0/alpha/file", "text", 0o644)
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 1)
	words := func(all ...uint32) (encoded []byte) {
		for _, word := range all {
			encoded = binary.BigEndian.AppendUint32(encoded, word)
		}
		return encoded
	}
	owner := nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_OWNER - 32)}
	for _, c := range []struct {
		what   string
		mask   nfsv4.Bitmap4
		values []byte
		same   nfsv4.Nfsstat4
	}{
		{"the type", nfsv4.Bitmap4{1 << nfsv4.FATTR4_TYPE}, words(1), nfsv4.NFS4_OK},
		{"the type, in a longer bitmap", nfsv4.Bitmap4{1 << nfsv4.FATTR4_TYPE, 0, 0}, words(1), nfsv4.NFS4_OK},
		{"another type", nfsv4.Bitmap4{1 << nfsv4.FATTR4_TYPE}, words(2), nfsv4.NFS4ERR_NOT_SAME},
		{"type and size", nfsv4.Bitmap4{1<<nfsv4.FATTR4_TYPE | 1<<nfsv4.FATTR4_SIZE}, words(1, 0, 4), nfsv4.NFS4_OK},
		{"a size that is cut", nfsv4.Bitmap4{1<<nfsv4.FATTR4_TYPE | 1<<nfsv4.FATTR4_SIZE}, words(1, 0), nfsv4.NFS4ERR_NOT_SAME},
		{"more than was named", nfsv4.Bitmap4{1 << nfsv4.FATTR4_TYPE}, words(1, 0, 0, 0), nfsv4.NFS4ERR_NOT_SAME},
		{"the owner", owner, append(words(4), "1000"...), nfsv4.NFS4_OK},
		{"the length of an owner alone", owner, words(4), nfsv4.NFS4ERR_NOT_SAME},
		{"an owner of 4 GiB", owner, words(0xffffffff), nfsv4.NFS4ERR_NOT_SAME},
		{"attributes that are not in the table", nfsv4.Bitmap4{0, 0, 0xff800000}, words(0, 0, 0, 0), nfsv4.NFS4ERR_ATTRNOTSUPP},
	} {
		attributes := nfsv4.Fattr4{Attrmask: c.mask, AttrVals: c.values}
		w.mustAnswer("VERIFY of "+c.what, user, then(lookUp("alpha", "0", "file"), &nfsv4.NfsArgop4_OP_VERIFY{
			Opverify: nfsv4.Verify4args{ObjAttributes: attributes},
		}), c.same)
		opposite := map[nfsv4.Nfsstat4]nfsv4.Nfsstat4{nfsv4.NFS4_OK: nfsv4.NFS4ERR_SAME, nfsv4.NFS4ERR_NOT_SAME: nfsv4.NFS4_OK}
		want, known := opposite[c.same]
		if !known {
			want = c.same
		}
		w.mustAnswer("NVERIFY of "+c.what, user, then(lookUp("alpha", "0", "file"), &nfsv4.NfsArgop4_OP_NVERIFY{
			Opnverify: nfsv4.Nverify4args{ObjAttributes: attributes},
		}), want)
	}
	s.mustLive(t, s.pid())
}
