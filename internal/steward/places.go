package steward

import (
	"context"
	"errors"
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/steward/clones"
)

// keeper makes and removes the subvolumes and users of shares through one connection.
type keeper struct {
	connection *client.Client
	// user is the connected Ceph user, for messages.
	user   string
	uid    string
	volume ceph.Volume
}

func newKeeper(connection *client.Client, user string, steward *internalv1.Steward) *keeper {
	uid := steward.Spec.FileServerUID
	return &keeper{connection, user, uid, ceph.Volume{FileSystem: steward.Spec.Ceph.FileSystem, Group: ceph.Group(uid)}}
}

// ask sends a command to Ceph and returns Ceph's error unchanged.
func (k *keeper) ask(ctx context.Context, command ceph.Command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return k.connection.Command(ctx, command)
}

// errLost means that a subvolume that existed before is missing.
var errLost = errors.New("lost")

// errBusy means that a subvolume can't be used now, because Ceph clones or removes it.
var errBusy = errors.New("busy")

// keep makes the subvolume and the user of a share, sets the quota, and returns what there is. It keeps existing data: a
// share whose data was retained has it again.
func (k *keeper) keep(ctx context.Context, storage *internalv1.ShareStorage) (place, *ceph.SubvolumeInfo, string, error) {
	subvolume := ceph.Subvolume(k.uid, storage.Spec.FileShareRef.Name)
	clone := k.unfinished(storage)
	if clone != nil {
		if err := k.explained(clone.Make(ctx, k.ask), "making subvolume "+subvolume); err != nil {
			return place{}, nil, "", err
		}
	}
	info, err := k.subvolume(ctx, subvolume, storage.Status.Path, clone == nil)
	if err != nil {
		return place{}, nil, "", err
	}
	user := ceph.ShareUser(k.uid, storage.Spec.FileShareRef.Name)
	key, err := k.key(ctx, user, func() error {
		_, err := k.ask(ctx, k.volume.Authorize(subvolume, user))
		return err
	})
	if err != nil {
		return place{}, &info, "", err
	}
	words := ""
	if info.QuotaBytes != storage.Spec.QuotaBytes {
		words, err = k.resize(ctx, subvolume, storage.Spec.QuotaBytes, &info)
	}
	return place{info.Path, user, key}, &info, words, err
}

// unfinished returns the clone that a share starts with, or nil if the subvolume was ready before or starts empty.
func (k *keeper) unfinished(storage *internalv1.ShareStorage) *clones.Clone {
	source := storage.Spec.Source
	if source.SnapshotName == "" || storage.Status.Path != "" {
		return nil
	}
	clone := &clones.Clone{
		Volume: k.volume, Subvolume: ceph.Subvolume(k.uid, storage.Spec.FileShareRef.Name), Source: ceph.Subvolume(k.uid, source.FileShareRef.Name), Snapshot: source.SnapshotName,
	}
	_, clone.Share = naming.ShareOfKey(storage.Namespace, source.FileShareRef.Name)
	if at := storage.Status.CloneBeginTime; at != nil {
		clone.Begun = &at.Time
	}
	return clone
}

// explained adds an explanation to an error about a clone; a *clones.Fault has one already.
func (k *keeper) explained(err error, what string) error {
	if err == nil || errors.As(err, new(*clones.Fault)) {
		return err
	}
	return refused(err, what, k.user)
}

// subvolume finds the subvolume of a share. If there is none, it makes an empty one, if empty is set and there was none
// before (before is its path).
func (k *keeper) subvolume(ctx context.Context, subvolume, before string, empty bool) (ceph.SubvolumeInfo, error) {
	answer, err := k.ask(ctx, k.volume.Info(subvolume))
	if isAbsent(err) && before != "" {
		return ceph.SubvolumeInfo{}, fmt.Errorf("%w: subvolume %s of group %s had the share's data, at %s, and is missing in file system %s. Howdah does not make it again, as it would be empty. "+
			"Bring it back in Ceph under this name, or delete the share", errLost, subvolume, k.volume.Group, before, k.volume.FileSystem)
	}
	if isAbsent(err) && empty {
		for _, command := range []ceph.Command{k.volume.CreateGroup(), k.volume.Create(subvolume)} {
			if _, err := k.ask(ctx, command); err != nil {
				return ceph.SubvolumeInfo{}, refused(err, fmt.Sprintf("making subvolume %s in group %s of file system %s", subvolume, k.volume.Group, k.volume.FileSystem), k.user)
			}
		}
		answer, err = k.ask(ctx, k.volume.Info(subvolume))
	}
	if err != nil {
		return ceph.SubvolumeInfo{}, refused(err, "looking at subvolume "+subvolume, k.user)
	}
	info, err := ceph.ParseInfo(answer)
	if err == nil && !info.Ready {
		err = fmt.Errorf("%w: subvolume %s can't be used yet: Ceph clones or removes it (ceph fs subvolume info %s %s --group_name %s)", errBusy, subvolume, k.volume.FileSystem, subvolume, k.volume.Group)
	}
	return info, err
}

// key returns the key of a user for data servers. It calls make if there is no such user.
func (k *keeper) key(ctx context.Context, user string, make func() error) (string, error) {
	answer, err := k.ask(ctx, ceph.GetUser(user))
	if isAbsent(err) {
		if err := make(); err != nil {
			return "", refused(err, "making user client."+user, k.user)
		}
		answer, err = k.ask(ctx, ceph.GetUser(user))
	}
	if err != nil {
		return "", refused(err, "asking for the key of client."+user, k.user)
	}
	return ceph.ParseNewestKey(answer, user)
}

// resize sets the quota. Ceph refuses a quota below the used size; the share then keeps its old quota, and words says why.
func (k *keeper) resize(ctx context.Context, subvolume string, quota int64, info *ceph.SubvolumeInfo) (words string, err error) {
	if _, err := k.ask(ctx, k.volume.Resize(subvolume, quota)); err != nil {
		err = refused(err, fmt.Sprintf("setting the quota to %d bytes", quota), k.user)
		if isOutage(err) {
			return "", err
		}
		return err.Error(), nil
	}
	info.QuotaBytes = quota
	return "", nil
}

// end ends the sessions of a share's user, removes the user, and removes the subvolume if the data policy is Delete.
func (k *keeper) end(ctx context.Context, storage *internalv1.ShareStorage) error {
	share := storage.Spec.FileShareRef.Name
	subvolume, user := ceph.Subvolume(k.uid, share), ceph.ShareUser(k.uid, share)
	if clone := k.unfinished(storage); clone != nil {
		if ended, err := clone.End(ctx, k.ask); err != nil || ended {
			return k.explained(err, "removing subvolume "+subvolume)
		}
	}
	// Evict first: the metadata servers would otherwise wait five minutes for a client that is gone or has no key.
	steps := []struct {
		what    string
		command ceph.Command
	}{
		{"ending the sessions of client." + user, k.volume.Evict(subvolume, user)},
		{"ending user client." + user, k.volume.Deauthorize(subvolume, user)},
		{"removing subvolume " + subvolume, k.volume.Remove(subvolume)},
	}
	if storage.Spec.DataPolicy != internalv1.DataDelete {
		steps = steps[:2]
	}
	for _, step := range steps {
		if _, err := k.ask(ctx, step.command); err != nil && !isAbsent(err) {
			return refused(err, step.what, k.user)
		}
	}
	return nil
}

// recoveryKey returns the key of the user for a data server's recovery records.
func (k *keeper) recoveryKey(ctx context.Context, user, pool, node string) (string, error) {
	return k.key(ctx, user, func() error {
		_, err := k.ask(ctx, ceph.CreateRecoveryUser(user, pool, node))
		return err
	})
}
