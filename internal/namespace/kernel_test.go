package namespace

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// kernel sends the compounds that the Linux client sends (fs/nfs/nfs4xdr.c), over a session with one slot.
type kernel struct {
	t       testing.TB
	conn    net.Conn
	mu      sync.Mutex
	xid     uint32
	session nfsv4.Sessionid4
	seq     uint32
}

// boot makes a session.
func boot(t testing.TB, address string) *kernel {
	t.Helper()
	k, err := dialKernel(t, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.conn.Close() })
	return k
}

// dialKernel is boot where the server may be away. The caller closes the connection.
func dialKernel(t testing.TB, address string) (*kernel, error) {
	conn, err := net.DialTimeout("tcp", address, callLimit)
	if err != nil {
		return nil, err
	}
	k := &kernel{t: t, conn: conn}
	if err := k.introduce(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return k, nil
}

// introduce makes a session.
func (k *kernel) introduce() error {
	res, err := k.call(nfs.Credentials{}, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner:  nfsv4.ClientOwner4{CoVerifier: [8]byte{1}, CoOwnerid: []byte(k.t.Name() + k.conn.LocalAddr().String())},
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}})
	if err != nil {
		return err
	}
	known, ok := res[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK)
	if !ok {
		return fmt.Errorf("EXCHANGE_ID: %s", nfs.StatusName(session.StatusOf(res[0])))
	}
	id := known.EirResok4
	channel := nfsv4.ChannelAttrs4{CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 4096, CaMaxoperations: 16, CaMaxrequests: 64}
	res, err = k.call(nfs.Credentials{}, &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
	}})
	if err != nil {
		return err
	}
	made, ok := res[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK)
	if !ok {
		return fmt.Errorf("CREATE_SESSION: %s", nfs.StatusName(session.StatusOf(res[0])))
	}
	k.session = made.CsrResok4.CsrSessionid
	_, err = k.attempt(nfs.Credentials{}, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	return err
}

// do sends operations after a SEQUENCE. The results are those up to the first that failed.
func (k *kernel) do(creds nfs.Credentials, ops ...nfsv4.NfsArgop4) []nfsv4.NfsResop4 {
	k.t.Helper()
	res, err := k.attempt(creds, ops...)
	if err != nil {
		k.t.Fatal(err)
	}
	return res
}

// attempt is do where the server may go away. Then the session is of no use any more.
func (k *kernel) attempt(creds nfs.Credentials, ops ...nfsv4.NfsArgop4) ([]nfsv4.NfsResop4, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seq++
	sequence := &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: k.session, SaSequenceid: k.seq, SaCachethis: true,
	}}
	res, err := k.call(creds, append([]nfsv4.NfsArgop4{sequence}, ops...)...)
	if err != nil {
		return nil, err
	}
	if status := session.StatusOf(res[0]); status != nfsv4.NFS4_OK {
		return nil, fmt.Errorf("SEQUENCE: %s", nfs.StatusName(status))
	}
	return res[1:], nil
}

// try is do, repeated while the server asks for it, and the status of the last result.
func (k *kernel) try(creds nfs.Credentials, ops ...nfsv4.NfsArgop4) ([]nfsv4.NfsResop4, nfsv4.Nfsstat4) {
	k.t.Helper()
	for {
		res := k.do(creds, ops...)
		status := session.StatusOf(res[len(res)-1])
		if status != nfsv4.NFS4ERR_DELAY {
			return res, status
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// callLimit is for a call whose server may be gone.
const callLimit = time.Minute

func (k *kernel) call(creds nfs.Credentials, ops ...nfsv4.NfsArgop4) ([]nfsv4.NfsResop4, error) {
	k.xid++
	var parms, body bytes.Buffer
	auth := rpcv2.AuthsysParms{Machinename: "test", Uid: creds.UID, Gid: creds.GID, Gids: creds.GIDs}
	_, authErr := auth.WriteTo(&parms)
	msg := rpcv2.RpcMsg{Xid: k.xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: 100003, Vers: 4, Proc: 1, Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: parms.Bytes()},
	}}}
	_, msgErr := msg.WriteTo(&body)
	args := nfsv4.Compound4args{Minorversion: 2, Argarray: ops}
	_, argsErr := args.WriteTo(&body)
	message := rpc.FinishRecord(append(rpc.NewRecord(body.Len()), body.Bytes()...))
	limitErr := k.conn.SetDeadline(time.Now().Add(callLimit))
	_, writeErr := k.conn.Write(message)
	if err := errors.Join(authErr, msgErr, argsErr, limitErr, writeErr); err != nil {
		return nil, err
	}
	reply, readErr := rpc.ReadRecord(k.conn, 2<<20)
	r := bytes.NewReader(reply)
	var header rpcv2.RpcMsg
	_, headerErr := header.ReadFrom(r)
	var res nfsv4.Compound4res
	_, resErr := res.ReadFrom(r)
	if err := errors.Join(readErr, headerErr, resErr); err != nil {
		return nil, err
	}
	if len(res.Resarray) == 0 {
		return nil, fmt.Errorf("COMPOUND: %s", nfs.StatusName(res.Status))
	}
	return res.Resarray, nil
}

// walk looks a path up from the root.
func walk(path string) []nfsv4.NfsArgop4 {
	ops := []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		ops = append(ops, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return ops
}

func cut(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

func (k *kernel) mkdir(creds nfs.Credentials, path string) nfsv4.Nfsstat4 {
	dir, name := cut(path)
	_, status := k.try(creds, append(walk(dir), &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{
		Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: name,
	}})...)
	return status
}

func (k *kernel) rmdir(creds nfs.Credentials, path string) nfsv4.Nfsstat4 {
	dir, name := cut(path)
	_, status := k.try(creds, append(walk(dir), &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: name}})...)
	return status
}

func (k *kernel) rename(creds nfs.Credentials, from, to string) nfsv4.Nfsstat4 {
	fromDir, oldName := cut(from)
	toDir, newName := cut(to)
	ops := slices.Concat(walk(fromDir), []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_SAVEFH{}}, walk(toDir),
		[]nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: oldName, Newname: newName}}})
	_, status := k.try(creds, ops...)
	return status
}
