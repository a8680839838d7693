// Command docker stands in for Docker's client where there is no engine, so that hack/kind/up.sh and the real kind can be run unchanged on a
// lab: its nodes are kind's nodes, its builder builds the images, and their containerd is the one that images are loaded into. It answers
// what up.sh and kind ask, refuses everything else, and writes every call to $HOWDAH_REHEARSAL/calls. It makes no nodes: `docker run` fails.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// What the rehearsal gives in the environment.
const (
	// envFolder is a folder to keep things in.
	envFolder = "HOWDAH_REHEARSAL"
	// envCluster is the name of the cluster, empty while there is none; envNodes are its nodes.
	envCluster = "HOWDAH_REHEARSAL_CLUSTER"
	envNodes   = "HOWDAH_REHEARSAL_NODES"
	// envLab is how a command of the lab is run, and envName the lab's name.
	envLab  = "HOWDAH_REHEARSAL_LAB"
	envName = "HOWDAH_REHEARSAL_LAB_NAME"
)

func main() {
	if err := docker(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docker (of the rehearsal):", err)
		os.Exit(1)
	}
}

func docker(args []string) error {
	if err := note(args); err != nil {
		return err
	}
	call := strings.Join(args, " ")
	has := func(words ...string) bool { return slices.Equal(args[:min(len(words), len(args))], words) }
	cluster := os.Getenv(envCluster)
	switch {
	case has("-v"):
		fmt.Println("Docker version 0.0.0, build of-the-rehearsal")
	case has("info"):
		fmt.Println(`{"CgroupVersion":"2","CgroupDriver":"systemd","MemoryLimit":true,"PidsLimit":true,"CPUShares":true}`)
	case has("ps") && strings.Contains(call, "{{.Names}}"): // kind: the nodes of a cluster.
		if cluster != "" && strings.HasSuffix(args[3], "="+cluster) {
			fmt.Println(strings.Join(strings.Fields(os.Getenv(envNodes)), "\n"))
		}
	case has("ps"): // kind: the clusters that there are, once for each node.
		for range strings.Fields(os.Getenv(envNodes)) {
			if cluster != "" {
				fmt.Println(cluster)
			}
		}
	case has("network"):
		fmt.Println("kind")
	case has("inspect", "--type=image"): // kind: is the nodes' image here?
	case has("inspect") && strings.Contains(call, "role"):
		fmt.Println("worker")
	case has("build"):
		return build(args[1:])
	case has("image", "inspect"):
		return printID(args[len(args)-1])
	case has("image", "rm"):
		for _, image := range args[2:] {
			if err := os.Remove(archiveOf(image)); err != nil {
				return err
			}
		}
	case has("tag") && len(args) == 3:
		archive, err := os.Readlink(archiveOf(args[1]))
		if err != nil {
			return err
		}
		_ = os.Remove(archiveOf(args[2]))
		return os.Symlink(archive, archiveOf(args[2]))
	case has("save", "-o"):
		return save(args[2], args[3:])
	case has("exec"):
		return execute(args[1:])
	default:
		return fmt.Errorf("there is no engine here, and no answer to %q", call)
	}
	return nil
}

// note keeps a call for those who look at what was asked.
func note(args []string) error {
	file, err := os.OpenFile(filepath.Join(os.Getenv(envFolder), "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, "docker %s\n", strings.Join(args, " "))
	return err
}

func lab(args ...string) *exec.Cmd {
	command := exec.Command(os.Getenv(envLab), args...)
	command.Stderr = os.Stderr
	return command
}

// archiveOf is where the archive of an image is.
func archiveOf(image string) string {
	return filepath.Join(os.Getenv(envFolder), strings.NewReplacer("/", "_", ":", "_").Replace(image)+".tar")
}

// build has the lab build a target of the Dockerfile: --target TARGET --tag IMAGE FOLDER.
func build(args []string) error {
	if len(args) != 5 || args[0] != "--target" || args[2] != "--tag" || args[4] != "." {
		return fmt.Errorf("build: want --target TARGET --tag IMAGE ., got %q", args)
	}
	path, err := lab("images", "--target", args[1], "--tag", args[3]).Output()
	if err != nil {
		return err
	}
	_ = os.Remove(archiveOf(args[3]))
	return os.Symlink(strings.TrimSpace(string(path)), archiveOf(args[3]))
}

// manifest is an entry of manifest.json in an archive as `docker save` makes it.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func manifestsOf(archive string) (all []manifest, err error) {
	text, err := exec.Command("tar", "-xOf", archive, "manifest.json").Output()
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", archive, err)
	}
	return all, json.Unmarshal(text, &all)
}

// printID prints an image's id, the digest of its configuration.
func printID(image string) error {
	all, err := manifestsOf(archiveOf(image))
	if err != nil {
		return err
	}
	digest := strings.TrimSuffix(filepath.Base(all[0].Config), ".json")
	fmt.Println("sha256:" + strings.TrimPrefix(digest, "sha256:"))
	return nil
}

// save writes images into one archive.
func save(to string, images []string) error {
	scratch, err := os.MkdirTemp(os.Getenv(envFolder), "save-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var merged []manifest
	for _, image := range images {
		all, err := manifestsOf(archiveOf(image))
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fmt.Errorf("%s has %d images", archiveOf(image), len(all))
		}
		all[0].RepoTags = []string{image}
		merged = append(merged, all...)
		if output, err := exec.Command("tar", "-xf", archiveOf(image), "-C", scratch).CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking %s: %w: %s", image, err, output)
		}
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	for _, name := range []string{"repositories", "index.json", "oci-layout"} { // Of the last one only.
		_ = os.Remove(filepath.Join(scratch, name))
	}
	if err := os.WriteFile(filepath.Join(scratch, "manifest.json"), text, 0o600); err != nil {
		return err
	}
	if output, err := exec.Command("tar", "-cf", to, "-C", scratch, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("packing %s: %w: %s", to, err, output)
	}
	return nil
}

// execute runs a command in a node: [--privileged] [-i] NODE COMMAND...
func execute(args []string) error {
	interactive := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		interactive = interactive || args[0] == "-i"
		args = args[1:]
	}
	if len(args) < 2 || !slices.Contains(strings.Fields(os.Getenv(envNodes)), args[0]) {
		return fmt.Errorf("exec: want a node and a command, got %q", args)
	}
	command := lab(append([]string{"exec", "--name", os.Getenv(envName), args[0], "--"}, args[1:]...)...)
	command.Stdout = os.Stdout
	if interactive {
		command.Stdin = os.Stdin
	}
	return command.Run()
}
