package fileshare

import (
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// A share that is deleted with Retain leaves its ShareDirectories, with a label. Placement depends on counts and bytes,
// which change. So without these objects a share that is made again would look for its data on servers that don't have
// it.

func isRetained(directory *internalv1.ShareDirectory) bool {
	return directory.Labels[v1alpha1.RetainedLabel] == v1alpha1.RetainedTrue
}

// retain returns the ShareDirectories that a deletion leaves, with the label. One that is Creating has no directory
// yet.
func retain(o *observed) []directoryChange {
	var changes []directoryChange
	for _, directory := range o.directories {
		if change, needed := retained(directory, dataNamespace(o)); needed {
			changes = append(changes, change)
		}
	}
	return changes
}

// retained is a ShareDirectory that stays, before and after. namespaceUID is the UID of the namespace whose data it
// has; "" if that is the FileServer's.
func retained(directory *internalv1.ShareDirectory, namespaceUID string) (directoryChange, bool) {
	if isRetained(directory) || directory.State() == internalv1.DirectoryCreating {
		return directoryChange{}, false
	}
	after := directory.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
	bind(after, namespaceUID)
	return directoryChange{directory, after}, true
}

// useAgain takes a retained ShareDirectory into use again. It is Missing until a namespace server finds the directory.
// A missing directory is not made, because it would be empty in place of the data. A removal or rename that had started
// continues; otherwise the directory could exist under both names. If its data server does not exist (a new FileServer
// has fewer), the directory waits for it until its data is given up (ignoreDataOn).
func (p *directoryPlan) useAgain(o *observed, directory *internalv1.ShareDirectory) {
	if _, fault := placeable(o); fault != nil {
		return
	}
	if owner := directory.Spec.DataServerRef.Name; owner != "" && !hasServer(o, owner) {
		if isIgnored(o, owner) {
			p.forget = append(p.forget, directory)
		}
		return
	}
	after := directory.DeepCopy()
	delete(after.Labels, v1alpha1.RetainedLabel)
	delete(after.Annotations, tree.MadeByAnnotation)
	delete(after.Annotations, v1alpha1.NamespaceUIDAnnotation)
	after.Spec.Removal, after.Status.RemovalRefusedTime = "", nil
	if ownerOf(directory) != nil && directory.State() == internalv1.DirectoryReady {
		after.Status.State = internalv1.DirectoryMissing
	}
	p.change = append(p.change, directoryChange{directory, after})
}

func hasServer(o *observed, name string) bool {
	return slices.ContainsFunc(o.dataServers, func(s internalv1.DataServer) bool { return s.Name == name })
}
