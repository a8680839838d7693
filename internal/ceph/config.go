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

// MonitorAddress returns the form of "address:port" for ceph.conf. Port 6789 has version 1 of Ceph's protocol, all other ports
// version 2.
func MonitorAddress(text string) (string, error) {
	monitor, err := netip.ParseAddrPort(text)
	if err != nil || monitor.Port() == 0 || monitor.Addr().Zone() != "" {
		return "", fmt.Errorf("monitor %q is not an IP address with a port, as 10.0.0.1:%d or [fd00::1]:%d", text, portV2, portV2)
	}
	if monitor.Port() == portV1 {
		return "v1:" + monitor.String(), nil
	}
	return "v2:" + monitor.String(), nil
}

// Config returns ceph.conf for a data server: the monitors and the path of the keys, but no secrets. keyrings is a directory
// with client.<user>.keyring for each user.
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
		// The default of 300 s is too long, as a reload of ganesha mounts one share after the other.
		"client_mount_timeout = 30",
		"keyring = " + keyrings + "/$name.keyring",
		// ganesha changes owners of files as root, whatever user its process has. The metadata servers check what the key allows.
		"client_mount_uid = 0",
		"client_mount_gid = 0",
		// The root file system is read-only.
		"admin_socket =",
		"log_file =",
		"",
	}, "\n"), nil
}
