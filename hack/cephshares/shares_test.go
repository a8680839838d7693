package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

const fileServer = `{"metadata": {"name": "training", "namespace": "ml", "uid": "7c2e"}, "spec": {"storage": {"ceph": {"external": {
	"fileSystem": "fs1", "recoveryPool": "howdah", "recoveryUser": "howdah-rec-ml-training", "sharesSecretRef": {"name": "ceph-shares"}}}}}}`

// A cluster that answers by the beginnings of commands.
func answering(record *strings.Builder, answers map[string]string) runner {
	return func(_ context.Context, input string, words ...string) (string, error) {
		command := strings.Join(words, " ")
		record.WriteString("$ " + command + "\n")
		if input != "" {
			record.WriteString("  < " + input + "\n")
		}
		for begins, answer := range answers {
			if strings.HasPrefix(command, begins) {
				if answer == "" {
					return "", errors.New("refused: " + command)
				}
				return strings.TrimPrefix(answer, "-"), nil
			}
		}
		return "", nil
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got (-update accepts):\n%s", diff)
	}
}

func TestWhatIsDone(t *testing.T) {
	mons := `{"mons": [{"public_addrs": {"addrvec": [{"type": "v1", "addr": "10.0.0.1:6789"}, {"type": "v2", "addr": "10.0.0.1:3300"}]}},
		{"public_addrs": {"addrvec": [{"type": "v1", "addr": "[fd00::2]:6789"}]}}]}`
	answers := map[string]string{
		"ceph fsid": "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c\n", "ceph mon dump": mons,
		"kubectl --namespace ml get fileserver": fileServer, "ceph fs subvolume getpath": "/volumes/g/s/1\n",
		"ceph auth get client.": "[client.x]\n\tkey = AQ==\n", "kubectl --namespace ml get secret ceph-shares": "-",
	}
	o := options{namespace: "ml", fileSystem: "fs1", pool: "howdah", secret: "ceph-shares"}
	for name, arguments := range map[string][]string{"spec": {"spec", "training"}, "new": {"secret", "training", "unet3d", "b.bert"}, "accounts": {"secret", "training"}, "again": {"secret", "training", "more"}} {
		t.Run(name, func(t *testing.T) {
			if name == "again" {
				answers["kubectl --namespace ml get secret ceph-shares"] = "secret/ceph-shares\n"
				defer func() { answers["kubectl --namespace ml get secret ceph-shares"] = "-" }()
			}
			var record strings.Builder
			var output bytes.Buffer
			if err := run(t.Context(), o, arguments, answering(&record, answers), &output); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name, record.String()+output.String())
			for line := range strings.Lines(record.String()) {
				if strings.HasPrefix(line, "$ ") && strings.Contains(line, "AQ==") {
					t.Errorf("a key on a command line: %s", line)
				}
			}
		})
	}
}

func TestFaultsAreErrors(t *testing.T) {
	o := options{namespace: "ml"}
	for name, tc := range map[string]struct {
		arguments []string
		answers   map[string]string
		want      string
	}{
		"nothing to do":             {nil, nil, "--help tells"},
		"no FileServer":             {[]string{"secret", "training"}, map[string]string{"kubectl --namespace ml get fileserver": ""}, "has to be there first"},
		"a FileServer with volumes": {[]string{"secret", "training"}, map[string]string{"kubectl --namespace ml get fileserver": `{}`}, "has no storage.ceph.external"},
		"no monitors":               {[]string{"spec", "training"}, map[string]string{"ceph mon dump": `{}`}, "names no monitor"},
		"a share that is refused":   {[]string{"secret", "training", "a"}, map[string]string{"kubectl --namespace ml get fileserver": fileServer, "ceph fs subvolume authorize": ""}, "refused: ceph fs subvolume authorize"},
	} {
		var record strings.Builder
		err := run(t.Context(), o, tc.arguments, answering(&record, tc.answers), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(record.String(), "patch secret") || strings.Contains(record.String(), "create --filename") {
			t.Errorf("%s: the Secret is written:\n%s", name, record.String())
		}
	}
}
