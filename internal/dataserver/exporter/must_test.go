package exporter

import (
	"log/slog"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
