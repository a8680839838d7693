package fileserver

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
)

const (
	// endsEvery is the least time between two events about ends of one data server.
	endsEvery = time.Minute
	// serveWait is how long the event of an end waits for the data server to serve again, so that it can say how long that took.
	serveWait = 10 * time.Second
	// endIsOld is the age of an end that is only copied into the status if the status has none yet.
	endIsOld = 10 * time.Minute
)

// endDecision is what to do about the end of a data server that it has reported.
type endDecision struct {
	// status is what the FileServer's status has after this pass.
	status v1alpha1.ServerEnd
	// message is that of an event, "" for none.
	message string
	// again is when to look again, 0 for never.
	again time.Duration
}

// decideEnd compares what the FileServer's status has of the ends of a data server with what that one reports. The status has the end that the
// last event was about, so an operator that starts repeats no event, and leaves none out.
func decideEnd(before v1alpha1.ServerEnd, report *v1alpha1.ServerEnd, name string, now time.Time) endDecision {
	if report == nil || report.EndTime == nil {
		return endDecision{status: before}
	}
	reported := *report
	age, served := now.Sub(reported.EndTime.Time), reported.ServedAfterMilliseconds != nil
	isNew := before.EndTime == nil || !before.EndTime.Equal(reported.EndTime) || ptr.Deref(before.Count, 0) != ptr.Deref(reported.Count, 0)
	switch {
	case before.EndTime == nil && age > endIsOld:
		return endDecision{status: reported}
	case !isNew && (before.ServedAfterMilliseconds != nil || !served):
		return endDecision{status: reported}
	case isNew && !served && isWithin(age, serveWait):
		return endDecision{status: before, again: min(serveWait-age, serveWait)}
	case isNew && before.EndTime != nil && isWithin(now.Sub(before.EndTime.Time), endsEvery):
		return endDecision{status: before, again: min(endsEvery-now.Sub(before.EndTime.Time), endsEvery)}
	}
	message := fmt.Sprintf("%s: %s; ", name, reported.Message)
	if served {
		message += fmt.Sprintf("served again after %.1f s", (time.Duration(*reported.ServedAfterMilliseconds) * time.Millisecond).Seconds())
	} else {
		message += "it does not serve yet"
	}
	if more := ptr.Deref(reported.Count, 0) - ptr.Deref(before.Count, 0); isNew && before.EndTime != nil && more > 1 {
		message += fmt.Sprintf("; %d ends since the last event", more)
	}
	return endDecision{status: reported, message: message}
}

// isWithin tells whether something was at most so long ago. A time that lies as far ahead is of a clock that is wrong, such as that of the data server's
// node: it was not a moment ago.
func isWithin(ago, limit time.Duration) bool { return ago > -limit && ago < limit }

// decideEnds decides about each data server, by name.
func (o *observed) decideEnds() map[string]endDecision {
	decisions := map[string]endDecision{}
	before := map[string]v1alpha1.ServerEnd{}
	for _, server := range o.fileServer.Status.Servers {
		before[server.Name] = server.LastEnd
	}
	for name, dataServer := range o.dataServers {
		decisions[name] = decideEnd(before[name], dataServer.Status.LastEnd, name, o.now)
	}
	return decisions
}

// recordEnds writes the events, for the FileServer and for the DataServer.
func (o *observed) recordEnds(recorder events.EventRecorder, decisions map[string]endDecision) {
	for name, decision := range decisions {
		if decision.message == "" {
			continue
		}
		kind := corev1.EventTypeWarning
		if decision.status.Cause == v1alpha1.EndPodStopped {
			kind = corev1.EventTypeNormal
		}
		dataServer := o.dataServers[name]
		recorder.Eventf(o.fileServer, nil, kind, string(decision.status.Cause), "Restart", "%s", decision.message)
		recorder.Eventf(&dataServer, nil, kind, string(decision.status.Cause), "Restart", "%s", decision.message)
	}
}

// endsAgain is when to look at the ends again, 0 for never.
func endsAgain(decisions map[string]endDecision) (soonest time.Duration) {
	for _, decision := range decisions {
		if decision.again > 0 && (soonest == 0 || decision.again < soonest) {
			soonest = decision.again
		}
	}
	return soonest
}
