// Package backend knows which storage back ends there are: each is a folder here, and a folder of internal/dataserver on the side of
// the data servers. Controllers get theirs from Of, and use nothing of it but the interfaces of backendapi.
package backend

import (
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/ceph"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/controllers/foreign"
)

// Of is the back end of a FileServer.
func Of(fs *v1alpha1.FileServer) backendapi.Backend {
	if of := fs.Spec.Storage.Ceph; len(of.External.Monitors) > 0 || of.Rook.ClusterRef.Name != "" {
		return ceph.Backend{}
	}
	return volumes.Backend{}
}

// ForeignKinds are the kinds of other operators that back ends read.
func ForeignKinds() []foreign.Kind { return ceph.ForeignKinds() }
