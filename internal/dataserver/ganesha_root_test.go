package dataserver

import (
	"testing"

	"github.com/howdah/howdah/internal/ganesha/realtest"
)

// ownRoot has a volume that is a file system of its own; ownBytes is its size.
const ownRoot = realtest.OwnRoot

var ownBytes = realtest.OwnBytes()

func TestMain(m *testing.M) {
	runSubcommand()
	realtest.Main(m)
}

// TestGanesha runs the supervisor against the real ganesha (package realtest).
func TestGanesha(t *testing.T) {
	if realtest.Inside(t) {
		runScenarios(t)
	}
}
