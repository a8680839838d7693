package volumes

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAPodWaitsForTheProcessesOfTheOneBefore(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	log := slog.New(slog.NewTextHandler(&output, nil))
	release, ok := Take(t.Context(), root, log)
	if !ok || output.Len() > 0 {
		t.Fatalf("the first one: %v, %s", ok, output.String())
	}
	// The order to stop ends the wait.
	ctx, cancel := context.WithTimeout(t.Context(), 5*lockEvery)
	defer cancel()
	if _, ok := Take(ctx, root, log); ok {
		t.Error("two serve from the same volumes")
	}
	if n := strings.Count(output.String(), "another process serves"); n != 1 {
		t.Errorf("it says %d times that it waits: %s", n, output.String())
	}
	second := make(chan bool)
	go func() {
		releaseSecond, ok := Take(context.Background(), root, slog.New(slog.DiscardHandler))
		releaseSecond()
		second <- ok
	}()
	select {
	case <-second:
		t.Error("the second one did not wait")
	case <-time.After(5 * lockEvery):
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
	var output bytes.Buffer
	release, ok := Take(t.Context(), t.TempDir(), slog.New(slog.NewTextHandler(&output, nil)))
	if !ok || output.Len() > 0 {
		t.Fatalf("%v, %s", ok, output.String())
	}
	release()
}
