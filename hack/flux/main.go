// Command flux applies the manifests of a folder again and again, as Flux's kustomize-controller does. It uses the controller's own engine
// (github.com/fluxcd/pkg/ssa, and kstatus for readiness) without Kustomization objects and sources: the controller itself needs the SDKs of
// four clouds. It prints what it does, and exits with 1 if a later application had to change an object.
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
	namespace := flag.String("namespace", "default", "namespace of the objects")
	duration := flag.Duration("for", 2*time.Minute, "how long no application may have to change an object")
	timeout := flag.Duration("timeout", 10*time.Minute, "how long the objects may take to become ready")
	edited := flag.Bool("edited", false, "an object was edited by hand: the first application must undo that")
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

// keep applies the folder, waits until everything is ready, and applies it again until the duration is over.
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
	fmt.Println("applied:", list(changes, func(*ssa.ChangeSetEntry) bool { return true }))
	if undone := list(changes, isChange); edited && undone == "" {
		return errors.New("the edit by hand was not undone")
	}
	if err := manager.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(), ssa.WaitOptions{Interval: time.Second, Timeout: timeout, FailFast: true}); err != nil {
		return fmt.Errorf("waiting until everything is ready: %w", err)
	}
	fmt.Printf("everything is ready (kstatus: Current) after %.1f s\n", time.Since(started).Seconds())

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
		if drift := list(changes, isChange); drift != "" {
			return fmt.Errorf("after %d applications without a change, this one changed objects: %s", rounds, drift)
		}
	}
	fmt.Printf("%d applications in %s changed nothing\n", rounds, duration)
	return nil
}

func isChange(entry *ssa.ChangeSetEntry) bool { return entry.Action != ssa.UnchangedAction }

// list describes the entries that match.
func list(changes *ssa.ChangeSet, matches func(*ssa.ChangeSetEntry) bool) string {
	var all []string
	for i := range changes.Entries {
		if matches(&changes.Entries[i]) {
			all = append(all, changes.Entries[i].String())
		}
	}
	return strings.Join(all, ", ")
}

// read reads the manifests of a folder and sets their namespace.
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
