package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/internal/load"
)

// execute runs howdah load.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var output bytes.Buffer
	command := newLoadCommand()
	command.SetArgs(args)
	command.SetOut(&output)
	command.SetErr(io.Discard)
	command.SilenceUsage, command.SilenceErrors = true, true
	err := command.ExecuteContext(t.Context())
	return output.String(), err
}

func TestLoadRunsAndIsAuditedByTheCommand(t *testing.T) {
	path := t.TempDir()
	text, err := execute(t, "--for", "1s", "--name", "one", "--json", "--do", "files,records,lock,tree", "--bytes", "1Mi", path)
	if err != nil {
		t.Fatal(err)
	}
	var result load.Result
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if result.Run != "one" || len(result.Directories) != 1 || result.Directories[0].Path != path || result.Directories[0].Operations == 0 {
		t.Errorf("got %s", text)
	}
	if text, err := execute(t, "--audit", "--nothing-else", path); err != nil || !strings.Contains(text, "DIRECTORY") {
		t.Errorf("the audit: %v\n%s", err, text)
	}
	if err := os.Remove(filepath.Join(path, "one", "records")); err != nil {
		t.Fatal(err)
	}
	if text, err := execute(t, "--audit", path); err == nil || !strings.Contains(text, "WRONG: one/records is not there") {
		t.Errorf("the audit of a directory with a lost file: %v\n%s", err, text)
	}
	if _, err := execute(t, "--for", "200ms", "--max-stall", "1ns", path); err == nil || !strings.Contains(err.Error(), "stalled for") {
		t.Errorf("with --max-stall: %v", err)
	}
}

// The Jobs for users: each is a Job that Kubernetes takes, and its arguments are ones that howdah load takes.
func TestSamplesOfLoadAreJobsWithValidArguments(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/load/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		job := &batchv1.Job{}
		if err := yaml.UnmarshalStrict(text, job); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		container := job.Spec.Template.Spec.Containers[0]
		if len(container.Args) == 0 || container.Args[0] != newLoadCommand().Name() {
			t.Errorf("%s runs %v", file, container.Args)
			continue
		}
		command := newLoadCommand()
		if err := command.ParseFlags(container.Args[1:]); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, directory := range command.Flags().Args() {
			if !strings.HasPrefix(directory, container.VolumeMounts[0].MountPath+"/") {
				t.Errorf("%s: directory %s is not on the volume", file, directory)
			}
		}
		if command.Flags().NArg() != 3 {
			t.Errorf("%s has the directories %v", file, command.Flags().Args())
		}
	}
}
