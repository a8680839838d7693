package command

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// runOn does what the arguments ask for on an API server that has these objects, by path, and lists of none. It returns what was made
// or changed there.
func runOn(t *testing.T, objects map[string]any, arguments ...string) (code int, out, errOut string, changes []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			changes = append(changes, r.Method+" "+r.URL.Path)
		}
		if object, found := objects[r.URL.Path]; found {
			_, _ = w.Write(raw(object))
			return
		}
		if parts := strings.Split(r.URL.Path, "/"); r.Method == http.MethodGet && len(parts) > 3 && parts[len(parts)-3] == "namespaces" {
			_, _ = w.Write(raw(map[string]any{"metadata": map[string]any{}, "items": []any{}}))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(raw(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found"}))
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n"+
		"contexts: [{name: x, context: {cluster: c, user: u, namespace: team-a}}]\ncurrent-context: x\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	root := New(strings.NewReader(""), &o, &e)
	root.SetArgs(append(arguments, "--kubeconfig", kubeconfig))
	code = Run(context.Background(), root, &e)
	return code, o.String(), e.String(), changes
}

const inTeamA = "/apis/howdah.io/v1alpha1/namespaces/team-a/"

func TestABenchmarkOfAShareThatThereIsNotIsNotMade(t *testing.T) {
	code, _, errOut, changes := runOn(t, nil, "bench", "run", "nope", "--timeout", "1s")
	if code != CodeError || len(changes) > 0 || !strings.Contains(errOut, `there is no fileshare "nope" in namespace team-a`) {
		t.Errorf("code %d, %v: %s", code, changes, errOut)
	}
}

// A request for a move that can't be done is refused at once, as far as the user may read what there is.
func TestAMoveThatCannotBeDoneIsNotRequested(t *testing.T) {
	fs := builders.FileServer("team-a", "training").Ceph().Build()
	fs.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "training-0"}, {Name: "training-1"}}
	share := builders.FileShare("team-a", "unet3d", "training").Build()
	share.Spec.Depth = 2
	directory := builders.ShareDirectory("team-a", "training", "unet3d", "train/0", "training-0")
	objects := map[string]any{
		inTeamA + "fileservers/training": fs, inTeamA + "fileshares/unet3d": share,
		"/apis/internal.howdah.io/v1alpha1/namespaces/team-a/sharedirectories": map[string]any{"metadata": map[string]any{}, "items": []any{directory}},
	}
	for argument, tc := range map[string]struct{ to, want string }{
		"unet3d/train/9": {"training-1", `share unet3d has no directory "train/9"; to list them: kubectl howdah tree unet3d -n team-a`},
		"unet3d/train/0": {"training-0", `"train/0" is on training-0 already; to take back a request for another data server: kubectl howdah move unet3d/train/0 -n team-a --cancel`},
	} {
		code, out, errOut, changes := runOn(t, objects, "move", argument, "--to", tc.to)
		if code != CodeNotWell || len(changes) > 0 || !strings.Contains(out, tc.want) {
			t.Errorf("%s: code %d, %v: %s%s", argument, code, changes, out, errOut)
		}
	}
	if code, out, errOut, changes := runOn(t, objects, "move", "unet3d/train/0", "--to", "training-1"); code != CodeWell || len(changes) != 1 {
		t.Errorf("a good one: code %d, %v: %s%s", code, changes, out, errOut)
	}
}

func TestADataServerIsExplainedByItsNameAlone(t *testing.T) {
	list := func(items ...any) any { return map[string]any{"metadata": map[string]any{}, "items": items} }
	server := internalv1.DataServer{Spec: internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "training"}}}
	server.Namespace, server.Name = "team-a", "training-0"
	at := "/apis/internal.howdah.io/v1alpha1/namespaces/team-a/dataservers"
	_, out, errOut, _ := runOn(t, map[string]any{at: list(server), at + "/training-0": server}, "explain", "training-0")
	if !strings.HasPrefix(out, "DataServer team-a/training-0") {
		t.Errorf("%s%s", out, errOut)
	}
	code, _, errOut, _ := runOn(t, nil, "explain", "training-0")
	if code != CodeError || !strings.Contains(errOut, `namespace team-a has no FileServer, FileShare, snapshot, schedule, MLPerfStorageJob or DataServer "training-0"`) {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestANamespaceWithoutFileServersIsNamed(t *testing.T) {
	for _, arguments := range [][]string{{"top"}, {"clients"}, {"capacity"}} {
		code, out, errOut, _ := runOn(t, nil, arguments...)
		if code != CodeError || out != "" || !strings.Contains(errOut, "there is no FileServer in namespace team-a; those of other namespaces: kubectl howdah "+arguments[0]+" -A") {
			t.Errorf("%v: code %d: %s%s", arguments, code, out, errOut)
		}
		code, _, errOut, _ = runOn(t, nil, append(arguments, "nope")...)
		if code != CodeError || !strings.Contains(errOut, `there is no fileserver "nope" in namespace team-a; to list all: kubectl get fileservers -A`) {
			t.Errorf("%v nope: code %d: %s", arguments, code, errOut)
		}
	}
}
