package fileserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/backend"
)

// readIdentity finds the storage identity of a FileServer that has none yet, and which other FileServer has the same.
func (o *observed) readIdentity(ctx context.Context, cached, live client.Reader) error {
	if !backend.Of(o.fileServer).HasSteward(o.fileServer) {
		return nil
	}
	if o.fileServer.Status.StorageIdentity == "" {
		namespace := &corev1.Namespace{}
		if err := live.Get(ctx, client.ObjectKey{Name: o.fileServer.Namespace}, namespace); err != nil {
			return err
		}
		// A copy, so that the status that is written differs from the one that was read.
		o.fileServer = o.fileServer.DeepCopy()
		o.fileServer.Status.StorageIdentity = o.firstIdentity(string(namespace.UID))
	}
	var others v1alpha1.FileServerList
	if err := cached.List(ctx, &others, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	o.holder = holderOf(o.fileServer, others.Items)
	return nil
}

// firstIdentity is the identity of a FileServer that has none yet. One that was there before there were identities has its UID: what it has in
// Ceph is named so. A new one has what follows from its name and its Kubernetes namespace, so that one that is made again has the same; of the
// namespace the UID counts, because a later namespace of the name may be another team's.
func (o *observed) firstIdentity(namespaceUID string) string {
	fs := o.fileServer
	switch {
	case fs.Spec.Storage.Ceph.Identity != "":
		return fs.Spec.Storage.Ceph.Identity
	case o.steward != nil:
		return o.steward.Spec.FileServerUID
	case len(fs.Status.Conditions) > 0:
		return string(fs.UID)
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("howdah.io/FileServer/"+namespaceUID+"/"+fs.Name)).String()
}

// holderOf is a FileServer that has the storage identity of another one and has had it for longer; "" if none has. Two would write to the same
// directories, each with locks of its own. FileServers of other clusters, and of namespaces that the operator does not look after, are not seen.
func holderOf(fs *v1alpha1.FileServer, others []v1alpha1.FileServer) string {
	for i := range others {
		other := &others[i]
		if other.UID == fs.UID || v1alpha1.StorageIdentity(other) != v1alpha1.StorageIdentity(fs) {
			continue
		}
		if first := cmp.Or(other.CreationTimestamp.Compare(fs.CreationTimestamp.Time), cmp.Compare(other.UID, fs.UID)); first < 0 {
			return other.Namespace + "/" + other.Name
		}
	}
	return ""
}

// errIdentity is that a FileServer can't have the storage identity that it asks for.
var errIdentity = errors.New("spec.storage.ceph.identity")

// identityFault tells why a FileServer can't have the storage identity that it asks for; nil if it can. Nothing is made for it then.
func (o *observed) identityFault() error {
	asked, has := o.fileServer.Spec.Storage.Ceph.Identity, o.fileServer.Status.StorageIdentity
	switch {
	case asked != "" && has != "" && asked != has:
		return fmt.Errorf("%w: the FileServer has the identity %s already, and its data in Ceph has it in its names. Remove the field or write %s; to have the data of %s, delete the FileServer and make it again with that",
			errIdentity, has, has, asked)
	case o.holder != "":
		return fmt.Errorf("%w: FileServer %s has %s, and two that write to the same directories in Ceph would lose data. Nothing is made for this one. Delete the other one first, or make this one without the field",
			errIdentity, o.holder, v1alpha1.StorageIdentity(o.fileServer))
	}
	return nil
}

// reasonOf is the reason of a condition for what kept a pass from making what it wants.
func reasonOf(err error) string {
	if errors.Is(err, errIdentity) {
		return v1alpha1.ReasonInvalidSpec
	}
	return apply.Reason(err)
}
