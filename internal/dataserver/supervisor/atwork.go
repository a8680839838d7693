package supervisor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// lineAtWork begins ganesha's report, every 5 s, of operations that have held threads for 5 s or longer
// (internal/ganesha/build/patches/0218-slow-operations-are-named.patch).
const lineAtWork = "Operations at work for long: "

const (
	// atWorkLimit is how many slow operations make the server not ready: ganesha has 200 threads, and when all are held it answers no client.
	atWorkLimit = 150
	// atWorkFor is how long a report counts: ganesha repeats it every 5 s, and reports at once that there are none any more.
	atWorkFor = 15 * time.Second
)

// atWork is ganesha's last report of slow operations.
type atWork struct {
	Count int
	// Oldest is the one that has taken longest, in ganesha's words.
	Oldest string
	at     time.Time
}

// parseAtWork reads such a line. ok is false for another.
func parseAtWork(message string, now time.Time) (work atWork, ok bool) {
	text, found := strings.CutPrefix(message, lineAtWork)
	if !found {
		return atWork{}, false
	}
	number, oldest, _ := strings.Cut(text, ". ")
	count, err := strconv.Atoi(strings.TrimSuffix(number, "."))
	if err != nil || count < 0 {
		return atWork{}, false
	}
	oldest = strings.Replace(strings.TrimPrefix(oldest, "The oldest is "), "client ::ffff:", "client ", 1)
	return atWork{Count: count, Oldest: oldest, at: now}, true
}

// Describe is "" if there is nothing slow.
func (a atWork) Describe(now time.Time) string {
	if a.Count == 0 || now.Sub(a.at) > atWorkFor {
		return ""
	}
	return fmt.Sprintf("%d operations have held threads of ganesha for seconds, the oldest is %s", a.Count, a.Oldest)
}

// Explain adds the slow operations to what keeps the server from answering.
func (a atWork) Explain(now time.Time, err error) error {
	if slow := a.Describe(now); err != nil && slow != "" {
		return fmt.Errorf("%w; %s", err, slow)
	}
	return err
}

// TooMany is the error of a server that still answers, but soon will not.
func (a atWork) TooMany(now time.Time) error {
	if slow := a.Describe(now); slow != "" && a.Count >= atWorkLimit {
		return errors.New(slow)
	}
	return nil
}
