package fileshare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// exportPlan has the changes of a share's exports.
type exportPlan struct {
	create []*internalv1.ShareExport
	change []exportChange
	// remove has the exports to delete after the changes.
	remove []*internalv1.ShareExport
}

// exportChange is an export before and after.
type exportChange struct{ before, after *internalv1.ShareExport }

// planExports makes every data server export a share. A data server that still has the export of an earlier share with
// this name drops that one first. The deletion of its object then causes another pass.
//
// The cache has only a digest of an export's access rules, so a change always contains all of them.
func planExports(o *observed) exportPlan {
	var plan exportPlan
	growth := o.grant.AccessNetworks != nil // The rules stay as they were.
	servers := map[string]bool{}
	for i := range o.dataServers {
		server := &o.dataServers[i]
		if server.DeletionTimestamp != nil {
			continue
		}
		servers[server.Name] = true
		wanted, present := desired.ShareExport(o.share, server.Name), o.exports[server.Name]
		switch {
		case growth:
		case present == nil:
			plan.create = append(plan.create, wanted)
		case present.DeletionTimestamp == nil && !isAsWanted(present, wanted, o.accessDigest):
			after := present.DeepCopy()
			after.Spec = wanted.Spec
			after.OwnerReferences = wanted.OwnerReferences
			controllerutil.AddFinalizer(after, v1alpha1.ExportFinalizer)
			plan.change = append(plan.change, exportChange{present, after})
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(o.exports), byNumber) {
		if export := o.exports[name]; !servers[name] && export.DeletionTimestamp == nil {
			plan.remove = append(plan.remove, export)
		}
	}
	return plan
}

// digests remembers the digests of shares' access rules, which can be long, for one generation of each share.
type digests struct {
	mu sync.Mutex
	by map[types.NamespacedName]accessDigest
}

type accessDigest struct {
	uid        types.UID
	generation int64
	rules      []v1alpha1.AccessRule
}

func (d *digests) of(share *v1alpha1.FileShare) []v1alpha1.AccessRule {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(share)
	known := d.by[key]
	if known.rules == nil || known.uid != share.UID || known.generation != share.Generation {
		known = accessDigest{share.UID, share.Generation, desired.AccessDigest(desired.ShareExport(share, "").Spec.Access)}
		if d.by == nil {
			d.by = map[types.NamespacedName]accessDigest{}
		}
		d.by[key] = known
	}
	return known.rules
}

func (d *digests) forget(share types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, share)
}

// isAsWanted compares a cached export with the wanted one, whose rules have this digest.
func isAsWanted(present, wanted *internalv1.ShareExport, digest []v1alpha1.AccessRule) bool {
	spec := wanted.Spec
	spec.Access = digest
	return equality.Semantic.DeepEqual(present.Spec, spec) && controllerutil.ContainsFinalizer(present, v1alpha1.ExportFinalizer) &&
		equality.Semantic.DeepEqual(metav1.GetControllerOf(present), metav1.GetControllerOf(wanted))
}

// planRemoval ends all exports of a share that is being deleted. Only here is their data policy set to Delete, so that
// an export that is deleted by accident keeps its data.
func planRemoval(o *observed) exportPlan {
	var plan exportPlan
	for _, name := range slices.SortedFunc(maps.Keys(o.exports), byNumber) {
		export := o.exports[name]
		if removesData(o) && export.Spec.DataPolicy != internalv1.DataDelete {
			after := export.DeepCopy()
			after.Spec.DataPolicy = internalv1.DataDelete
			plan.change = append(plan.change, exportChange{export, after})
		}
		if export.DeletionTimestamp == nil {
			plan.remove = append(plan.remove, export)
		}
	}
	return plan
}

// planRecall returns exports for a share that is deleted with its data before some data servers got an export, although
// they may have a directory of its name. The exports are made only to be deleted, because that removes the data. They
// are planned until the status reports the deletion; after that a missing export is a finished one.
func planRecall(o *observed) []*internalv1.ShareExport {
	if o.fileServer == nil || !removesData(o) || conditions.Reason(o.share.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonDeleting {
		return nil
	}
	var missing []*internalv1.ShareExport
	for i := range o.dataServers {
		server := &o.dataServers[i]
		if server.DeletionTimestamp == nil && o.exports[server.Name] == nil && !neverHad(o, server, 1) {
			export := desired.ShareExport(o.share, server.Name)
			export.Spec.DataPolicy = internalv1.DataDelete
			missing = append(missing, export)
		}
	}
	return missing
}

// recall makes them and logs it. In a Kubernetes namespace that is being deleted nothing can be made, and its data
// servers are deleted too.
func (r *Reconciler) recall(ctx context.Context, o *observed, missing []*internalv1.ShareExport) (ctrl.Result, error) {
	_, err := apply.Execute(ctx, r.Client, exportPlan{create: missing}.changes()...)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = r.reportTeardown(ctx, o, "asking "+plural(len(missing), "data server")+" to remove what there may be of the share")
	}
	if err != nil {
		return apply.Outcome(err)
	}
	return ctrl.Result{RequeueAfter: retryTeardown}, nil
}

// hasUnseenExports reads past the cache for exports that it does not have yet: after the share is gone nothing would
// set their data policy.
func (r *Reconciler) hasUnseenExports(ctx context.Context, o *observed) (bool, error) {
	for i := range o.dataServers {
		name := o.dataServers[i].Name
		if o.exports[name] != nil {
			continue
		}
		key := types.NamespacedName{Namespace: o.namespace(), Name: naming.ShareExport(o.key(), name)}
		if found, err := lookup.Object(ctx, r.Live, key, &internalv1.ShareExport{}); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// waitForExports returns the data servers that the deletion of a share waits for; "" if there are none.
func waitForExports(o *observed) string {
	if o.fileServer == nil {
		return "" // Its data servers are deleted too.
	}
	var waiting []string
	for _, name := range slices.SortedFunc(maps.Keys(o.exports), byNumber) {
		if o.stateOf(name).IsAway() {
			continue
		}
		if why := conditions.Message(o.exports[name].Status.Conditions, internalv1.ExportRemoved); why != "" {
			name += " (" + why + ")"
		}
		waiting = append(waiting, name)
	}
	if len(waiting) == 0 {
		return ""
	}
	what := "to stop exporting the share"
	if removesData(o) {
		what = "to stop exporting the share and to remove its data, " + plural(int(*countDirectories(o).Count), "directory")
	}
	return fmt.Sprintf("waiting for %d of %s %s: %s", len(waiting), plural(len(o.dataServers), "data server"), what, conditions.List(waiting, maxNamed))
}

// awayServers returns the unavailable data servers. They do their part of a deletion when they are back. Their exports
// wait for them; the share does not.
func awayServers(o *observed) []string {
	if o.fileServer == nil {
		return nil
	}
	return slices.DeleteFunc(slices.SortedFunc(maps.Keys(o.exports), byNumber), func(name string) bool { return !o.stateOf(name).IsAway() })
}

// stateOf is the state of a data server (internal/fleet).
func (o *observed) stateOf(name string) fleet.State {
	var server *internalv1.DataServer
	if at := slices.IndexFunc(o.dataServers, func(s internalv1.DataServer) bool { return s.Name == name }); at >= 0 {
		server = &o.dataServers[at]
	}
	return fleet.ObserveWith(o.fileServer, name, server).State(o.now)
}

// finishExports removes the finalizer of exports whose data servers are done with them or no longer exist, and returns
// the others. The share itself may not exist any more.
func (r *Reconciler) finishExports(ctx context.Context, share types.NamespacedName) ([]*internalv1.ShareExport, error) {
	var list, elsewhere internalv1.ShareExportList
	if err := r.Client.List(ctx, &list, client.InNamespace(share.Namespace), index.OfFileShare(share.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ShareExports: %w", err)
	}
	foreignKey := naming.ShareKey("", share.Namespace, share.Name)
	if err := r.Client.List(ctx, &elsewhere, index.OfFileShare(foreignKey), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ShareExports of FileServers of other namespaces: %w", err)
	}
	list.Items = append(list.Items, elsewhere.Items...)
	var left []*internalv1.ShareExport
	for i := range list.Items {
		export := &list.Items[i]
		done, err := r.isFinished(ctx, export)
		if err != nil {
			return nil, err
		}
		if !done {
			left = append(left, export)
			continue
		}
		if _, err := apply.RemoveFinalizer(ctx, r.Client, export.DeepCopy(), v1alpha1.ExportFinalizer); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (r *Reconciler) isFinished(ctx context.Context, export *internalv1.ShareExport) (bool, error) {
	switch {
	case export.DeletionTimestamp == nil:
		return false, nil
	case conditions.IsTrue(export.Status.Conditions, internalv1.ExportRemoved):
		// The data policy may have been set after the data server had dropped the export.
		return export.Status.ObservedGeneration != nil && *export.Status.ObservedGeneration == export.Generation, nil
	}
	exists, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: export.Namespace, Name: export.Spec.DataServerRef.Name}, &internalv1.DataServer{})
	if err != nil || exists || export.Spec.DataPolicy != internalv1.DataDelete {
		return err == nil && !exists, err
	}
	kept, err := r.hasClaims(ctx, export)
	return err == nil && !kept, err
}

// changes are the writes of a plan, in stages.
func (p exportPlan) changes() [][]apply.Change {
	var first, last []apply.Change
	for _, export := range p.create {
		first = append(first, apply.Change{Create: export})
	}
	for _, change := range p.change {
		// Set the data policy before the deletion. An export that is deleted without DataDelete leaves its data.
		race := apply.MustExistUnchanged
		if change.after.Spec.DataPolicy == internalv1.DataDelete {
			race = apply.MustExist
		}
		first = append(first, apply.Change{Before: change.before, After: change.after, Race: race})
	}
	for _, export := range p.remove {
		last = append(last, apply.Change{Delete: export})
	}
	return [][]apply.Change{first, last}
}
