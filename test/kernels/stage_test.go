package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/serverpod"
)

// The test starts itself again for what has to be done in new namespaces before another program takes over.
const (
	envStage    = "HOWDAH_KERNELS_STAGE"
	stageOwner  = "owner"
	stageClient = "client"
	stageSender = "sender"
	// stageGanesha is a ganesha without a supervisor.
	stageGanesha = "ganesha"

	// envPreload is the library that a client machine's kernel loads first: testdata/registers.c, or none.
	envPreload = "HOWDAH_KERNELS_PRELOAD"
	registers  = "registers.so"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envStage) {
	case stageOwner:
		err = becomeOwner(os.Args[1], os.Args[2], os.Args[3])
	case stageClient:
		err = becomeClient(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	case stageSender:
		err = send(os.Args[1])
	case stageGanesha:
		err = becomeGanesha(os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, os.Getenv(envStage)+":", err)
	os.Exit(1)
}

func prepare(commands ...string) error {
	for _, command := range commands {
		fields := strings.Fields(command)
		if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	return nil
}

// become goes into a root and is a program there.
func become(root string, args, env []string) error {
	if err := syscall.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, env)
}

// becomeClient turns this process into a client machine; memory in MiB.
func becomeClient(root, folder, memory string, args []string) error {
	megabytes, err := strconv.Atoi(memory)
	if err != nil {
		return err
	}
	err = prepare(
		"mount --make-rprivate /",
		"mount --bind /dev "+root+"/dev",
		"mount -t proc proc "+root+"/proc",
		// The machine's memory is a file there that it maps executable.
		fmt.Sprintf("mount -t tmpfs -o exec,size=%dM tmpfs %s/dev/shm", megabytes+64, root),
		"mount --bind "+folder+" "+root+"/host",
	)
	if err != nil {
		return err
	}
	env := []string{"TMPDIR=/dev/shm", "HOME=/root", "PATH=/usr/bin:/usr/sbin"}
	if library := os.Getenv(envPreload); library != "" {
		env = append(env, "LD_PRELOAD="+library)
	}
	return become(root, args, env)
}

// becomeOwner turns this process into the supervisor of a data server, with a pod's rights: a read-only overlay
// root, the capabilities of serverpod.Capabilities and no new privileges, process 1.
func becomeOwner(name, lower, folder string) error {
	path := func(name string) string { return filepath.Join(folder, name) }
	root := path("root")
	for _, directory := range []string{"root", "upper", "work", "volume"} {
		if err := os.MkdirAll(path(directory), 0o755); err != nil {
			return err
		}
	}
	commands := []string{
		"mount --make-rprivate /",
		"hostname " + name,
		"mount -t overlay overlay -o lowerdir=" + lower + ",upperdir=" + path("upper") + ",workdir=" + path("work") + " " + root,
		"mkdir -p " + root + "/volumes/0 " + root + serverpod.RunDir + " " + root + serverpod.StateDir + " " + root + serverpod.GaneshaRoot,
		"ln -sfn /proc/self/mounts " + root + "/etc/mtab",
		"install -D -m 400 " + path("handle-key") + " " + root + serverpod.HandleKey,
		"install -D -m 400 " + path("certificate.pem") + " " + root + serverpod.Certificate,
		"mount --bind " + path("volume") + " " + root + "/volumes/0",
		"mount -o remount,bind,ro " + root,
		"mount -t tmpfs tmpfs " + root + "/run",
		"mkdir " + root + serverpod.RunDir,
		"mount -t tmpfs tmpfs " + root + serverpod.TempDir,
		"mount -t tmpfs tmpfs " + root + serverpod.StateDir,
		"mount -t proc proc " + root + "/proc",
		"mount -t tmpfs tmpfs " + root + "/dev",
		"cp " + os.Getenv("HOWDAH_BINARY") + " " + root + "/run/howdah",
		"cp " + path("kubeconfig") + " " + root + "/run/kubeconfig",
	}
	for device, minor := range map[string]int{"null": 3, "zero": 5, "urandom": 9} {
		commands = append(commands, fmt.Sprintf("mknod -m 666 %s/dev/%s c 1 %d", root, device, minor))
	}
	if err := prepare(append(commands, realtest.GaneshaRoot(root, "/volumes/0")...)...); err != nil {
		return err
	}
	capabilities := "-all,+" + strings.ToLower(strings.Join(serverpod.Capabilities, ",+"))
	args := []string{
		"/usr/bin/setpriv", "--no-new-privs", "--bounding-set", capabilities, "--inh-caps", "-all",
		"/run/howdah", "server", "--data-server", name, "--namespace", kubeNamespace, "--pod-ip", os.Getenv("POD_IP"), "--node-name", "here", "--pod-uid", os.Getenv("POD_UID"),
		"--" + serverpod.FlagGaneshaRoot, serverpod.GaneshaRoot,
	}
	return become(root, args, []string{"KUBECONFIG=/run/kubeconfig", "PATH=/usr/bin:/usr/sbin"})
}
