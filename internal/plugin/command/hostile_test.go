package command

import (
	"bytes"
	"context"
	"encoding/json"
	stdflag "flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/printable"
	"github.com/howdah/howdah/test/builders"
)

var update = stdflag.Bool("update", false, "rewrite the golden files")

// hostile clears the screen, sets a title, goes on in another direction, and has control characters of all kinds and bytes that are no UTF-8.
const hostile = "\x1b[2J\x1b]0;owned\x07\r\x7f\u009b31m\u202egpj\u2066\u200b\u2028\U000e0041\x9b\xff"

var then = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func conditionsOf(kinds ...string) (all []metav1.Condition) {
	for _, kind := range kinds {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: "Bad", Message: "it is not well", LastTransitionTime: metav1.NewTime(then.Add(-time.Minute)),
		})
	}
	return all
}

// hostileObjects are objects by resource, before the test puts hostile text into them.
func hostileObjects() map[string][]any {
	fs := builders.FileServer("team-a", "fs").Replicas(2).Ceph().Build()
	fs.Status = v1alpha1.FileServerStatus{
		Conditions: conditionsOf(v1alpha1.ConditionReady, v1alpha1.FileServerStorageAvailable, v1alpha1.FileServerServersAvailable), Address: "10.0.0.1",
		Replicas: ptr.To[int32](2), ReadyReplicas: ptr.To[int32](1), Capacity: v1alpha1.FileServerCapacity{UsedBytes: ptr.To[int64](1), TotalBytes: ptr.To[int64](2)},
		NamespaceServers: v1alpha1.NamespaceServersStatus{Connections: v1alpha1.FileServerConnections{Used: ptr.To[int32](1), Limit: 9}},
	}
	share := builders.FileShare("team-a", "share", "fs").Path("/share").Depth(2).Build()
	share.Status = v1alpha1.FileShareStatus{
		Conditions:  conditionsOf(v1alpha1.ConditionReady, v1alpha1.FileSharePlaced, v1alpha1.FileShareExported, v1alpha1.FileShareJunctionsResolved),
		Mount:       v1alpha1.ShareMount{Address: "10.0.0.1", Path: "/share", Options: []string{"hard"}, ClaimName: "share", Command: "mount it"},
		Directories: v1alpha1.ShareDirectories{Count: ptr.To[int32](40), Ready: ptr.To[int32](3)},
	}
	job := &v1alpha1.MLPerfStorageJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "job"}}
	job.Spec.FileShareRef.Name = "share"
	job.Status.Conditions = []metav1.Condition{{Type: v1alpha1.JobSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClientFailed, Message: "a client failed"}}
	snapshot := &v1alpha1.FileShareSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "snap"}}
	snapshot.Spec.FileShareRef.Name, snapshot.Status.Conditions = "share", conditionsOf(v1alpha1.ConditionReady)
	schedule := &v1alpha1.FileShareSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "sched"}}
	schedule.Spec.FileShareRef.Name, schedule.Status.Conditions = "share", conditionsOf(v1alpha1.ConditionReady)
	objects := map[string][]any{
		"fileservers": {fs}, "fileshares": {share}, "mlperfstoragejobs": {job}, "filesharesnapshots": {snapshot}, "filesharesnapshotschedules": {schedule},
		"shareattachments": {}, "persistentvolumeclaims": {}, "persistentvolumes": {}, "nodes": {},
	}
	for i := range int32(2) {
		name := naming.DataServer("fs", i)
		fs.Status.Servers = append(fs.Status.Servers, v1alpha1.FileServerServerStatus{
			Name: name, NodeName: "node", Address: "10.0.1.1", State: v1alpha1.ServerServing, Connections: v1alpha1.FileServerConnections{Used: ptr.To[int32](1), Limit: 9},
		})
		server := &internalv1.DataServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: naming.SelectDataServers("fs")},
			Spec:       internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: "10.0.1.1", Volumes: 1},
			Status:     internalv1.DataServerStatus{Conditions: builders.ReadyConditions(), NodeName: "node"},
		}
		end := v1alpha1.ServerEnd{EndTime: ptr.To(metav1.NewTime(then.Add(-time.Minute))), Cause: v1alpha1.EndGanesha, Message: "ganesha was killed", Count: ptr.To[int64](2)}
		server.Status.LastEnd, fs.Status.Servers[i].LastEnd = &end, end
		fs.Status.Servers[i].RestartPending = []string{"leaseSeconds"}
		objects["dataservers"] = append(objects["dataservers"], server)
		objects["shareexports"] = append(objects["shareexports"], builders.ShareExport("team-a", "fs", "share", name))
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: naming.SelectDataServers("fs")}}
		pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "node"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Crash", Message: "it crashed"}}
		objects["pods"] = append(objects["pods"], &pod)
		objects["events"] = append(objects["events"], &corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: name}, Type: corev1.EventTypeWarning, Reason: "Failed", Message: "it failed",
			LastTimestamp: metav1.NewTime(then),
		})
	}
	for i := range 4 {
		directory := builders.ShareDirectory("team-a", "fs", "share", fmt.Sprintf("train/%d", i), naming.DataServer("fs", int32(i%2)))
		objects["sharedirectories"] = append(objects["sharedirectories"], directory)
	}
	return objects
}

// kept are fields by which objects are found, or which nothing but their form can be in.
var kept = map[string]bool{"apiVersion": true, "kind": true, "namespace": true, "labels": true, "fileServerRef": true, "fileShareRef": true, "dataServerRef": true, "mode": true, "quota": true}

var number = regexp.MustCompile(`^[0-9]`)

// poison puts what is hostile at the end of every string that people may be shown.
func poison(value any, at string) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			if !kept[key] && (at != "metadata" || key != "name") {
				value[key] = poison(value[key], key)
			}
		}
	case []any:
		for i := range value {
			value[i] = poison(value[i], at)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, value); err != nil && (!number.MatchString(value) || strings.Count(value, ".") == 3) && at != "type" && at != "status" && at != "phase" {
			return value + hostile
		}
	}
	return value
}

// raw is a value in JSON.
func raw(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

// hostileServer is an API server whose objects, errors, logs and pods are hostile.
func hostileServer(t *testing.T) string {
	t.Helper()
	lists := map[string][]any{}
	for resource, objects := range hostileObjects() {
		lists[resource] = []any{}
		for _, object := range objects {
			var tree map[string]any
			if err := json.Unmarshal(raw(object), &tree); err != nil {
				t.Fatal(err)
			}
			lists[resource] = append(lists[resource], poison(tree, ""))
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		switch {
		case slices.Contains(parts, "proxy"):
			counter := time.Now().UnixMilli()
			_, _ = w.Write(raw(map[string]any{
				"clients": []any{map[string]any{"address": "10.9.9.9" + hostile, "connections": 1}}, "bytes": map[string]any{"x" + hostile: 1},
				"time": time.Now(), "cpuTime": time.Now(), "cpuSeconds": counter, "requests": counter,
				"shares": map[string]any{"x" + hostile: map[string]any{"reads": counter, "readBytes": counter}},
			}))
			return
		case slices.Contains(parts, "log"):
			_, _ = w.Write([]byte("a line" + hostile + "\n"))
			return
		case r.Method == http.MethodPost:
			_, _ = w.Write(raw(lists["mlperfstoragejobs"][0]))
			return
		}
		for i, part := range parts {
			list, ok := lists[part]
			switch {
			case !ok:
			case i == len(parts)-1:
				_, _ = w.Write(raw(map[string]any{"metadata": map[string]any{}, "items": list}))
				return
			default:
				for _, object := range list {
					if object.(map[string]any)["metadata"].(map[string]any)["name"] == parts[i+1] {
						_, _ = w.Write(raw(object))
						return
					}
				}
			}
		}
		if !strings.Contains(r.URL.Path, "missing") {
			_, _ = w.Write(raw(map[string]any{"metadata": map[string]any{}, "items": []any{}}))
			return
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(raw(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 418, "reason": "Odd" + hostile, "message": "no such path" + hostile + r.URL.Path}))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// styles are what the plugin's own styles are made of.
var styles = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m")

// Names and messages that steer a terminal are shown escaped by every command, in every form of output, on both streams.
func TestNoOutputOfACommandControlsATerminal(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	server := hostileServer(t)
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n"+
		"contexts: [{name: x, context: {cluster: c, user: u, namespace: team-a}}]\ncurrent-context: x\n", server)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for name, arguments := range map[string][]string{
		"status": {"status"}, "status-all": {"status", "fs", "--directories"}, "status-json": {"status", "-o", "json"}, "status-yaml": {"status", "-o", "yaml"},
		"tree": {"tree", "share", "--directories"}, "tree-json": {"tree", "share", "-o", "json"}, "tree-yaml": {"tree", "share", "-o", "yaml"},
		"capacity": {"capacity"}, "capacity-yaml": {"capacity", "-o", "yaml"},
		"top": {"top"}, "top-json": {"top", "fs", "-o", "json"},
		"clients": {"clients"}, "clients-json": {"clients", "-o", "json"},
		"explain-share": {"explain", "fileshare/share"}, "explain-server": {"explain", "fileserver/fs"}, "explain-data-server": {"explain", "dataserver/fs-0"},
		"explain-job": {"explain", "mlperfstoragejob/job"}, "explain-snapshot": {"explain", "filesharesnapshot/snap"},
		"explain-schedule": {"explain", "filesharesnapshotschedule/sched"}, "explain-yaml": {"explain", "fileshare/share", "-o", "yaml"},
		"plan-mkdir": {"plan", "mkdir", "share", "train/x" + hostile}, "plan-scale": {"plan", "scale", "fs", "--replicas", "1"}, "plan-rebalance": {"plan", "rebalance", "fs"},
		"move": {"move", "share/train/0", "--to", "fs-1"}, "move-hostile": {"move", "share/" + hostile, "--to", "fs" + hostile}, "rebalance": {"rebalance", "fs"},
		"mount": {"mount", "share"}, "mount-manifest": {"mount", "share", "--manifest-for", "team-b"}, "mount-json": {"mount", "share", "-o", "json"},
		"bench-report": {"bench", "report", "job"}, "bench-run": {"bench", "run", "share", "--wait=false"}, "bench-wait": {"bench", "run", "share", "--timeout", "10ms"},
		"bundle":  {"support-bundle", "-f", filepath.Join(t.TempDir(), "bundle"+strings.ReplaceAll(hostile, "\xff", "")+".tar.gz")},
		"missing": {"tree", "missing" + hostile}, "wrong-flag": {"status", "--" + hostile}, "wrong-kind": {"explain", hostile + "/x"}, "wrong-command": {hostile},
		"completion": {"__complete", "tree", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			root := newRoot(&options{in: strings.NewReader(""), out: &out, err: &errOut, now: func() time.Time { return then }})
			root.SetArgs(append(slices.Clone(arguments), "--kubeconfig", kubeconfig, "--color", "always"))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			code := Run(ctx, root, &errOut)
			for stream, printed := range map[string]string{"out": out.String(), "err": errOut.String()} {
				if bare := styles.ReplaceAllString(printed, ""); !printable.IsPlain(bare) {
					t.Errorf("%s steers a terminal: %q", stream, bare)
				}
			}
			if code == CodeError && name != "missing" && name != "bench-wait" && !strings.HasPrefix(name, "move") {
				t.Errorf("it did not do its work: %s", errOut.String())
			}
			if strings.HasPrefix(name, "tree") || strings.HasPrefix(name, "status") {
				golden(t, name+".txt", out.String())
			}
		})
		tried[arguments[0]] = true
	}
	for _, command := range New(nil, nil, nil).Commands() {
		if !tried[command.Name()] {
			t.Errorf("%s was not tried", command.Name())
		}
	}
}

// golden compares a text with testdata/hostile/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "hostile", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./internal/plugin/command -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
