package supervisor

import (
	"errors"
	"testing"
	"time"
)

func TestSlowOperationsAreRead(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	const oldest = "GETXATTR in export 5 of client 10.99.0.1, for 12003 ms"
	for message, want := range map[string]atWork{
		"Operations at work for long: 3. The oldest is " + oldest:   {Count: 3, Oldest: oldest, at: now},
		"Operations at work for long: 200. The oldest is " + oldest: {Count: 200, Oldest: oldest, at: now},
		"Operations at work for long: 7. The oldest is READ in export 5 of client ::ffff:10.99.0.1, for 6000 ms": {
			Count: 7, Oldest: "READ in export 5 of client 10.99.0.1, for 6000 ms", at: now,
		},
		"Operations at work for long: 0.": {at: now},
	} {
		if got, ok := parseAtWork(message, now); !ok || got != want {
			t.Errorf("%q: %+v, %t", message, got, ok)
		}
	}
	for _, message := range []string{"", "NFS SERVER INITIALIZED", "Operations at work for long: many", "Operations at work for long: -1. The oldest is " + oldest} {
		if got, ok := parseAtWork(message, now); ok {
			t.Errorf("%q: %+v", message, got)
		}
	}
}

func TestSlowOperationsAreNamedByProbes(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	mute := errors.New("ganesha does not answer")
	for _, c := range []struct {
		name       string
		work       atWork
		after      time.Duration
		err, ready string
	}{
		{"none", atWork{}, 0, "ganesha does not answer", ""},
		{"none any more", atWork{at: now}, 0, "ganesha does not answer", ""},
		{
			"some",
			atWork{3, "READ", now},
			time.Second,
			"ganesha does not answer; 3 operations have held threads of ganesha for seconds, the oldest is READ", "",
		},
		{
			"nearly all",
			atWork{150, "READ", now},
			time.Second,
			"ganesha does not answer; 150 operations have held threads of ganesha for seconds, the oldest is READ",
			"150 operations have held threads of ganesha for seconds, the oldest is READ",
		},
		{"nearly all, a while ago", atWork{150, "READ", now}, time.Minute, "ganesha does not answer", ""},
	} {
		at := now.Add(c.after)
		if got := c.work.Explain(at, mute); got.Error() != c.err || !errors.Is(got, mute) {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := c.work.Explain(at, nil); got != nil {
			t.Errorf("%s: an answer is %v", c.name, got)
		}
		if got := c.work.TooMany(at); (got == nil) != (c.ready == "") || got != nil && got.Error() != c.ready {
			t.Errorf("%s: readiness says %v", c.name, got)
		}
	}
}
