package provisioner

import (
	"sync"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// assumed has placed directories that the cache does not show yet. Otherwise several claims at once would all go to the
// data server with the fewest directories in the cache.
type assumed struct {
	sync.Mutex
	byName map[string]*internalv1.ShareDirectory
}

func key(directory *internalv1.ShareDirectory) string {
	return directory.Namespace + "/" + directory.Name
}

// add records a directory that is about to be made.
func (a *assumed) add(directory *internalv1.ShareDirectory) {
	a.Lock()
	defer a.Unlock()
	if a.byName == nil {
		a.byName = map[string]*internalv1.ShareDirectory{}
	}
	a.byName[key(directory)] = directory
}

// drop forgets a directory that could not be made.
func (a *assumed) drop(directory *internalv1.ShareDirectory) {
	a.Lock()
	defer a.Unlock()
	delete(a.byName, key(directory))
}

// with returns a FileServer's directories in the cache, plus assumed ones.
func (a *assumed) with(shown []internalv1.ShareDirectory, namespace, fileServer string) []internalv1.ShareDirectory {
	a.Lock()
	defer a.Unlock()
	if len(a.byName) == 0 {
		return shown
	}
	for i := range shown {
		delete(a.byName, key(&shown[i]))
	}
	for _, directory := range a.byName {
		if directory.Namespace == namespace && directory.Spec.FileServerRef.Name == fileServer {
			shown = append(shown, *directory)
		}
	}
	return shown
}
