package kind

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stand is what all programs that up.sh calls are here: it writes the call down, and answers what is asked. An image's ID is in a file.
const stand = `#!/bin/bash
program=$(basename "$0")
echo "$program $*" >>"$STAND/calls"
case "$program $*" in
  "docker image inspect"*howdah/howdah:dev) cat "$STAND/howdah" ;;
  "docker image inspect"*howdah/server:dev) cat "$STAND/server" ;;
  "kind get clusters") [ ! -e "$STAND/cluster" ] || echo mine ;;
  "kind create cluster"*) touch "$STAND/cluster" ;;
  "kind get nodes"*) printf 'mine-worker\nmine-worker2\n' ;;
esac
`

// machine is a machine with the stand-ins.
type machine struct {
	t      *testing.T
	folder string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	// So that go test knows that its result depends on the script.
	if _, err := os.ReadFile("../../hack/kind/up.sh"); err != nil {
		t.Fatal(err)
	}
	m := &machine{t, t.TempDir()}
	for _, program := range []string{"docker", "kind", "kubectl", "helm", "sudo"} {
		if err := os.WriteFile(filepath.Join(m.folder, program), []byte(stand), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// has sets the ID of the image that docker builds of a target.
func (m *machine) has(target, id string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.folder, target), []byte(id+"\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// up runs up.sh and returns what it called.
func (m *machine) up() (calls string, err error) {
	m.t.Helper()
	_ = os.Remove(filepath.Join(m.folder, "calls"))
	command := exec.CommandContext(m.t.Context(), "bash", "../../hack/kind/up.sh")
	command.Env = append(os.Environ(), "PATH="+m.folder+":"+os.Getenv("PATH"), "STAND="+m.folder, "KIND_CLUSTER=mine")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(m.folder, "calls"))
	return string(text), err
}

// tags are those that the chart gets, after it was checked that the nodes have them.
func (m *machine) tags() (howdah, server string) {
	m.t.Helper()
	calls, err := m.up()
	if err != nil {
		m.t.Fatal(err)
	}
	found := regexp.MustCompile(`helm upgrade .* --set image\.tag=(\S+) --set serverImage\.tag=(\S+)\n`).FindStringSubmatch(calls)
	if found == nil {
		m.t.Fatalf("helm gets no tags:\n%s", calls)
	}
	howdah, server = found[1], found[2]
	load := fmt.Sprintf("kind load docker-image --name mine howdah/howdah:%s howdah/server:%s\n", howdah, server)
	if !strings.Contains(calls, load) || strings.Index(calls, load) > strings.Index(calls, "helm upgrade") {
		m.t.Errorf("the nodes don't have these images before the chart names them; want %s in:\n%s", load, calls)
	}
	for _, call := range []string{"docker tag howdah/howdah:dev howdah/howdah:" + howdah + "\n", "docker tag howdah/server:dev howdah/server:" + server + "\n"} {
		if at := strings.Index(calls, call); at < 0 || at > strings.Index(calls, load) {
			m.t.Errorf("%q is not called before the images are loaded:\n%s", call, calls)
		}
	}
	return howdah, server
}

// Kubernetes replaces the pods of an image whose name is another one, and no others.
func TestASecondRunReplacesThePodsOfChangedImages(t *testing.T) {
	m := newMachine(t)
	m.has("howdah", "sha256:1111111111112222")
	m.has("server", "sha256:aaaaaaaaaaaabbbb")
	howdah, server := m.tags()
	if howdah != "dev-111111111111" || server != "dev-aaaaaaaaaaaa" {
		t.Errorf("the tags are %s and %s", howdah, server)
	}
	if again, serverAgain := m.tags(); again != howdah || serverAgain != server {
		t.Errorf("the same images are %s and %s, and then %s and %s", howdah, server, again, serverAgain)
	}
	m.has("howdah", "sha256:3333333333334444")
	if changed, same := m.tags(); changed != "dev-333333333333" || same != server {
		t.Errorf("with another howdah and the same server the tags are %s and %s", changed, same)
	}
}

func TestAClusterIsMadeOnce(t *testing.T) {
	m := newMachine(t)
	m.has("howdah", "sha256:1111111111112222")
	m.has("server", "sha256:aaaaaaaaaaaabbbb")
	for _, want := range []int{1, 0} {
		calls, err := m.up()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(calls, "kind create cluster --name mine"); got != want {
			t.Errorf("%d clusters are made, want %d:\n%s", got, want, calls)
		}
		for _, node := range []string{"mine-worker", "mine-worker2"} {
			if !strings.Contains(calls, "docker exec "+node+" ") {
				t.Errorf("%s gets no NFS client:\n%s", node, calls)
			}
		}
	}
}

func TestAnImageWithoutAnIDIsRefused(t *testing.T) {
	m := newMachine(t)
	m.has("howdah", "")
	m.has("server", "sha256:aaaaaaaaaaaabbbb")
	if calls, err := m.up(); err == nil || !strings.Contains(err.Error(), "no ID of howdah/howdah:dev") {
		t.Errorf("%v, and it called:\n%s", err, calls)
	}
}
