package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	defaultSlots = 32
	// operationLimit is asked for at session creation: SEQUENCE, PUTROOTFH, and one LOOKUP
	// for each element of two paths of maxDepth.
	operationLimit = 2*maxDepth + 8
)

// slot is one of the calls that a session lets run at the same time.
type slot struct {
	id       uint32
	sequence uint32
	// dirty: a call of this sequence was sent and then given up, and it is not known
	// whether it arrived.
	dirty bool
}

// session is a session on the server. It outlives connections.
type session struct {
	id [nfsv4.NFS4_SESSIONID_SIZE]byte
	// free has the slots that no call holds.
	free    chan *slot
	highest uint32
	// gone is closed when the session is given up.
	gone chan struct{}
}

func (s *session) sequence(used *slot, cache bool) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: s.id, SaSequenceid: used.sequence, SaSlotid: used.id, SaHighestSlotid: s.highest, SaCachethis: cache,
	}}
}

func randomVerifier() (verifier [8]byte) {
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(verifier[:])
	return verifier
}

// exchangeID gives the client an ID, or the same again (RFC 8881 section 18.35).
func exchangeID(ctx context.Context, l *link, cred Credentials, owner string, verifier [8]byte) (*nfsv4.ExchangeId4resok, error) {
	res, err := single(ctx, l, cred, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner:  nfsv4.ClientOwner4{CoVerifier: verifier, CoOwnerid: []byte(owner)},
		EiaFlags:        nfsv4.EXCHGID4_FLAG_USE_NON_PNFS,
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}})
	if err != nil {
		return nil, err
	}
	op, ok := res.(*nfsv4.NfsResop4_OP_EXCHANGE_ID)
	if !ok {
		return nil, unexpected(res)
	}
	done, ok := op.OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK)
	if !ok {
		return nil, unexpected(res)
	}
	return &done.EirResok4, nil
}

// createSession is RFC 8881 section 18.36. There is no back channel.
func createSession(ctx context.Context, l *link, cred Credentials, client *nfsv4.ExchangeId4resok, slots uint32) (*session, error) {
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: messageLimit, CaMaxresponsesize: messageLimit, CaMaxresponsesizeCached: 4 << 10,
		CaMaxoperations: operationLimit, CaMaxrequests: slots,
	}
	back := nfsv4.ChannelAttrs4{CaMaxrequestsize: 4 << 10, CaMaxresponsesize: 4 << 10, CaMaxoperations: 2, CaMaxrequests: 1}
	res, err := single(ctx, l, cred, &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: client.EirClientid, CsaSequence: client.EirSequenceid,
		CsaForeChanAttrs: channel, CsaBackChanAttrs: back,
		CsaCbProgram: 0x40000000,
		CsaSecParms:  []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
	}})
	if err != nil {
		return nil, err
	}
	op, ok := res.(*nfsv4.NfsResop4_OP_CREATE_SESSION)
	if !ok {
		return nil, unexpected(res)
	}
	done, ok := op.OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK)
	if !ok {
		return nil, unexpected(res)
	}
	granted := min(slots, done.CsrResok4.CsrForeChanAttrs.CaMaxrequests)
	if granted == 0 {
		return nil, &RPCError{Reason: "session without slots"}
	}
	made := &session{id: done.CsrResok4.CsrSessionid, free: make(chan *slot, granted), gone: make(chan struct{}), highest: granted - 1}
	for id := range granted {
		made.free <- &slot{id: id}
	}
	return made, nil
}

// unexpected is an answer that is not of the operation that was asked for.
func unexpected(res nfsv4.NfsResop4) error {
	return &RPCError{Reason: fmt.Sprintf("unexpected %T", res)}
}
