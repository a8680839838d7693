package volumes

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAPodWaitsForTheProcessesOfTheOneBefore(t *testing.T) {
	root, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	if err := os.Mkdir(filepath.Join(root, "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	unexpected := func() { t.Error("it waits") }
	release, ok := Take(t.Context(), root, quiet, unexpected)
	if !ok {
		t.Fatal("the first one may not serve")
	}
	// The order to stop ends the wait.
	ctx, cancel := context.WithTimeout(t.Context(), 5*lockEvery)
	defer cancel()
	if _, ok := Take(ctx, root, quiet, unexpected); ok {
		t.Error("two serve from the same volumes")
	}
	second, waits := make(chan bool), make(chan bool, 1)
	go func() {
		releaseSecond, ok := Take(context.Background(), root, quiet, func() { waits <- true })
		releaseSecond()
		second <- ok
	}()
	select {
	case <-second:
		t.Error("the second one did not wait")
	case <-waits:
	case <-time.After(tellAfter + 10*time.Second):
		t.Error("the second one does not tell that it waits")
	}
	release()
	select {
	case ok := <-second:
		if !ok {
			t.Error("the second one gave up")
		}
	case <-time.After(10 * time.Second):
		t.Error("the second one still waits")
	}
}

func TestWithoutVolumesNoProcessWaits(t *testing.T) {
	release, ok := Take(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler), func() { t.Error("it waits") })
	if !ok {
		t.Fatal("it may not serve")
	}
	release()
}
