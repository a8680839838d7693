package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
)

const testToken = "open sesame"

// testPlan is a run of seconds: 2 clients, 2 accelerators each, 3 steps of 50 ms.
func testPlan() benchmark.Plan {
	return benchmark.Plan{
		Job: "test", Clients: 2, AcceleratorType: v1alpha1.AcceleratorH100, Accelerators: 4, ComputeMillis: 50,
		Samples: 84, SampleSize: 65536, Folders: []string{"train/0", "train/1", "train/2"}, Epochs: 2, ReadThreads: 2, Nconnect: 16,
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func generate(t *testing.T, plan benchmark.Plan, data string) {
	t.Helper()
	journal := NewDirectoryJournal(t.TempDir())
	for client := range plan.Clients {
		g := &Generator{Plan: plan, Client: client, Data: data, Journal: journal, Log: quiet()}
		if err := g.Generate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func runner(plan benchmark.Plan, client int, data string, journal Journal) *Runner {
	return &Runner{
		Plan: plan, Client: client, Name: fmt.Sprintf("client-%d", client), Data: data, Address: "127.0.0.1",
		Token: testToken, Journal: journal, Log: quiet(),
	}
}

// ganesha is a data server's exporter whose counter grows by step at each scrape.
func ganesha(t *testing.T, step int64) string {
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "nfs_bytes_received_by_export_total{export=\"export_id=3\",operation=\"read\"} %d\n", count.Add(step))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestGenerateGivesWholeFilesAndKeepsThem(t *testing.T) {
	plan, data := testPlan(), t.TempDir()
	generate(t, plan, data)
	dataset := plan.Dataset()
	contents := map[string]string{}
	for i, shape := range dataset.Shapes() {
		text, err := os.ReadFile(filepath.Join(data, dataset.File(i)))
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(text)) != shape.FileSize() {
			t.Errorf("%s has %d bytes, want %d", dataset.File(i), len(text), shape.FileSize())
		}
		if err := benchmark.CheckNPZHead(text[:benchmark.NPZHeaderSize], shape); err != nil {
			t.Errorf("%s: %v", dataset.File(i), err)
		}
		start := string(text[benchmark.NPZHeaderSize : benchmark.NPZHeaderSize+64])
		if other, ok := contents[start]; ok {
			t.Errorf("%s and %s have equal content", dataset.File(i), other)
		}
		contents[start] = dataset.File(i)
	}

	kept, broken, gone := filepath.Join(data, dataset.File(0)), filepath.Join(data, dataset.File(1)), filepath.Join(data, dataset.File(2))
	before, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, good[:len(good)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	generate(t, plan, data)
	if after, err := os.Stat(kept); err != nil || !os.SameFile(before, after) {
		t.Error("a complete file was written again")
	}
	if again, err := os.ReadFile(broken); err != nil || string(again) != string(good) {
		t.Error("a file that was cut is not as it was before")
	}
	if _, err := os.Stat(gone); err != nil {
		t.Errorf("a file that was missing: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "*", "*", "*.partial")); len(left) > 0 {
		t.Errorf("partial files are left: %v", left)
	}
}

// The reader of the file format is Python's zipfile, which checks both checksums.
func TestPythonReadsTheFiles(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	plan, data := testPlan(), t.TempDir()
	generate(t, plan, data)
	const script = "import sys,zipfile\nfor f in sys.argv[1:]:\n z=zipfile.ZipFile(f); assert z.testzip() is None; assert z.namelist()==['x.npy','y.npy']"
	arguments := []string{"-c", script}
	for i := range 5 {
		arguments = append(arguments, filepath.Join(data, plan.Dataset().File(i)))
	}
	if output, err := exec.Command(python, arguments...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func TestTwoProcessesRunInStepAndReport(t *testing.T) {
	plan, data, journal := testPlan(), t.TempDir(), t.TempDir()
	plan.Servers = []benchmark.Server{
		{Name: "fs-0", Addresses: []string{"127.0.0.1:1", ganesha(t, 1000)}, Exports: []int32{3}},
		{Name: "fs-1", Addresses: []string{ganesha(t, 1100)}, Exports: []int32{3}},
		{Name: "fs-2", Addresses: []string{"127.0.0.1:1"}},
	}
	generate(t, plan, data)
	other := startClient(t, plan, 1, data, journal)
	result, err := runner(plan, 0, data, NewDirectoryJournal(journal)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("client 1: %v", err)
	}
	if want := int64(plan.Epochs) * plan.Dataset().TotalBytes(); *result.BytesRead != want {
		t.Errorf("%d bytes were read, want %d: every file once in each epoch", *result.BytesRead, want)
	}
	if len(result.PerClient) != 2 || result.PerClient[1].Name != "client-1" || result.PerClient[1].AUPercent == "0.00" {
		t.Errorf("clients: %+v", result.PerClient)
	}
	if len(result.PerServer) != 2 || *result.PerServer[1].BytesRead != 1100 {
		t.Errorf("servers: %+v", result.PerServer)
	}
	values, err := NewDirectoryJournal(journal).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var recorded v1alpha1.BenchmarkResult
	if err := json.Unmarshal([]byte(values[benchmark.KeyResult]), &recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*result, recorded); diff != "" {
		t.Errorf("recorded (-returned +recorded):\n%s", diff)
	}
	if !strings.Contains(values[benchmark.KeyTable], "not an MLPerf Storage result") {
		t.Errorf("table: %s", values[benchmark.KeyTable])
	}
}

// The end of a process shows at once in its connection, before the timeout of silence (TestTimeoutsForSilentClients).
func TestAProcessThatEndsFailsTheRunAndIsNamed(t *testing.T) {
	plan, data, journal := testPlan(), t.TempDir(), t.TempDir()
	plan.Epochs = 1000
	generate(t, plan, data)
	other := startClient(t, plan, 1, data, journal)
	go func() {
		waitForProgress(t, journal, "epoch ")
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	_, err := runner(plan, 0, data, NewDirectoryJournal(journal)).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "lost the connection to client 1 (client-1): it closed the connection") {
		t.Fatalf("error is %v", err)
	}
	values, readErr := NewDirectoryJournal(journal).Read(t.Context())
	if readErr != nil || !strings.Contains(values[benchmark.KeyFailure("")], "lost the connection to client 1 (client-1)") {
		t.Errorf("recorded failure is %q, %v", values[benchmark.KeyFailure("")], readErr)
	}
	if _, ok := values[benchmark.KeyResult]; ok {
		t.Error("a failed run has a result")
	}
}

func TestAllClientsGetTheReasonOfAFailure(t *testing.T) {
	plan, data, journal := testPlan(), t.TempDir(), NewDirectoryJournal(t.TempDir())
	generate(t, plan, data)
	broken := runner(plan, 1, data, journal)
	broken.open = func(path string) (sampleFile, error) {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("stale file handle")}
	}
	failed := make(chan error, 1)
	go func() {
		_, err := broken.Run(t.Context())
		failed <- err
	}()
	_, err := runner(plan, 0, data, journal).Run(t.Context())
	for who, err := range map[string]error{"the coordinator": err, "the client": <-failed} {
		if err == nil || !strings.Contains(err.Error(), "stale file handle") {
			t.Errorf("%s says %v", who, err)
		}
	}
	if !strings.Contains(err.Error(), "client 1 (client-1) failed") {
		t.Errorf("the coordinator does not name the client: %v", err)
	}
}

func TestAMissingFileFailsBeforeTheRun(t *testing.T) {
	plan, data := testPlan(), t.TempDir()
	plan.Clients, plan.Accelerators = 1, 1
	generate(t, plan, data)
	if err := os.Remove(filepath.Join(data, plan.Dataset().File(5))); err != nil {
		t.Fatal(err)
	}
	_, err := runner(plan, 0, data, NewDirectoryJournal(t.TempDir())).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the dataset is not complete") {
		t.Errorf("error is %v", err)
	}
}

func TestAConnectionWithoutTheTokenIsRefused(t *testing.T) {
	tests := map[string]func(*testing.T, *link){
		"with another token": func(t *testing.T, l *link) {
			challenge, err := l.receive(maxHello)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.send(message{Kind: kindHello, Client: 1, Proof: proof("guess", challenge.Nonce)})
		},
		"with a number that is no client's": func(t *testing.T, l *link) {
			challenge, err := l.receive(maxHello)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.send(message{Kind: kindHello, Client: 7, Proof: proof(testToken, challenge.Nonce)})
		},
		"that speaks HTTP":    func(_ *testing.T, l *link) { _, _ = l.conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
		"that does not stop":  func(_ *testing.T, l *link) { _, _ = l.conn.Write(make([]byte, 2*maxHello)) },
		"that leaves at once": func(_ *testing.T, l *link) { l.close() },
	}
	for name, behave := range tests {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c := &coordinator{plan: testPlan(), token: testToken, log: quiet(), journal: NewDirectoryJournal(t.TempDir()), counters: &counters{log: quiet()}}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.run(ctx, listener)
				ended <- err
			}()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			behave(t, newLink(conn))
			_, _ = io.Copy(io.Discard, conn) // until it is turned away; one that was not would keep the test until its timeout
			select {
			case err := <-ended:
				t.Errorf("it ended the run: %v", err)
			default:
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("a run that was stopped has no error")
			}
			for i, m := range c.members {
				if m != nil {
					t.Errorf("it became client %d", i)
				}
			}
		})
	}
}

func waitForProgress(t *testing.T, journal, text string) {
	t.Helper()
	for t.Context().Err() == nil {
		if progress, err := os.ReadFile(filepath.Join(journal, benchmark.KeyProgress(""))); err == nil && strings.Contains(string(progress), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// startClient starts a client as a process of its own: this test binary (see TestMain).
func startClient(t *testing.T, plan benchmark.Plan, client int, data, journal string) *exec.Cmd {
	t.Helper()
	text, err := plan.Text()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "ENGINE_TEST_PLAN="+text, "ENGINE_TEST_CLIENT="+strconv.Itoa(client), "ENGINE_TEST_DATA="+data, "ENGINE_TEST_JOURNAL="+journal)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

func TestMain(m *testing.M) {
	text := os.Getenv("ENGINE_TEST_PLAN")
	if text == "" {
		os.Exit(m.Run())
	}
	plan, err := benchmark.ParsePlan([]byte(text))
	client, _ := strconv.Atoi(os.Getenv("ENGINE_TEST_CLIENT"))
	if err == nil {
		_, err = runner(plan, client, os.Getenv("ENGINE_TEST_DATA"), NewDirectoryJournal(os.Getenv("ENGINE_TEST_JOURNAL"))).Run(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
