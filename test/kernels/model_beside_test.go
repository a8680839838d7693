package kernels

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/howdah/howdah/test/model"
)

const (
	// plainIndex and kernelIndex are the numbers of servers and clients whose networks and addresses the two have.
	plainIndex, kernelIndex = 8, 9
	// kernelMemory is that of the machine whose kernel serves, in MiB: all its files stay in it.
	kernelMemory = 1024
	// plainVolume is the folder that a plain ganesha exports.
	plainVolume = "/volumes/0"
	// plainConfig is what the plain ganesha reads: one export for everybody, and otherwise what it does by itself.
	plainConfig = `NFS_CORE_PARAM { Protocols = 4; Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false; Allow_Set_Io_Flusher_Fail = true; }
NFSv4 { Minor_Versions = 1, 2; Lease_Lifetime = 10; Grace_Period = 10; RecoveryBackend = fs; RecoveryRoot = "/run/recovery"; Only_Numeric_Owners = true; }
LOG { Default_Log_Level = EVENT; }
EXPORT {
  Export_Id = 1; Path = "/volumes/0"; Pseudo = "/plain"; Protocols = 4; Transports = TCP; SecType = sys;
  Access_Type = RW; Squash = No_Root_Squash; FSAL { Name = VFS; }
}
`
)

// besideServer is a server that Howdah's are measured beside.
type besideServer struct {
	by model.Server
	// directory is where the client has its files.
	directory string
	// processes serve; none are known of an emulated machine.
	processes []int
	shape     func(t *testing.T, inside, outside string)
}

func (s *besideServer) way(kind model.Kind) model.Way {
	way := usual(kind, 1)
	way.By = s.by
	return way
}

// startBeside starts what HOWDAH_MODEL_BESIDE names of "ganesha" and "kernel"; unset is both.
func (b *bench) startBeside(t *testing.T) {
	t.Helper()
	for _, name := range chosen(t, "HOWDAH_MODEL_BESIDE", []string{"ganesha", "kernel"}) {
		switch name {
		case "ganesha":
			b.beside = append(b.beside, b.startPlain(t))
		case "kernel":
			b.beside = append(b.beside, b.startKernelServer(t))
		}
	}
	for _, s := range b.beside {
		b.layFiles(t, s.directory)
	}
}

// serving are the processes whose CPU time counts as that of the servers of a way.
func (b *bench) serving(way model.Way) (processes []int) {
	if way.By == "" {
		servers := way.Servers
		if way.Kind == model.HotReads {
			servers = len(b.owners) // Which of them serve is up to namespace servers.
		}
		for i := range servers {
			processes = append(processes, b.ownerProcesses[i]...)
		}
		return processes
	}
	for _, s := range b.beside {
		if s.by == way.By {
			return s.processes
		}
	}
	return nil
}

// groupOwners finds the processes of each data server, and puts them into a group, if this machine has groups.
func (b *bench) groupOwners(t *testing.T) {
	t.Helper()
	groups, err := newCPUGroups(t)
	if err != nil {
		b.run.Miss("small files with the servers as the limit: a part of a CPU could not be given to each (%v)", err)
	} else {
		b.cpus = groups
	}
	for i := range b.owners {
		processes := []int{b.owners[i].Process.Pid, b.ganeshaProcess(t, i)}
		b.ownerProcesses = append(b.ownerProcesses, processes)
		if b.cpus != nil {
			b.cpus.add(t, ownerNetwork(i), processes...)
		}
	}
}

// startPlain starts Debian's nfs-ganesha, and mounts its export.
func (b *bench) startPlain(t *testing.T) *besideServer {
	t.Helper()
	layServerNetwork(t, ownerNetwork(plainIndex), ownerAddress(plainIndex))
	command := b.startGanesha(t, "plain", plainIndex, needed(t, "HOWDAH_PACKAGED_ROOT"), plainConfig)
	b.c.must(t, fmt.Sprintf("mkdir -p /mnt/plain && for i in $(seq 60); do mount -t nfs4 -o vers=4.1,%s,nconnect=16 %s:/plain /mnt/plain && break; sleep 1; done; mkdir /mnt/plain/files",
		recommended, source(ownerAddress(plainIndex))))
	s := &besideServer{
		by: model.PlainGanesha, directory: "/mnt/plain/files", processes: []int{command.Process.Pid},
		shape: func(t *testing.T, inside, outside string) { shapeNetwork(t, ownerNetwork(plainIndex), inside, outside) },
	}
	if b.cpus != nil {
		b.cpus.add(t, "plain", s.processes...)
	}
	return s
}

// startGanesha starts a ganesha of a root with a configuration and nothing else, in the network of an index.
func (b *bench) startGanesha(t *testing.T, name string, index int, lower, config string) *exec.Cmd {
	t.Helper()
	folder := filepath.Join(b.scratch, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ganesha.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return b.program(name, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}, []string{envStage + "=" + stageGanesha}, "ip", "netns", "exec", ownerNetwork(index), self, lower, folder)
}

// becomeGanesha turns this process into a ganesha by itself, in an overlay on a root, with the configuration of a folder.
func becomeGanesha(lower, folder string) error {
	path := func(name string) string { return filepath.Join(folder, name) }
	root := path("root")
	for _, directory := range []string{"root", "upper", "work", "volume"} {
		if err := os.MkdirAll(path(directory), 0o755); err != nil {
			return err
		}
	}
	commands := []string{
		"mount --make-rprivate /",
		"mount -t overlay overlay -o lowerdir=" + lower + ",upperdir=" + path("upper") + ",workdir=" + path("work") + " " + root,
		"mkdir -p " + root + plainVolume,
		"ln -sfn /proc/self/mounts " + root + "/etc/mtab",
		"mount --bind " + path("volume") + " " + root + plainVolume,
		"mount -t tmpfs tmpfs " + root + "/run",
		"mkdir -p " + root + "/run/recovery " + root + "/run/ganesha",
		"cp " + path("ganesha.conf") + " " + root + "/run/ganesha.conf",
		"mount -t proc proc " + root + "/proc",
		"mount -t tmpfs tmpfs " + root + "/dev",
	}
	for device, minor := range map[string]int{"null": 3, "zero": 5, "urandom": 9} {
		commands = append(commands, fmt.Sprintf("mknod -m 666 %s/dev/%s c 1 %d", root, device, minor))
	}
	if err := prepare(commands...); err != nil {
		return err
	}
	// Howdah's build does not start without a key; Debian's knows of none.
	if err := os.WriteFile(root+"/run/handle-key", []byte("sixteen bytes..."), 0o600); err != nil {
		return err
	}
	return become(root, []string{"/usr/bin/ganesha.nfsd", "-F", "-L", "STDOUT", "-f", "/run/ganesha.conf", "-p", "/run/ganesha.pid"},
		[]string{"PATH=/usr/bin:/usr/sbin", "LANG=C", "HOWDAH_HANDLE_KEY=/run/handle-key"})
}

// serveByKernel is what the machine does whose kernel serves: one export, NFSv4 alone, and no wait for clients of an earlier life.
//
//nolint:misspell // exportfs is a program
const serveByKernel = `mkdir -p /mnt/disk/files /var/lib/nfs/v4recovery && chmod 777 /mnt/disk/files && touch /var/lib/nfs/etab /var/lib/nfs/rmtab
modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd && echo 5 > /proc/fs/nfsd/nfsv4gracetime && echo 10 > /proc/fs/nfsd/nfsv4leasetime
exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 '*:/mnt/disk' && (rpc.mountd -N 3 -F > /tmp/mountd 2>&1 &) && rpc.nfsd -N 3 16`

// startKernelServer starts a machine in User-mode Linux whose kernel serves NFS, and mounts its export.
func (b *bench) startKernelServer(t *testing.T) *besideServer {
	t.Helper()
	root := needed(t, "HOWDAH_NFS_SERVER_ROOT")
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "linux-*"))
	if err != nil || len(kernels) != 1 {
		t.Fatal(errors.Join(err, fmt.Errorf("%s has %d kernels, want one", root, len(kernels))))
	}
	layClientDevice(t, kernelIndex)
	server := bootClient(t, root, strings.TrimPrefix(filepath.Base(kernels[0]), "linux-"), kernelIndex, b.scratch, kernelMemory)
	server.must(t, serveByKernel)
	b.c.must(t, fmt.Sprintf("mkdir -p /mnt/kernel && mount -t nfs4 -o vers=4.1,%s,nconnect=16 %s:/ /mnt/kernel && touch /mnt/kernel/files/made",
		recommended, server.address))
	return &besideServer{by: model.KernelServer, directory: "/mnt/kernel/files", shape: func(t *testing.T, inside, outside string) {
		server.must(t, "tc qdisc replace dev vec0 root "+inside)
		host(t, "tc qdisc replace dev %s root %s", clientDevice(kernelIndex), outside)
	}}
}
