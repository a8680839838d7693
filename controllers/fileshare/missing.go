package fileshare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// maxLossesNamed is how many losses a message names.
const maxLossesNamed = 64

// missing are the directories of a share that are not on their data servers, which had them.
type missing struct {
	// directories are described for messages.
	directories []string
	// elsewhere are the ShareDirectories of those that another data server or volume has.
	elsewhere []string
	// losses are the IDs of the others.
	losses map[string]bool
	// unnamed is how many directories lie on volumes that do not own them and are not named in the inventories.
	unnamed int
}

// findMissing looks for directories that are not on their data servers, there and in the inventories of the others.
func findMissing(o *observed) missing {
	displaced, count := displacedDirectories(o)
	places := map[string][]string{}
	for _, d := range displaced {
		places[d.path] = append(places[d.path], d.place)
	}
	found := missing{losses: map[string]bool{}, unnamed: count - len(displaced)}
	for _, path := range slices.SortedFunc(maps.Keys(o.directories), byNumber) {
		directory := o.directories[path]
		if directory.State() != internalv1.DirectoryMissing || directory.Status.LossID == "" {
			continue
		}
		text := fmt.Sprintf("%q", path)
		if path == tree.RootPath {
			text = "the share's root"
		}
		text += " on " + directory.Spec.DataServerRef.Name
		if at := directory.Status.MissingTime; at != nil {
			text += ", since " + at.UTC().Format(time.RFC3339)
		}
		if at := places[path]; len(at) > 0 {
			text += ", found at " + strings.Join(at, " and ")
			found.elsewhere = append(found.elsewhere, directory.Namespace+"/"+directory.Name)
		} else {
			found.losses[directory.Status.LossID] = true
		}
		found.directories = append(found.directories, text)
	}
	return found
}

// condition returns what to do about missing directories. Those that another data server has are lost only if the user believes it: after a restore of
// the API from an older backup, what was found is the data.
func (m missing) condition(kind string, owned int) metav1.Condition {
	text := fmt.Sprintf("%d of %s are not on their data servers, which had them: %s. Clients that enter them wait", len(m.directories), plural(owned, "directory"),
		conditions.List(m.directories, maxNamed))
	reason := v1alpha1.ReasonDirectoriesMissing
	if len(m.elsewhere) > 0 {
		reason = v1alpha1.ReasonDirectoriesElsewhere
		text += ". Look at what was found. If it is the data, as after a restore of the API from an older backup, delete ShareDirectory " +
			conditions.List(m.elsewhere, maxNamed) + ": it is written again with that place, within two minutes. If not, bring the volume back that had it"
	}
	switch {
	case len(m.losses) == 0:
	case m.unnamed > 0:
		text += fmt.Sprintf(". Accept no loss yet: %d more directories lie where they do not belong, and are named when fewer do", m.unnamed)
	default:
		giveUp := "Or give it up"
		if len(m.elsewhere) > 0 {
			giveUp = "Or, once those ShareDirectories are deleted, as one loss may have both, give it up"
		}
		text += ". Bring back what was found nowhere (the volume, or a restored copy of it): it is found within a minute or two. " + giveUp + ": remove it with rmdir, or add to " +
			"spec.acceptedLosses " + conditions.List(slices.Sorted(maps.Keys(m.losses)), maxLossesNamed) + ", and declared directories are made again, empty, and others leave the share"
	}
	return conditions.False(kind, reason, text)
}

// describeOwner formats a data server for messages. A server that does not exist belonged to an earlier FileServer of
// the same name with more replicas.
func describeOwner(o *observed, server string) string {
	if len(o.dataServers) == 0 || hasServer(o, server) {
		return server
	}
	return server + " (there is no such data server: raise spec.replicas of FileServer " + o.share.Spec.FileServerRef.Name + ", or give up its data with spec.ignoreDataOn)"
}
