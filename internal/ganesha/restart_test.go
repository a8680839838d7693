package ganesha

import (
	"slices"
	"testing"
)

func TestWhatARestartIsNeededFor(t *testing.T) {
	text := func(change func(*Config)) string {
		config := Config{ServerScope: "scope", ServerOwner: "owner", LeaseSeconds: 10, GraceSeconds: 20, RecoveryRoot: "/r", Limits: LimitsFor(0).WithConnections(77)}
		change(&config)
		rendered, err := Render(config)
		if err != nil {
			t.Fatal(err)
		}
		return rendered
	}
	started := text(func(*Config) {})
	for name, tc := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"nothing":     {func(*Config) {}, nil},
		"an export":   {func(c *Config) { c.Exports = []Export{{ID: 7, Pseudo: "/x", Path: "/x"}} }, nil},
		"the lease":   {func(c *Config) { c.LeaseSeconds = 11 }, []string{"leaseSeconds"}},
		"the grace":   {func(c *Config) { c.GraceSeconds = 21 }, []string{"graceSeconds"}},
		"connections": {func(c *Config) { c.Limits = c.Limits.WithConnections(78) }, []string{"maxConnections"}},
		"all": {func(c *Config) {
			c.LeaseSeconds, c.GraceSeconds, c.Limits = 9, 18, c.Limits.WithConnections(99)
		}, []string{"graceSeconds", "leaseSeconds", "maxConnections"}},
	} {
		if got := RestartPending(started, text(tc.change)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, not %q", name, got, tc.want)
		}
	}
	if got := RestartPending("", started); got != nil {
		t.Errorf("a ganesha that was not started: %q", got)
	}
}
