package ceph

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Monitor ports of Ceph's two protocols.
const (
	portV2 = 3300
	portV1 = 6789
)

// MonitorAddress is what ceph.conf has for a monitor at "address:port": port 3300 speaks Ceph's second protocol, and whatever is
// not 6789 is taken for one that was moved.
func MonitorAddress(text string) (string, error) {
	monitor, err := netip.ParseAddrPort(text)
	if err != nil || monitor.Port() == 0 || monitor.Addr().Zone() != "" {
		return "", fmt.Errorf("monitor %q is no IP address with a port, as 10.0.0.1:%d or [fd00::1]:%d", text, portV2, portV2)
	}
	if monitor.Port() == portV1 {
		return "v1:" + monitor.String(), nil
	}
	return "v2:" + monitor.String(), nil
}

// Config is ceph.conf for a data server: whom to ask, where keys are, and nothing that is secret. keyrings is a directory with
// client.<user>.keyring for each user.
func Config(fsid string, monitors []string, keyrings string) (string, error) {
	if len(monitors) == 0 {
		return "", errors.New("no monitors are named")
	}
	for _, value := range []string{fsid, keyrings} {
		if value == "" || strings.ContainsAny(value, "\n\r\x00;#\\$\"'") {
			return "", fmt.Errorf("%q can't be in ceph.conf", value)
		}
	}
	addresses := make([]string, 0, len(monitors))
	for _, text := range monitors {
		address, err := MonitorAddress(text)
		if err != nil {
			return "", err
		}
		addresses = append(addresses, address)
	}
	return strings.Join([]string{
		"# Written by howdah; changes are overwritten.",
		"[global]",
		"fsid = " + fsid,
		"mon_host = " + strings.Join(addresses, ","),
		"[client]",
		// The default is 300 s, and a reload of ganesha mounts one share after the other.
		"client_mount_timeout = 30",
		"keyring = " + keyrings + "/$name.keyring",
		// Files are given to their owners as root, as whatever user the process runs. The metadata servers check what the key allows.
		"client_mount_uid = 0",
		"client_mount_gid = 0",
		// The root file system is read-only.
		"admin_socket =",
		"log_file =",
		"",
	}, "\n"), nil
}
