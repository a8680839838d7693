package directories

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/howdah/howdah/internal/namespace/tree"
)

const (
	// maxPath is how many characters of a path a ShareDirectory holds (its schema).
	maxPath = 1024
	// maxLeftOut is how many directories an inventory names that are left out, and maxLeftOutPath how much of the path of each.
	maxLeftOut, maxLeftOutPath = 4, 200
)

// errUnrecordable: there can be no ShareDirectory of a directory, however often it is tried.
type errUnrecordable struct{ cause error }

func (e *errUnrecordable) Error() string { return e.cause.Error() }
func (e *errUnrecordable) Unwrap() error { return e.cause }

// whyUnrecordable tells why there can be no ShareDirectory of a path, "" if there can.
func whyUnrecordable(path string) string {
	if !utf8.ValidString(path) {
		return "its name is not UTF-8"
	}
	if n := utf8.RuneCountInString(path); n > maxPath {
		return fmt.Sprintf("its path has %d characters, and can have %d", n, maxPath)
	}
	return ""
}

// leaveOut notes a directory that clients don't see because nothing can stand for it. The inventory goes on with the others.
func (s *scanResult) leaveOut(volume int32, path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skippedCount++
	quoted := strconv.Quote(path)
	if len(quoted) > maxLeftOutPath {
		// A quoted text is valid ASCII or UTF-8; what is cut in the midst of a character is dropped.
		quoted = string([]rune(quoted[:maxLeftOutPath-utf8.UTFMax])) + "…\""
	}
	// The first in order, so that another scan tells the same.
	s.skipped = append(s.skipped, fmt.Sprintf("volume %d: %s (%s)", volume, quoted, why))
	slices.Sort(s.skipped)
	s.skipped = s.skipped[:min(len(s.skipped), maxLeftOut)]
}

// unlessUnrecordable notes a directory that can have no ShareDirectory, and is the error otherwise.
func (s *scanResult) unlessUnrecordable(slot tree.Slot, path string, err error) error {
	var fault *errUnrecordable
	if !errors.As(err, &fault) {
		return err
	}
	s.leaveOut(slot.Volume, path, "the API refuses it")
	return nil
}
