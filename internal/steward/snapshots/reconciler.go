package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/printable"
)

// Ceph is what a Reconciler needs from Ceph.
type Ceph interface {
	// Command sends a command to a monitor or a manager with the provisioning account.
	Command(ctx context.Context, command ceph.Command) (string, error)
	// List returns the names in a directory of a share (path, below root), read as the share's user.
	List(ctx context.Context, user, root, path string) ([]string, error)
}

// Reconciler makes and removes the snapshots of ShareSnapshots.
type Reconciler struct {
	// API reads without a cache and writes statuses.
	API client.Client
	// Ceph is the cluster that has the snapshots.
	Ceph Ceph
	// FileSystem is the FileServer's Ceph file system, and UID the FileServer's UID. Snapshots of an earlier FileServer of the
	// same name are not touched.
	FileSystem, UID string
	// ShareOf returns the share of a subvolume, for messages; "" if it is not known.
	ShareOf func(subvolume string) string
	// Now returns the current time.
	Now func() time.Time
}

// IsDue reports whether there may be something to do for a ShareSnapshot.
func IsDue(snapshot *internalv1.ShareSnapshot) bool {
	if snapshot.DeletionTimestamp != nil {
		return !meta.IsStatusConditionTrue(snapshot.Status.Conditions, internalv1.SnapshotRemoved)
	}
	return !isComplete(snapshot)
}

// Pass takes all possible steps for one ShareSnapshot. Errors are also written to its status, except errors of the API. After
// an error, call it again.
func (r *Reconciler) Pass(ctx context.Context, snapshot *internalv1.ShareSnapshot) error {
	if snapshot.Spec.FileServerUID != r.UID || !IsDue(snapshot) {
		return nil
	}
	p := &pass{Reconciler: r, snapshot: snapshot.DeepCopy(), volume: ceph.Volume{FileSystem: r.FileSystem, Group: ceph.Group(snapshot.Spec.FileServerUID)}}
	p.subvolume = ceph.Subvolume(snapshot.Spec.FileServerUID, snapshot.Spec.FileShareRef.Name)
	err := p.run(ctx)
	if fault := (*fault)(nil); errors.As(err, &fault) {
		return errors.Join(err, p.say(ctx, metav1.ConditionFalse, fault.reason, fault.Error()))
	}
	return err
}

// fault is an error that is reported to users.
type fault struct {
	reason string
	error
}

func failed(format string, arguments ...any) error {
	return &fault{v1alpha1.ReasonSnapshotFailed, fmt.Errorf(format, arguments...)}
}

// pass is one call of Pass.
type pass struct {
	*Reconciler
	snapshot  *internalv1.ShareSnapshot
	volume    ceph.Volume
	subvolume string
}

// run takes steps until none is left. Each step leads to a later one, so the loop ends.
func (p *pass) run(ctx context.Context) error {
	for {
		details, exists, err := p.look(ctx)
		if err != nil {
			return err
		}
		switch next(p.snapshot, exists) {
		case begin:
			err = p.begin(ctx)
		case create:
			err = p.create(ctx)
		case describe:
			return p.describe(ctx, details)
		case refuse:
			return &fault{v1alpha1.ReasonNameTaken, fmt.Errorf("the share has a snapshot %s in Ceph already, of %s, which Howdah did not make and does not touch: delete this object, and make one of another name",
				p.snapshot.Spec.SnapshotName, details.Created.Format(time.RFC3339))}
		case remove:
			err = p.remove(ctx, details)
		case release:
			return p.release(ctx)
		case nothing:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// look asks Ceph for the snapshot. A subvolume that does not exist has none.
func (p *pass) look(ctx context.Context) (details ceph.SnapshotDetails, exists bool, err error) {
	answer, err := p.Ceph.Command(ctx, p.volume.SnapshotInfo(p.subvolume, p.snapshot.Spec.SnapshotName))
	if errors.Is(err, syscall.ENOENT) {
		return details, false, nil
	}
	if err == nil {
		details, err = ceph.ParseSnapshotInfo(answer)
	}
	if err != nil {
		return details, false, failed("asking Ceph for the snapshot: %w", err)
	}
	return details, true, nil
}

// begin records that the snapshot is about to be made, once its share has a subvolume.
func (p *pass) begin(ctx context.Context) error {
	if _, err := p.place(ctx); err != nil {
		return err
	}
	return p.change(ctx, func(status *internalv1.ShareSnapshotStatus) {
		status.BeginTime = &metav1.Time{Time: p.Now().Truncate(time.Second)}
	})
}

// place returns the share's subvolume.
func (p *pass) place(ctx context.Context) (ceph.SubvolumeInfo, error) {
	answer, err := p.Ceph.Command(ctx, p.volume.Info(p.subvolume))
	var info ceph.SubvolumeInfo
	if err == nil {
		info, err = ceph.ParseInfo(answer, p.subvolume)
	}
	switch {
	case errors.Is(err, syscall.ENOENT), err == nil && !info.Ready:
		return info, failed("the share has no place in Ceph yet (subvolume %s of group %s)", p.subvolume, p.volume.Group)
	case err != nil:
		return info, failed("asking Ceph for the share's place: %w", err)
	}
	return info, nil
}

func (p *pass) create(ctx context.Context) error {
	if _, err := p.Ceph.Command(ctx, p.volume.CreateSnapshot(p.subvolume, p.snapshot.Spec.SnapshotName)); err != nil {
		return failed("Ceph did not make the snapshot: %w", err)
	}
	return nil
}

// describe writes the path and the time of the snapshot to the status.
func (p *pass) describe(ctx context.Context, details ceph.SnapshotDetails) error {
	info, err := p.place(ctx)
	if err != nil {
		return err
	}
	user := ceph.ShareUser(p.snapshot.Spec.FileServerUID, p.snapshot.Spec.FileShareRef.Name)
	names, err := p.Ceph.List(ctx, user, info.Path, "/.snap")
	if err != nil {
		return failed("looking for the snapshot in the share, as client.%s: %w", user, err)
	}
	folder, found := ceph.SnapshotFolder(names, p.snapshot.Spec.SnapshotName)
	if !found {
		return failed("the snapshot was made, but the share's .snap does not show it yet")
	}
	return p.change(ctx, func(status *internalv1.ShareSnapshotStatus) {
		status.CreationTime = &metav1.Time{Time: details.Created.Truncate(time.Second)}
		status.Path, status.SizeBytes = folder, &info.UsedBytes
		p.set(status, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "the snapshot is there")
	})
}

func (p *pass) remove(ctx context.Context, details ceph.SnapshotDetails) error {
	if details.Cloning {
		return failed("the snapshot is being copied to %s; it is removed when that is done (ceph fs clone status)", p.describeClones(details.Clones))
	}
	if err := p.stillEnding(ctx); err != nil {
		return err
	}
	_, err := p.Ceph.Command(ctx, p.volume.RemoveSnapshot(p.subvolume, p.snapshot.Spec.SnapshotName))
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return failed("Ceph did not remove the snapshot: %w", err)
	}
	return nil
}

// describeClones returns the names of the shares, or of the subvolumes, that are being made from the snapshot.
func (p *pass) describeClones(subvolumes []string) string {
	var names []string
	for _, subvolume := range subvolumes {
		name := "subvolume " + subvolume
		if share := p.ShareOf(subvolume); share != "" {
			name = "FileShare " + share
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "another subvolume"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// stillEnding checks without the cache that the object is still the one that is being deleted. The removal can't be undone,
// and another steward of this FileServer may have worked while this one was cut off.
func (p *pass) stillEnding(ctx context.Context) error {
	now := &internalv1.ShareSnapshot{}
	if err := p.API.Get(ctx, client.ObjectKeyFromObject(p.snapshot), now); err != nil {
		return fmt.Errorf("reading the ShareSnapshot again before its snapshot is removed: %w", err)
	}
	if now.UID != p.snapshot.UID || now.DeletionTimestamp == nil || !IsDue(now) {
		return fmt.Errorf("ShareSnapshot %s was replaced or changed meanwhile", now.Name)
	}
	return nil
}

// release reports that the object may be deleted.
func (p *pass) release(ctx context.Context) error {
	return p.change(ctx, func(status *internalv1.ShareSnapshotStatus) {
		p.set(status, internalv1.SnapshotRemoved, metav1.ConditionTrue, internalv1.SnapshotRemoved, "the snapshot is not in the storage")
	})
}

func (p *pass) say(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	return p.change(ctx, func(s *internalv1.ShareSnapshotStatus) { p.set(s, v1alpha1.ConditionReady, status, reason, message) })
}

func (p *pass) set(into *internalv1.ShareSnapshotStatus, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&into.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: printable.Text(message), ObservedGeneration: p.snapshot.Generation,
		LastTransitionTime: metav1.NewTime(p.Now()),
	})
}

// change writes the status if mutate changes it, and continues with the updated object.
func (p *pass) change(ctx context.Context, mutate func(*internalv1.ShareSnapshotStatus)) error {
	after := p.snapshot.DeepCopy()
	mutate(&after.Status)
	if equality.Semantic.DeepEqual(after.Status, p.snapshot.Status) {
		return nil
	}
	err := p.API.Status().Patch(ctx, after, client.MergeFromWithOptions(p.snapshot, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing the status of ShareSnapshot %s: %w", p.snapshot.Name, err)
	}
	p.snapshot = after
	return nil
}
