package cache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSettingsThatAKernelDoesNotTake(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, got string
		lost        string // empty: none
	}{
		"all taken":                     {"# Words.\nCONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_A=y\n# CONFIG_B is not set\n", ""},
		"not mentioned is off":          {"# CONFIG_B is not set\n", "", ""},
		"one that must be on is gone":   {"CONFIG_A=y\nCONFIG_C=y\n", "CONFIG_C=y\n", "CONFIG_A=y"},
		"one that must be on is off":    {"CONFIG_A=y\n", "# CONFIG_A is not set\n", "CONFIG_A=y"},
		"a module is not built in":      {"CONFIG_A=y\n", "CONFIG_A=m\n", "CONFIG_A=y"},
		"one that must be off is on":    {"# CONFIG_B is not set\n", "CONFIG_B=y\n", "# CONFIG_B is not set"},
		"a longer name is another name": {"CONFIG_A=y\n", "CONFIG_AB=y\n", "CONFIG_A=y"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			wanted, got := filepath.Join(dir, "wanted"), filepath.Join(dir, "got")
			for file, text := range map[string]string{wanted: tc.wanted, got: tc.got} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkSettings(wanted, got)
			if tc.lost == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tc.lost != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+tc.lost)) {
				t.Errorf("error %v, want one that ends with %q", err, tc.lost)
			}
		})
	}
}

func TestVersionsInNamesAreNumbers(t *testing.T) {
	names := []string{"linux-source-7.2", "linux-source-6.12", "linux-source-7.10", "linux-source-6.9"}
	slices.SortFunc(names, compareNumbered)
	if want := []string{"linux-source-6.9", "linux-source-6.12", "linux-source-7.2", "linux-source-7.10"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	for name, want := range map[string]bool{"linux-source-7.2": true, "linux-source": false, "linux-source-rt": false} {
		if kernelPackages.MatchString(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
