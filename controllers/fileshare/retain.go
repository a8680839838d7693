package fileshare

import (
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// A share that is deleted with Retain leaves its records behind, labelled. Placement
// depends on counts and bytes, which change all the time, so without them a share that is made
// again would look for its data on servers that don't have it.

func isRetained(record *internalv1.ShareDirectory) bool {
	return record.Labels[v1alpha1.RetainedLabel] == v1alpha1.RetainedTrue
}

// retain are the records that a deletion is to leave behind, with the label. One
// that is Creating has no directory yet.
func retain(o *observed) []recordChange {
	var changes []recordChange
	for _, record := range o.records {
		if isRetained(record) || record.State() == internalv1.DirectoryCreating {
			continue
		}
		after := record.DeepCopy()
		if after.Labels == nil {
			after.Labels = map[string]string{}
		}
		after.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
		changes = append(changes, recordChange{record, after})
	}
	return changes
}

// useAgain takes a retained record back into use. It is Creating until a namespace
// server has found the directory, or made it if somebody cleared the volume. If its data server
// is no more, a FileServer of the same name was made with fewer, and the record tells of nothing.
func (p *directoryPlan) useAgain(o *observed, record *internalv1.ShareDirectory) {
	if _, fault := placeable(o); fault != nil {
		return
	}
	if record.Spec.DataServerRef.Name != "" && !slices.ContainsFunc(o.dataServers, func(s internalv1.DataServer) bool { return s.Name == record.Spec.DataServerRef.Name }) {
		p.forget = append(p.forget, record)
		return
	}
	after := record.DeepCopy()
	delete(after.Labels, v1alpha1.RetainedLabel)
	delete(after.Annotations, tree.MadeByAnnotation)
	after.Spec.Removal, after.Status.RemovalRefusedTime = "", nil
	if ownerOf(record) != nil {
		after.Status.State = internalv1.DirectoryCreating
	}
	p.change = append(p.change, recordChange{record, after})
}
