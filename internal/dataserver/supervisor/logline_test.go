package supervisor

import (
	"log/slog"
	"testing"
	"time"
)

func TestGaneshasLinesKeepTheirWeight(t *testing.T) {
	tests := map[string]struct {
		text, message string
		level         slog.Level
	}{
		"an event": {
			"21/11/2026 14:06:09 : epoch 00003039 : training-0 : ganesha.nfsd-1[sigmgr] reread_exports :CONFIG :EVENT :Reread exports complete",
			lineReloaded, slog.LevelInfo,
		},
		"the banner": {
			"21/11/2026 14:06:05 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] nfs_start :NFS STARTUP :EVENT :             NFS SERVER INITIALIZED",
			lineInitialized, slog.LevelInfo,
		},
		"a critical one": {
			"21/11/2026 14:05:37 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] fsal_cfg_commit :CONFIG :CRIT :Could not create export for (/a/0) to (/volumes/0/a)",
			"Could not create export for (/a/0) to (/volumes/0/a)", slog.LevelError,
		},
		"no capability for it, on purpose": {
			"21/11/2026 14:06:05 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] main :MAIN :WARN :Failed to set PR_SET_IO_FLUSHER due to EPERM, ignoring...",
			"Failed to set PR_SET_IO_FLUSHER due to EPERM, ignoring...", slog.LevelDebug,
		},
		"something of the libraries": {"ld.so: whatever", "ld.so: whatever", slog.LevelInfo},
		"another program's name": {
			"21/11/2026 14:06:05 : epoch 00003039 : training-0 : ganesha.unsigned-1[main] nfs_start :NFS STARTUP :EVENT :             NFS SERVER INITIALIZED",
			"NFS SERVER INITIALIZED", slog.LevelInfo,
		},
		"a line cut short": {"21/11/2026 14:06:09 : epoch 1 : h : ganesha.nfsd-1[main] x :A", "21/11/2026 14:06:09 : epoch 1 : h : ganesha.nfsd-1[main] x :A", slog.LevelInfo},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			line := parseLogLine(tc.text)
			if line.message != tc.message || line.severity() != tc.level {
				t.Errorf("%+v of %v", line, line.severity())
			}
		})
	}
}

// A client chooses its own name, which is in the message when it can't be recorded.
func TestWordsInAClientsNameAreNoStateOfGanesha(t *testing.T) {
	s := New(Config{Log: quiet, Changed: func() {}})
	s.read(logLine{message: lineInGrace + ", duration 20"})
	began := time.Now()
	s.note(func(state *State) { state.DownSince = began })
	for _, words := range []string{lineNotInGrace, lineInitialized, lineReloaded, lineAtWork + "200."} {
		s.read(logLine{message: "Failed to create client in recovery dir (/volumes/0/::ffff:10.0.0.9-(27:" + words + ")), errno: No space left on device (28)"})
	}
	if state := s.State(); !state.InGrace || state.Initialized || state.DownSince != began || state.AtWork.Count != 0 {
		t.Errorf("%+v", state)
	}
	s.read(logLine{message: lineNotInGrace})
	if state := s.State(); state.InGrace || !state.DownSince.IsZero() {
		t.Errorf("the end of grace was not noticed: %+v", state)
	}
}
