package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/cache"
	"github.com/howdah/howdah/hack/lab/internal/lab"
	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// openLocked opens a lab and keeps other commands from changing it meanwhile.
func openLocked(name string, work func(*lab.Lab) error) error {
	l, err := lab.Open(name, say)
	if err != nil {
		return err
	}
	lock, err := l.Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	// Only with the lock is the state this process's own.
	if l, err = lab.Open(name, say); err != nil {
		return err
	}
	return work(l)
}

func up(args []string) error {
	flags, name := newFlags("up")
	nodes := flags.Int("nodes", 3, "number of nodes")
	caps := flags.String("nic-cap", "0", "Mbit/s, both ways: one number for all nodes, or node1=160,node2=160")
	memory := flags.String("memory", "1500M", "memory of a node")
	network := flags.Bool("network-volumes", false, "a storage class network, whose volumes every node can use, one at a time")
	outside := flags.Bool("outside", false, "a machine outside the cluster, in the nodes' network: lab exec outside -- COMMAND")
	text := flags.String("ip-family", string(plan.IPv4), "addresses of nodes, pods and Services: IPv4, IPv6, or Dual for both, IPv4 first")
	if err := parse(flags, args); err != nil {
		return err
	}
	family, err := plan.ParseFamily(*text)
	if err != nil {
		return err
	}
	limits, err := plan.ParseCaps(*caps, *nodes)
	if err != nil {
		return err
	}
	settings := plan.Settings{Name: *name, Nodes: *nodes, Memory: *memory, Caps: limits, NetworkVolumes: *network, Outside: *outside, Family: family}
	if err := settings.Validate(); err != nil {
		return err
	}
	c, base, err := fillCache(*network)
	if err != nil {
		return err
	}
	return openLocked(*name, func(l *lab.Lab) error {
		if err := l.Up(settings, c, base); err != nil {
			return err
		}
		path, err := l.Kubeconfig()
		if err != nil {
			return err
		}
		say("lab %s is up: export KUBECONFIG=%s", *name, path)
		return nil
	})
}

func down(args []string) error {
	flags, name := newFlags("down")
	if err := parse(flags, args); err != nil {
		return err
	}
	return openLocked(*name, func(l *lab.Lab) error {
		if err := l.Down(); err != nil {
			return err
		}
		l.Forget()
		say("lab %s is gone", *name)
		return nil
	})
}

func env(args []string) error {
	flags, name := newFlags("env")
	if err := parse(flags, args); err != nil {
		return err
	}
	l, err := lab.Open(*name, say)
	if err != nil {
		return err
	}
	path, err := l.Kubeconfig()
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", path)
	fmt.Printf("case :$PATH: in *:%[1]s:*) ;; *) export PATH=$PATH:%[1]s ;; esac\n", l.Programs())
	return nil
}

func status(args []string) error {
	flags, name := newFlags("status")
	if err := parse(flags, args); err != nil {
		return err
	}
	names := []string{*name}
	if !isSet(flags, "name") {
		names = lab.List()
	}
	if len(names) == 0 {
		fmt.Println("no lab is up")
	}
	for _, name := range names {
		l, err := lab.Open(name, say)
		if err != nil {
			return err
		}
		if err := l.Status(os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func isSet(flags *flag.FlagSet, name string) bool {
	found := false
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func load(args []string) error {
	flags, name := newFlags("load")
	var archives, nodes list
	flags.Var(&archives, "archive", "docker-archive to load; may be repeated, further ones may follow as arguments")
	flags.Var(&nodes, "node", "only into this node; may be repeated")
	_ = flags.Parse(args)
	archives = append(archives, flags.Args()...)
	if len(archives) == 0 {
		return errors.New("load: no --archive")
	}
	return openLocked(*name, func(l *lab.Lab) error { return l.Load(archives, nodes) })
}

func execute(args []string) error {
	flags, name := newFlags("exec")
	_ = flags.Parse(args)
	rest := flags.Args()
	if len(rest) == 0 {
		return errors.New("exec: want NODE -- COMMAND")
	}
	node, command := rest[0], rest[1:]
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return errors.New("exec: no command")
	}
	l, err := lab.Open(*name, say)
	if err != nil {
		return err
	}
	client, err := l.Agent(node)
	if err != nil {
		return err
	}
	return client.Run(command, os.Stdin, os.Stdout, os.Stderr)
}

func killNode(args []string) error {
	return onNode("kill-node", args, (*lab.Lab).KillNode)
}

func startNode(args []string) error {
	return onNode("start-node", args, (*lab.Lab).StartNode)
}

func onNode(command string, args []string, do func(*lab.Lab, string) error) error {
	flags, name := newFlags(command)
	_ = flags.Parse(args)
	if flags.NArg() != 1 {
		return fmt.Errorf("%s: want one node", command)
	}
	return openLocked(*name, func(l *lab.Lab) error {
		if !l.Exists() {
			return fmt.Errorf("%w: %s", plan.ErrNoLab, *name)
		}
		return do(l, flags.Arg(0))
	})
}

func powerOff(args []string) error { return onLab("power-off", args, (*lab.Lab).PowerOff) }

func powerOn(args []string) error { return onLab("power-on", args, (*lab.Lab).PowerOn) }

func onLab(command string, args []string, do func(*lab.Lab) error) error {
	flags, name := newFlags(command)
	if err := parse(flags, args); err != nil {
		return err
	}
	return openLocked(*name, func(l *lab.Lab) error {
		if !l.Complete() {
			return fmt.Errorf("%w: %s", plan.ErrNoLab, *name)
		}
		return do(l)
	})
}

func backup(args []string) error { return onFile("backup", args, (*lab.Lab).Backup) }

func restore(args []string) error {
	// Only this needs it, so it is not built before.
	if err := openCache(cache.Machines, (*cache.Cache).Etcdutl); err != nil {
		return err
	}
	return onFile("restore", args, (*lab.Lab).Restore)
}

func onFile(command string, args []string, do func(*lab.Lab, string) error) error {
	flags, name := newFlags(command)
	_ = flags.Parse(args)
	if flags.NArg() != 1 {
		return fmt.Errorf("%s: want one file", command)
	}
	file, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	return onLab(command, []string{"--name", *name}, func(l *lab.Lab) error { return do(l, file) })
}

func openCache(part cache.Part, work func(*cache.Cache) error) error {
	source := os.Getenv("HOWDAH_LAB_SOURCE")
	if source == "" {
		return errors.New("run hack/lab/lab: it says where the sources are")
	}
	c, lock, err := cache.Open(source, part, say)
	if err != nil {
		return err
	}
	defer lock.Release()
	return work(c)
}

// fillCache makes what is missing of everything that `up` needs, with network volumes or without.
func fillCache(networkVolumes bool) (filled *cache.Cache, base string, err error) {
	err = openCache(cache.Machines, func(c *cache.Cache) error {
		filled = c
		c.BaseInUse = lab.UsesBase
		for _, step := range []func() error{c.InstallPackages, c.BuildKernel, c.Programs, c.RootFS} {
			if err := step(); err != nil {
				return err
			}
		}
		if networkVolumes {
			if err := c.NetworkPrograms(); err != nil {
				return err
			}
		}
		base, err = c.Base()
		return err
	})
	return filled, base, err
}

func build(args []string) error {
	flags, _ := newFlags("build")
	network := flags.Bool("network-volumes", false, "also what a lab with --network-volumes runs")
	if err := parse(flags, args); err != nil {
		return err
	}
	c, base, err := fillCache(*network)
	if err != nil {
		return err
	}
	say("%s is filled; base disk %s", c.Dir, base)
	return nil
}

func assets(args []string) error {
	flags, _ := newFlags("assets")
	if err := parse(flags, args); err != nil {
		return err
	}
	return openCache(cache.Machines, func(c *cache.Cache) error {
		dir, err := c.Assets()
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	})
}

func clients(args []string) error {
	flags, _ := newFlags("clients")
	if err := parse(flags, args); err != nil {
		return err
	}
	return openCache(cache.Machines, func(c *cache.Cache) error {
		if err := c.InstallPackages(); err != nil {
			return err
		}
		dir, err := c.Clients()
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	})
}

func nfsServer(args []string) error {
	flags, _ := newFlags("nfs-server")
	if err := parse(flags, args); err != nil {
		return err
	}
	return openCache(cache.NFSServers, func(c *cache.Cache) error {
		if err := c.InstallPackages(); err != nil {
			return err
		}
		dir, err := c.NFSServer()
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	})
}

// images builds the project's images and prints their archives, one a line, or
// the folder of one that it unpacks.
func images(args []string) error {
	flags, _ := newFlags("images")
	root := flags.String("context", filepath.Join(os.Getenv("HOWDAH_LAB_SOURCE"), "../.."), "folder that the images are built from")
	dockerfile := flags.String("file", "", "Dockerfile (default: the one in the context)")
	target := flags.String("target", "", "stage to build (default: howdah and server)")
	tag := flags.String("tag", "", "the image's name; wants --target")
	unpack := flags.Bool("unpack", false, "print a folder with the stage's files instead; wants --target")
	arch := flags.String("arch", runtime.GOARCH, "processor that they are for: amd64, or arm64 under hack/emulate.sh arm64")
	var buildArgs list
	flags.Var(&buildArgs, "build-arg", "NAME=VALUE for the Dockerfile; may be repeated")
	if err := parse(flags, args); err != nil {
		return err
	}
	builds := []cache.Build{{Target: "howdah", Tag: "howdah/howdah:dev"}, {Target: "server", Tag: "howdah/server:dev"}}
	if *target == "" && (*tag != "" || *unpack) || *target != "" && (*tag != "") == *unpack {
		return errors.New("images: --target goes with either --tag or --unpack")
	}
	if *target != "" {
		builds = []cache.Build{{Target: *target, Tag: *tag}}
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	if *dockerfile == "" {
		*dockerfile = filepath.Join(dir, "Dockerfile")
	}
	file, err := filepath.Abs(*dockerfile)
	if err != nil {
		return err
	}
	return openCache(cache.Images, func(c *cache.Cache) error {
		for _, step := range []func() error{c.InstallPackages, func() error { return c.BaseImages(*arch) }} {
			if err := step(); err != nil {
				return err
			}
		}
		for _, b := range builds {
			b.Context, b.Dockerfile, b.Args, b.Arch = dir, file, buildArgs, *arch
			build := c.Image
			if *unpack {
				build = c.Unpacked
			}
			path, err := build(b)
			if err != nil {
				return err
			}
			fmt.Println(path)
		}
		return nil
	})
}
