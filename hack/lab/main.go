// Command lab runs a real Kubernetes of several nodes on one Debian machine,
// without Docker, KVM or a registry. See README.md.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/agent"
	"github.com/howdah/howdah/hack/lab/internal/guest"
	"github.com/howdah/howdah/hack/lab/internal/lab"
	"github.com/howdah/howdah/hack/lab/internal/uml"
)

const usage = `Usage: lab COMMAND [flags]

  up         bring a lab up, or finish one that is half up
  down       remove a lab with everything in it
  env        print the shell command that sets KUBECONFIG
  status     show what runs
  load       put images (docker-archives) into the nodes
  exec       run a command inside a node: lab exec NODE -- COMMAND...
  kill-node  stop a node as a power cut would: lab kill-node NODE
  start-node start it again
  power-off  stop the whole lab as a power cut would
  power-on   start it again
  backup     copy all objects of the API into a file: lab backup FILE
  restore    take them back, in place of those that are there: lab restore FILE
  build      fill the cache
  assets     build what envtest needs and print the folder
  images     build the project's images into the cache
  clients    make a root file system with kernels of several versions for NFS clients and print the folder
  nfs-server make a root file system with a kernel that serves NFS itself and print the folder

Each command says more with -h.
`

var started = time.Now()

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "lab %6.1fs  "+format+"\n", append([]any{time.Since(started).Seconds()}, args...)...)
}

func main() {
	args := os.Args[1:]
	run := dispatch
	// The same program is process 1 of the nodes, under this name.
	if filepath.Base(os.Args[0]) == "guest" {
		run = runGuest
	}
	err := run(args)
	var exit agent.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case err != nil:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func dispatch(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return agent.ExitError(2)
	}
	commands := map[string]func([]string) error{
		"up": up, "down": down, "env": env, "status": status, "load": load, "exec": execute,
		"kill-node": killNode, "start-node": startNode, "power-off": powerOff, "power-on": powerOn, "backup": backup, "restore": restore,
		"build": build, "assets": assets, "images": images,
		"clients":          clients,
		"nfs-server":       nfsServer,
		lab.ForwardCommand: func(rest []string) error { return lab.Forward(rest[0]) },
		uml.RunCommand:     func(rest []string) error { return uml.Become(rest[0]) },
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
			return nil
		}
		return agent.ExitError(2)
	}
	if os.Geteuid() != 0 {
		return errors.New("must run as root: it makes network namespaces, taps and mounts")
	}
	return command(args[1:])
}

func runGuest(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("guest: no command")
	case args[0] == "init":
		guest.Init()
		return nil
	case args[0] == "keep":
		return guest.Keep()
	}
	return fmt.Errorf("guest: unknown command %q", args[0])
}
