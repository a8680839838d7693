package directorymoves

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/placement"
)

// View is what a pass knows of a FileServer's directories and of who can take them. Maps and slices hold what is in the cache; nothing in them is changed.
type View struct {
	Now        time.Time
	FileServer *v1alpha1.FileServer
	// Shares are those of the FileServer, those being deleted included.
	Shares []fleet.Share
	// DataServers and States are by name.
	DataServers map[string]internalv1.DataServer
	States      map[string]fleet.State
	// Directories are all of the FileServer, those without an owner included.
	Directories []internalv1.ShareDirectory
	// exporters are the shares that each data server serves that directories may move to, if any is to move.
	exporters map[string]map[string]bool
	// movableOnes, fixedOnes, and liveKeys are what movables, Fixed, and isLive have found.
	movableOnes []placement.Movable
	fixedOnes   *Fixed
	liveKeys    map[string]bool
}

// ReadExporters finds out which shares each data server serves that directories may move to.
func (v *View) ReadExporters(ctx context.Context, c client.Client, in client.InNamespace) error {
	if !v.hasMoves() {
		return nil
	}
	v.exporters = map[string]map[string]bool{}
	for name := range v.DataServers {
		dataServer := v.DataServers[name]
		if v.States[name] != fleet.Serving || v.isToBeIdle(name) || dataServer.DeletionTimestamp != nil {
			continue
		}
		var list internalv1.ShareExportList
		if err := c.List(ctx, &list, in, index.OfDataServer(name), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		shares := map[string]bool{}
		for i := range list.Items {
			export := &list.Items[i]
			shares[export.Spec.FileShareRef.Name] = export.DeletionTimestamp == nil && conditions.IsTrue(export.Status.Conditions, internalv1.ExportServing)
		}
		v.exporters[name] = shares
	}
	return nil
}

// hasMoves tells whether any directory is to move, so that it has to be known who exports what.
func (v *View) hasMoves() bool {
	return v.FileServer.Annotations[v1alpha1.MovesAnnotation] != "" || v.FileServer.Annotations[v1alpha1.RebalanceAnnotation] != "" ||
		slices.ContainsFunc(v.Directories, func(d internalv1.ShareDirectory) bool { return v.isToMove(&d) || d.Spec.Move.ID != "" })
}

// isToMove tells whether a directory's owner is to be empty, or is none any more.
func (v *View) isToMove(directory *internalv1.ShareDirectory) bool {
	owner := directory.Spec.DataServerRef.Name
	if owner == "" || v.isUnmovable(directory) {
		return false
	}
	if !v.isShared() && directory.Spec.Move.Step == internalv1.MoveLeaving {
		return false // It has moved.
	}
	_, exists := v.DataServers[owner]
	if !exists {
		return v.isShared() // On volumes its data is away with it.
	}
	return v.isToBeIdle(owner)
}

// canMove reports whether no namespace server works on the directory.
func (v *View) canMove(directory *internalv1.ShareDirectory, still map[string]bool) bool {
	if directory.DeletionTimestamp != nil || still[directory.Spec.FileShareRef.Name] {
		return false
	}
	switch directory.State() {
	case internalv1.DirectoryReady:
		return true
	case internalv1.DirectoryCreating:
		// It can be made on any data server, because all of them have the same storage.
		return v.isShared() && (directory.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue || v.Now.Sub(directory.CreationTimestamp.Time) > unmade)
	}
	return false // Being renamed or removed: two objects, or an object and the directory, have to agree on the owner.
}

// isShared: every data server has the same storage, so directories can move.
func (v *View) isShared() bool { return backend.Of(v.FileServer).IsShared() }

// isToBeIdle reports whether a data server is in maintenance or to be removed.
func (v *View) isToBeIdle(server string) bool {
	return fleet.IsToBeIdle(v.FileServer, server)
}

// liveShares are the FileServer's shares, and those of them of which nothing may be changed.
func (v *View) liveShares() (live, still map[string]bool) {
	live, still = map[string]bool{}, map[string]bool{}
	for i := range v.Shares {
		live[v.Shares[i].Key] = true
		still[v.Shares[i].Key] = v.Shares[i].Paused
	}
	return live, still
}

// isLive tells whether a share exists. It is asked for each directory.
func (v *View) isLive(share string) bool {
	if v.liveKeys == nil {
		v.liveKeys, _ = v.liveShares()
	}
	return v.liveKeys[share]
}

// serves tells whether a data server that directories may move to exports a share. What is left of a deleted share is exported nowhere, and
// any server may keep the record of it.
func (v *View) serves(server, share string, live map[string]bool) bool {
	shares, isTarget := v.exporters[server] // None of them is leaving.
	return isTarget && fleet.MayTake(fleet.Server{Name: server, Serves: shares[share] || !live[share]}, v.ignoredBy(share)) == fleet.None
}

// ignoredBy are the data servers that a share has given up (spec.ignoreDataOn).
func (v *View) ignoredBy(share string) []string {
	for i := range v.Shares {
		if v.Shares[i].Key == share {
			return v.Shares[i].IgnoreDataOn
		}
	}
	return nil
}

// targets are the data servers to which directories may move. Those with little room, or for which many directories wait, are the last.
func (v *View) targets(live map[string]bool, waiting map[string]int) []placement.Target {
	targets := make([]placement.Target, 0, len(v.exporters))
	for server := range v.exporters {
		dataServer := v.DataServers[server]
		targets = append(targets, placement.Target{
			Server: server, Serves: func(share string) bool { return v.serves(server, share, live) },
			Last: !v.isShared() && (waiting[server] >= mostWaiting || fleet.IsTight(&dataServer)),
		})
	}
	return targets
}

// movables are all directories that have an owner, listed once for a pass: each that finds no room asks for them.
func (v *View) movables() []placement.Movable {
	if v.movableOnes != nil {
		return v.movableOnes
	}
	directories := make([]placement.Movable, 0, len(v.Directories))
	for i := range v.Directories {
		if spec := &v.Directories[i].Spec; spec.DataServerRef.Name != "" {
			directories = append(directories, placement.Movable{Share: spec.FileShareRef.Name, Path: spec.Path, Server: spec.DataServerRef.Name})
		}
	}
	v.movableOnes = directories
	return directories
}
