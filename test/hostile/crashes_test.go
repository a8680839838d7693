package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// proxyV2 is a PROXY header of version 2 with a command and an IPv4 address that it pretends to be.
func proxyV2(command byte, address ...byte) []byte {
	header := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x20|command, 0x11, 0, byte(len(address)))
	return append(header, address...)
}

func readdirAgain(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		s, err := login(from, 1, 0, "again")
		if err != nil {
			return err
		}
		defer s.leave()
		record := s.inSlot(0, true, &nfsv4.NfsArgop4_OP_PUTROOTFH{}, &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
			Dircount: 4096, Maxcount: 16384, AttrRequest: nfsv4.Bitmap4{1 << nfsv4.FATTR4_FILEID},
		}})
		for range 3 {
			if _, err := s.exchange(record); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

func proxyLocal(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		w, err := dial(from, 1, 0)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }() // The next one is another.
		if _, err := w.Write(append(proxyV2(0), w.record(exchangeID("proxy", 1))...)); err != nil {
			return err
		}
		_, err = w.receive(20 * time.Millisecond)
		return err
	}), nil
}

// gssCall is a NULL call with credentials of RPCSEC_GSS (RFC 2203, section 5).
func gssCall(procedure, sequence, service uint32) []byte {
	record := rpc.NewRecord(100)
	for _, word := range []uint32{
		9, 0, 2, nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, 4, 0, // XID, CALL, version of RPC, program, version, procedure.
		6, 20, 1, procedure, sequence, service, 0, // Flavor, length, version, what, number, how, handle.
		0, 0, // Verifier.
	} {
		record = binary.BigEndian.AppendUint32(record, word)
	}
	return rpc.FinishRecord(record)
}

func gss(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		for procedure := range uint32(5) {
			w, err := dial(from, 1, 0)
			if err != nil {
				return err
			}
			_, err = w.exchange(gssCall(procedure, 1, 1))
			_ = w.Close() // It was only for this.
			if err != nil {
				return err
			}
		}
		return nil
	}), nil
}

func noHandle(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		s, err := login(from, 2, 0, "no handle")
		if err != nil {
			return err
		}
		defer s.leave()
		for _, op := range []operation{
			&nfsv4.NfsArgop4_OP_ALLOCATE{}, &nfsv4.NfsArgop4_OP_DEALLOCATE{},
			&nfsv4.NfsArgop4_OP_READ_PLUS{OpreadPlus: nfsv4.ReadPlus4args{RpaCount: 4096}}, &nfsv4.NfsArgop4_OP_SEEK{},
		} {
			if _, err := s.run(0, op); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

func layoutreturnFSID(ctx context.Context, _ *world, from string) (string, error) {
	return again(ctx, func() error {
		s, err := login(from, 1, 0, "layouts")
		if err != nil {
			return err
		}
		defer s.leave()
		for _, kind := range []nfsv4.LayoutreturnType4{nfsv4.LAYOUTRETURN4_FSID, nfsv4.LAYOUTRETURN4_ALL} {
			_, err = s.run(0, &nfsv4.NfsArgop4_OP_LAYOUTRETURN{Oplayoutreturn: nfsv4.Layoutreturn4args{
				LoraLayoutType: nfsv4.LAYOUT4_NFSV4_1_FILES, LoraIomode: nfsv4.LAYOUTIOMODE4_ANY, LoraLayoutreturn: &nfsv4.Layoutreturn4_default{LrReturntype: kind},
			}})
		}
		return err
	}), nil
}

// holding is a session with the share's file open and locked.
func holding(w *world, from, owner string, minor uint32) (*states, error) {
	for _, r := range roles {
		if r.address != from {
			continue
		}
		s, err := login(from, minor, 0, owner)
		if err != nil {
			return nil, err
		}
		c := &table{world: w, role: r, minor: minor, s: &states{session: s, role: r, file: w.handles["share/dir/file"]}}
		return c.s, c.renew()
	}
	return nil, fmt.Errorf("no role has the address %s", from)
}

func closeLock(ctx context.Context, w *world, from string) (string, error) {
	return again(ctx, func() error {
		s, err := holding(w, from, "closes", 1)
		if err != nil {
			return err
		}
		defer s.leave()
		_, err = s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: s.locked}})
		return err
	}), nil
}

func readAgain(ctx context.Context, w *world, from string) (string, error) {
	return again(ctx, func() error {
		s, err := holding(w, from, "reads", 1)
		if err != nil {
			return err
		}
		defer s.leave()
		record := s.inSlot(0, true, putFH(s.file), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: s.opened, Count: 1 << 15}})
		for range 3 {
			if _, err := s.exchange(record); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// expireWhileLocking has a client begin again, which takes all its state away, while LOCKs of its former self are under way.
func expireWhileLocking(ctx context.Context, w *world, from string) (string, error) {
	verifier := uint64(1)
	return again(ctx, func() error {
		s, err := holding(w, from, "expires", 1)
		if err != nil {
			return err
		}
		defer s.leave()
		verifier++
		return beginAgain(s.session, verifier, func(slot uint32, i int) operation {
			return &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: nfsv4.READ_LT, Offset: uint64(i), Length: 1, Locker: &nfsv4.Locker4_TRUE{
				OpenOwner: nfsv4.OpenToLockOwner4{OpenStateid: s.opened, LockOwner: nfsv4.StateOwner4{Clientid: s.clientID, Owner: fmt.Append(nil, "o", slot, i)}},
			}}}
		}, putFH(s.file))
	}), nil
}

func expireWhileUsing(ctx context.Context, _ *world, from string) (string, error) {
	verifier := uint64(1)
	return again(ctx, func() error {
		s, err := login(from, 1, 0, "begins again")
		if err != nil {
			return err
		}
		defer s.leave()
		verifier++
		return beginAgain(s, verifier, func(uint32, int) operation { return &nfsv4.NfsArgop4_OP_GETFH{} }, &nfsv4.NfsArgop4_OP_PUTROOTFH{})
	}), nil
}

// beginAgain sends calls in all slots of a session on one connection, and on another an EXCHANGE_ID and a CREATE_SESSION of a new
// instance of the same client.
func beginAgain(s *session, verifier uint64, op func(slot uint32, i int) operation, before ...operation) error {
	other, err := dial(s.LocalAddr().(interface{ String() string }).String()[:strings.LastIndex(s.LocalAddr().String(), ":")], 1, 0)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // It was only for this.
	var both sync.WaitGroup
	both.Go(func() {
		answer, err := other.call(exchangeID(s.owner, verifier))
		if err != nil || len(answer.results) == 0 {
			return
		}
		if ok, is := answer.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK); is {
			// Whether it works is not the point.
			_, _ = other.call(createSession(ok.EirResok4.EirClientid, ok.EirResok4.EirSequenceid))
		}
	})
	for i := range 8 {
		var batch []byte
		for slot := range uint32(slots) {
			batch = append(batch, s.inSlot(slot, false, append(append([]operation{}, before...), op(slot, i))...)...)
		}
		if _, err = s.Write(batch); err != nil {
			break
		}
		for slot := range uint32(slots) {
			var answer reply
			if answer, err = s.receive(answersWithin); err != nil {
				break
			}
			s.settle(slot, answer)
		}
	}
	both.Wait()
	if err != nil && !closed(err) {
		return err
	}
	return nil
}

// sessionAgain: the answer to a CREATE_SESSION that is sent again must be what it was, and hold nothing of the server's memory.
func sessionAgain(ctx context.Context, _ *world, from string) (string, error) {
	var fault error
	note := again(ctx, func() error {
		w, err := dial(from, 1, 0)
		if err != nil {
			return err
		}
		s := &session{wire: w}
		defer func() { s.leave() }()
		known, err := w.call(exchangeID("ird", 1))
		if err != nil || len(known.results) == 0 {
			return err
		}
		ok, is := known.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK)
		if !is {
			return &statusError{"EXCHANGE_ID", known.status}
		}
		s.clientID = ok.EirResok4.EirClientid
		for range 4 {
			made, err := w.call(createSession(s.clientID, ok.EirResok4.EirSequenceid, 0x13572468))
			if err != nil {
				return err
			}
			if made.status != nfsv4.NFS4_OK || len(made.results) == 0 {
				continue
			}
			created := made.results[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4
			s.id = created.CsrSessionid
			for _, channel := range []nfsv4.ChannelAttrs4{created.CsrForeChanAttrs, created.CsrBackChanAttrs} {
				for _, word := range channel.CaRdmaIrd {
					if word != 0x13572468 && word != 0 {
						fault = fmt.Errorf("the answer has %x of the server's memory", binary.BigEndian.AppendUint32(nil, word))
					}
				}
			}
		}
		return nil
	})
	return note, fault
}

// refusedOpens opens what the storage refuses: a file of root, and on Ceph a file of a snapshot, for writing. Ganesha's check of attributes does not
// see the second, so Ceph itself refuses it (patch 0507).
func refusedOpens(ctx context.Context, w *world, from string) (string, error) {
	type refused struct {
		path   string
		uid    uint32
		access uint32
	}
	tries := []refused{{"share/dir/secret", 1000, nfsv4.OPEN4_SHARE_ACCESS_READ}, {"share/dir/secret", 1000, nfsv4.OPEN4_SHARE_ACCESS_BOTH}}
	for _, path := range w.paths {
		if strings.HasPrefix(path, "share/.snap/") && strings.HasSuffix(path, "/file") {
			tries = append(tries, refused{path, 0, nfsv4.OPEN4_SHARE_ACCESS_WRITE}, refused{path, 0, nfsv4.OPEN4_SHARE_ACCESS_BOTH})
		}
	}
	var fault error
	note := again(ctx, func() error {
		for _, try := range tries {
			s, err := login(from, 1, try.uid, fmt.Sprint("refused ", try.uid))
			if err != nil {
				return err
			}
			answer, err := s.run(0, putFH(w.handles[try.path]), open("refused", s.clientID, try.access, &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, &nfsv4.OpenClaim4_CLAIM_FH{}))
			s.leave()
			if err != nil {
				return err
			}
			if answer.status == nfsv4.NFS4_OK {
				fault = fmt.Errorf("uid %d can open %s with access %d", try.uid, try.path, try.access)
			}
		}
		return nil
	})
	return note, fault
}
