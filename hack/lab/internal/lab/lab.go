// Package lab puts the parts together: an instance is a network namespace, a
// control plane in it, and nodes on its bridge.
package lab

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/howdah/howdah/hack/lab/internal/agent"
	"github.com/howdah/howdah/hack/lab/internal/control"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// StateDir holds one folder per instance; a variable for tests.
var StateDir = "/var/lib/howdah-lab"

// labFile is what lab.json holds, what an instance must remember. It is written before anything else
// is made, so that `down` always knows what there may be.
type labFile struct {
	Settings plan.Settings `json:"settings"`
	Token    string        `json:"token"`
	Port     int           `json:"port,omitempty"`
	Cache    string        `json:"cache"`
	Base     string        `json:"base"`
	// Complete is set when `up` went through once. Anything before is a half-built
	// lab, which `up` builds on.
	Complete bool `json:"complete"`
}

// Lab is one instance.
type Lab struct {
	Name string
	Dir  string
	Say  func(format string, args ...any)
	rec  labFile
}

// Open finds an instance by name; it need not exist.
func Open(name string, say func(string, ...any)) (*Lab, error) {
	if err := plan.ValidName(name); err != nil {
		return nil, err
	}
	l := &Lab{Name: name, Dir: filepath.Join(StateDir, name), Say: say}
	data, err := os.ReadFile(l.path("lab.json"))
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &l.rec); err != nil {
		return nil, fmt.Errorf("%s: %w", l.path("lab.json"), err)
	}
	return l, nil
}

// Exists reports whether there is anything of the instance.
func (l *Lab) Exists() bool {
	return l.rec.Token != ""
}

// Complete reports whether the instance was brought up fully.
func (l *Lab) Complete() bool {
	return l.rec.Complete
}

// Lock keeps other commands from changing the instance. The file is outside the
// instance's folder because `down` removes that.
func (l *Lab) Lock() (*sys.Lock, error) {
	return sys.TakeLock(filepath.Join(StateDir, "."+l.Name+".lock"), func() {
		l.Say("waiting for another command that works on lab %s", l.Name)
	})
}

func (l *Lab) save() error {
	data, err := json.MarshalIndent(l.rec, "", "  ")
	if err != nil {
		return err
	}
	return sys.WriteFile(l.path("lab.json"), append(data, '\n'), 0o600)
}

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

func (l *Lab) nodeDir(node plan.Node, parts ...string) string {
	return l.path(append([]string{"nodes", node.Name}, parts...)...)
}

func (l *Lab) table() sys.Table {
	return sys.Table{Instance: l.Name, Dir: l.path("run")}
}

func (l *Lab) plane() *control.Plane {
	return &control.Plane{
		Settings: l.rec.Settings,
		Dir:      l.Dir,
		Bin:      filepath.Join(l.rec.Cache, "bin"),
		Table:    l.table(),
	}
}

// Programs is the folder with kubectl, for those who have none.
func (l *Lab) Programs() string { return filepath.Join(l.rec.Cache, "bin") }

// Kubeconfig is the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() (string, error) {
	path := l.plane().Kubeconfig()
	if !sys.Exists(path) {
		return "", fmt.Errorf("%w: %s", plan.ErrNoLab, l.Name)
	}
	return path, nil
}

// Agent returns the client of a node's agent.
func (l *Lab) Agent(nodeName string) (agent.Client, error) {
	if !l.Exists() {
		return agent.Client{}, fmt.Errorf("%w: %s", plan.ErrNoLab, l.Name)
	}
	node, err := l.rec.Settings.Node(nodeName)
	if err != nil {
		return agent.Client{}, err
	}
	return agent.Client{Instance: l.Name, IP: node.IP(), Token: l.rec.Token}, nil
}

func newToken() (string, error) {
	var data [16]byte
	if _, err := rand.Read(data[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(data[:]), nil
}
