package session

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
)

const (
	// replyHeaderBytes is the RPC header of an accepted reply (RFC 5531 section 9).
	replyHeaderBytes = 24
	// callHeaderBytes is the least RPC header of a call: AUTH_NONE.
	callHeaderBytes = 40
	// failureBytes holds the failure of any operation.
	failureBytes = 64
	// sequenceBytes is the result of a SEQUENCE.
	sequenceBytes = 4 + 4 + nfsv4.NFS4_SESSIONID_SIZE + 5*4
	// freeBytes is what every reply may have without asking for memory.
	freeBytes = 8 << 10
	// changeBytes holds the result of any operation that changes something.
	changeBytes = 512
)

// reply is a COMPOUND4res under construction (RFC 8881 section 16.2).
type reply struct {
	buffer bytes.Buffer
	status nfsv4.Nfsstat4
	count  uint32
	// countAt is where the number of results is.
	countAt int
	// limit and cacheLimit are for the whole reply with its RPC header; the status
	// says which of the two was exceeded.
	limit, cacheLimit int
}

func newReply(tag string) *reply {
	r := &reply{limit: math.MaxInt, cacheLimit: math.MaxInt}
	// The errors of a bytes.Buffer are always nil, and the tag is UTF-8.
	_, _ = runtime.WriteUnsignedInt(&r.buffer, 0)
	_, _ = runtime.WriteUTF8String(&r.buffer, tagLimit, tag)
	r.countAt = r.buffer.Len()
	_, _ = runtime.WriteUnsignedInt(&r.buffer, 0)
	return r
}

// exceeded is the error for a reply that would have more bytes than now, or NFS4_OK.
func (r *reply) exceeded(more int) nfsv4.Nfsstat4 {
	size := replyHeaderBytes + r.buffer.Len() + more
	switch {
	case size > r.limit:
		return nfsv4.NFS4ERR_REP_TOO_BIG
	case size > r.cacheLimit:
		return nfsv4.NFS4ERR_REP_TOO_BIG_TO_CACHE
	}
	return nfsv4.NFS4_OK
}

// add appends the result of an operation and is true if the next one may follow.
func (r *reply) add(res nfsv4.NfsResop4) bool {
	start := r.buffer.Len()
	status := StatusOf(res)
	var replacement nfsv4.Nfsstat4
	if _, err := res.WriteTo(&r.buffer); err != nil {
		replacement = nfsv4.NFS4ERR_SERVERFAULT
	} else if status == nfsv4.NFS4_OK {
		replacement = r.exceeded(0)
	}
	if replacement != nfsv4.NFS4_OK {
		r.buffer.Truncate(start)
		status = replacement
		_, _ = FailNumber(res.GetResop(), status).WriteTo(&r.buffer)
	}
	r.count++
	r.status = status
	return status == nfsv4.NFS4_OK
}

// bytes is the encoded COMPOUND4res.
func (r *reply) bytes() []byte {
	encoded := r.buffer.Bytes()
	binary.BigEndian.PutUint32(encoded, uint32(r.status))
	binary.BigEndian.PutUint32(encoded[r.countAt:], r.count)
	return encoded
}
