package ceph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/fill"
	"github.com/howdah/howdah/internal/ganesha"
)

// Options say where the data is.
type Options struct {
	// Monitors are "address:port". FSID is the cluster's identity. FileSystem is the name of the file system in it. A
	// DataServer may name other monitors later.
	Monitors         []string
	FSID, FileSystem string
	// RecoveryPool has the recovery records, in the RADOS namespace Node: the data server's name in the cluster.
	// RecoveryUser may write them.
	RecoveryPool, RecoveryUser, Node string
	// ConfigFile is where ceph.conf is written. Secrets is a directory with client.<user>.keyring for each user and
	// <share>.json for each share. SecretName is the Secret that is mounted there.
	ConfigFile, Secrets, SecretName string
	// Steward is the name of the steward that writes this Secret, and makes and removes the shares' directories. "" if an
	// administrator does this.
	Steward string
	// Helper is the path of howdah-ceph; "" means client.Binary.
	Helper string
	// Fence blocklists Ceph clients by their addresses; nil if this is not possible.
	Fence func(ctx context.Context, addresses []string) error
	Log   *slog.Logger
}

// lookEvery is how often exports are checked. Each check makes two small writes of recovery records in Ceph.
const lookEvery = 30 * time.Second

// Backend is the Ceph file system of a data server.
type Backend struct {
	options Options
	secrets secrets
	// monitors are those in ceph.conf; empty before it is written.
	monitors monitors
	// own is the connection of the recovery user; nil if there is none.
	own *client.Client
	// ownKey is the key that own connected with.
	ownKey string
	// shares are the shares that can be exported, by name, with the entries that were read first.
	shares map[string]share
	// exported are the shares of the last configuration. Other goroutines than the exporter's read them.
	exported atomic.Pointer[map[string]share]
	// users has the share of each user that was seen in this pass. asked has the shares that were prepared in this pass.
	users map[string]string
	asked map[string]bool
	// silent are shares about which Ceph did not answer.
	silent silent
	// joined: the data server is a member of its grace object.
	joined bool
	// ids is the export ID table that the cluster has.
	ids idsObject
	// inUse are the keys that ganesha uses.
	inUse keysInUse
	now   func() time.Time
	// watching has the clients that watch the grace object. asking has requests for the watchers of this moment, for the health watch.
	watching watching
	asking   chan chan<- []string
}

var _ backend.Backend = (*Backend)(nil)

// New returns the back end of a file system. It connects when it is first used.
func New(options Options) *Backend {
	return &Backend{
		options: options, secrets: secrets{options.Secrets, options.SecretName, options.Steward}, shares: map[string]share{},
		silent: silent{shares: map[string]silentShare{}},
		inUse:  keysInUse{keys: map[string]string{}, exported: map[string]bool{}, proven: map[string]string{}}, now: time.Now,
		asking: make(chan chan<- []string),
	}
}

// Refusal is the condition reason for faults of Ceph or of its Secret.
func (b *Backend) Refusal() string { return internalv1.ReasonCephUnusable }

// LookEvery is not 0, because a Ceph client that is blocklisted (by an administrator, or after five minutes without
// network) never recovers by itself: libcephfs always answers ESHUTDOWN.
func (b *Backend) LookEvery() time.Duration { return lookEvery }

func (b *Backend) place() client.Place {
	return client.Place{Pool: b.options.RecoveryPool, Namespace: b.options.Node}
}

// Parts is 1: every share has one directory.
func (b *Backend) Parts(*internalv1.DataServer) int32 { return 1 }

// Judge refuses a cluster whose fsid is not the expected one. A cluster that does not answer is not refused: its
// exports stay, and work again when the cluster does.
func (b *Backend) Judge(ctx context.Context, server *internalv1.DataServer) error {
	b.users, b.asked, b.inUse.refused = map[string]string{}, map[string]bool{}, false
	b.silent.begin(b.now())
	if err := b.configure(server.Spec.Ceph.Monitors); err != nil {
		return err
	}
	if b.joined {
		return nil // The cluster can't change any more: ganesha has its monitors.
	}
	own, err := b.connected(ctx)
	if err != nil {
		return nil // Claim reports this error.
	}
	fsid, err := own.FSID(ctx)
	if err != nil {
		return nil
	}
	if fsid != b.options.FSID {
		return fmt.Errorf("the Ceph cluster at %s has the fsid %s, not %s: correct spec.storage.ceph (external.monitors, or the CephCluster that rook.clusterRef names), or, if the fsid was never right, create another FileServer",
			b.monitors.String(), fsid, b.options.FSID)
	}
	return nil
}

// Identities are nil: all data servers share the storage.
func (b *Backend) Identities() map[int32]string { return nil }

// HasRoot is always true: the steward, which makes the directories of shares, detects lost ones (internal/steward).
func (b *Backend) HasRoot(string, int32) (bool, error) { return true, nil }

// RootIDs are hashes of the share's path: a subvolume that is made again has another path, with a UUID that Ceph
// chooses.
func (b *Backend) RootIDs(share string) []string {
	known, ok := b.shares[share]
	if !ok || known.Path == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(b.options.FSID + "\x00" + b.options.FileSystem + "\x00" + known.Path))
	return []string{hex.EncodeToString(sum[:16])}
}

// Claim makes the data server a member of its grace object; otherwise ganesha does not start. The name of the RADOS
// namespace contains the FileServer's UID, so no other FileServer uses it.
func (b *Backend) Claim(ctx context.Context, _ *internalv1.DataServer) error {
	if b.joined {
		return nil
	}
	own, err := b.connected(ctx)
	if err != nil {
		return err
	}
	if err := b.findPlaces(ctx, own); err != nil {
		return err
	}
	object, err := own.Read(ctx, b.place(), ceph.GraceObject)
	if err != nil {
		return b.withCaps(fmt.Errorf("reading the grace object in pool %s: %w", b.options.RecoveryPool, b.renewing(err)))
	}
	change, err := ceph.JoinGrace(object, b.options.Node)
	if err != nil {
		return err
	}
	if change != nil {
		if _, err := own.Change(ctx, b.place(), ceph.GraceObject, *change); err != nil {
			return b.withCaps(fmt.Errorf("making the grace object in pool %s: %w", b.options.RecoveryPool, b.renewing(err)))
		}
	}
	// Reading the watchers here saves BeforeStart a connection, which takes half a second or more while clients wait.
	if found, err := own.Watchers(ctx, b.place(), ceph.GraceObject); err == nil {
		b.watching.setBeforeFirst(ceph.Dead(found))
	}
	b.joined = true
	return nil
}

// PrepareRoot sets the attributes of the share's directory, which exists already, as the share's own user. It is called
// for the oldest share first: of two shares with the same user the older is served.
func (b *Backend) PrepareRoot(ctx context.Context, name string, _ int32, wanted exportids.RootAttributes, applied *exportids.RootAttributes) error {
	b.asked[name] = true
	found, err := b.secrets.share(name)
	if err != nil {
		return err
	}
	if other, taken := b.users[found.User]; taken && other != name {
		return fmt.Errorf("its Ceph user client.%s is also used by share %s: give each share its own user, or clients of one share can reach the other", found.User, other)
	}
	if known, served := b.shares[name]; served && known != found {
		b.users[known.User] = name
		return fmt.Errorf("entry %s.json of Secret %s was changed, but the share is still served as client.%s from %s: "+
			"restart the data servers' pods one by one if the change is intended", name, b.options.SecretName, known.User, known.Path)
	}
	b.users[found.User] = name
	if applied == nil || *applied != wanted {
		if err := b.setAttributes(ctx, name, found, wanted); err != nil {
			return err
		}
	}
	b.shares[name] = found
	return b.tryNewKey(ctx, found)
}

// Diagnose does what ganesha does to export a share, because ganesha does not say why it can't. It finds a fault, too, if another pod serves
// this data server: this pod's node was lost and is back. A new mount by this pod would end the other's.
func (b *Backend) Diagnose(ctx context.Context, name string) error {
	known, ready := b.shares[name]
	if !ready {
		return nil // PrepareRoot has reported why.
	}
	if own, err := b.connected(ctx); err == nil {
		if found, err := own.Watchers(ctx, b.place(), ceph.GraceObject); err == nil {
			if other := b.successor(ceph.Dead(found)); other != "" {
				return fmt.Errorf("another pod of this data server serves (Ceph client %s), and Ceph has shut this one out: it exports the share no more, and ends when its kubelet learns that it was deleted", other)
			}
		}
	}
	return b.as(ctx, known, "looking at the share's directory", func(ctx context.Context, user *client.Client, directory client.Directory) error {
		_, err := user.Attributes(ctx, directory)
		return err
	})
}

// Shares are not known: the recovery user can't read the file system, and a share's user can read only its own
// directory.
func (b *Backend) Shares(context.Context, *internalv1.DataServer) ([]string, bool, error) {
	return nil, false, nil
}

// Measure returns how full the file system is, which all shares and data servers use.
func (b *Backend) Measure(ctx context.Context, _ *internalv1.DataServer) ([]backend.Usage, error) {
	own, err := b.connected(ctx)
	if err != nil {
		return nil, err
	}
	systems, err := own.Command(ctx, ceph.FileSystems())
	if err != nil {
		return nil, b.renewing(err)
	}
	pools, err := own.Command(ctx, ceph.Usage())
	if err != nil {
		return nil, b.renewing(err)
	}
	capacity, err := ceph.ParseCapacity(b.options.FileSystem, systems, pools)
	if err != nil {
		return nil, err
	}
	bytes := fill.Amount{Total: capacity.TotalBytes, Used: capacity.UsedBytes, Free: max(0, capacity.TotalBytes-capacity.UsedBytes)}
	return []backend.Usage{{Usage: fill.Usage{Bytes: bytes}}}, nil
}

// CompleteConfig lets ganesha keep its recovery records in the data server's RADOS namespace. It forgets shares that
// are not asked for any more: a new share of the same name may be in another directory.
func (b *Backend) CompleteConfig(config *ganesha.Config) {
	maps.DeleteFunc(b.shares, func(name string, _ share) bool { return !b.asked[name] })
	b.silent.forget(b.asked)
	exported := maps.Clone(b.shares)
	b.exported.Store(&exported)
	b.inUse.forget()
	b.read(b.options.RecoveryUser)
	config.Ceph = &ganesha.Ceph{
		ConfigFile: b.options.ConfigFile, RecoveryUser: b.options.RecoveryUser,
		RecoveryPool: b.options.RecoveryPool, RecoveryNamespace: b.options.Node, NodeID: b.options.Node,
	}
}

// CompleteExport sets the share's directory and user.
func (b *Backend) CompleteExport(export *ganesha.Export, name string, _ int32) {
	known := b.shares[name]
	b.read(known.User)
	export.Path, export.CephFS = known.Path, &ganesha.CephFS{FileSystem: b.options.FileSystem, User: known.User}
}

// BeforeStart blocklists the Ceph clients of the last start. Each of their watches would make ganesha wait 3 s for
// every change of the grace object. It does not wait for the blocklisting, so that NFS clients don't wait for it
// either. This is safe: the watch of the new ganesha is not among those that were seen before, a notification ends as
// soon as the dead watcher is blocklisted, and the metadata servers end each share's old session before it is reclaimed
// (ceph_start_reclaim with CEPH_RECLAIM_RESET).
func (b *Backend) BeforeStart(ctx context.Context, _ string) error {
	b.readAgain()
	b.awaitTurn(ctx)
	if b.options.Fence == nil || ctx.Err() != nil {
		return nil
	}
	// Asking Ceph takes half a second or more, so use the watchers that were seen before.
	dead, known := b.watching.take()
	if !known {
		var err error
		if dead, err = b.watchers(ctx); err != nil {
			return err
		}
		b.watching.bury(dead)
	}
	if len(dead) == 0 {
		return nil
	}
	b.options.Log.Info("blocklisting the Ceph clients of the last start", "addresses", dead)
	go b.fence(ctx, dead)
	return nil
}

func (b *Backend) fence(ctx context.Context, dead []string) {
	began := b.now()
	if err := b.options.Fence(ctx, dead); err != nil {
		b.options.Log.Warn("the Ceph clients of the last start were not blocklisted, so ganesha's start takes some seconds longer", "err", err)
		return
	}
	b.options.Log.Info("blocklisted the Ceph clients of the last start", "took", b.now().Sub(began).String())
}

// HasData reports whether the share has a directory.
func (b *Backend) HasData(_ context.Context, _ *internalv1.DataServer, name string) bool {
	_, err := b.secrets.share(name)
	return err == nil
}

// errNotOurs says that the data stays.
var errNotOurs = errors.New("reclaimPolicy is Delete, but Howdah did not make the share's directory in Ceph and does not remove it: " +
	"delete the share's entry from the Secret, and delete the directory in Ceph or keep it; or set reclaimPolicy to Retain")

// Discard removes nothing. The steward removes the directory when no data server exports the share any more. Without a
// steward the administrator removes it.
func (b *Backend) Discard(ctx context.Context, server *internalv1.DataServer, name string, _ time.Time) error {
	if b.options.Steward == "" && b.HasData(ctx, server, name) {
		return errNotOurs
	}
	return nil
}

// EmptyTrash has nothing to do.
func (b *Backend) EmptyTrash(context.Context, *internalv1.DataServer) (left bool) { return false }
