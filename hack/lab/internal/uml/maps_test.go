package uml

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheLimitOfMappingsIsRaisedAndNeverLowered(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"65530\n", "1048576"},
		{"1048576\n", "1048576\n"},
		{"2147483642\n", "2147483642\n"},
	} {
		file := filepath.Join(t.TempDir(), "max_map_count")
		if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := allowMappings(file); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != c.after {
			t.Errorf("of %q it made %q (%v), want %q", c.before, after, err, c.after)
		}
	}
}

func TestALimitThatIsNoNumberIsLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "max_map_count")
	if err := os.WriteFile(file, []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := allowMappings(file); err == nil {
		t.Error("no error")
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != "many" {
		t.Errorf("it is %q now (%v)", after, err)
	}
}
