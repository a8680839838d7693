package ceph

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// GraceObject is the object in which ganesha's rados_cluster keeps the grace period of the servers of a RADOS namespace. It
// has 16 bytes with the current epoch and the epoch from which clients may reclaim (0: none), and for each server a key with
// a byte of flags. Howdah makes it with one server; afterwards only ganesha changes it.
const GraceObject = "grace"

// Flags of a server in the grace object.
const (
	needsGrace    = 1
	enforcesGrace = 2
)

// Object is the content of a RADOS object.
type Object struct {
	Data    []byte
	Keys    map[string][]byte
	Version uint64
}

// Change is an atomic write to an object.
type Change struct {
	// Create makes the object, and fails if it exists.
	Create bool
	// Version is the version that the object must still have; 0 means any.
	Version uint64
	// Data replaces the object's data, unless it is nil.
	Data []byte
	Set  map[string][]byte
}

// JoinGrace returns the change that makes a server a member of its grace object, or nil if it is a member. ganesha does not
// start otherwise. object is nil if there is none. The server must be the only member: otherwise, each restart of one server
// would put all of them into grace.
func JoinGrace(object *Object, node string) (*Change, error) {
	// A joining server enforces grace, as it has not served yet.
	member := map[string][]byte{node: {enforcesGrace}}
	if object == nil {
		data := binary.LittleEndian.AppendUint64(nil, 1) // An epoch is never 0.
		return &Change{Create: true, Data: binary.LittleEndian.AppendUint64(data, 0), Set: member}, nil
	}
	if len(object.Data) != 16 {
		return nil, fmt.Errorf("the grace object has %d bytes and not 16, so it is not a grace object of ganesha; move it away", len(object.Data))
	}
	for _, other := range slices.Sorted(maps.Keys(object.Keys)) {
		if other != node {
			return nil, fmt.Errorf("the grace object of server %s has server %s in it: they would be in grace together whenever one restarts; "+
				"remove that key if no ganesha of yours uses this RADOS namespace", node, other)
		}
	}
	if _, joined := object.Keys[node]; joined {
		return nil, nil
	}
	return &Change{Version: object.Version, Set: member}, nil
}

// InGrace reports whether the clients of the server may reclaim now.
func (o *Object) InGrace() bool {
	return len(o.Data) == 16 && binary.LittleEndian.Uint64(o.Data[8:]) != 0
}

// NeedsGrace reports whether a server still has clients that may reclaim.
func (o *Object) NeedsGrace(node string) bool {
	return len(o.Keys[node]) > 0 && o.Keys[node][0]&needsGrace != 0
}

// Watcher is a client that watches an object.
type Watcher struct {
	Address string `json:"address"`
}

// Dead returns the addresses to blocklist before a server is started. All watchers of its grace object are earlier starts of
// it, because no other server uses the namespace and this one does not run. For up to 30 s after the end of such a start,
// each change of the object would wait 3 s for it.
func Dead(watchers []Watcher) []string {
	var addresses []string
	for _, watcher := range watchers {
		addresses = append(addresses, watcher.Address)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}
