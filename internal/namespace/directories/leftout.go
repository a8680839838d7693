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
	// maxLeftOut is how many skipped directories an inventory names, and maxLeftOutPath how many bytes of each path.
	maxLeftOut, maxLeftOutPath = 4, 200
)

// errUnrecordable means that a directory can never have a ShareDirectory.
type errUnrecordable struct{ cause error }

func (e *errUnrecordable) Error() string { return e.cause.Error() }
func (e *errUnrecordable) Unwrap() error { return e.cause }

// whyUnrecordable returns why a path can't have a ShareDirectory; "" if it can.
func whyUnrecordable(path string) string {
	if !utf8.ValidString(path) {
		return "its name is not UTF-8"
	}
	if isTooLong(path) {
		return fmt.Sprintf("its path has %d characters, and can have %d", utf8.RuneCountInString(path), maxPath)
	}
	return ""
}

// isTooLong reports whether a path has more characters than a ShareDirectory holds.
func isTooLong(path string) bool { return utf8.RuneCountInString(path) > maxPath }

// leaveOut records a directory that clients don't see because it can't have a ShareDirectory. The inventory continues.
func (s *scanResult) leaveOut(volume int32, path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skippedCount++
	quoted := strconv.Quote(path)
	if len(quoted) > maxLeftOutPath {
		// A quoted text is valid UTF-8; a character that is cut in the middle is dropped.
		quoted = string([]rune(quoted[:maxLeftOutPath-utf8.UTFMax])) + "…\""
	}
	// Keep the first in order, so that another scan reports the same.
	s.skipped = append(s.skipped, fmt.Sprintf("volume %d: %s (%s)", volume, quoted, why))
	slices.Sort(s.skipped)
	s.skipped = s.skipped[:min(len(s.skipped), maxLeftOut)]
}

// unlessUnrecordable records a directory that can't have a ShareDirectory and returns nil; it returns any other error.
func (s *scanResult) unlessUnrecordable(slot tree.Slot, path string, err error) error {
	var fault *errUnrecordable
	if !errors.As(err, &fault) {
		return err
	}
	s.leaveOut(slot.Volume, path, "the API refuses it")
	return nil
}
