package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns"

// CreateNetNS makes the network namespace unless it exists.
func CreateNetNS(name string) error {
	if NetNSExists(name) {
		return nil
	}
	// An interrupted `ip netns add` leaves a plain file, which it then stumbles over.
	_ = os.Remove(filepath.Join(netnsDir, name))
	if err := Run("ip", "netns", "add", name); err != nil {
		return err
	}
	return Run("ip", "-n", name, "link", "set", "lo", "up")
}

// NetNSExists reports whether the namespace is there and is one.
func NetNSExists(name string) bool {
	var stat unix.Statfs_t
	const nsfsMagic = 0x6e736673
	return unix.Statfs(filepath.Join(netnsDir, name), &stat) == nil && stat.Type == nsfsMagic
}

// DeleteNetNS removes the namespace and with it every device made in it.
func DeleteNetNS(name string) error {
	if !Exists(filepath.Join(netnsDir, name)) {
		return nil
	}
	return Run("ip", "netns", "delete", name)
}

// InNetNS runs work with its thread in the namespace; processes that work starts
// and sockets that it opens belong to the namespace.
func InNetNS(name string, work func() error) error {
	target, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer target.Close()
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the runtime then ends the thread with the goroutine, so
		// that no other goroutine ever lands on a thread in the wrong namespace.
		runtime.LockOSThread()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", name, err)
			return
		}
		result <- work()
	}()
	return <-result
}
