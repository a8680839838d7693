package docs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPageIsRead(t *testing.T) {
	page := parse(`# The title

See [a](b.md#c), ![picture](d.svg "title"), not ` + "`[x](y)`" + `.

<!-- run by: hack/x.sh (word) -->

    kubectl get pods

    kubectl get nodes

## Words & "things": a-b_c 1.2
text
    not code
<!-- not run: why -->
` + "```sh\nmake x\n[no](link)\n```\n" + `
## The title
<a id="here"></a>

    # comment
`)
	if page.Title != "The title" {
		t.Errorf("title %q", page.Title)
	}
	if diff := cmp.Diff([]Link{{3, "b.md#c"}, {3, "d.svg"}}, page.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Block{
		{7, "", "    kubectl get pods\n\n    kubectl get nodes", "run by: hack/x.sh (word)"},
		{15, "sh", "make x\n[no](link)", "not run: why"},
		{23, "", "    # comment", ""},
	}, page.Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	for _, want := range []string{"the-title", "the-title-1", "words--things-a-b_c-12", "here"} {
		if !page.Anchors[want] {
			t.Errorf("no anchor %q: %v", want, page.Anchors)
		}
	}
}

func TestSlugsAreGitHubs(t *testing.T) {
	for text, want := range map[string]string{
		"`nconnect` and [a link](x.md)": "nconnect-and-a-link",
		"server.active count > 1":       "serveractive-count--1",
		"Ünïcode":                       "ünïcode",
	} {
		if got := Slug(text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestCommandsAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"    kubectl get pods":                        true,
		"$ kubectl get pods\nNAME":                    true,
		"    apiVersion: v1\n    kind: Pod":           false,
		"# comment\nhack/kind/up.sh":                  true,
		"    eval \"$(hack/lab/lab env)\"":            true,
		"NAME   READY\nmaker  True":                   false,
		"sum(rate(x[5m])) / 2":                        false,
		"HOWDAH_E2E_CLUSTER=yes make test-e2e":        true,
		"limit       = spec.nfs.maxConnections, make": false,
	} {
		if got := isCommands(Block{Text: text}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if isCommands(Block{Language: "yaml", Text: "kubectl get pods"}) {
		t.Error("yaml is no command")
	}
	if !slices.IsSorted(programs) {
		t.Error("programs are in no order")
	}
}
