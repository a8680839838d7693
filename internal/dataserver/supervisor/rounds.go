package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/howdah/howdah/internal/dataserver/durable"
)

// SetRounds tells ganesha how often each Export_Id was used before. It has the file mapped, so the file is
// changed where it is; ids that ganesha serves are never among those that change.
func (s *Supervisor) SetRounds(rounds []byte) error {
	known, err := os.ReadFile(s.RoundsFile)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading how often Export_Ids were used: %w", err)
	case err != nil || len(known) != len(rounds):
		return durable.Write(s.RoundsFile, rounds) // Ganesha does not run yet, or has another file.
	case bytes.Equal(known, rounds):
		return nil
	}
	file, err := os.OpenFile(s.RoundsFile, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("telling how often Export_Ids were used: %w", err)
	}
	for at := 0; at < len(rounds) && err == nil; at += 2 {
		if known[at] != rounds[at] || known[at+1] != rounds[at+1] {
			_, err = file.WriteAt(rounds[at:at+2], int64(at))
		}
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("telling how often Export_Ids were used: %w", err)
	}
	return nil
}
