package fileshare

import (
	"fmt"
	"maps"
	"slices"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// maxLossesNamed is how many losses a message names.
const maxLossesNamed = 64

// describeMissing returns which directories are not on their data servers, since when, and what to do; "" if none is
// missing.
func describeMissing(o *observed, owned int) string {
	var missing []string
	losses := map[string]bool{}
	for _, path := range slices.SortedFunc(maps.Keys(o.directories), byNumber) {
		directory := o.directories[path]
		if directory.State() != internalv1.DirectoryMissing || directory.Status.LossID == "" {
			continue
		}
		what := fmt.Sprintf("%q", path)
		if path == tree.RootPath {
			what = "the share's root"
		}
		since := ""
		if at := directory.Status.MissingTime; at != nil {
			since = ", since " + at.UTC().Format(time.RFC3339)
		}
		missing = append(missing, fmt.Sprintf("%s on %s%s", what, directory.Spec.DataServerRef.Name, since))
		losses[directory.Status.LossID] = true
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s are not on their data servers, which had them: %s. Clients that enter them wait. Bring them back (the volume, or a restored copy of it): "+
		"they are found within a minute or two. Or give them up: remove them with rmdir, or add to spec.acceptedLosses %s, and declared ones are made again, empty, and others leave the share",
		len(missing), plural(owned, "directory"), conditions.List(missing, maxNamed), conditions.List(slices.Sorted(maps.Keys(losses)), maxLossesNamed))
}

// describeOwner formats a data server for messages. A server that does not exist belonged to an earlier FileServer of
// the same name with more replicas.
func describeOwner(o *observed, server string) string {
	if len(o.dataServers) == 0 || hasServer(o, server) {
		return server
	}
	return server + " (there is no such data server: raise spec.replicas of FileServer " + o.share.Spec.FileServerRef.Name + ", or give up its data with spec.ignoreDataOn)"
}
