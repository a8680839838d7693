package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestPlansAreAsInTestdata(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range inputs {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got bytes.Buffer
			if err := run([]string{file}, nil, &got); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFaultsAreTold(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an unknown field":          {"share: s\nserver: []", `unknown field "server"; see --help for the form`},
		"no share":                  {"depth: 1", "share is missing; see --help for the form"},
		"no server":                 {"share: s\ndirectories: [a]", "no data server can take a new directory: 0 of 0 are ready; wait until one is"},
		"a pattern that is no list": {"share: s\ndirectories: ['{a}']", `directories[0]: pattern "{a}": "{a}" is neither a list like {a,b} nor a range like {0..15}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(nil, strings.NewReader(tc.text), &bytes.Buffer{})
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
