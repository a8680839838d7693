package conditions

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

func TestSetMovesTheTransitionTimeWithTheStatusOnly(t *testing.T) {
	tests := map[string]struct {
		second      metav1.Condition
		wantTime    time.Time
		wantChanged bool
	}{
		"nothing changes":     {True("A", "Good", "fine"), noon, false},
		"the message changes": {True("A", "Good", "still fine"), noon, true},
		"the reason changes":  {True("A", "Better", "fine"), noon, true},
		"the status changes":  {False("A", "Bad", "not fine"), later, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			if !Set(&list, 1, noon, True("A", "Good", "fine")) {
				t.Fatal("the first Set must be a change")
			}
			if got := Set(&list, 1, later, tc.second); got != tc.wantChanged {
				t.Errorf("changed = %v, want %v", got, tc.wantChanged)
			}
			if !list[0].LastTransitionTime.Time.Equal(tc.wantTime) {
				t.Errorf("transition at %s, want %s", list[0].LastTransitionTime, tc.wantTime)
			}
			if list[0].Message != tc.second.Message || list[0].Reason != tc.second.Reason {
				t.Errorf("got %q %q", list[0].Reason, list[0].Message)
			}
		})
	}
}

func TestSetRecordsTheGeneration(t *testing.T) {
	var list []metav1.Condition
	Set(&list, 3, noon, True("A", "Good", ""))
	if !Set(&list, 4, later, True("A", "Good", "")) || list[0].ObservedGeneration != 4 {
		t.Errorf("generation %d, want 4, as a change", list[0].ObservedGeneration)
	}
}

func TestWorst(t *testing.T) {
	tests := map[string]struct {
		findings []metav1.Condition
		want     metav1.Condition
	}{
		"no findings are Unknown":   {nil, Unknown("X", "Pending", "not checked yet")},
		"False goes before Unknown": {[]metav1.Condition{Unknown("a", "U", "u"), False("b", "F", "f")}, False("X", "F", "f")},
		"Unknown goes before True":  {[]metav1.Condition{True("a", "T", "t"), Unknown("b", "U", "u")}, Unknown("X", "U", "u")},
		"of equals the first counts": {
			[]metav1.Condition{False("a", "F1", "one"), True("b", "T", "t"), False("c", "F2", "two")}, False("X", "F1", "one"),
		},
		"what needs the user goes before what does not": {
			[]metav1.Condition{False("a", "F1", "one"), False("b", v1alpha1.ReasonNameTaken, "two")}, False("X", v1alpha1.ReasonNameTaken, "two"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Worst("X", tc.findings...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	tests := map[string]struct {
		conditions []metav1.Condition
		types      []string
		want       metav1.Condition
	}{
		"all hold": {
			[]metav1.Condition{True("A", "Ready", "a"), True("B", "Ready", "b")},
			[]string{"A", "B"},
			True("Ready", "Ready", "everything is as specified"),
		},
		"a missing one is Unknown": {
			[]metav1.Condition{True("A", "Good", "a")},
			[]string{"A", "B"},
			Unknown("Ready", "Pending", "B: not checked yet"),
		},
		"the most important of several is reported, without the others' progress": {
			[]metav1.Condition{False("B", "Bad", "b"), False("A", "Worse", "a"), Unknown("C", "Pending", "c")},
			[]string{"A", "B", "C"},
			False("Ready", "Worse", "A: a"),
		},
		"a caveat is reported if all hold": {
			[]metav1.Condition{True("A", v1alpha1.ReasonReady, "a"), True("B", v1alpha1.ReasonServersShareNodes, "b")},
			[]string{"A", "B"},
			True("Ready", v1alpha1.ReasonServersShareNodes, "b"),
		},
		"others do not count": {
			[]metav1.Condition{True("A", "Ready", "a"), False("Other", "Bad", "b")},
			[]string{"A"},
			True("Ready", "Ready", "everything is as specified"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Summarize("Ready", tc.conditions, tc.types...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetWithReadyWritesBoth(t *testing.T) {
	var list []metav1.Condition
	SetWithReady(&list, 1, noon, True("A", "Ready", "a"), False("B", "Bad", "b"))
	if Reason(list, "Ready") != "Bad" || Message(list, "Ready") != "B: b" || !IsTrue(list, "A") {
		t.Errorf("got %+v", list)
	}
}

func TestLongMessagesAreCutAtACharacter(t *testing.T) {
	got := False("A", "Bad", strings.Repeat("€", maxMessage)).Message
	if len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-8:])
	}
}

// Names of directories are in messages, and clients choose them.
func TestNothingInAConditionSteersATerminal(t *testing.T) {
	const name, shown = "a\x1b[2J\u009b31m\u202eb\x7f\xff", `a\x1b[2J\x9b31m\u202eb\x7f\xff`
	for _, made := range []func(string, string, string) metav1.Condition{True, False, Unknown} {
		if got := made("Placed", "Reason", "the path "+name); got.Message != "the path "+shown {
			t.Errorf("%q", got.Message)
		}
	}
	var status []metav1.Condition
	SetWithReady(&status, 1, time.Now(), False("Placed", "Reason", name))
	for _, c := range status {
		if strings.Contains(c.Message, "\x1b") || !strings.Contains(c.Message, shown) {
			t.Errorf("%s: %q", c.Type, c.Message)
		}
	}
}

func TestList(t *testing.T) {
	tests := map[string]struct {
		items []string
		want  string
	}{
		"none":            {nil, ""},
		"up to the limit": {[]string{"a", "b"}, "a, b"},
		"more":            {[]string{"a", "b", "c", "d"}, "a, b and 2 more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := List(tc.items, 2); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
