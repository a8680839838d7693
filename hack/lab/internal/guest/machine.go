package guest

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
)

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

// sysctls6 are those of a lab with IPv6 addresses. All addresses are planned, so the kernel need not look for a second or two whether another
// machine has one before it can be used (accept_dad): on the bridge of pods, and in pods, which inherit it.
var sysctls6 = map[string]string{
	"net/ipv6/conf/all/forwarding":        "1",
	"net/ipv6/conf/default/forwarding":    "1",
	"net/ipv6/conf/all/accept_dad":        "0",
	"net/ipv6/conf/default/accept_dad":    "0",
	"net/ipv6/neigh/default/gc_thresh3":   "8192",
	"net/bridge/bridge-nf-call-ip6tables": "1",
	"net/core/devconf_inherit_init_net":   "1",
}

func setUpMachine(config Config) {
	steps := []struct {
		name string
		do   func(Config) error
	}{
		{"host name", setHostname},
		{"settings", setSysctls},
		{"processor description", describeProcessor},
		{"disk", mountData},
		{"volumes", mountVolumes},
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
		for _, address := range peer.IPs {
			hosts += fmt.Sprintf("%s %s\n", address, peer.Name)
		}
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

func setSysctls(config Config) error {
	all := maps.Clone(sysctls)
	if config.Family.HasIPv6() {
		maps.Copy(all, sysctls6)
	}
	for name, value := range all {
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

// mountData puts pods' folders on the node's own disk, where the files of volumes are too: the root disk's
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
	const source, target = "/data/kubelet", "/var/lib/kubelet"
	for _, path := range []string{source, target} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", target, err)
	}
	return nil
}

// mountVolumes mounts the volumes of a node that starts again, before kubelet hands empty folders to pods.
func mountVolumes(config Config) error {
	if _, err := os.Stat("/data/images"); config.Bake || err != nil {
		return nil
	}
	return run(volumesProgram, "mount")
}
