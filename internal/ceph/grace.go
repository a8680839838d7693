package ceph

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// GraceObject is the object in which ganesha's rados_cluster keeps the grace period of the servers of a RADOS namespace: 16 bytes with
// the present epoch and that from which clients may reclaim (0: none), and a key for each server with a byte of flags. Howdah makes it,
// with one server in it; afterwards it is ganesha's alone.
const GraceObject = "grace"

// Flags of a server in the grace object.
const (
	needsGrace    = 1
	enforcesGrace = 2
)

// Object is what is in a RADOS object.
type Object struct {
	Data    []byte
	Keys    map[string][]byte
	Version uint64
}

// Change is a write to an object that happens as a whole or not at all.
type Change struct {
	// Create makes the object, and fails if there is one.
	Create bool
	// Version is that which the object must still have; 0: any.
	Version uint64
	// Data replaces the object's, unless nil.
	Data []byte
	Set  map[string][]byte
}

// JoinGrace is the change that makes a server a member of its grace object, nil if it is one; ganesha does not start without. object is
// nil if there is none. The server has to be alone: with others in it, each restart of one would put all of them into grace.
func JoinGrace(object *Object, node string) (*Change, error) {
	// A server that joins enforces: it has not served yet.
	member := map[string][]byte{node: {enforcesGrace}}
	if object == nil {
		data := binary.LittleEndian.AppendUint64(nil, 1) // An epoch is never 0.
		return &Change{Create: true, Data: binary.LittleEndian.AppendUint64(data, 0), Set: member}, nil
	}
	if len(object.Data) != 16 {
		return nil, fmt.Errorf("the grace object has %d bytes and not 16, so it is no grace object of ganesha's; move it away", len(object.Data))
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

// InGrace tells whether the clients of the server may reclaim at present.
func (o *Object) InGrace() bool {
	return len(o.Data) == 16 && binary.LittleEndian.Uint64(o.Data[8:]) != 0
}

// NeedsGrace tells whether a server still has clients that may reclaim.
func (o *Object) NeedsGrace(node string) bool {
	return len(o.Keys[node]) > 0 && o.Keys[node][0]&needsGrace != 0
}

// Watcher is a client that watches an object.
type Watcher struct {
	Address string `json:"address"`
}

// Dead are the addresses to blocklist before a server is started. All who watch its grace object are earlier starts of it, because
// the namespace is its own and it does not run; every change of the object waits 3 s for each of them, for up to 30 s after its end.
func Dead(watchers []Watcher) []string {
	var addresses []string
	for _, watcher := range watchers {
		addresses = append(addresses, watcher.Address)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}
