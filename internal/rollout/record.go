package rollout

import (
	"fmt"
	"strconv"
	"strings"
)

// Cause is who changed the pods of a FileServer's data servers.
type Cause string

const (
	// Specification means that the FileServer's specification was changed, or that its servers can't go on as they are. It waits for no other
	// FileServer.
	Specification Cause = "Specification"
	// Operator means that the operator wants other pods although no user has changed the FileServer: a new version of it, or other images. One
	// FileServer begins when the one before is done.
	Operator Cause = "Operator"
)

// Record is what is kept of the last change of a pod template.
type Record struct {
	// Template is the digest of the template, Generation the newest of the FileServer that has it.
	Template   string
	Generation int64
	Cause      Cause
}

// Next is the record for a template. existing means that there are data servers already. urgent changes are made for the servers' sake and
// do not wait for other FileServers.
func (r Record) Next(template string, generation int64, existing, urgent bool) Record {
	next := Record{Template: template, Generation: generation, Cause: Specification}
	switch {
	case r.Template == template:
		next.Cause = r.Cause
	case !existing || urgent:
	case r.Generation == generation, r.Template == "":
		next.Cause = Operator
	}
	return next
}

// String is the record as an annotation has it.
func (r Record) String() string {
	return fmt.Sprintf("%s %d %s", r.Template, r.Generation, r.Cause)
}

// ParseRecord reads an annotation. One that can't be read is no record: the next change counts as one of the specification.
func ParseRecord(text string) Record {
	parts := strings.Fields(text)
	if len(parts) != 3 {
		return Record{}
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	cause := Cause(parts[2])
	if err != nil || cause != Specification && cause != Operator {
		return Record{}
	}
	return Record{Template: parts[0], Generation: generation, Cause: cause}
}

// Progress is how far the rollout of a FileServer is, as its StatefulSet reports it.
type Progress struct {
	// FileServer names it.
	FileServer string
	Cause      Cause
	// Paused means that the operator leaves the FileServer alone. Holds means that it has the turn: it began last, though its StatefulSet's status
	// may not show it.
	Paused, Holds bool
	// Complete means that all data servers were ready with the newest template once; Updated is how many pods are of it.
	Complete bool
	Updated  int32
}

// HeldBy is the FileServer whose change by the operator has to be done before that of self goes on; "" if there is none.
func HeldBy(self Progress, others []Progress) string {
	for _, other := range others {
		// A change of its own that does not succeed must not keep others from upgrades.
		if other.Complete || other.Paused || other.Cause != Operator || !other.hasBegun() {
			continue
		}
		// Two have begun where a data server that could not serve got its new pod out of turn, and where one was paused in its turn. They must not
		// wait for each other.
		if !self.hasBegun() || other.isBefore(self) {
			return other.FileServer
		}
	}
	return ""
}

func (p Progress) hasBegun() bool { return p.Updated > 0 || p.Holds }

// isBefore is the order among those that have begun.
func (p Progress) isBefore(other Progress) bool {
	if p.Holds != other.Holds {
		return p.Holds
	}
	return p.FileServer < other.FileServer
}
