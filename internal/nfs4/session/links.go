package session

import (
	"slices"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// linksKept is how many connections a session remembers beside the one it was made on: nconnect is 16 at most in
// Linux, and connections come and go.
const linksKept = 32

// links are the connections that are associated with a session (RFC 8881 section 2.10.3.1): the one that it was made on
// or that was bound last, and those that a SEQUENCE came on.
type links struct {
	main *rpc.Link
	used []*rpc.Link
	next int
}

// bind makes a connection the main one. Without a connection, as in tests, there is nothing to remember.
func (l *links) bind(link *rpc.Link) {
	if link != nil {
		l.main = link
	}
}

// use remembers that a SEQUENCE came on a connection.
func (l *links) use(link *rpc.Link) {
	if link == nil || l.associated(link) {
		return
	}
	if len(l.used) < linksKept {
		l.used = append(l.used, link)
		return
	}
	l.used[l.next] = link
	l.next = (l.next + 1) % linksKept
}

func (l *links) associated(link *rpc.Link) bool {
	if l.main == link {
		return true
	}
	return slices.Contains(l.used, link)
}

// alive is true while one of the connections is there.
func (l *links) alive() bool {
	if l.main != nil && !l.main.Ended() {
		return true
	}
	return slices.ContainsFunc(l.used, func(known *rpc.Link) bool { return !known.Ended() })
}

// foreign is true for a connection that is not associated while the main one is there.
func (l *links) foreign(link *rpc.Link) bool {
	return link != nil && l.main != nil && !l.main.Ended() && !l.associated(link)
}
