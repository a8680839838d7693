package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// PauseImage is what holds a pod's namespaces; it is baked into every node.
const PauseImage = "docker.io/howdah-lab/pause:1"

const (
	containerdConfig = "/etc/containerd/config.toml"
	kubeletConfig    = "/etc/kubelet.yaml"
)

func containerdCommand() []string {
	return []string{"/usr/local/bin/containerd", "--config", containerdConfig}
}

func kubeletCommand(node plan.Node) []string {
	return []string{
		"/usr/local/bin/kubelet",
		"--config=" + kubeletConfig,
		"--kubeconfig=" + filepath.Join(Share, "kubelet.kubeconfig"),
		"--hostname-override=" + node.Name,
		"--node-ip=" + strings.Join(node.IPs, ","),
		// Statistics that no lab needs every ten seconds.
		"--housekeeping-interval=1m",
		"--v=1",
	}
}

func proxyCommand(config Config) []string {
	return []string{
		"/usr/local/bin/kube-proxy",
		"--kubeconfig=" + filepath.Join(Share, "kube-proxy.kubeconfig"),
		"--hostname-override=" + config.Node.Name,
		"--proxy-mode=iptables",
		"--cluster-cidr=" + strings.Join(config.Family.PodCIDRs(), ","),
		// A second between two changes is for clusters with thousands of Services.
		"--iptables-min-sync-period=100ms",
		"--v=1",
	}
}

// volumesProgram is run from the share, so that a change of it needs no new disk.
const volumesProgram = Share + "/bin/provisioner"

func volumesCommand(config Config) []string {
	return []string{
		"/usr/bin/env", "NODE_NAME=" + config.Node.Name, "PKI_DIR=" + Share, "API_SERVER=" + config.Family.APIServer(),
		volumesProgram, "serve",
	}
}

// networkCommand is the CSI node plugin. kubelet finds it by the socket beside its plugins.
func networkCommand(config Config) []string {
	return []string{
		"/usr/bin/env", "NODE_NAME=" + config.Node.Name, "ADDRESS=" + config.Family.Volumes(), "CSI_SOCKET=/var/lib/kubelet/plugins/network.howdah-lab/csi.sock",
		Share + "/bin/network", "node",
	}
}

func writeServiceConfigs(config Config) error {
	if err := writeContainerdConfig(); err != nil {
		return err
	}
	text := fmt.Sprintf(kubeletTemplate, Share, config.Node.IP(), config.Family.ClusterDNS()[0], plan.ClusterDomain)
	return os.WriteFile(kubeletConfig, []byte(text), 0o644)
}

func writeContainerdConfig() error {
	if err := os.MkdirAll(filepath.Dir(containerdConfig), 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(containerdTemplate, PauseImage)
	return os.WriteFile(containerdConfig, []byte(text), 0o644)
}

// Once a second, containerd asks the shim of every container for its use of the
// processor. On UML, where a system call is dear, that took half of the time of an
// idle node.
const containerdTemplate = `version = 3

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  stats_collect_period = 60
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '%s'

[plugins.'io.containerd.cri.v1.runtime']
  stats_collect_period = '1m'
  stats_retention_period = '5m'
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'crun'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
        BinaryName = '/usr/bin/crun'
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/usr/lib/cni']
    conf_dir = '/etc/cni/net.d'
`

// Nothing is enforced for all pods together: that wants the cpuset controller,
// which the kernel lacks, and kubelet would report the failure every minute.
// Images come by ` + "`lab load`" + ` alone, so kubelet must never collect one to make
// room; the disk thresholds are low because the disks are sparse files.
const kubeletTemplate = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/kubelet.crt
tlsPrivateKeyFile: %[1]s/kubelet.key
address: "%[2]s"
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
enforceNodeAllocatable: [none]
failSwapOn: false
clusterDNS: ["%[3]s"]
clusterDomain: %[4]s
resolvConf: /etc/kubelet-resolv.conf
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 50Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
serializeImagePulls: false
`
