package fileserver

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

var endsNow = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// endAt is an end some time ago; served is negative while the server does not serve.
func endAt(ago time.Duration, count int64, served time.Duration) v1alpha1.ServerEnd {
	at := metav1.NewTime(endsNow.Add(-ago))
	e := v1alpha1.ServerEnd{EndTime: &at, Cause: v1alpha1.EndGanesha, Message: "ganesha was killed by signal SIGSEGV", Count: &count}
	if served >= 0 {
		e.ServedAfterMilliseconds = ptr.To(served.Milliseconds())
	}
	return e
}

func TestEndsOfDataServersBecomeEvents(t *testing.T) {
	const away = -1
	for name, test := range map[string]struct {
		before, reported v1alpha1.ServerEnd
		message          string
		again            time.Duration
		// kept: the status stays as it was.
		kept bool
	}{
		"nothing ended": {},
		"the first end, served again": {
			reported: endAt(5*time.Second, 1, 600*time.Millisecond), message: "training-0: ganesha was killed by signal SIGSEGV; served again after 0.6 s",
		},
		"an end that waits to be served again": {reported: endAt(4*time.Second, 1, away), again: 6 * time.Second, kept: true},
		"an end that is not served again in time": {
			reported: endAt(11*time.Second, 1, away), message: "training-0: ganesha was killed by signal SIGSEGV; it does not serve yet",
		},
		"what did not serve at the last event serves": {
			before: endAt(34*time.Second, 1, away), reported: endAt(34*time.Second, 1, 33*time.Second),
			message: "training-0: ganesha was killed by signal SIGSEGV; served again after 33.0 s",
		},
		"what had an event has no second one":           {before: endAt(time.Hour, 1, time.Second), reported: endAt(time.Hour, 1, time.Second)},
		"what still does not serve has no second event": {before: endAt(time.Hour, 1, away), reported: endAt(time.Hour, 1, away)},
		"an old end, of before the first look":          {reported: endAt(time.Hour, 3, time.Second)},
		"another end within a minute waits":             {before: endAt(40*time.Second, 1, time.Second), reported: endAt(10*time.Second, 2, time.Second), again: 20 * time.Second, kept: true},
		"several ends are one event a minute later": {
			before: endAt(61*time.Second, 1, time.Second), reported: endAt(5*time.Second, 4, time.Second),
			message: "training-0: ganesha was killed by signal SIGSEGV; served again after 1.0 s; 3 ends since the last event",
		},
		"the first end, by a clock that is an hour ahead": {
			reported: endAt(-time.Hour, 1, away), message: "training-0: ganesha was killed by signal SIGSEGV; it does not serve yet",
		},
		"another end, by a clock that is an hour ahead": {
			before: endAt(-time.Hour, 1, time.Second), reported: endAt(-61*time.Minute, 2, time.Second),
			message: "training-0: ganesha was killed by signal SIGSEGV; served again after 1.0 s",
		},
		"an end by a clock that is a second ahead": {reported: endAt(-time.Second, 1, away), again: serveWait, kept: true},
		"two ends within a second": {
			before: endAt(2*time.Minute, 1, time.Second), reported: endAt(2*time.Minute, 2, time.Second),
			message: "training-0: ganesha was killed by signal SIGSEGV; served again after 1.0 s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideEnd(test.before, &test.reported, "training-0", endsNow)
			want := test.reported
			if test.kept {
				want = test.before
			}
			if got.message != test.message || got.again != test.again || got.status != want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestEndsAreEventsOfBothObjects(t *testing.T) {
	stopped := endAt(time.Second, 0, 0)
	stopped.Cause, stopped.Message = v1alpha1.EndPodStopped, "the pod was stopped and replaced"
	o := &observed{now: endsNow, fileServer: &v1alpha1.FileServer{}, dataServers: map[string]internalv1.DataServer{
		"training-0": {Status: internalv1.DataServerStatus{LastEnd: ptr.To(endAt(time.Second, 1, time.Second))}},
		"training-1": {Status: internalv1.DataServerStatus{LastEnd: &stopped}},
		"training-2": {Status: internalv1.DataServerStatus{LastEnd: ptr.To(endAt(time.Second, 1, -1))}},
		"training-3": {},
	}}
	decisions := o.decideEnds()
	recorder := events.NewFakeRecorder(10)
	o.recordEnds(recorder, decisions)
	close(recorder.Events)
	count := map[string]int{}
	for text := range recorder.Events {
		kind, _, _ := strings.Cut(text, ":")
		count[kind]++
	}
	if len(count) != 2 || count["Warning GaneshaEnded training-0"] != 2 || count["Normal PodStopped training-1"] != 2 {
		t.Errorf("events are %v", count)
	}
	if again := endsAgain(decisions); again != 9*time.Second {
		t.Errorf("again after %s", again)
	}
}
