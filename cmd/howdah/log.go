package main

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/howdah/howdah/internal/printable"
)

// newLog is the log of a process of Howdah and its libraries. It escapes control characters: names of directories and data of clients must
// not control the terminal of a reader.
func newLog(level slog.Level) *slog.Logger {
	log := slog.New(slog.NewJSONHandler(printable.JSONLines(os.Stderr), &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log
}
