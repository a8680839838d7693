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

// keeper makes and ends places of shares, by one connection.
type keeper struct {
	connection *client.Client
	// user is who is connected, for messages.
	user   string
	uid    string
	volume ceph.Volume
}

func newKeeper(connection *client.Client, user string, steward *internalv1.Steward) *keeper {
	uid := steward.Spec.FileServerUID
	return &keeper{connection, user, uid, ceph.Volume{FileSystem: steward.Spec.Ceph.FileSystem, Group: ceph.Group(uid)}}
}

// ask has Ceph do something. The error is Ceph's own, for the caller to judge.
func (k *keeper) ask(ctx context.Context, command ceph.Command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.connection.Command(ctx, command)
}

// errLost tells that a place that there was is missed.
var errLost = errors.New("lost")

// errBusy tells that a place can't be used at present, by Ceph's own doing.
var errBusy = errors.New("busy")

// keep makes the place of a share what it should be, and tells what it is. What is there stays: a share whose data was retained has it again.
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

// unfinished is the clone that a place is to begin as, nil if it is there or begins empty.
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

// explained is what to say of an error about a clone: faults have their words.
func (k *keeper) explained(err error, what string) error {
	if err == nil || errors.As(err, new(*clones.Fault)) {
		return err
	}
	return refused(err, what, k.user)
}

// subvolume finds a share's, or makes it, empty, if that may be, unless there was one before.
func (k *keeper) subvolume(ctx context.Context, subvolume, before string, empty bool) (ceph.SubvolumeInfo, error) {
	answer, err := k.ask(ctx, k.volume.Info(subvolume))
	if isAbsent(err) && before != "" {
		return ceph.SubvolumeInfo{}, fmt.Errorf("%w: subvolume %s of group %s had the share's data, at %s, and is no more in file system %s: it is not made again, empty. "+
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

// key gives the key that data servers are to use of a user, which is made if there is none.
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

// resize sets the quota. One that is below what is used is refused by Ceph; the share goes on with the one that it has.
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

// end ends the user of a share and all that uses its place as this user, and removes the place if so asked.
func (k *keeper) end(ctx context.Context, storage *internalv1.ShareStorage) error {
	share := storage.Spec.FileShareRef.Name
	subvolume, user := ceph.Subvolume(k.uid, share), ceph.ShareUser(k.uid, share)
	if clone := k.unfinished(storage); clone != nil {
		if ended, err := clone.End(ctx, k.ask); err != nil || ended {
			return k.explained(err, "removing subvolume "+subvolume)
		}
	}
	// Who can't use it any more is not asked to let go of it: an export that went while its data server was down would hold others up for
	// five minutes.
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

// recoveryKey gives the key of the user of a data server's recovery records.
func (k *keeper) recoveryKey(ctx context.Context, user, pool, node string) (string, error) {
	return k.key(ctx, user, func() error {
		_, err := k.ask(ctx, ceph.CreateRecoveryUser(user, pool, node))
		return err
	})
}
