package provisioner

import (
	"sync"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// assumeFor is how long a directory that was made counts without being in the cache. One that comes and goes between two looks is never seen there.
const assumeFor = time.Minute

// assumed has placed directories that the cache does not show yet. Otherwise several claims at once would all go to the
// data server with the fewest directories in the cache.
type assumed struct {
	sync.Mutex
	byName map[string]assumption
}

type assumption struct {
	directory *internalv1.ShareDirectory
	since     time.Time
}

func key(directory *internalv1.ShareDirectory) string {
	return directory.Namespace + "/" + directory.Name
}

// add records a directory that is about to be made.
func (a *assumed) add(directory *internalv1.ShareDirectory, now time.Time) {
	a.Lock()
	defer a.Unlock()
	if a.byName == nil {
		a.byName = map[string]assumption{}
	}
	a.byName[key(directory)] = assumption{directory, now}
}

// drop forgets a directory that could not be made.
func (a *assumed) drop(directory *internalv1.ShareDirectory) {
	a.Lock()
	defer a.Unlock()
	delete(a.byName, key(directory))
}

// with returns a FileServer's directories in the cache, plus assumed ones.
func (a *assumed) with(shown []internalv1.ShareDirectory, namespace, fileServer string, now time.Time) []internalv1.ShareDirectory {
	a.Lock()
	defer a.Unlock()
	if len(a.byName) == 0 {
		return shown
	}
	for i := range shown {
		delete(a.byName, key(&shown[i]))
	}
	for name, assumed := range a.byName {
		switch directory := assumed.directory; {
		case now.Sub(assumed.since) >= assumeFor:
			delete(a.byName, name)
		case directory.Namespace == namespace && directory.Spec.FileServerRef.Name == fileServer:
			shown = append(shown, *directory)
		}
	}
	return shown
}
