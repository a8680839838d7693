// Command flux keeps the manifests of a folder in a cluster as Flux's kustomize-controller does, with the controller's own engine
// (github.com/fluxcd/pkg/ssa, and kstatus for what is ready), and without its Kustomization objects and sources: the controller itself has
// the SDKs of four clouds in it, for the keys of secrets. It says what it does, and ends with 1 if an object that nobody
// edited was not as it is in the folder.
//
//	flux -namespace team-b -for 2m FOLDER
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// interval is the time between two applications; Flux's is minutes.
const interval = 5 * time.Second

func main() {
	namespace := flag.String("namespace", "default", "where the manifests go")
	duration := flag.Duration("for", 2*time.Minute, "how long they must stay as they are")
	timeout := flag.Duration("timeout", 10*time.Minute, "how long they may take to be ready")
	edited := flag.Bool("edited", false, "somebody edited an object by hand: the first application must undo that")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: flux [flags] FOLDER")
		os.Exit(2)
	}
	if err := keep(ctrl.SetupSignalHandler(), flag.Arg(0), *namespace, *duration, *timeout, *edited); err != nil {
		fmt.Fprintln(os.Stderr, "flux:", err)
		os.Exit(1)
	}
}

// keep applies the folder, waits until all is ready, and applies it again for as long as is said.
func keep(ctx context.Context, folder, namespace string, duration, timeout time.Duration, edited bool) error {
	objects, err := read(folder, namespace)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	manager := ssa.NewResourceManager(c, polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{}),
		ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	manager.SetOwnerLabels(objects, "storage", namespace)

	started := time.Now()
	changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return err
	}
	fmt.Println("applied:", said(changes, func(*ssa.ChangeSetEntry) bool { return true }))
	if undone := said(changes, isChange); edited && undone == "" {
		return errors.New("an edit by hand was not undone")
	}
	if err := manager.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(), ssa.WaitOptions{Interval: time.Second, Timeout: timeout, FailFast: true}); err != nil {
		return fmt.Errorf("waiting until all is ready: %w", err)
	}
	fmt.Printf("all is ready (kstatus: Current) after %.1f s\n", time.Since(started).Seconds())

	rounds := 0
	for end := time.Now().Add(duration); time.Now().Before(end); rounds++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
		changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		if err != nil {
			return err
		}
		if drift := said(changes, isChange); drift != "" {
			return fmt.Errorf("not as it is in the folder any more, after %d rounds: %s", rounds, drift)
		}
	}
	fmt.Printf("%d times in %s all was as it is in the folder\n", rounds, duration)
	return nil
}

func isChange(entry *ssa.ChangeSetEntry) bool { return entry.Action != ssa.UnchangedAction }

// said are the entries that are wanted, in words.
func said(changes *ssa.ChangeSet, wanted func(*ssa.ChangeSetEntry) bool) string {
	var all []string
	for i := range changes.Entries {
		if wanted(&changes.Entries[i]) {
			all = append(all, changes.Entries[i].String())
		}
	}
	return strings.Join(all, ", ")
}

// read reads the manifests of a folder and gives them a namespace.
func read(folder, namespace string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := utils.ReadObjects(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range some {
			object.SetNamespace(namespace)
		}
		objects = append(objects, some...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s has no manifests", folder)
	}
	return objects, normalize.UnstructuredList(objects)
}
