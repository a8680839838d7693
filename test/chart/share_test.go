package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// runs what the containers of a pod of helm test run, here and one after the other, with a folder in place of the share, and programs of
// its own in the front of PATH. The error is that of the first container that fails.
func runs(t *testing.T, pod *corev1.Pod, share string, programs map[string]string) (string, error) {
	t.Helper()
	bin, state := t.TempDir(), t.TempDir()
	for name, program := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	var first error
	for _, container := range pod.Spec.Containers {
		if strings.Join(container.Command, " ") != "sh -c" || len(container.Args) != 1 {
			t.Fatalf("%q %q", container.Command, container.Args)
		}
		c := exec.CommandContext(t.Context(), "sh", "-c", container.Args[0])
		c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "SHARE=" + share, "STATE=" + state, "POD_UID=1234"}
		c.Stdout, c.Stderr = &all, &all
		if err := c.Run(); err != nil && first == nil {
			first = err
		}
	}
	return all.String(), first
}

func testPod(t *testing.T) *corev1.Pod {
	t.Helper()
	return as[corev1.Pod](t, rendered(t, "--set", "test.share.name=data"), "Pod howdah-system/howdah-test-share")
}

func TestHelmTestMountsTheShareThatIsNamed(t *testing.T) {
	pod := as[corev1.Pod](t, rendered(t, "--set", "test.share.name=data,test.share.namespace=team-a,test.user=1000,test.group=100"), "Pod team-a/howdah-test-share")
	container := pod.Spec.Containers[0]
	mount, volume := container.VolumeMounts[0], pod.Spec.Volumes[0]
	if volume.PersistentVolumeClaim.ClaimName != "data" || mount.Name != volume.Name || container.Env[0].Name != "SHARE" || container.Env[0].Value != mount.MountPath {
		t.Errorf("it mounts %v at %v for %v", volume, mount, container.Env)
	}
	// Directories of the share are mounts below the first one.
	if mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationHostToContainer {
		t.Errorf("it does not see mounts that are made on its node: %v", mount.MountPropagation)
	}
	security := pod.Spec.SecurityContext
	if *security.RunAsUser != 1000 || *security.RunAsGroup != 100 || !*security.RunAsNonRoot {
		t.Errorf("it writes as %v", security)
	}
	if *testPod(t).Spec.SecurityContext.RunAsNonRoot {
		t.Error("it can't be root, which owns the root of a share by default")
	}
}

// What is distributed is a mount point to the container that entered it, so another one has to remove it: both mount the share, and the
// second goes into no directory that it is to remove.
func TestHelmTestRemovesInAnotherContainer(t *testing.T) {
	containers := testPod(t).Spec.Containers
	if len(containers) != 2 || strings.Contains(containers[0].Args[0], "rmdir") || strings.Contains(containers[1].Args[0], "cd ") {
		t.Errorf("%d containers", len(containers))
	}
}

// Files are refused above the depth of a share: the script goes as deep as it must. Here dd is the server that refuses.
func TestHelmTestWritesReadsAndRemoves(t *testing.T) {
	pod := testPod(t)
	for depth := range 9 {
		t.Run(fmt.Sprintf("files from depth %d on", depth), func(t *testing.T) {
			share := t.TempDir()
			refuses := fmt.Sprintf(`of=${1#of=}; below=${of#"$SHARE"/}; test "$(echo "$below" | tr -cd / | wc -c)" -ge %d || { echo "dd: not permitted" >&2; exit 1; }
				echo "$below" >"$SHARE/../written"; exec /bin/dd "$@"`, depth)
			output, err := runs(t, pod, share, map[string]string{"dd": refuses})
			if err != nil || !strings.Contains(output, fmt.Sprintf("%d directories deep in the share", max(depth, 1))) {
				t.Errorf("%v: %s", err, output)
			}
			empty(t, share)
			if written, err := os.ReadFile(filepath.Join(share, "..", "written")); err != nil || !strings.HasPrefix(string(written), "howdah-test-1234/") {
				t.Errorf("wrote %q: %v", written, err)
			}
		})
	}
}

// A share that does not do what it must fails the test, and nothing stays in it.
func TestHelmTestFailsOnABadShare(t *testing.T) {
	pod := testPod(t)
	for what, tc := range map[string]struct {
		programs map[string]string
		want     string
		left     bool
	}{
		"no directory can be made":  {map[string]string{"mkdir": "exit 1"}, "can't make a directory in the share", false},
		"no file at any depth":      {map[string]string{"dd": "echo 'no space' >&2; exit 1"}, "can't write a file, 8 directories deep: no space", false},
		"other text is read":        {map[string]string{"cat": `case $1 in */file) echo other ;; *) exec /bin/cat "$@" ;; esac`}, "what was read is not what was written: other", false},
		"a file that stays":         {map[string]string{"rm": "exit 0"}, "a file that was removed is still there", true},
		"a directory that stays":    {map[string]string{"rmdir": "exit 0"}, "a directory that was removed is still there", true},
		"a directory can't be gone": {map[string]string{"rmdir": "exit 1"}, "can't remove the directory howdah-test-1234 of the share", true},
	} {
		t.Run(what, func(t *testing.T) {
			share := t.TempDir()
			output, err := runs(t, pod, share, tc.programs)
			if err == nil || !strings.Contains(output, tc.want) {
				t.Errorf("%v: %s", err, output)
			}
			if !tc.left {
				empty(t, share)
			}
		})
	}
}

func empty(t *testing.T, folder string) {
	t.Helper()
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("left in the share: %v, %v", entries, err)
	}
}

// A test that tries nothing must not pass.
func TestHelmTestWithoutAShareSaysSo(t *testing.T) {
	pod := as[corev1.Pod](t, rendered(t), "Pod howdah-system/howdah-test-names-no-share")
	output, err := runs(t, pod, t.TempDir(), nil)
	if err == nil || !strings.Contains(output, "name a FileShare") || !strings.Contains(output, "--set test.share.name=NAME,test.share.namespace=NAMESPACE") {
		t.Errorf("%v: %s", err, output)
	}
	if len(pod.Spec.Volumes) > 0 || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("it wants more than to say so: %v", pod.Spec)
	}
}
