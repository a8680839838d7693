package command

import (
	"context"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

func explainSnapshot(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) (e view.Explanation, err error) {
	var snapshot v1alpha1.FileShareSnapshot
	if err := get(ctx, c, view.ResourceSnapshots, namespace, name, &snapshot); err != nil {
		return e, err
	}
	if err := readShareOf(ctx, c, w, namespace, snapshot.Spec.FileShareRef.Name); err != nil {
		return e, err
	}
	return view.ExplainSnapshot(w, &snapshot), nil
}

func explainSchedule(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) (e view.Explanation, err error) {
	var schedule v1alpha1.FileShareSnapshotSchedule
	if err := get(ctx, c, view.ResourceSchedules, namespace, name, &schedule); err != nil {
		return e, err
	}
	if err := c.ReadOnly(ctx, w, namespace, v1alpha1.SnapshotScheduleLabel+"="+name, view.ResourceSnapshots); err != nil {
		return e, err
	}
	if err := readShareOf(ctx, c, w, namespace, schedule.Spec.FileShareRef.Name); err != nil {
		return e, err
	}
	return view.ExplainSchedule(w, &schedule), nil
}

// readShareOf reads a share and what explains it, and the events of its namespace.
func readShareOf(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) error {
	if err := c.Read(ctx, w, namespace, view.ResourceFileShares); err != nil {
		return err
	}
	if share := w.FileShare(namespace, name); share != nil {
		return readAround(ctx, c, w, share)
	}
	return c.Read(ctx, w, namespace, view.ResourceEvents)
}
