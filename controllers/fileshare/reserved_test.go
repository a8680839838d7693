package fileshare

import (
	"strings"
	"testing"

	"github.com/howdah/howdah/internal/brace"
	"github.com/howdah/howdah/internal/naming"
)

// internal/brace imports nothing of Howdah, so it has the name once more.
func TestWhatIsHowdahsOwnIsNoDirectoryOfAShare(t *testing.T) {
	if _, err := brace.Directories([]string{"a/" + naming.OwnPrefix}, 2, 1); err == nil || !strings.Contains(err.Error(), naming.OwnPrefix) {
		t.Errorf("%v", err)
	}
}
