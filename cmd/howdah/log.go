package main

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/howdah/howdah/internal/printable"
)

// newLog is where a process of Howdah logs, and its libraries with it. Names of directories and what clients send is in it: nothing of that
// steers the terminal of who reads it.
func newLog(level slog.Level) *slog.Logger {
	log := slog.New(slog.NewJSONHandler(printable.JSONLines(os.Stderr), &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log
}
