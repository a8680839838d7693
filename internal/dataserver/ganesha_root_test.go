package dataserver

import (
	"testing"

	"github.com/howdah/howdah/internal/ganesha/realtest"
)

// ownBytes is the size of the volume that is a file system of its own, in ownRoot.
const (
	ownBytes = realtest.OwnBytes
	ownRoot  = realtest.OwnRoot
)

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
