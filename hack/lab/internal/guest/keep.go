package guest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/agent"
	"github.com/howdah/howdah/hack/lab/internal/plan"
)

const containerdSocket = "/run/containerd/containerd.sock"

// Keep sets the machine up, keeps its services running and serves the agent.
func Keep() error {
	config, err := readConfig()
	if err != nil {
		return err
	}
	// The keeper may be started again on a machine that is set up already.
	if _, err := os.Stat("/run/lab-set-up"); err != nil {
		setUpMachine(config)
		if err := os.WriteFile("/run/lab-set-up", nil, 0o644); err != nil {
			return err
		}
	}
	if config.Bake {
		return bake()
	}
	if config.Node.IsNode() {
		if err := startServices(config); err != nil {
			return err
		}
	}
	go keepUplink(config)
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(plan.AgentPort))
	if err != nil {
		return err
	}
	return agent.Serve(listener, config.Token)
}

// startServices makes the machine a node.
func startServices(config Config) error {
	if err := writeServiceConfigs(config); err != nil {
		return err
	}
	go keepService("containerd", containerdCommand())
	go keepService("volumes", volumesCommand(config))
	if config.NetworkVolumes {
		go keepService("network-volumes", networkCommand(config))
	}
	go func() {
		waitFor(containerdSocket, 5*time.Minute)
		go keepService("kubelet", kubeletCommand(config.Node))
		keepService("kube-proxy", proxyCommand(config))
	}()
	return nil
}

// keepService runs a command and restarts it whenever it ends; its log is a file that the host sees too.
func keepService(name string, args []string) {
	path := filepath.Join(Share, "logs", name+".log")
	for {
		if err := runLogged(path, args); err != nil {
			say("%s: %v", name, err)
		}
		time.Sleep(time.Second)
	}
}

func runLogged(path string, args []string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

func waitFor(path string, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// bake loads every image of the inbox and switches the machine off. The host
// takes the file "baked" for success; what goes wrong is on the console.
func bake() error {
	if err := installPrograms(); err != nil {
		return err
	}
	if err := writeContainerdConfig(); err != nil {
		return err
	}
	go keepService("containerd", containerdCommand())
	waitFor(containerdSocket, 5*time.Minute)
	err := importInbox()
	if err == nil {
		err = os.WriteFile(filepath.Join(Share, "baked"), nil, 0o644)
	}
	if err != nil {
		say("bake: %v", err)
	}
	// containerd's database is consistent on disk only once it has stopped.
	_ = run("pkill", "-x", "containerd")
	time.Sleep(500 * time.Millisecond)
	return PowerOff()
}

// installPrograms copies the host's programs onto the disk.
func installPrograms() error {
	files, err := filepath.Glob(filepath.Join(Share, "programs", "*"))
	if err != nil {
		return err
	}
	if err := run(append([]string{"cp", "-t", "/usr/local/bin"}, files...)...); err != nil {
		return err
	}
	for _, name := range []string{"kubelet", "kube-proxy", "kubectl"} {
		if err := run("ln", "-sf", "hyperkube", "/usr/local/bin/"+name); err != nil {
			return err
		}
	}
	return nil
}

func importInbox() error {
	images, err := filepath.Glob(filepath.Join(Share, "inbox", "*"))
	if err != nil {
		return err
	}
	// The share goes away after this; the disk stays.
	return run(append([]string{"/usr/local/bin/loader", "-copy"}, images...)...)
}
