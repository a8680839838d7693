package fileshare

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// mostRemovals bounds how many removals are remembered. One that is forgotten counts as a loss, as after a start of the operator: another
// inventory, and the directory is made after that.
const mostRemovals = 1 << 12

// removals are the declared directories that clients remove or rename. A ShareDirectory that was Removing when it was deleted was not lost:
// its data server has confirmed that it does not have the directory under this name any more. So nothing has to be looked for. The events of
// ShareDirectories keep it.
//
// The zero value is ready.
type removals struct {
	sync.Mutex
	known *lru.Cache
}

type removal struct {
	uid types.UID
	// over: the ShareDirectory was deleted.
	over bool
}

// see notes the newest state of a ShareDirectory.
func (r *removals) see(o client.Object) {
	directory, ok := o.(*internalv1.ShareDirectory)
	if !ok {
		return
	}
	r.Lock()
	defer r.Unlock()
	key := client.ObjectKeyFromObject(o)
	switch {
	case directory.State() == internalv1.DirectoryRemoving && directory.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue:
		if r.known == nil {
			r.known = lru.New(mostRemovals)
		}
		r.known.Add(key, removal{uid: directory.UID})
	case r.known != nil:
		r.known.Remove(key)
	}
}

// gone notes that a ShareDirectory was deleted. sure: this was its last state.
func (r *removals) gone(o client.Object, sure bool) {
	r.Lock()
	defer r.Unlock()
	if r.known == nil {
		return
	}
	key := client.ObjectKeyFromObject(o)
	found, ok := r.known.Get(key)
	switch {
	case ok && sure && found.(removal).uid == o.GetUID():
		r.known.Add(key, removal{uid: o.GetUID(), over: true})
	case ok && found.(removal).uid == o.GetUID():
		r.known.Remove(key)
	}
}

// among are the removed ones of a share's declared paths without a ShareDirectory, and whether the end of that is known: another state may
// have come before it.
func (r *removals) among(o *observed) map[string]bool {
	paths, err := declaredPaths(o.share)
	if err != nil {
		return nil
	}
	r.Lock()
	defer r.Unlock()
	if r.known == nil {
		return nil
	}
	removed := map[string]bool{}
	for _, path := range paths {
		if o.directories[path] != nil {
			continue
		}
		key := types.NamespacedName{Namespace: o.namespace(), Name: naming.Directory(o.share.Spec.FileServerRef.Name, o.key(), path)}
		if found, ok := r.known.Get(key); ok {
			removed[path] = found.(removal).over
		}
	}
	return removed
}
