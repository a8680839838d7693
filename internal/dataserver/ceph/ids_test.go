package ceph

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/howdah/howdah/internal/dataserver/backend"
)

// A write without an answer was executed or not. Only what this process wrote is taken for its own.
func TestAfterAWriteWithoutAnAnswerTheExportIDsAreReadAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   error
	}{
		"it was not executed":               {whole()["read"], nil},
		"another pod has written meanwhile": {`{"code":0,"result":{"data":"7b7d","keys":{},"version":7}}`, backend.ErrIDsChanged},
	} {
		t.Run(name, func(t *testing.T) {
			b := stored(t, whole().but("write", `{"code":110,"words":"writing exports: Connection timed out"}`), nil)
			if err := b.configure(nil); err != nil {
				t.Fatal(err)
			}
			table, err := b.ReadIDs(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.WriteIDs(t.Context(), table); err == nil {
				t.Fatal("no error")
			}
			text, err := json.Marshal(whole().but("read", tc.object))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(helps, string(text)) // New connections get answers.
			if err := b.WriteIDs(t.Context(), table); !errors.Is(err, tc.want) {
				t.Errorf("the next write: %v", err)
			}
		})
	}
}
