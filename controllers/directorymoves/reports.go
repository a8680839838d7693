package directorymoves

import (
	"fmt"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/moving"
)

// maxMessage is how long a message of a data server can be. Names in it have up to 253 characters.
const maxMessage = 1024

// moveReport is what a data server reports of a move; its pointer is nil if it reports nothing.
type moveReport struct{ *internalv1.MoveReport }

func (r moveReport) isRefused() bool {
	return r.MoveReport != nil && r.State == internalv1.MoveStateRefused
}

func (r moveReport) message() string {
	if r.MoveReport == nil {
		return ""
	}
	return r.Message
}

func (v *View) reportOf(move *internalv1.DirectoryMove, server string) moveReport {
	reports := v.DataServers[server].Status.Moves
	for i := range reports {
		if reports[i].ID == move.ID {
			return moveReport{&reports[i]}
		}
	}
	return moveReport{}
}

// notYet begins a message about what ends within moments.
const notYet = "not yet"

// waiting is what keeps a move from going on, as its data servers say it; "" if nothing does.
func (v *View) waiting(move *internalv1.DirectoryMove) string {
	for _, server := range []string{move.Source.DataServerRef.Name, move.Target.DataServerRef.Name} {
		if message := v.reportOf(move, server).message(); message != "" && !strings.HasPrefix(message, notYet) {
			return server + ": " + message
		}
	}
	return ""
}

// whyDelayed says why clients of a directory go on with it on the source.
func (v *View) whyDelayed(move *internalv1.DirectoryMove) string {
	source, to := v.reportOf(move, move.Source.DataServerRef.Name), move.Target.DataServerRef.Name
	switch {
	case source.MoveReport != nil && source.State == internalv1.MoveStateInUse:
		return fmt.Sprintf("does not move to data server %s yet: %s", to, source.message())
	case move.Step == internalv1.MovePlacing:
		return fmt.Sprintf("does not move to data server %s yet: its clients went on before the copy was in its place", to)
	}
	return fmt.Sprintf("was not copied to data server %s within %s while its clients waited; they go on, and so does the copying", to, moving.FreezeLimit)
}

// Frozen are those that data servers keep frozen for moves that are in no object any more.
func (v *View) Frozen() (texts []string) {
	for name := range v.DataServers {
		for _, report := range v.DataServers[name].Status.Moves {
			if report.State == internalv1.MoveStateOrphaned {
				texts = append(texts, name+": "+conditions.Shown(report.Message, maxMessage))
			}
		}
	}
	slices.Sort(texts)
	return texts
}
