package directories

import (
	"context"
	"fmt"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A backup of the API may be of the middle of a change. After a restore of it the change is unfinished again, though it was ended, and its directory may have
// moved to another data server since. Its owner in the backup answers for an hour that it has left, and then as if it had never been there. Such a change is
// known by its age: running servers finish one within a minute. So only an old one is looked for on all volumes, which costs nothing otherwise.

// unfinishedFor is for how long a change was not written when it counts as one of a backup.
const unfinishedFor = 10 * time.Minute

// changedAt is when a ShareDirectory got its state, by the API's clock; zero if it is not known.
func changedAt(o *internalv1.ShareDirectory) time.Time {
	if o.Status.State == "" {
		return o.CreationTimestamp.Time
	}
	var at time.Time
	for i := range o.ManagedFields {
		if by := &o.ManagedFields[i]; by.Subresource == "status" && by.Time != nil && by.Time.After(at) {
			at = by.Time.Time
		}
	}
	return at
}

// isElsewhere looks on all volumes of the share for a directory of an old change that its owner does not have. An error means that a data server that may have
// it can't be asked.
func (k *Leader) isElsewhere(ctx context.Context, share *tree.Share, o *internalv1.ShareDirectory) (bool, error) {
	r, at := tree.NewDirectory(o), changedAt(o)
	on := tree.Slot{Server: r.Server, Volume: r.Volume}
	if server, ok := k.Tree.Server(r.Server); ok && server.SharedStorage || at.IsZero() || k.Clock.Since(at) < unfinishedFor {
		return false, nil
	}
	if there, err := k.exists(ctx, on.Server, on.Volume, share.Name, r.Path); there || err != nil {
		return false, err
	}
	var unknown error
	for _, slot := range placesOfLost(lostDirectory{missing: true}, k.Tree.Servers(), share.IgnoreDataOn) {
		if slot == on {
			continue
		}
		if server, ok := k.Tree.Server(slot.Server); !ok || !server.Serves[share.Name] {
			unknown = fmt.Errorf("look for %s, of whose change the API has an old record: data server %s does not serve share %s", r.Path, slot.Server, share.Name)
			continue
		}
		switch err := k.look(ctx, slot.Server, slot.Volume, share.Name, r.Path); {
		case err == nil:
			k.Log.Warn("the API has an old record of a change of a directory, which is on another data server by now: it is not made again", "share", share.Name, "path", r.Path, "state", r.State,
				"server", on.Server, "foundOn", slot.Server, "volume", slot.Volume)
			k.scanSoon(task{share: share.Name, server: slot.Server}) // The share says where it was found.
			return true, nil
		case !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) && !hasLeft(err, tree.ExportPath(share.Name, slot.Volume, r.Path)):
			unknown = fmt.Errorf("look for %s, of whose change the API has an old record: %w", r.Path, err)
		}
	}
	return false, unknown
}
