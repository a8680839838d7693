package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with testdata/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
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
		t.Fatalf("%v; go test ./internal/plugin/view -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func is(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(5 * time.Minute)}
}

func well(kind string) metav1.Condition {
	return is(kind, metav1.ConditionTrue, v1alpha1.ReasonReady, "well")
}

// wellWorld has a FileServer of three data servers with two shares; everything is Ready.
func wellWorld() *World {
	fs := builders.FileServer("default", "training").Replicas(3).Build()
	fs.Status = v1alpha1.FileServerStatus{
		Conditions: []metav1.Condition{
			well(v1alpha1.ConditionReady), well(v1alpha1.FileServerStorageAvailable), well(v1alpha1.FileServerServersAvailable),
			well(v1alpha1.FileServerNamespaceServersAvailable), well(v1alpha1.FileServerConfigApplied),
		},
		Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](3), Address: "10.96.0.12",
		NamespaceServers: v1alpha1.NamespaceServersStatus{Connections: v1alpha1.FileServerConnections{Used: ptr.To[int32](34), Limit: 4096}},
		Capacity:         v1alpha1.FileServerCapacity{UsedBytes: ptr.To[int64](33 << 30), TotalBytes: ptr.To[int64](3 << 40)},
	}
	w := &World{Now: now, Namespace: "default"}
	for i := range int32(3) {
		name := naming.DataServer("training", i)
		fs.Status.Servers = append(fs.Status.Servers, v1alpha1.FileServerServerStatus{
			Name: name, NodeName: fmt.Sprintf("node%d", i+1), Address: fmt.Sprintf("10.96.1.%d", i+1), State: v1alpha1.ServerServing,
			Connections: v1alpha1.FileServerConnections{Used: ptr.To[int32](16), Limit: 4096}, Directories: ptr.To[int32](2),
		})
		w.DataServers = append(w.DataServers, internalv1.DataServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: internalv1.DataServerSpec{
				FileServerRef: internalv1.FileServerReference{Name: "training"}, Address: fmt.Sprintf("10.96.1.%d", i+1), Volumes: 1, ServerScope: "uid",
			},
			Status: internalv1.DataServerStatus{
				Conditions: []metav1.Condition{well(v1alpha1.ConditionReady)}, NodeName: fmt.Sprintf("node%d", i+1),
				Volumes: []internalv1.VolumeUsage{{Index: ptr.To[int32](0), UsedBytes: ptr.To[int64](int64(11+i) << 30), TotalBytes: ptr.To[int64](1 << 40)}},
			},
		})
		w.Pods = append(w.Pods, readyPod(name, naming.SelectDataServers("training")))
	}
	for i := range 2 {
		w.Pods = append(w.Pods, readyPod(fmt.Sprintf("training-namespace-%d", i), naming.SelectNamespaceServers("training")))
	}
	w.FileServers = append(w.FileServers, *fs)
	unet3d := builders.FileShare("default", "unet3d", "training").Path("/unet3d").Depth(2).Directories("train/{0..5}").Build()
	unet3d.Status = v1alpha1.FileShareStatus{
		Conditions: []metav1.Condition{
			well(v1alpha1.ConditionReady), well(v1alpha1.FileSharePlaced), well(v1alpha1.FileShareExported), well(v1alpha1.FileShareInventoried),
			well(v1alpha1.FileShareJunctionsResolved), well(v1alpha1.FileShareClaimAvailable),
		},
		Mount: v1alpha1.ShareMount{
			Address: "10.96.0.12", Path: "/unet3d", Options: []string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev"}, ClaimName: "unet3d",
			Command: "mount -t nfs4 -o vers=4.1,nconnect=16,hard,nosuid,nodev 10.96.0.12:/unet3d /mnt",
		},
		Directories: v1alpha1.ShareDirectories{Count: ptr.To[int32](6), Ready: ptr.To[int32](6)},
	}
	home := builders.FileShare("default", "home", "training").Path("/home").Single().Build()
	home.Status = v1alpha1.FileShareStatus{
		Conditions: []metav1.Condition{well(v1alpha1.ConditionReady)}, Directories: v1alpha1.ShareDirectories{Count: ptr.To[int32](1), Ready: ptr.To[int32](1)},
	}
	for i := range 6 {
		d := builders.ShareDirectory("default", "training", "unet3d", fmt.Sprintf("train/%d", i), naming.DataServer("training", int32(i%3)))
		w.Directories = append(w.Directories, *d)
	}
	w.Directories = append(w.Directories, *builders.ShareDirectory("default", "training", "home", ".", "training-1"))
	for i := range int32(3) {
		count := v1alpha1.ServerDirectories{Name: naming.DataServer("training", i), Count: ptr.To[int32](2)}
		unet3d.Status.Directories.PerServer = append(unet3d.Status.Directories.PerServer, count)
	}
	home.Status.Directories.PerServer = []v1alpha1.ServerDirectories{{Name: "training-1", Count: ptr.To[int32](1)}}
	w.FileShares = append(w.FileShares, *unet3d, *home)
	for _, share := range []string{"unet3d", "home"} {
		for i := range int32(3) {
			w.Exports = append(w.Exports, *builders.ShareExport("default", "training", share, naming.DataServer("training", i)))
		}
	}
	return w
}

func readyPod(name string, labels map[string]string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels, CreationTimestamp: ago(time.Hour)},
		Spec:       corev1.PodSpec{NodeName: "node1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func set(all *[]metav1.Condition, c metav1.Condition) {
	for i := range *all {
		if (*all)[i].Type == c.Type {
			(*all)[i] = c
			return
		}
	}
	*all = append(*all, c)
}

// brokenWorld is wellWorld after node2 was drained: no node can run training-1, and its directories wait. One share has the path of another.
func brokenWorld() *World {
	w := wellWorld()
	fs := &w.FileServers[0]
	fs.Status.ReadyReplicas = ptr.To[int32](2)
	fs.Status.Servers[1].State, fs.Status.Servers[1].NodeName = v1alpha1.ServerUnavailable, ""
	ganeshaEnded := served(endOf(v1alpha1.EndGanesha, "ganesha was killed by signal SIGSEGV", 2*time.Hour, 3), 1240)
	fs.Status.Servers[0].LastEnd = ganeshaEnded
	w.DataServers[0].Status.LastEnd = &ganeshaEnded
	fs.Status.Servers[2].RestartPending = []string{"graceSeconds", "leaseSeconds"}
	// The FileServer has an end of the day before; the data server's own report is newer.
	fs.Status.Servers[2].LastEnd = served(endOf(v1alpha1.EndPodStopped, "the pod was stopped and replaced", 25*time.Hour, 0), 9800)
	w.DataServers[2].Status.LastEnd = ptr.To(served(endOf(v1alpha1.EndContainer, "the container was started again in its pod", 30*time.Second, 1), 4400))
	unscheduled := "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match PersistentVolume's node affinity."
	message := "2 of 3 data servers serve: training-1 is Unavailable (not scheduled: " + unscheduled + ")"
	set(&fs.Status.Conditions, is(v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady, message))
	set(&fs.Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady, "ServersAvailable: "+message))
	pod := w.pod("default", "training-1")
	pod.Spec.NodeName, pod.Status.Phase, pod.CreationTimestamp = "", corev1.PodPending, ago(5*time.Minute)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: unscheduled}}
	w.Events = []corev1.Event{
		{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "training-1"}, Type: corev1.EventTypeWarning,
			Reason: "FailedScheduling", Message: unscheduled, EventTime: metav1.NewMicroTime(now.Add(-5 * time.Minute)),
			Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now.Add(-20 * time.Second))},
		},
		{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "training-1"}, Type: corev1.EventTypeNormal,
			Reason: "Pulled", Message: "of no interest beside a warning", LastTimestamp: ago(time.Hour), Count: 1,
		},
	}
	w.DataServers[1].Status.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(ago(5 * time.Minute)), SeenBy: "training-namespace-0"}
	share := &w.FileShares[0]
	silent := "training-1 (does not answer)"
	set(&share.Status.Conditions, is(v1alpha1.FileShareExported, metav1.ConditionFalse, v1alpha1.ReasonDataServersUnavailable, silent))
	set(&share.Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDataServersUnavailable, "Exported: "+silent))
	w.Directories[4].Status.State = internalv1.DirectoryCreating
	taken := builders.FileShare("default", "scratch", "training").Path("/home/x").Build()
	conflict := `the path /home/x lies in that of the older share "home", /home; delete this share and make it with another path, or delete the other share`
	taken.Status.Conditions = []metav1.Condition{
		is(v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonPathConflict, conflict),
		is(v1alpha1.FileShareExported, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waiting for the share to be placed"),
		is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPathConflict, "Placed: "+conflict),
		is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonPathConflict, "Placed: "+conflict),
	}
	w.FileShares = append(w.FileShares, *taken)
	return w
}

func endOf(cause v1alpha1.EndCause, message string, before time.Duration, count int64) v1alpha1.ServerEnd {
	return v1alpha1.ServerEnd{Cause: cause, Message: message, EndTime: ptr.To(ago(before)), Count: &count}
}

func served(end v1alpha1.ServerEnd, milliseconds int64) v1alpha1.ServerEnd {
	end.ServedAfterMilliseconds = &milliseconds
	return end
}

// viewersWorld is the part of brokenWorld that a user with the role view can read.
func viewersWorld(w *World) *World {
	w.DataServers, w.Directories, w.Exports, w.Attachments = nil, nil, nil, nil
	for _, resource := range []string{ResourceDataServers, ResourceShareDirectories, ResourceShareAttachments} {
		w.Hidden = append(w.Hidden, Hidden{Resource: resource, Namespace: "default", Right: "list"})
	}
	return w
}
