package ceph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/ceph/client"
)

// Ganesha reads a user's key when it makes an export of that user, and never again: it goes on for hours with one that Ceph does not take any
// more. A second client of the same user, with the new key, would have the first shut out, because their reclaim uuids are the same; and an
// export that is taken away and brought back is ESTALE for open files. So a new key comes by a new start of ganesha, whose clients reclaim
// what they have. It is tried first: a start with a key that is wrong would cost what is served.

// settle is how long keys stay as they are before ganesha is started anew for them, turnEvery how long after a data server the next one is.
const (
	settle    = 30 * time.Second
	turnEvery = 30 * time.Second
)

// keysInUse are the keys that ganesha has, or a little older ones: by their users.
type keysInUse struct {
	mutex sync.Mutex // BeforeStart is called beside everything else.
	keys  map[string]string
	// exported are the users in the present configuration.
	exported map[string]bool
	// proven are new keys that Ceph takes, since is when the last of them was; refused: one was not taken in this pass.
	proven  map[string]string
	since   time.Time
	refused bool
}

// readAgain notes that ganesha reads all its keys anew.
func (b *Backend) readAgain() {
	b.inUse.mutex.Lock()
	defer b.inUse.mutex.Unlock()
	for user := range b.inUse.keys {
		b.inUse.keys[user] = b.secrets.keyOf(user)
	}
}

// forget begins another configuration. Whoever was not in the last one had no export: ganesha will read the key anew.
func (k *keysInUse) forget() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	maps.DeleteFunc(k.keys, func(user, _ string) bool { return !k.exported[user] })
	k.exported = map[string]bool{}
}

// read notes that ganesha will read a user's key, if it has not.
func (b *Backend) read(user string) {
	b.inUse.mutex.Lock()
	defer b.inUse.mutex.Unlock()
	b.inUse.exported[user] = true
	if _, known := b.inUse.keys[user]; !known {
		b.inUse.keys[user] = b.secrets.keyOf(user)
	}
}

// renewed gives a user's key if ganesha has another one.
func (b *Backend) renewed(user string) (key string, is bool) {
	b.inUse.mutex.Lock()
	old, used := b.inUse.keys[user]
	b.inUse.mutex.Unlock()
	key = b.secrets.keyOf(user)
	return key, used && key != "" && old != "" && key != old
}

// tryNewKey looks whether Ceph takes a key of a share's user that ganesha has not yet.
func (b *Backend) tryNewKey(ctx context.Context, of share) error {
	key, is := b.renewed(of.User)
	if !is || b.inUse.proven[of.User] == key || b.inUse.refused {
		return nil
	}
	err := b.as(ctx, of, "looking at the share's directory", func(ctx context.Context, user *client.Client, directory client.Directory) error {
		_, err := user.Attributes(ctx, directory)
		return err
	})
	if err != nil {
		b.inUse.refused = true // When Ceph is away it is so for all, and each try can take long.
		return fmt.Errorf("ganesha goes on with the key of client.%s that it has; with the new one: %w", of.User, err)
	}
	b.prove(of.User, key)
	return nil
}

func (b *Backend) prove(user, key string) {
	b.inUse.proven[user], b.inUse.since = key, b.now()
}

// Outdated tells that ganesha has keys that were replaced, when it is this data server's turn.
func (b *Backend) Outdated(ctx context.Context) string {
	own := b.options.RecoveryUser
	if key, is := b.renewed(own); is && b.inUse.proven[own] != key {
		connection, err := b.connect(ctx, own)
		if err != nil {
			b.options.Log.Warn("ganesha goes on with the key that it has for its recovery records", "err", err)
		} else {
			connection.Close()
			b.prove(own, key)
		}
	}
	maps.DeleteFunc(b.inUse.proven, func(user, proven string) bool {
		key, is := b.renewed(user)
		return !is || key != proven
	})
	if len(b.inUse.proven) == 0 || b.now().Sub(b.inUse.since) < settle+b.turn() {
		return ""
	}
	users := slices.Sorted(maps.Keys(b.inUse.proven))
	return fmt.Sprintf("client.%s has a new key (%d users)", users[0], len(users))
}

// turn is how long after the first data server this one is.
func (b *Backend) turn() time.Duration {
	ordinal, err := strconv.Atoi(b.options.Node[strings.LastIndexByte(b.options.Node, '-')+1:])
	if err != nil {
		return 0 // Its name is no data server's; it takes no turn.
	}
	return time.Duration(ordinal) * turnEvery
}
