package kernels

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "embed"
)

const (
	// bootLimit is for a machine with much else to do.
	bootLimit = 2 * time.Minute
	// scriptLimit is for one script that has no limit of its own.
	scriptLimit = 5 * time.Minute
)

//go:embed testdata/init.sh
var clientInit []byte

// client is a machine with one of the kernels.
type kernelClient struct {
	name    string
	kernel  string // its version, 6.1.176
	address string
	folder  string // what the machine has as /host

	command *exec.Cmd
	console io.Writer

	mu     sync.Mutex
	next   int
	ended  map[int]chan scriptEnd
	booted chan struct{}
	output strings.Builder
}

// kernels are the versions of the clients root, oldest first; HOWDAH_KERNELS may choose among them: "6.1 7.2".
func kernels(t testing.TB, root string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "boot", "linux-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kernels in %s: %v", root, err)
	}
	var versions []string
	for _, file := range files {
		versions = append(versions, strings.TrimPrefix(filepath.Base(file), "linux-"))
	}
	sortVersions(versions)
	wanted := strings.Fields(os.Getenv("HOWDAH_KERNELS"))
	if len(wanted) == 0 {
		return versions
	}
	var chosen []string
	for _, version := range versions {
		for _, prefix := range wanted {
			if strings.HasPrefix(version+".", prefix+".") {
				chosen = append(chosen, version)
			}
		}
	}
	return chosen
}

// bootClient starts a machine, memory in MiB, in a mount and a process namespace of its own.
func bootClient(t testing.TB, root, kernel string, i int, scratch string, memory int) *kernelClient {
	t.Helper()
	c := &kernelClient{
		name: clientDevice(i), kernel: kernel, address: clientAddress(i), folder: filepath.Join(scratch, clientDevice(i)),
		ended: map[int]chan scriptEnd{}, booted: make(chan struct{}),
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, "init"), clientInit, 0o755); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(c.folder, "disk.img")
	host(t, "truncate -s 2G %s", disk)
	host(t, "mkfs.ext4 -q -F -m 0 -E lazy_itable_init=1 %s", disk)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.command = exec.Command(self)
	c.command.Env = append(os.Environ(), envStage+"="+stageClient)
	if older(kernel, firstWithAMX) {
		host(t, "cp %s %s", needed(t, "HOWDAH_REGISTERS"), filepath.Join(c.folder, registers))
		c.command.Env = append(c.command.Env, envPreload+"=/host/"+registers)
	}
	c.command.Args = append([]string{self, root, c.folder, strconv.Itoa(memory)}, c.kernelArgs(i, memory)...)
	c.command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	input, err := c.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.console, c.command.Stderr = input, c.command.Stdout
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.command.Process.Kill() // With process 1 of its namespace the whole machine goes.
		_ = c.command.Wait()
	})
	go c.listen(output)
	select {
	case <-c.booted:
	case <-time.After(bootLimit):
		t.Fatalf("Linux %s did not come up in %v; its console:\n%s", kernel, bootLimit, c.log())
	}
	return c
}

// kernelArgs is the kernel's command line; memory in MiB.
func (c *kernelClient) kernelArgs(i, memory int) []string {
	args := []string{
		"/boot/linux-" + c.kernel,
		fmt.Sprintf("mem=%dM", memory), "umid=" + clientDevice(i), "uml_dir=/dev/shm/",
		"rootfstype=hostfs", "rootflags=/", "ro", "init=/host/init",
		"con=null", "ssl=null", "con0=fd:0,fd:1", "quiet", "panic=-1",
		"ubda=/host/disk.img",
		// Two clients of one name would take each other's locks and sessions away at the server.
		"nfs.nfs4_unique_id=" + clientDevice(i),
		fmt.Sprintf("vec0:transport=tap,ifname=%s,depth=64,gro=1,mac=02:00:00:00:01:%02x", clientDevice(i), i),
		"name=" + clientDevice(i), "address=" + c.address + "/" + strconv.Itoa(addresses.bits), "router=" + testAddress,
	}
	if !older(c.kernel, "6.16") {
		args = append(args, "seccomp=on")
	}
	return args
}

// listen reads the console.
func (c *kernelClient) listen(output io.Reader) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		var number, code int
		c.mu.Lock()
		c.output.WriteString(line + "\n")
		if strings.HasPrefix(line, "up ") {
			close(c.booted)
		}
		if n, _ := fmt.Sscanf(line, "ended %d %d", &number, &code); n == 2 && c.ended[number] != nil {
			c.ended[number] <- scriptEnd{code, time.Now()}
		}
		c.mu.Unlock()
	}
}

func (c *kernelClient) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

// scriptEnd is the end of a script. Whoever waits for several may come to this one late.
type scriptEnd struct {
	code int
	at   time.Time
}

// result is how a script ended.
type result struct {
	code   int
	output string
	took   time.Duration
}

// start gives a script to the machine's bash. What is returned waits for its end.
func (c *kernelClient) start(t testing.TB, script string) func(ctx context.Context) result {
	t.Helper()
	c.mu.Lock()
	c.next++
	number, ended := c.next, make(chan scriptEnd, 1)
	c.ended[number] = ended
	c.mu.Unlock()
	file := filepath.Join(c.folder, fmt.Sprintf("%d.sh", number))
	if err := os.WriteFile(file, []byte(script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := fmt.Fprintln(c.console, number); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) result {
		t.Helper()
		end := scriptEnd{code: -1}
		select {
		case end = <-ended:
		case <-ctx.Done():
			end.at = time.Now()
		}
		r := result{code: end.code, took: end.at.Sub(began)}
		text, err := os.ReadFile(strings.TrimSuffix(file, ".sh") + ".out")
		if err != nil {
			t.Fatal(err)
		}
		r.output = strings.TrimSpace(string(text))
		return r
	}
}

// run runs a script to its end, or to the limit: then the code is -1.
func (c *kernelClient) run(t testing.TB, script string) result {
	t.Helper()
	// Not the test's context: what cleans up runs scripts, too.
	ctx, cancel := context.WithTimeout(context.Background(), scriptLimit)
	defer cancel()
	return c.start(t, script)(ctx)
}

// must runs a script that has to succeed.
func (c *kernelClient) must(t testing.TB, script string) string {
	t.Helper()
	r := c.run(t, script)
	if r.code != 0 {
		t.Fatalf("Linux %s: %s\nended with %d:\n%s", c.kernel, script, r.code, r.output)
	}
	return r.output
}
