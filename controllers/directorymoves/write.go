package directorymoves

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/placement"
)

// Writer carries out plans.
type Writer struct {
	client.Client
	Events events.EventRecorder
}

// Move carries out a plan and returns the number of moved directories. A conflict is not an error: the
// directory is observed again.
func (w *Writer) Move(ctx context.Context, v *View, plan Plan) (int64, error) {
	var moved atomic.Int64
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(moveWriters)
	for _, move := range plan.changes {
		group.Go(func() error {
			after := move.directory.DeepCopy()
			after.Spec.DataServerRef.Name, after.Spec.Volume = move.to, ptr.To(int32(0))
			if after.Labels == nil {
				after.Labels = map[string]string{}
			}
			after.Labels[v1alpha1.DataServerLabel] = move.to
			if move.follow && move.directory.State() == internalv1.DirectoryReady {
				// As on volumes: another file handle of the junction. Clients drop what they have mounted there, and what is open in it goes on
				// with the old owner until it is closed.
				after.Spec.Identity = string(uuid.NewUUID())
			}
			err := w.Patch(writing, after, client.MergeFromWithOptions(move.directory, client.MergeFromWithOptimisticLock{}))
			switch {
			case err == nil:
				moved.Add(1)
			case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
				return fmt.Errorf("giving %q of share %s to data server %s: %w", move.directory.Spec.Path, move.directory.Spec.FileShareRef.Name, move.to, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return moved.Load(), err
	}
	return moved.Load(), w.settleRequests(ctx, v, plan)
}

// settleRequests takes off the annotation what is done or refused. What was added meanwhile makes it a lost race.
func (w *Writer) settleRequests(ctx context.Context, v *View, plan Plan) error {
	if !plan.settled {
		return nil
	}
	after := v.FileServer.DeepCopy()
	if text := placement.FormatRequests(plan.requests); text != "" {
		after.Annotations[v1alpha1.MovesAnnotation] = text
	} else {
		delete(after.Annotations, v1alpha1.MovesAnnotation)
	}
	if plan.endsRebalance(v) {
		delete(after.Annotations, v1alpha1.RebalanceAnnotation)
	}
	if err := w.Patch(ctx, after, client.MergeFromWithOptions(v.FileServer, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking settled moves off the annotation %s: %w", v1alpha1.MovesAnnotation, err)
	}
	// The status of this pass is written against what is there now.
	v.FileServer.Annotations, v.FileServer.ResourceVersion = after.Annotations, after.ResourceVersion
	if plan.rebalanced != "" {
		w.Events.Eventf(v.FileServer, nil, corev1.EventTypeNormal, "Rebalancing", "Move", "%s", plan.rebalanced)
	}
	if len(plan.refused) > 0 {
		w.Events.Eventf(v.FileServer, nil, corev1.EventTypeWarning, "MoveRefused", "Move", "%s", conditions.List(plan.refused, maxListed))
	}
	return nil
}

// WriteCopies writes the steps of copies, and returns how many directories have another owner, and what data servers are to do then, by their names.
func (w *Writer) WriteCopies(ctx context.Context, v *View, plan Plan) (int64, map[string][]internalv1.MoveTask, error) {
	var flipped atomic.Int64
	written := make([]bool, len(plan.writes))
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(moveWriters)
	for i, write := range plan.writes {
		group.Go(func() error {
			err := w.Patch(writing, write.after, client.MergeFromWithOptions(write.before, client.MergeFromWithOptimisticLock{}))
			switch {
			case err == nil:
				written[i] = true
				if write.outcome == moving.Flip {
					flipped.Add(1)
				}
			case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
				return fmt.Errorf("writing the move of %q of share %s: %w", write.before.Spec.Path, write.before.Spec.FileShareRef.Name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	now := map[*internalv1.ShareDirectory]*internalv1.ShareDirectory{}
	for i, write := range plan.writes {
		if !written[i] {
			continue
		}
		now[write.before] = write.after
		if write.reason != "" {
			kind := corev1.EventTypeNormal
			if write.reason == "MoveRefused" || write.reason == "MoveDelayed" {
				kind = corev1.EventTypeWarning
			}
			w.Events.Eventf(v.FileServer, nil, kind, write.reason, "Move", "%s of share %s %s", write.before.Spec.Path, write.before.Spec.FileShareRef.Name, write.note)
		}
	}
	return flipped.Load(), v.moveTasks(now), err
}
