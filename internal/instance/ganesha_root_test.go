package instance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/howdah/howdah/internal/serverpod"
)

// The tests of this file's scenarios run the instance manager against the real
// ganesha, in namespaces of their own and with a pod's rights: a read-only overlay root, the
// capabilities of Capabilities and no new privileges, process 1.
const (
	// envGaneshaRoot names a Debian root directory with nfs-ganesha in it: hack/lab/lab images --target ganesha --unpack.
	envGaneshaRoot = "HOWDAH_GANESHA_ROOT"
	// envRequire makes a missing root a failure instead of a skip.
	envRequire = "HOWDAH_REQUIRE_GANESHA"
	// envStage tells the test binary which part of the way in it is.
	envStage = "HOWDAH_GANESHA_TEST_STAGE"

	stageSetup, stageInside = "setup", "inside"
	// insideBinary is the test binary in the new root.
	insideBinary = "/run/instance.test"
	// ownBytes is the size of the volume that is a file system of its own.
	ownBytes = 64 << 20
	// ownRoot has it: not below /volumes, as a pod's volumes aren't below another disk either.
	ownRoot = "/own"
)

func TestMain(m *testing.M) {
	if os.Getenv(envStage) == stageSetup {
		fmt.Fprintln(os.Stderr, "entering ganesha's root:", enterRoot())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestGanesha(t *testing.T) {
	if os.Getenv(envStage) == stageInside {
		runScenarios(t)
		return
	}
	root := os.Getenv(envGaneshaRoot)
	if _, err := os.Stat(filepath.Join(root, serverpod.GaneshaBinary)); err != nil || os.Getuid() != 0 {
		reason := fmt.Sprintf("needs root and a Debian root directory with nfs-ganesha (%s=%q; hack/test.sh makes one): %v", envGaneshaRoot, root, err)
		if os.Getenv(envRequire) == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	// Not t.TempDir: ganesha does not export file systems of type tmpfs, which /tmp may be.
	scratch, err := os.MkdirTemp("/var/tmp", "howdah-instance-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(scratch); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^TestGanesha$", "-test.v"}
	if filter := os.Getenv("HOWDAH_GANESHA_SCENARIO"); filter != "" {
		args[0] = "-test.run=^TestGanesha$/" + filter
	}
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = append(os.Environ(), envStage+"="+stageSetup, envGaneshaRoot+"="+root, "HOWDAH_SCRATCH="+scratch)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	output, err := command.CombinedOutput()
	t.Logf("inside:\n%s", output)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(output), "--- PASS: TestGanesha/") {
		t.Fatal("no scenario ran")
	}
}

// enterRoot makes the new root and continues in it as stageInside. It returns only if that fails.
func enterRoot() error {
	scratch, lower := os.Getenv("HOWDAH_SCRATCH"), os.Getenv(envGaneshaRoot)
	root := filepath.Join(scratch, "root")
	upper, work := filepath.Join(scratch, "upper"), filepath.Join(scratch, "work")
	for _, directory := range []string{root, upper, work, filepath.Join(scratch, "volumes")} {
		if err := os.Mkdir(directory, 0o755); err != nil {
			return err
		}
	}
	for _, command := range []string{
		"mount --make-rprivate /",
		"ip link set lo up",
		// Clients of several addresses, beside the loopback that is trusted.
		"ip address add fd00:99::1/128 dev lo", "ip address add 10.99.0.1/32 dev lo", "ip address add 10.99.0.2/32 dev lo", "ip address add 10.98.0.1/32 dev lo",
		"hostname training-0",
		"mount -t overlay overlay -o lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work + " " + root,
		"mkdir -p " + root + "/volumes " + root + serverpod.RunDir + " " + root + serverpod.StateDir,
		"ln -sfn /proc/self/mounts " + root + "/etc/mtab",
		"mount --bind " + scratch + "/volumes " + root + "/volumes",
		// A pod has each volume as a mount of its own, and with node-local volumes all are of one device: without
		// Filesystem_Ids ganesha takes one for the other, and dies.
		"mkdir -p " + scratch + "/claims/0 " + scratch + "/claims/1 " + root + "/volumes/come-and-go/0 " + root + "/volumes/come-and-go/1",
		"mount --bind " + scratch + "/claims/0 " + root + "/volumes/come-and-go/0",
		"mount --bind " + scratch + "/claims/1 " + root + "/volumes/come-and-go/1",
		// A volume that is a file system of its own. The loop device goes with the mount.
		"truncate -s " + strconv.Itoa(ownBytes) + " " + scratch + "/own.img", "mkfs.ext4 -q -F -m 0 " + scratch + "/own.img",
		"mkdir -p " + root + ownRoot + "/0", "mount -o loop " + scratch + "/own.img " + root + ownRoot + "/0",
		"mount -o remount,bind,ro " + root,
		"mount -t tmpfs tmpfs " + root + "/run",
		"mkdir " + root + serverpod.RunDir,
		"mount -t tmpfs tmpfs " + root + serverpod.TempDir,
		"mount -t tmpfs tmpfs " + root + serverpod.StateDir,
		"mount -t proc proc " + root + "/proc",
		"mount -t tmpfs tmpfs " + root + "/dev",
	} {
		fields := strings.Fields(command)
		if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	// As container runtimes have it: who has no capability can take a reserved port in a network of his own.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o600); err != nil {
		return err
	}
	for name, minor := range map[string]int{"null": 3, "zero": 5, "urandom": 9} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			return err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(root+insideBinary, self, 0o755); err != nil {
		return err
	}
	if err := syscall.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	capabilities := "-all,+" + strings.ToLower(strings.Join(serverpod.Capabilities, ",+"))
	args := append([]string{"setpriv", "--no-new-privs", "--bounding-set", capabilities, "--inh-caps", "-all", insideBinary}, os.Args[1:]...)
	return syscall.Exec("/usr/bin/setpriv", args, []string{envStage + "=" + stageInside, "PATH=/usr/bin:/usr/sbin"})
}
