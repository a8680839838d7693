// Package control runs the control plane of a lab as native processes in the
// lab's network namespace.
package control

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/pki"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Plane is the control plane of one instance.
type Plane struct {
	Settings plan.Settings
	Dir      string // The instance's state.
	Bin      string // Where the programs are.
	Table    sys.Table
	CA       *pki.Authority
}

// Identities of the control plane's own programs and of the administrator.
var (
	admin     = pki.Identity{File: "admin", User: "lab-admin", Group: "system:masters"}
	manager   = pki.Identity{File: "controller-manager", User: "system:kube-controller-manager"}
	scheduler = pki.Identity{File: "scheduler", User: "system:kube-scheduler"}
	proxy     = pki.Identity{File: "kube-proxy", User: "system:kube-proxy"}
	volumes   = pki.Identity{File: "volumes", User: "howdah-lab:volumes"}
	attacher  = pki.Identity{File: "csi-attacher", User: "howdah-lab:csi-attacher"}
)

// Kubeconfig is the administrator's, for programs outside the lab.
func (p *Plane) Kubeconfig() string {
	return filepath.Join(p.Dir, "kubeconfig")
}

// Prepare makes certificates and the kubeconfigs that are used inside the lab.
func (p *Plane) Prepare() error {
	ca, err := pki.Open(filepath.Join(p.Dir, "pki"))
	if err != nil {
		return err
	}
	p.CA = ca
	family := p.Settings.Family
	hosts := slices.Concat(family.APIServerIPs(), family.FirstServices(), []string{
		"127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + plan.ClusterDomain,
	})
	identities := []pki.Identity{
		admin, manager, scheduler, proxy, volumes, attacher,
		{File: "kubelet-client", User: "kube-apiserver", Group: "system:masters"},
		{File: "front-proxy", User: "front-proxy"},
		{File: "apiserver", User: "kube-apiserver", Hosts: hosts},
	}
	for _, id := range identities {
		if err := ca.Issue(id); err != nil {
			return err
		}
	}
	if err := ca.Key("service-accounts.key"); err != nil {
		return err
	}
	for _, id := range []pki.Identity{manager, scheduler, attacher} {
		if err := ca.Kubeconfig(p.file(id.File+".kubeconfig"), family.APIServer(), id); err != nil {
			return err
		}
	}
	return nil
}

// PrepareNode puts what a node needs to join into its folder.
func (p *Plane) PrepareNode(node plan.Node, share string) error {
	id := pki.Identity{
		File: "kubelet-" + node.Name, User: "system:node:" + node.Name, Group: "system:nodes",
		Hosts: append([]string{node.Name}, node.IPs...),
	}
	if err := p.CA.Issue(id); err != nil {
		return err
	}
	if err := p.CA.Kubeconfig(filepath.Join(share, "kubelet.kubeconfig"), p.Settings.Family.APIServer(), id); err != nil {
		return err
	}
	if err := p.CA.Kubeconfig(filepath.Join(share, "kube-proxy.kubeconfig"), p.Settings.Family.APIServer(), proxy); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"ca.crt": "ca.crt", id.File + ".crt": "kubelet.crt", id.File + ".key": "kubelet.key", "volumes.crt": "volumes.crt", "volumes.key": "volumes.key",
	} {
		if err := sys.LinkOrCopy(p.file(from), filepath.Join(share, to)); err != nil {
			return err
		}
	}
	return nil
}

// Start starts whatever does not run yet and waits until the API answers.
func (p *Plane) Start(port int) error {
	if err := p.CA.Kubeconfig(p.Kubeconfig(), "https://127.0.0.1:"+strconv.Itoa(port), admin); err != nil {
		return err
	}
	if err := p.start("etcd", p.etcdArgs()); err != nil {
		return err
	}
	if err := p.start("kube-apiserver", p.apiserverArgs()); err != nil {
		return err
	}
	if err := p.waitReady(5 * time.Minute); err != nil {
		return err
	}
	if err := p.start("kube-controller-manager", p.managerArgs()); err != nil {
		return err
	}
	if err := p.start("kube-scheduler", p.schedulerArgs()); err != nil || !p.Settings.NetworkVolumes {
		return err
	}
	if err := p.startWith(p.volumesEnvironment(), "network", []string{"serve"}); err != nil {
		return err
	}
	return p.start("csi-attacher", p.attacherArgs())
}

// Programs are the daemons of the control plane, and of the network volumes where the lab has them.
func (p *Plane) Programs() []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if p.Settings.NetworkVolumes {
		names = append(names, "network", "csi-attacher")
	}
	return names
}

func (p *Plane) start(name string, args []string) error { return p.startWith(nil, name, args) }

func (p *Plane) startWith(environment []string, name string, args []string) error {
	return p.Table.Start(sys.Daemon{
		Name:  name,
		Path:  filepath.Join(p.Bin, name),
		Args:  args,
		Env:   environment,
		Log:   filepath.Join(p.Dir, "logs", name+".log"),
		NetNS: plan.NetNS(p.Settings.Name),
	})
}

func (p *Plane) waitReady(limit time.Duration) error {
	end := time.Now().Add(limit)
	for {
		client, err := p.Client()
		if err != nil {
			return err
		}
		err = client.Get("/readyz", nil)
		if err == nil {
			return nil
		}
		if time.Now().After(end) || !p.Table.Alive("kube-apiserver") {
			return fmt.Errorf("the API server does not get ready (log: %s): %w", filepath.Join(p.Dir, "logs", "kube-apiserver.log"), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (p *Plane) file(name string) string {
	return filepath.Join(p.Dir, "pki", name)
}
