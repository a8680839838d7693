package steward

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	cephclient "github.com/howdah/howdah/internal/ceph/client"
)

// signalManagers sends a signal to all managers, whose processes are on this machine.
func signalManagers(t *testing.T, signal syscall.Signal) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || string(text) != "ceph-mgr\n" {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil {
			err = syscall.Kill(process, signal)
		}
		if err != nil {
			t.Fatal(err)
		}
		sent++
	}
	if sent == 0 {
		t.Fatal("there is no manager here")
	}
}

// A command that a manager did not answer in time counted as done, and its late answer was that of the next one: a share got another's path.
func TestAManagerThatAnswersLateInARealCephCluster(t *testing.T) {
	if os.Getenv("HOWDAH_CEPH_MONITOR") == "" {
		t.Skip("needs a Ceph cluster: HOWDAH_CEPH_MONITOR (hack/ceph-processes/run.sh)")
	}
	connect := func(timeout time.Duration) *cephclient.Client {
		c, err := cephclient.Connect(t.Context(), cephclient.Options{
			User: "admin", Config: "/etc/ceph/ceph.conf", Keyring: "/etc/ceph/ceph.client.admin.keyring", Timeout: timeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	admin, volume := connect(time.Minute), ceph.Volume{FileSystem: "fs1", Group: ceph.Group("00000000-0000-4000-8000-0000000000af")}
	for _, command := range []ceph.Command{volume.CreateGroup(), volume.Create("first"), volume.Create("second")} {
		if _, err := admin.Command(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		signalManagers(t, syscall.SIGCONT)
		for _, subvolume := range []string{"first", "second"} {
			if _, err := admin.Command(context.WithoutCancel(t.Context()), volume.Remove(subvolume)); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
	})

	c := connect(5 * time.Second)
	if _, err := c.Command(t.Context(), volume.Info("first")); err != nil {
		t.Fatal(err)
	}
	signalManagers(t, syscall.SIGSTOP)
	if answer, err := c.Command(t.Context(), volume.Info("first")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a manager that is stopped answered %q, %v", answer, err)
	}
	time.AfterFunc(time.Second, func() { signalManagers(t, syscall.SIGCONT) })
	if answer, err := c.Command(t.Context(), volume.Info("second")); !errors.Is(err, cephclient.ErrGone) {
		t.Errorf("what the first command asked for is the answer to the second: %q, %v", answer, err)
	}
}
