package control

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/api"
	"github.com/howdah/howdah/hack/lab/internal/plan"
)

const (
	etcdURL     = "http://127.0.0.1:2379"
	etcdPeerURL = "http://127.0.0.1:2380"
	etcdName    = "lab"
)

func (p *Plane) etcdArgs() []string {
	return []string{
		"--name=" + etcdName,
		"--data-dir=" + p.etcdDir(),
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + etcdPeerURL,
		"--initial-advertise-peer-urls=" + etcdPeerURL,
		"--initial-cluster=" + etcdName + "=" + etcdPeerURL,
		// A lab's data need not survive a crash of the host, and fsync is most of the
		// time that a write to etcd takes.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (p *Plane) apiserverArgs() []string {
	family := p.Settings.Family
	return []string{
		"--bind-address=" + family.APIServerIP(),
		"--advertise-address=" + family.APIServerIP(),
		"--secure-port=" + strconv.Itoa(plan.APIServerPort),
		"--etcd-servers=" + etcdURL,
		"--client-ca-file=" + p.file("ca.crt"),
		"--tls-cert-file=" + p.file("apiserver.crt"),
		"--tls-private-key-file=" + p.file("apiserver.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + strings.Join(family.ServiceCIDRs(), ","),
		"--service-account-issuer=https://kubernetes.default.svc." + plan.ClusterDomain,
		"--service-account-key-file=" + p.file("service-accounts.key"),
		"--service-account-signing-key-file=" + p.file("service-accounts.key"),
		"--kubelet-certificate-authority=" + p.file("ca.crt"),
		"--kubelet-client-certificate=" + p.file("kubelet-client.crt"),
		"--kubelet-client-key=" + p.file("kubelet-client.key"),
		// Nothing outside the nodes resolves their names.
		"--kubelet-preferred-address-types=InternalIP",
		// There is no kube-proxy where the API server runs, so it must reach webhooks
		// and aggregated APIs at their pods' addresses instead of the service's.
		"--enable-aggregator-routing=true",
		"--requestheader-client-ca-file=" + p.file("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.file("front-proxy.crt"),
		"--proxy-client-key-file=" + p.file("front-proxy.key"),
		"--v=1",
	}
}

func (p *Plane) managerArgs() []string {
	config := p.file(manager.File + ".kubeconfig")
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + p.file("ca.crt"),
		"--service-account-private-key-file=" + p.file("service-accounts.key"),
		"--cluster-signing-cert-file=" + p.file("ca.crt"),
		"--cluster-signing-key-file=" + p.file("ca.key"),
		"--v=1",
	}
}

func (p *Plane) schedulerArgs() []string {
	config := p.file(scheduler.File + ".kubeconfig")
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--v=1",
	}
}

func (p *Plane) volumesSocket() string { return filepath.Join(p.Dir, "network-volumes", "csi.sock") }

// volumesEnvironment is what the storage of network volumes needs to know.
func (p *Plane) volumesEnvironment() []string {
	return []string{
		"ADDRESS=" + p.Settings.Family.Volumes(), "DATA_DIR=" + filepath.Join(p.Dir, "network-volumes", "data"), "CSI_SOCKET=" + p.volumesSocket(),
		"API_SERVER=" + p.Settings.Family.APIServer(), "PKI_DIR=" + p.file(""),
	}
}

func (p *Plane) attacherArgs() []string {
	return []string{
		"--csi-address=" + p.volumesSocket(),
		"--kubeconfig=" + p.file(attacher.File+".kubeconfig"),
		"--leader-election=false",
		"--v=2",
	}
}

// Client talks to the API server as the administrator, from inside the lab.
func (p *Plane) Client() (*api.Client, error) {
	return api.New(api.Config{
		Server: p.Settings.Family.APIServer(),
		NetNS:  plan.NetNS(p.Settings.Name),
		CA:     p.file("ca.crt"),
		Cert:   p.file(admin.File + ".crt"),
		Key:    p.file(admin.File + ".key"),
	})
}
