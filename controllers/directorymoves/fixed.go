package directorymoves

import (
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// maxListed bounds how many paths of directories are kept for messages, for each data server.
const maxListed = 5

// MayCopy tells whether directories of volumes may move.
func (v *View) MayCopy() bool {
	return v.FileServer.Spec.Moves.Copying == v1alpha1.MoveCopyingAllow
}

// canMoveAny tells whether directories of this FileServer can move at all.
func (v *View) canMoveAny() bool { return v.isShared() || v.MayCopy() }

const onlyCopied = "directories of storage.volumes are copied to other data servers only with spec.moves.copying: Allow; or copy the data to a new directory yourself"

// unmovable tells why a directory stays on its volume, whatever is asked for; "" if it can move.
func (v *View) unmovable(directory *internalv1.ShareDirectory) string {
	switch {
	case v.isShared():
	case !v.MayCopy():
		return onlyCopied
	case directory.Spec.Path == tree.RootPath:
		return "the root of a share of layout Single can't move on volumes; copy its content to a new share"
	case !v.isLive(directory.Spec.FileShareRef.Name):
		return "what is left of a deleted share can't move on volumes: it is not exported"
	}
	return ""
}

func (v *View) isUnmovable(directory *internalv1.ShareDirectory) bool {
	return v.unmovable(directory) != ""
}

// Fixed are the directories, on volumes, that can't move: roots of Single shares, what deleted shares left, and those of data servers that are not there. Counts has
// their number, Paths some of them, by data server. Copying are the data servers with a part in a copy.
type Fixed struct {
	Counts  map[string]int32
	Paths   map[string][]string
	Copying map[string]bool
}

// Fixed looks once for a pass: there can be a hundred thousand directories.
func (v *View) Fixed() *Fixed {
	if v.fixedOnes != nil {
		return v.fixedOnes
	}
	found := &Fixed{Counts: map[string]int32{}, Paths: map[string][]string{}, Copying: map[string]bool{}}
	for i := range v.Directories {
		spec := &v.Directories[i].Spec
		if spec.Move.ID != "" {
			found.Copying[spec.Move.Source.DataServerRef.Name], found.Copying[spec.Move.Target.DataServerRef.Name] = true, true
		}
		owner := spec.DataServerRef.Name
		if _, exists := v.DataServers[owner]; owner == "" || exists && !v.isUnmovable(&v.Directories[i]) {
			continue
		}
		found.Counts[owner]++
		found.Paths[owner] = smallest(found.Paths[owner], spec.FileShareRef.Name+":"+spec.Path)
	}
	v.fixedOnes = found
	return found
}

// smallest keeps the first maxListed values in order, whatever order they come in.
func smallest(kept []string, value string) []string {
	at, _ := slices.BinarySearch(kept, value)
	if at == maxListed {
		return kept
	}
	kept = slices.Insert(kept, at, value)
	return kept[:min(len(kept), maxListed)]
}
