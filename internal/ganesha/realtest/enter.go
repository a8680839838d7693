package realtest

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

const (
	// envRoot names a Debian root directory with nfs-ganesha in it: hack/lab/lab images --target ganesha --unpack.
	envRoot = "HOWDAH_GANESHA_ROOT"
	// envRequire makes a missing root a failure instead of a skip.
	envRequire = "HOWDAH_REQUIRE_GANESHA"
	// envScenario is a regular expression for the subtests to run.
	envScenario = "HOWDAH_GANESHA_SCENARIO"
	// envStage tells the test binary which part of the way in it is.
	envStage   = "HOWDAH_GANESHA_TEST_STAGE"
	envScratch = "HOWDAH_SCRATCH"
	// envFileSystem is the type of file system that volumes have: ext4, xfs or btrfs; what /var/tmp is on if it is unset.
	envFileSystem = "HOWDAH_FILE_SYSTEM"

	stageSetup, stageInside = "setup", "inside"
	// insideBinary is the test binary in the new root.
	insideBinary = "/run/inside.test"

	// Device is a device node (that of zeros) on the file system of /volumes. A pod has no right to make one.
	Device = "/volumes/device"

	// OwnRoot has a volume, "0", that is a file system of its own: not below /volumes, as a pod's volumes aren't below another
	// disk either.
	OwnRoot = "/own"
	// OwnImage is the disk of that volume: what it has is there after a loss of power.
	OwnImage = "/own.img"

	// NodeHosts is a file of the node's disk: the kubelet mounts it in each container.
	NodeHosts = "/etc/hosts"
	// NodeLog is another one.
	NodeLog = "/dev/termination-log"
	// NodeSecret is the name of a file in the root directory of that disk, and its content. It is mounted nowhere.
	NodeSecret = "secret-of-the-node"
)

// Addresses of this machine that a test inside may use as clients', beside those of 127.0.0.0/8.
const (
	Address1    = "10.99.0.1"
	Address2    = "10.99.0.2"
	Address3    = "10.98.0.1"
	Address4    = "10.97.0.1"
	Address5    = "10.99.0.3"
	AddressIPv6 = "fd00:99::1"
	// SubnetIPv6 and a number from 1 to SubnetAddresses, in hexadecimal digits, are addresses of one /64.
	SubnetIPv6      = "fd00:98::"
	SubnetAddresses = 8
)

// OwnBytes is the size of the volume in OwnRoot.
func OwnBytes() int64 {
	switch os.Getenv(envFileSystem) {
	case "", "ext4":
		return 64 << 20
	}
	return 512 << 20 // mkfs.xfs refuses less than 300 MB, and its log takes 64.
}

// makeFileSystem is the command that makes the file system of a volume, but for the file that it is in.
func makeFileSystem() string {
	switch os.Getenv(envFileSystem) {
	case "", "ext4":
		return "mkfs.ext4 -q -F -m 0 "
	}
	return "mkfs." + os.Getenv(envFileSystem) + " -q -f "
}

// Main is for a package's TestMain: it goes on inside where Inside asked for that.
func Main(m *testing.M) {
	if os.Getenv(envStage) == stageSetup {
		fmt.Fprintln(os.Stderr, "entering ganesha's root:", enter())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Inside tells whether the test is inside. If not, it runs the test, which must have subtests, again inside, and fails if that does:
// as process 1 of namespaces of its own, in a read-only overlay on ganesha's root, with the capabilities of a data server's pod and
// no new privileges. Variables of the environment that begin with HOWDAH_ come along, and so do the flags of go test.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(envStage) == stageInside {
		return true
	}
	root := os.Getenv(envRoot)
	if _, err := os.Stat(filepath.Join(root, serverpod.GaneshaBinary)); err != nil || os.Getuid() != 0 {
		reason := fmt.Sprintf("needs root and a Debian root directory with nfs-ganesha (%s=%q; hack/test.sh makes one): %v", envRoot, root, err)
		if os.Getenv(envRequire) == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	// Not t.TempDir: ganesha does not export file systems of type tmpfs, which /tmp may be.
	scratch, lock, err := newScratch("/var/tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(scratch); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		_ = lock.Close()
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=0"}
	if filter := os.Getenv(envScenario); filter != "" {
		args[0] += "/" + filter
	}
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = append(os.Environ(), envStage+"="+stageSetup, envRoot+"="+root, envScratch+"="+scratch)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	// What long tests say is seen while they run.
	output := &lines{t: t}
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, output.failures())
	}
	if !output.passed {
		t.Fatal("no scenario ran")
	}
	return false
}

// enter makes the new root and continues in it as stageInside. It returns only if that fails.
func enter() error {
	scratch := os.Getenv(envScratch)
	root := filepath.Join(scratch, "root")
	for _, directory := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(scratch, directory), 0o755); err != nil {
			return err
		}
	}
	for _, command := range commands(scratch, root, os.Getenv(envRoot)) {
		fields := strings.Fields(command)
		if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	// As container runtimes have it: a process without capabilities can use a reserved port in its own network namespace.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o600); err != nil {
		return err
	}
	for name, minor := range map[string]int{"null": 3, "zero": 5, "urandom": 9} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(scratch, "node", NodeSecret), []byte(NodeSecret), 0o600); err != nil {
		return err
	}
	if err := syscall.Mknod(filepath.Join(root, Device), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		return err
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
	environment := []string{"PATH=/usr/bin:/usr/sbin"}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "HOWDAH_") && !strings.HasPrefix(variable, envStage) {
			environment = append(environment, variable)
		}
	}
	return syscall.Exec("/usr/bin/setpriv", args, append(environment, envStage+"="+stageInside))
}

func commands(scratch, root, lower string) []string {
	all := []string{"mount --make-rprivate /"}
	disk := scratch
	if os.Getenv(envFileSystem) != "" {
		disk = scratch + "/disk"
		// Sparse: it takes what the tests write.
		all = append(all, "truncate -s 16G "+disk+".img", makeFileSystem()+disk+".img", "mkdir "+disk, "mount -o loop "+disk+".img "+disk)
	}
	all = append(
		all,
		"mkdir -p "+disk+"/volumes",
		"ip link set lo up",
		// Clients of several addresses, beside the loopback that is trusted.
		"ip address add "+AddressIPv6+"/128 dev lo", "ip address add "+Address1+"/32 dev lo",
		"ip address add "+Address2+"/32 dev lo", "ip address add "+Address3+"/32 dev lo",
		"ip address add "+Address4+"/32 dev lo", "ip address add "+Address5+"/32 dev lo",
		"hostname training-0",
		"mount -t overlay overlay -o lowerdir="+lower+",upperdir="+scratch+"/upper,workdir="+scratch+"/work "+root,
		"mkdir -p "+root+"/volumes "+root+serverpod.RunDir+" "+root+serverpod.StateDir,
		"ln -sfn /proc/self/mounts "+root+"/etc/mtab",
		"mount --bind "+disk+"/volumes "+root+"/volumes",
		// A pod has each volume as a mount of its own, and with node-local volumes all are of one device: without
		// Filesystem_Ids ganesha takes one for the other, and dies.
		"mkdir -p "+disk+"/claims/0 "+disk+"/claims/1 "+root+"/volumes/come-and-go/0 "+root+"/volumes/come-and-go/1",
		"mount --bind "+disk+"/claims/0 "+root+"/volumes/come-and-go/0",
		"mount --bind "+disk+"/claims/1 "+root+"/volumes/come-and-go/1",
		// A volume that is a file system of its own. The loop device goes with the mount.
		"truncate -s "+strconv.FormatInt(OwnBytes(), 10)+" "+scratch+"/own.img", makeFileSystem()+scratch+"/own.img",
		"mkdir -p "+root+OwnRoot+"/0", "mount -o loop "+scratch+"/own.img "+root+OwnRoot+"/0",
		"touch "+root+OwnImage, "mount --bind "+scratch+"/own.img "+root+OwnImage,
		"truncate -s 16M "+scratch+"/node.img", "mkfs.ext4 -q -F -m 0 "+scratch+"/node.img",
		"mkdir "+scratch+"/node", "mount -o loop "+scratch+"/node.img "+scratch+"/node",
		"mkdir -p "+scratch+"/node/kubelet/pod", "touch "+scratch+"/node/kubelet/pod/hosts "+scratch+"/node/kubelet/pod/log "+root+NodeHosts,
		"mount --bind "+scratch+"/node/kubelet/pod/hosts "+root+NodeHosts,
		"mkdir -p "+root+serverpod.GaneshaRoot,
		"mount -o remount,bind,ro "+root,
		"mount -t tmpfs tmpfs "+root+"/run",
		"mkdir "+root+serverpod.RunDir,
		"mount -t tmpfs tmpfs "+root+serverpod.TempDir,
		"mount -t tmpfs tmpfs "+root+serverpod.StateDir,
		"mount -t proc proc "+root+"/proc",
		"mount -t tmpfs tmpfs "+root+"/dev",
		"touch "+root+NodeLog, "mount --bind "+scratch+"/node/kubelet/pod/log "+root+NodeLog,
	)
	for i := range SubnetAddresses {
		all = append(all, fmt.Sprintf("ip address add %s%x/128 dev lo", SubnetIPv6, i+1))
	}
	return append(all, GaneshaRoot(root, "/volumes", OwnRoot)...)
}

// GaneshaRoot are the commands that make serverpod.GaneshaRoot below a container's root, with volumes in it, as pods have it.
func GaneshaRoot(root string, volumes ...string) []string {
	at := root + serverpod.GaneshaRoot
	all := []string{"mount -t tmpfs -o size=1M tmpfs " + at}
	again := func(path, as string) {
		all = append(all, "mkdir -p "+at+as, "mount --rbind "+root+path+" "+at+as)
	}
	for _, volume := range volumes {
		again(volume, volume)
	}
	again(serverpod.StateDir, serverpod.StateDir)
	again(serverpod.StateDir, serverpod.TempDir)
	for _, as := range []string{serverpod.RunDir, serverpod.EtcDir} {
		again(serverpod.RunDir, as)
		all = append(all, "mount -o remount,bind,ro "+at+as)
	}
	return all
}
