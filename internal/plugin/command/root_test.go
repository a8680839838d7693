package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run does what the arguments ask for, with a kubeconfig that leads nowhere.
func run(t *testing.T, arguments ...string) (code int, out, errOut string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: team-a}}]
current-context: x
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	root := New(strings.NewReader(""), &o, &e)
	root.SetArgs(append(arguments, "--kubeconfig", kubeconfig))
	return Run(context.Background(), root, &e), o.String(), e.String()
}

func TestWrongArgumentsEndWithCodeTwoAndNameTheHelp(t *testing.T) {
	for message, arguments := range map[string][]string{
		`unknown command "tidy"`: {"tidy"},
		`unknown flag: --colour`: {"status", "--colour"},
		`--output is "xml"`:      {"status", "-o", "xml"},
		`--color is "purple"`:    {"status", "--color", "purple"},
		`OBJECT is missing; write: kubectl howdah explain OBJECT`:                          {"explain"},
		`SHARE is missing; write: kubectl howdah plan mkdir SHARE [PATH...]`:               {"plan", "mkdir"},
		`fileshare unet3d: write fileshare/unet3d`:                                         {"explain", "fileshare", "unet3d"},
		`1 argument is too many; write: kubectl howdah status [FILESERVER]`:                {"status", "a", "b"},
		`1 argument is too many; write: kubectl howdah support-bundle`:                     {"support-bundle", "x"},
		`unknown command "stauts" for "kubectl howdah"; did you mean status?`:              {"stauts"},
		`unknown command "mkdri" for "kubectl howdah plan"; did you mean mkdir?`:           {"plan", "mkdri"},
		`--replicas is missing: name the number of data servers, for example --replicas 4`: {"plan", "scale", "fs"},
		`--replicas is "x"; it must be a whole number`:                                     {"plan", "scale", "fs", "--replicas", "x"},
		`--for is "5"; it must be a time with its unit, for example 30s or 2m`:             {"top", "--for", "5"},
		`"pod/x" does not name an object`:                                                  {"explain", "pod/x"},
		`"fileserver/x" is not a FileShare`:                                                {"mount", "fileserver/x"},
		`--at is "mnt"`:                                                                    {"mount", "x", "--at", "mnt"},
		`--at is "/my data"`:                                                               {"mount", "x", "--at", "/my data"},
		`-A can't be used with the name of an`:                                             {"explain", "fileshare/x", "-A"},
	} {
		code, out, errOut := run(t, arguments...)
		if code != CodeUsage || !strings.Contains(errOut, message) || !strings.Contains(errOut, "--help has examples") || out != "" {
			t.Errorf("%v: code %d\n%s%s", arguments, code, out, errOut)
		}
	}
}

func TestTheErrorOfAnAPIServerThatDoesNotAnswerSaysWhatToCheck(t *testing.T) {
	code, _, errOut := run(t, "status")
	if code != CodeError || !strings.Contains(errOut, "can't reach the API server: check --context and the kubeconfig") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, command := range New(nil, nil, nil).Commands() {
		if len(command.Commands()) == 0 && command.Example == "" {
			t.Errorf("%s has no example", command.Name())
		}
		for _, below := range command.Commands() {
			if below.Example == "" {
				t.Errorf("%s %s has no example", command.Name(), below.Name())
			}
		}
		code, out, _ := run(t, command.Name(), "--help")
		if code != CodeWell || !strings.Contains(out, "kubectl howdah "+command.Name()) {
			t.Errorf("%s --help: code %d\n%s", command.Name(), code, out)
		}
	}
}
