package apply

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// The API refuses an event whose note has more than 1,024 bytes, and the event is lost.
func TestNotesOfEventsFit(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	for long, want := range map[string]string{
		strings.Repeat("€", 1000): " …",
		"100 % of it":             "100 % of it",
	} {
		Brief(recorder).Eventf(&corev1.Pod{}, nil, corev1.EventTypeNormal, "Reason", "Action", "%s", long)
		got := strings.TrimPrefix(<-recorder.Events, "Normal Reason ")
		if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes, %q", len(got), got)
		}
	}
}

// No content of a note can control a terminal.
func TestNothingInAnEventSteersATerminal(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	Brief(recorder).Eventf(&corev1.Pod{}, nil, corev1.EventTypeNormal, "Reason", "Action", "directory %s", "a\x1b[2J\u009b\u202e\xff")
	if note := <-recorder.Events; !strings.Contains(note, `directory a\x1b[2J\x9b\u202e\xff`) {
		t.Errorf("%q", note)
	}
}
