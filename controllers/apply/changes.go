package apply

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json" // It keeps large integers as they are.
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers is how many changes of a stage are written in parallel.
const writers = 8

// Race is what it means that an object changed, or was deleted, after it was read.
type Race int

const (
	// RaceLost means that a change that lost a race is no error: the winner's event causes another pass.
	RaceLost Race = iota
	// MustExistUnchanged means that a changed object is an error, because later changes rely on this one. A deleted
	// object is no error.
	MustExistUnchanged
	// MustExist means that a deleted object is an error, too.
	MustExist
)

// Change is one write of a decision. Exactly one of Create, After, Delete and Release is set.
type Change struct {
	// Create is the object to create. It is no error if it exists.
	Create client.Object
	// Before and After are the states of an object to patch. Its status is written first, because reactions to the rest
	// must find it.
	Before, After client.Object
	// Race is for After.
	Race Race
	// Delete is the object to delete, and not a newer one with its name. AsRead: only if it did not change since it was
	// read.
	Delete client.Object
	AsRead bool
	// Release is the object whose Finalizer is removed.
	Release   client.Object
	Finalizer string
}

// Execute writes the changes of each stage in parallel, one stage after the other; an error ends it. It returns how
// many of the objects to create exist now.
func Execute(ctx context.Context, c client.Client, stages ...[]Change) (created int, err error) {
	for _, stage := range stages {
		exist := make([]bool, len(stage))
		group, writing := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for i := range stage {
			group.Go(func() error {
				if err := stage[i].write(writing, c); err != nil {
					return err
				}
				exist[i] = stage[i].Create != nil
				return nil
			})
		}
		err = group.Wait()
		for _, exists := range exist {
			if exists {
				created++
			}
		}
		if err != nil {
			return created, err
		}
	}
	return created, nil
}

func (g *Change) write(ctx context.Context, c client.Client) error {
	switch {
	case g.Create != nil:
		if err := c.Create(ctx, g.Create); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("making %T %s: %w", g.Create, g.Create.GetName(), err)
		}
	case g.After != nil:
		err := patch(ctx, c, g.Before, g.After)
		if g.Race == RaceLost && apierrors.IsConflict(err) || g.Race != MustExist && apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("changing %T %s: %w", g.After, g.After.GetName(), err)
		}
	case g.Delete != nil:
		uid, version := g.Delete.GetUID(), g.Delete.GetResourceVersion()
		as := client.Preconditions{UID: &uid}
		if g.AsRead {
			as.ResourceVersion = &version
		}
		if err := c.Delete(ctx, g.Delete, as); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %T %s: %w", g.Delete, g.Delete.GetName(), err)
		}
	case g.Release != nil:
		object, ok := g.Release.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", g.Release)
		}
		_, err := RemoveFinalizer(ctx, c, object, g.Finalizer)
		return err
	}
	return nil
}

// patch writes the difference of two states, the status first, and nothing if the object changed since it was read. The
// difference is computed once, between what was read and what is wanted: caches drop some fields, which would otherwise
// look removed.
func patch(ctx context.Context, c client.Client, before, after client.Object) error {
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return err
	}
	var rest map[string]any
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	version := before.GetResourceVersion()
	if status, changed := rest["status"]; changed {
		delete(rest, "status")
		if version, err = send(ctx, c, before, map[string]any{"status": status}, version, true); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	_, err = send(ctx, c, before, rest, version, false)
	return err
}

func atVersion(patch map[string]any, version string) ([]byte, error) {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	return json.Marshal(patch)
}
