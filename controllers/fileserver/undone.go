package fileserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// readUndone finds out what data servers that do not serve have still to remove. One that serves does it at once, and is not asked:
// it can have thousands of exports.
func (o *observed) readUndone(ctx context.Context, c client.Client, in client.InNamespace) error {
	o.undone = map[string][]string{}
	suspects := map[string]bool{}
	for server := range o.storage.Claims() {
		suspects[server] = true
	}
	for name := range o.dataServers {
		suspects[name] = o.stateOf(name) != fleet.Serving || o.fileServer.DeletionTimestamp != nil
	}
	for name, suspect := range suspects {
		if !suspect {
			continue
		}
		var list internalv1.ShareExportList
		if err := c.List(ctx, &list, in, index.OfDataServer(name), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			if export := &list.Items[i]; isUndone(export) {
				o.undone[name] = append(o.undone[name], naming.ShareDirectoryName(export.Spec.FileShareRef.Name))
			}
		}
		slices.Sort(o.undone[name])
	}
	return nil
}

// isUndone reports whether data is to be removed and the data server has not confirmed the removal.
func isUndone(export *internalv1.ShareExport) bool {
	return export.DeletionTimestamp != nil && export.Spec.DataPolicy == internalv1.DataDelete &&
		!conditions.IsTrue(export.Status.Conditions, internalv1.ExportRemoved)
}

// describeUndone is what a data server has still to remove when it is back; "" if nothing.
func (o *observed) describeUndone(server string) string {
	if len(o.undone[server]) == 0 {
		return ""
	}
	return "when it is back it removes the data of deleted shares, in these directories of its volumes: " + conditions.List(o.undone[server], maxPaths)
}

// leftOnClaims is what data servers that were scaled in have left of deleted shares; "" if nothing.
func (o *observed) leftOnClaims() string {
	var servers []string
	for _, server := range slices.Sorted(maps.Keys(o.undone)) {
		if _, exists := o.dataServers[server]; !exists && len(o.undone[server]) > 0 {
			servers = append(servers, server)
		}
	}
	if len(servers) == 0 {
		return ""
	}
	return "data of deleted shares was not removed by data servers that are scaled in: " + o.undoneOn(servers)
}

// undoneOn says of data servers what they have left, and the two ways to be rid of it.
func (o *observed) undoneOn(servers []string) string {
	var left, claims []string
	for _, server := range servers {
		left = append(left, fmt.Sprintf("%s (directories %s)", server, conditions.List(o.undone[server], maxPaths)))
		claims = append(claims, o.storage.Claims()[server]...)
	}
	text := conditions.List(left, maxPaths)
	if len(claims) == 0 {
		return text
	}
	return fmt.Sprintf("%s; they remove it when they are there again, or delete their claims with everything on them: kubectl -n %s delete pvc %s",
		text, o.fileServer.Namespace, strings.Join(claims, " "))
}

// whatWasNotRemoved is what a FileServer that goes leaves on its claims although it was to be removed; "" if nothing.
func whatWasNotRemoved(o *observed) string {
	servers := slices.DeleteFunc(slices.Sorted(maps.Keys(o.undone)), func(server string) bool { return len(o.undone[server]) == 0 })
	if len(servers) == 0 {
		return ""
	}
	return fmt.Sprintf("data of deleted shares is still on the volumes of data servers that were away: %s. A FileServer named %s in this namespace brings them back",
		o.undoneOn(servers), o.fileServer.Name)
}

// undoneChanged lets pass that data is to be removed, or that it was.
func undoneChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // Whoever starts looks at everything.
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*internalv1.ShareExport)
			after, ok2 := e.ObjectNew.(*internalv1.ShareExport)
			return ok && ok2 && isUndone(before) != isUndone(after)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			export, ok := e.Object.(*internalv1.ShareExport)
			return ok && isUndone(export)
		},
	}
}

func byExport(_ context.Context, object client.Object) []reconcile.Request {
	export, ok := object.(*internalv1.ShareExport)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: export.Namespace, Name: export.Spec.FileServerRef.Name}}}
}
