package supervisor

import (
	"context"
	"log/slog"
	"strings"
)

// Lines of ganesha 9.14 that say what it has done; the build has no D-Bus, so there is no other signal.
const (
	lineInitialized  = "NFS SERVER INITIALIZED"
	lineReloaded     = "Reread exports complete"
	lineReloadFailed = "Failed to reread config"
	lineInGrace      = "NFS Server Now IN GRACE"
	lineNotInGrace   = "NFS Server Now NOT IN GRACE"
	// In files (recovery_fs.c) and in RADOS (recovery_rados_kv.c).
	lineNoRecord      = "Failed to create client in recovery dir"
	lineNoRadosRecord = "Failed to put kv"
)

// logLine is a line of ganesha's log: "date time : epoch E : host : program-pid[thread] function :COMPONENT :LEVEL :message".
type logLine struct {
	function, component, level, message string
}

func parseLogLine(text string) logLine {
	head := strings.SplitN(text, " : ", 4)
	if len(head) != 4 || !strings.HasPrefix(head[1], "epoch ") {
		return logLine{message: text}
	}
	_, rest, _ := strings.Cut(head[3], "] ") // The program has the name of its file, which differs in tests.
	parts := strings.SplitN(rest, " :", 4)
	if len(parts) != 4 {
		return logLine{message: text}
	}
	return logLine{function: parts[0], component: parts[1], level: parts[2], message: strings.TrimSpace(parts[3])}
}

// is tells whether the line is one that says what ganesha has done. Others can have the same words in them, in names that clients have chosen.
func (l logLine) is(words string) bool { return strings.HasPrefix(l.message, words) }

// harmless are messages of a level that would alarm, about things that a data server does without on purpose.
var harmless = []string{
	"getclnthandle", "Cannot register NFS V4", // no rpcbind: NFSv4 needs none
	"Failed to set PR_SET_IO_FLUSHER", "RADOS URLs", "will soon be deprecated", "under DIRECTORY_SERVICES",
}

func (l logLine) severity() slog.Level {
	for _, known := range harmless {
		if strings.Contains(l.message, known) {
			return slog.LevelDebug
		}
	}
	switch l.level {
	case "FATAL", "MAJ", "CRIT":
		return slog.LevelError
	case "WARN":
		return slog.LevelWarn
	case "NULL", "EVENT", "INFO", "":
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func (l logLine) forward(ctx context.Context, log *slog.Logger) {
	log.Log(ctx, l.severity(), l.message, "function", l.function, "component", l.component)
}
