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

// Ganesha reads a user's key only when it makes an export of that user. It keeps using a key that Ceph has replaced for
// hours. A second client of the same user with the new key would end the first one's session, because their reclaim
// uuids are the same. Removing and adding the export gives clients ESTALE for open files. So ganesha is restarted to
// use a new key, and its clients reclaim their state. The key is tried before that, because a restart with a wrong key
// would end the exports that still work.

const (
	// settle is how long keys must stay unchanged before ganesha is restarted for them.
	settle = 30 * time.Second
	// turnEvery is the delay between the restarts of one data server and the next.
	turnEvery = 30 * time.Second
)

// keysInUse are the keys that ganesha uses, or slightly older ones.
type keysInUse struct {
	mutex sync.Mutex // BeforeStart is called by another goroutine.
	// keys are by user.
	keys map[string]string
	// exported are the users in the current configuration.
	exported map[string]bool
	// proven are new keys that Ceph accepts, by user. since is when the last one was added. refused: Ceph refused one in
	// this pass.
	proven  map[string]string
	since   time.Time
	refused bool
}

// readAgain notes that ganesha reads all its keys again.
func (b *Backend) readAgain() {
	b.inUse.mutex.Lock()
	defer b.inUse.mutex.Unlock()
	for user := range b.inUse.keys {
		b.inUse.keys[user] = b.secrets.keyOf(user)
	}
}

// forget starts a new configuration. It drops the keys of users that had no export in the last one: ganesha will read
// them again.
func (k *keysInUse) forget() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	maps.DeleteFunc(k.keys, func(user, _ string) bool { return !k.exported[user] })
	k.exported = map[string]bool{}
}

// read notes that ganesha will read a user's key if it has not read it yet.
func (b *Backend) read(user string) {
	b.inUse.mutex.Lock()
	defer b.inUse.mutex.Unlock()
	b.inUse.exported[user] = true
	if _, known := b.inUse.keys[user]; !known {
		b.inUse.keys[user] = b.secrets.keyOf(user)
	}
}

// renewed returns a user's key, and whether ganesha still uses another one.
func (b *Backend) renewed(user string) (key string, is bool) {
	b.inUse.mutex.Lock()
	old, used := b.inUse.keys[user]
	b.inUse.mutex.Unlock()
	key = b.secrets.keyOf(user)
	return key, used && key != "" && old != "" && key != old
}

// tryNewKey checks whether Ceph accepts a new key of a share's user, if ganesha does not use it yet.
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
		b.inUse.refused = true // If Ceph does not answer, it is the same for all keys, and each try can take long.
		return fmt.Errorf("ganesha still uses the old key of client.%s, because the new one failed: %w", of.User, err)
	}
	b.prove(of.User, key)
	return nil
}

func (b *Backend) prove(user, key string) {
	b.inUse.proven[user], b.inUse.since = key, b.now()
}

// Outdated says that ganesha uses replaced keys, when it is this data server's turn to restart.
func (b *Backend) Outdated(ctx context.Context) string {
	own := b.options.RecoveryUser
	if key, is := b.renewed(own); is && b.inUse.proven[own] != key {
		connection, err := b.connect(ctx, own)
		if err != nil {
			b.options.Log.Warn("ganesha still uses the old key for its recovery records, because the new one failed", "err", err)
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

// turn is how long this data server waits after the first one's restart.
func (b *Backend) turn() time.Duration {
	ordinal, err := strconv.Atoi(b.options.Node[strings.LastIndexByte(b.options.Node, '-')+1:])
	if err != nil {
		return 0 // Not the name of a data server.
	}
	return time.Duration(ordinal) * turnEvery
}
