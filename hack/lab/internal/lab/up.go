package lab

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/cache"
	"github.com/howdah/howdah/hack/lab/internal/control"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

//go:embed addons/*.yaml
var addons embed.FS

const (
	// readyLimit is for machines that do other things, too: an idle one takes 20 s.
	readyLimit = 15 * time.Minute
	// remindEvery is how often a wait says what it waits for.
	remindEvery = 10 * time.Second
)

// Up brings the instance to the settings. What is there already stays; what is
// missing, whether never made or gone since, is made.
func (l *Lab) Up(settings plan.Settings, c *cache.Cache, base string) error {
	if l.Exists() && !l.rec.Settings.Same(settings) {
		if l.rec.Complete {
			return fmt.Errorf("lab %s is up with other settings (%+v); take it down first", l.Name, l.rec.Settings)
		}
		l.Say("lab %s is half-built with other settings, starting afresh", l.Name)
		if err := l.Down(); err != nil {
			return err
		}
	}
	if !l.Exists() {
		token, err := newToken()
		if err != nil {
			return err
		}
		l.rec = labFile{Settings: settings, Token: token, Cache: c.Dir, Base: base}
		if err := l.save(); err != nil {
			return err
		}
	}
	if err := l.start(); err != nil {
		return err
	}
	l.rec.Complete = true
	return l.save()
}

// start goes through every step; each does nothing when it was done before.
func (l *Lab) start() error {
	if err := l.step("network", l.ensureNetwork); err != nil {
		return err
	}
	plane := l.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	if err := l.step("forwarder", l.ensureForwarder); err != nil {
		return err
	}
	// The nodes boot while the control plane starts; kubelet tries until it answers.
	if err := l.step("nodes started", func() error { return l.ensureNodes(plane) }); err != nil {
		return err
	}
	if err := l.step("control plane", func() error { return plane.Start(l.rec.Port) }); err != nil {
		return err
	}
	if err := l.step("add-ons applied", l.applyAddons); err != nil {
		return err
	}
	return l.step("ready", func() error { return l.waitReady(plane) })
}

func (l *Lab) step(name string, do func() error) error {
	started := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.Say("%-16s %5.1fs", name, time.Since(started).Seconds())
	return nil
}

func (l *Lab) ensureNodes(plane *control.Plane) error {
	for _, node := range l.rec.Settings.Machines() {
		if err := l.ensureNode(plane, node); err != nil {
			return fmt.Errorf("%s: %w", node.Name, err)
		}
	}
	return nil
}

func (l *Lab) applyAddons() error {
	text, err := addonText(cache.CoreDNSImage, l.rec.Settings)
	if err != nil {
		return err
	}
	var last error
	// The default RBAC roles come a moment after the API server calls itself ready.
	for range 20 {
		cmd := exec.Command(filepath.Join(l.rec.Cache, "bin", "kubectl"),
			"--kubeconfig="+l.plane().Kubeconfig(), "apply", "--server-side", "--force-conflicts", "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		// A kubectl of the user's own settings could have other defaults.
		cmd.Env = append(os.Environ(), "KUBERC=off")
		if _, last = sys.Capture(cmd); last == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return last
}

func addonText(dnsImage string, settings plan.Settings) (string, error) {
	entries, err := addons.ReadDir("addons")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == "network-volumes.yaml" && !settings.NetworkVolumes {
			continue
		}
		data, err := addons.ReadFile("addons/" + entry.Name())
		if err != nil {
			return "", err
		}
		text.Write(data)
		text.WriteString("\n---\n")
	}
	dns := settings.Family.ClusterDNS()
	values := strings.NewReplacer(
		"@CLUSTER_DNS@", quoted(dns[:1]),
		"@CLUSTER_DNS_ALL@", quoted(dns),
		"@CLUSTER_DOMAIN@", plan.ClusterDomain,
		"@DNS_IMAGE@", dnsImage,
	)
	return values.Replace(text.String()), nil
}

// quoted are strings in a list of YAML, without its brackets: an IPv6 address has colons.
func quoted(list []string) string {
	var all []string
	for _, text := range list {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}

// waitReady waits for all nodes and for the cluster's own pods.
func (l *Lab) waitReady(plane *control.Plane) error {
	client, err := plane.Client()
	if err != nil {
		return err
	}
	want := l.rec.Settings.Nodes
	var state string
	var nodesReady bool
	reported := time.Now()
	for end := time.Now().Add(readyLimit); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if time.Since(reported) >= remindEvery && state != "" {
			l.Say("waiting: %s", state)
			reported = time.Now()
		}
		nodes, err := client.ReadyNodes()
		if err != nil {
			state = err.Error()
			continue
		}
		if len(nodes) < want {
			state = fmt.Sprintf("nodes ready: %v of %d", nodes, want)
			if err := l.deadNode(); err != nil {
				return err
			}
			continue
		}
		if !nodesReady {
			l.Say("all %d nodes are Ready", want)
			nodesReady = true
		}
		dns, dnsErr := client.Available("deployments", "kube-system", "coredns", want)
		if dns {
			return nil
		}
		state = fmt.Sprintf("cluster DNS available: %t %v", dns, dnsErr)
	}
	return fmt.Errorf("not ready after %s: %s (logs under %s)", readyLimit, state, l.Dir)
}

// deadNode reports a node whose machine has ended, which no waiting will cure.
func (l *Lab) deadNode() error {
	for _, node := range l.rec.Settings.Machines() {
		if !l.table().Alive(node.Name) {
			console, _ := sys.Output("tail", "-n", "15", l.nodeDir(node, "console.log"))
			return fmt.Errorf("%s has stopped; its console:\n%s", node.Name, console)
		}
	}
	return nil
}
