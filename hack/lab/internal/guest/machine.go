package guest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// modules are loaded at boot, all of them: later the kernel may not ask for more
// (see quietModprobe).
var modules = strings.Fields(`
	overlay veth bridge br_netfilter loop fuse dummy tun
	nf_conntrack nf_conntrack_netlink nf_nat
	ip_tables iptable_filter iptable_nat iptable_mangle iptable_raw
	xt_conntrack xt_comment xt_mark xt_connmark xt_MASQUERADE xt_nat xt_REDIRECT xt_statistic xt_recent
	xt_addrtype xt_tcpudp xt_multiport xt_physdev xt_limit xt_LOG xt_CT xt_nfacct xt_set xt_string xt_owner ipt_REJECT
	sunrpc nfsv4 nfs_layout_nfsv41_files nfs_layout_flexfiles
	sch_tbf sch_htb sch_ingress sch_netem cls_u32`)

var sysctls = map[string]string{
	"net/ipv4/ip_forward":                   "1",
	"net/ipv4/conf/all/rp_filter":           "0",
	"net/ipv4/conf/default/rp_filter":       "0",
	"net/bridge/bridge-nf-call-iptables":    "1",
	"net/netfilter/nf_conntrack_max":        "131072",
	"fs/inotify/max_user_instances":         "1024",
	"fs/inotify/max_user_watches":           "524288",
	"kernel/keys/root_maxkeys":              "1000000",
	"kernel/keys/root_maxbytes":             "25000000",
	"vm/overcommit_memory":                  "1",
	"net/core/rmem_max":                     "16777216",
	"net/core/wmem_max":                     "16777216",
	"net/ipv4/neigh/default/gc_thresh3":     "8192",
	"net/ipv4/conf/all/promote_secondaries": "1",
}

func setUpMachine(config Config) {
	steps := []struct {
		name string
		do   func(Config) error
	}{
		{"host name", setHostname},
		{"modules", loadModules},
		{"settings", setSysctls},
		{"processor description", describeProcessor},
		{"disk", mountData},
		{"network", setUpNetwork},
	}
	for _, step := range steps {
		// Carry on: a node with a flaw can be looked into, one that stops can't.
		if err := step.do(config); err != nil {
			say("%s: %v", step.name, err)
		}
	}
}

func setHostname(config Config) error {
	name := config.Node.Name
	hosts := "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
	for _, peer := range config.Peers {
		hosts += fmt.Sprintf("%s %s\n", peer.IP, peer.Name)
	}
	// A machine id of its own for every node, or they'd all be one machine to kubelet.
	id := fmt.Sprintf("%x", name+"-"+config.Instance)
	id = (id + strings.Repeat("0", 32))[:32]
	files := map[string]string{
		"/etc/hosts":               hosts,
		"/etc/hostname":            name + "\n",
		"/etc/machine-id":          id + "\n",
		"/etc/resolv.conf":         "",
		"/etc/kubelet-resolv.conf": "",
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return syscall.Sethostname([]byte(name))
}

func loadModules(config Config) error {
	// The NFSv4 client names itself by this; two nodes of one name would take each
	// other's locks and sessions away at the server.
	if err := run("modprobe", "nfs", "nfs4_unique_id="+config.Instance+"-"+config.Node.Name); err != nil {
		say("%v", err)
	}
	// Kernels differ in what is built in or left out; -a goes on after a miss.
	out, _ := exec.Command("modprobe", append([]string{"-a"}, modules...)...).CombinedOutput()
	if len(out) > 0 {
		say("modprobe: %s", strings.TrimSpace(string(out)))
	}
	return quietModprobe()
}

// quietModprobe stops the kernel from starting modprobe on its own. The NFS
// client asks for its RDMA transport at every referral it follows; that costs a
// fork and exec each time, a large part of a second on a UML node, only to hear
// that there is none.
func quietModprobe() error {
	return os.WriteFile("/proc/sys/kernel/modprobe", []byte("\n"), 0)
}

func setSysctls(Config) error {
	for name, value := range sysctls {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
			say("sysctl %s: %v", name, err)
		}
	}
	return nil
}

// describeProcessor covers UML's /proc/cpuinfo, which lacks the clock speed that
// kubelet insists on.
func describeProcessor(Config) error {
	const text = "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\ncpu MHz\t\t: 2000.000\n" +
		"cache size\t: 1024 KB\nphysical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\n"
	const file = "/run/cpuinfo"
	if err := os.WriteFile(file, []byte(text), 0o444); err != nil {
		return err
	}
	return syscall.Mount(file, "/proc/cpuinfo", "", syscall.MS_BIND, "")
}

// mountData puts volumes and pods' folders on the node's own disk: file handles
// (for NFS servers in pods) need a real file system, and the root disk's
// copy-on-write layer would only slow them down.
func mountData(config Config) error {
	if config.Bake {
		return nil
	}
	if err := os.MkdirAll("/data", 0o755); err != nil {
		return err
	}
	if err := run("mount", "-o", "noatime", "/dev/ubdb", "/data"); err != nil {
		return err
	}
	for source, target := range map[string]string{"/data/volumes": "/var/lib/howdah-lab/volumes", "/data/kubelet": "/var/lib/kubelet"} {
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", target, err)
		}
	}
	return nil
}
