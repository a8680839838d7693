package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestGraceIsLongerByThreeTimesTheOutage(t *testing.T) {
	now := time.Date(2026, 11, 26, 6, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		since time.Time
		want  int
	}{
		"not known":                     {},
		"75 s":                          {now.Add(-75 * time.Second), 90},
		"10 s":                          {now.Add(-10 * time.Second), 30},
		"a kill":                        {now.Add(-300 * time.Millisecond), 0},
		"a day":                         {now.Add(-24 * time.Hour), 90},
		"a clock of another node ahead": {now.Add(time.Hour), 0},
	} {
		if got := secondsLonger(test.since, now); got != test.want {
			t.Errorf("%s: %d s, want %d", name, got, test.want)
		}
	}
}

// Clients that have not reclaimed after one start have waited since before it.
func TestGaneshaKnowsSinceWhenClientsHaveWaited(t *testing.T) {
	directory := t.TempDir()
	binary, config, given := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf"), filepath.Join(directory, "given")
	// Grace ends with SIGUSR1 only.
	program := "#!/bin/sh\ntrap 'echo \"" + lineNotInGrace + "\"' USR1\necho $HOWDAH_SECONDS_LONGER $HOWDAH_LOST_CLIENTS >>" + given + "\necho '" + lineInGrace + "'\necho '" +
		lineInitialized + "'\nwhile :; do sleep 0.02; done\n"
	mustWork(t, "write a program", os.WriteFile(binary, []byte(program), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	s := New(Config{
		Binary: binary, ConfigFile: config, PIDFile: filepath.Join(directory, "pid"), Log: quiet, BeforeStart: func(context.Context) {}, Changed: func() {},
		Outage: func() Outage {
			return Outage{Since: time.Now().Add(-10*time.Second - 100*time.Millisecond), LostClients: []string{"10.88.0.3", "10.244.2.1"}}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	await := func(what string, good func(State) bool) {
		t.Helper()
		for deadline := time.Now().Add(timeout); !good(s.State()); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for %s: %+v", what, s.State())
			}
		}
	}
	restart := func(start int) {
		t.Helper()
		mustWork(t, "kill", syscall.Kill(s.State().PID, syscall.SIGKILL))
		await("the next start", func(state State) bool { return state.Starts == start && state.Initialized })
	}
	await("a start", func(state State) bool { return state.Initialized && state.InGrace })
	restart(2)
	mustWork(t, "end grace", syscall.Kill(s.State().PID, syscall.SIGUSR1))
	await("the end of grace", func(state State) bool { return !state.InGrace })
	restart(3)
	cancel()
	<-ended
	text, err := os.ReadFile(given)
	mustWork(t, "read what it was given", err)
	const lost = " 10.88.0.3,10.244.2.1\n"
	if strings.Count(string(text), lost) != 3 {
		t.Errorf("the starts were given %q, not all lost clients", text)
	}
	seconds := strings.Fields(strings.ReplaceAll(string(text), lost, "\n"))
	if len(seconds) != 3 || seconds[0] != "30" || seconds[1] < "30" || seconds[1] > "89" || seconds[2] > "5" {
		t.Errorf("the starts were given %q seconds", seconds)
	}
}
