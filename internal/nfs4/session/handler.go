package session

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// Handler does the operations of compounds that are not about sessions.
type Handler interface {
	// Begin is called once for each compound that has such an operation.
	// ctx ends when the server shuts down. It does not end with the client's connection:
	// the client will ask for the result again on another one, and must get it.
	// minorVersion is that of the compound, 1 or 2: some attributes exist in 2 only.
	Begin(ctx context.Context, caller rpc.Caller, minorVersion uint32) Compound
}

// Compound is the state of one compound: the current and the saved file handle.
// It is used by one goroutine at a time.
type Compound interface {
	// Do does one operation. The result is of the operation's own type and carries its status
	// (StatusOf); anything but NFS4_OK ends the compound. Fail makes a result for a status.
	// Do is called only for operations of minor versions 1 and 2 that are not handled by this
	// package: never for EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, DESTROY_CLIENTID,
	// BIND_CONN_TO_SESSION, BACKCHANNEL_CTL, SET_SSV, SEQUENCE, RECLAIM_COMPLETE, TEST_STATEID,
	// FREE_STATEID and ILLEGAL, nor for what only NFSv4.0 has. Names in op are UTF-8, but they
	// may be empty, ".", "..", long, or contain "/" and NUL. Do may be slow for CREATE, REMOVE, RENAME and
	// SETATTR, but must end by itself: the client gets NFS4ERR_DELAY for its retries meanwhile. All other
	// operations take turns, a few at a time: what waits in them for anything is to be in Await.
	Do(ctx context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4
}
