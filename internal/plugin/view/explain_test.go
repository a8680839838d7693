package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/test/builders"
)

func TestExplanationsBeginWithTheRootCause(t *testing.T) {
	broken, crashing, pending, unseen, paused := brokenWorld(), wellWorld(), wellWorld(), wellWorld(), wellWorld()

	fs := &crashing.FileServers[0]
	set(&fs.Status.Conditions, is(v1alpha1.FileServerNamespaceServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonNamespaceServersNotReady, "0 of 2 namespace servers are ready: CrashLoopBackOff"))
	set(&fs.Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceServersNotReady, "NamespaceServersAvailable: 0 of 2 namespace servers are ready: CrashLoopBackOff"))
	for i := range 2 {
		crashing.pod("default", "training-namespace-"+strconv.Itoa(i)).Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  "namespace-server",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "OOMKilled", ExitCode: 137,
			}},
		}}
	}

	fs = &pending.FileServers[0]
	fs.Status.Servers[2].State = v1alpha1.ServerPending
	set(&fs.Status.Conditions, is(v1alpha1.FileServerStorageAvailable, metav1.ConditionFalse, v1alpha1.ReasonClaimsPending, "1 of 3 claims are not bound: data-0-training-2"))
	set(&fs.Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonClaimsPending, "StorageAvailable: 1 of 3 claims are not bound: data-0-training-2"))
	claim := corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	claim.Namespace, claim.Name, claim.Labels, claim.CreationTimestamp = "default", naming.VolumeClaim("training", 2, 0), naming.SelectDataServers("training"), ago(time.Minute)
	pending.Claims = []corev1.PersistentVolumeClaim{claim}
	pending.Events = []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: claim.Name}, Type: corev1.EventTypeWarning,
		Reason: "ProvisioningFailed", Message: `storageclass.storage.k8s.io "fast" not found`, LastTimestamp: ago(10 * time.Second), Count: 4,
	}}

	classless := wellWorld()
	fs, classless.Pods, classless.DataServers, classless.Events = &classless.FileServers[0], classless.Pods[:0:0], nil, nil
	classless.Pods = append(classless.Pods, corev1.Pod{}) // Pods can be read; the namespace servers' are there.
	for i := range fs.Status.Servers {
		fs.Status.Servers[i].State = v1alpha1.ServerPending
	}
	set(&fs.Status.Conditions, is(v1alpha1.FileServerStorageAvailable, metav1.ConditionUnknown, v1alpha1.ReasonStorageClassNotFound, `there is no StorageClass "fast"`))
	set(&fs.Status.Conditions, is(v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady, "0 of 3 data servers serve: training-0 is Pending (its pod is not made yet)"))
	set(&fs.Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonStorageClassNotFound, `StorageAvailable: there is no StorageClass "fast"`))

	ended := wellWorld()
	set(&ended.DataServers[0].Status.Conditions, is(v1alpha1.ConditionReady, metav1.ConditionFalse, internalv1.ReasonServerDown, "ganesha was killed by signal SIGSEGV; restarting it"))
	ended.DataServers[0].Status.LastEnd = ptr.To(endOf(v1alpha1.EndGanesha, "ganesha was killed by signal SIGSEGV", 4*time.Second, 3))

	unseen.FileServers[0].Status = v1alpha1.FileServerStatus{}
	unseen.FileServers[0].CreationTimestamp = ago(10 * time.Minute)

	set(&paused.FileShares[0].Status.Conditions, is(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, "the operator changes nothing"))

	job := v1alpha1.MLPerfStorageJob{}
	job.Namespace, job.Name, job.Spec.FileShareRef.Name = "default", "unet3d", "unet3d"
	job.Status.Conditions = []metav1.Condition{
		is(v1alpha1.JobDatasetReady, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waiting"),
		is(v1alpha1.JobSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonWaitingForShare, "FileShare unet3d is not ready: Exported: training-1 (does not answer)"),
	}

	for name, explanation := range map[string]Explanation{
		"well":            ExplainFileShare(wellWorld(), &wellWorld().FileShares[0]),
		"share":           ExplainFileShare(broken, &broken.FileShares[0]),
		"path-conflict":   ExplainFileShare(broken, &broken.FileShares[2]),
		"file-server":     ExplainFileServer(broken, &broken.FileServers[0]),
		"namespace":       ExplainFileServer(crashing, &crashing.FileServers[0]),
		"class":           ExplainFileServer(classless, &classless.FileServers[0]),
		"claims":          ExplainFileServer(pending, &pending.FileServers[0]),
		"no-operator":     ExplainFileServer(unseen, &unseen.FileServers[0]),
		"data-server":     ExplainDataServer(broken, &broken.DataServers[1]),
		"ended":           ExplainDataServer(ended, &ended.DataServers[0]),
		"job":             ExplainJob(broken, &job),
		"paused":          ExplainFileShare(paused, &paused.FileShares[0]),
		"share-of-viewer": ExplainFileShare(viewersWorld(brokenWorld()), &brokenWorld().FileShares[0]),
	} {
		golden(t, "explain-"+name+".txt", explanation.Text(text.Page{Width: 100}))
	}
	colours := ExplainFileShare(broken, &broken.FileShares[0]).Text(text.Page{Width: 60, Colour: true})
	golden(t, "explain-share-colours-narrow.txt", colours)
}

func TestAlikeCausesAreCounted(t *testing.T) {
	w := brokenWorld()
	fs := &w.FileServers[0]
	stuck := *w.pod("default", "training-1")
	fs.Status.Servers, w.Pods = nil, nil
	for i := range int32(64) {
		pod := *stuck.DeepCopy()
		pod.Name = naming.DataServer("training", i)
		w.Pods = append(w.Pods, pod)
		fs.Status.Servers = append(fs.Status.Servers, v1alpha1.FileServerServerStatus{Name: pod.Name, State: v1alpha1.ServerPending})
	}
	explained := ExplainFileServer(w, fs).Text(text.Page{})
	if n := strings.Count(explained, "Pod training-"); n != maxAlike || !strings.Contains(explained, "(and 61 more like this)") {
		t.Errorf("%d pods are listed:\n%s", n, explained)
	}
}

// TestEveryReasonHasAdviceOrNeedsNone reads the API's reasons, so that a new one is not forgotten.
func TestEveryReasonHasAdviceOrNeedsNone(t *testing.T) {
	count := 0
	for _, file := range []string{"v1alpha1/conditions.go", "internalapi/v1alpha1/conditions.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", "api", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok { // The same as one of the other group.
				return true
			}
			reason, _ := strconv.Unquote(literal.Value)
			count++
			do, known := advice[reason]
			if !known {
				t.Errorf("%s has no line in advice", spec.Names[0].Name)
			}
			if v1alpha1.NeedsUser(reason) && do == "" {
				t.Errorf("%s needs an action of the user; advice must name it", spec.Names[0].Name)
			}
			return true
		})
	}
	if count < 40 {
		t.Errorf("only %d reasons were found", count)
	}
}

func TestMountHasACommandAndManifests(t *testing.T) {
	w := wellWorld()
	share := &w.FileShares[0]
	mount, err := NewMount(share, nil, "/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if mount.Command != share.Status.Mount.Command {
		t.Errorf("the command is %q and the status has %q", mount.Command, share.Status.Mount.Command)
	}
	golden(t, "mount.txt", mount.Text(text.Page{Width: 80}))
	w.FileServers[0].Status.OutsideAddresses = []string{"192.0.2.9", "2001:db8::9"}
	outside, err := NewMount(share, &w.FileServers[0], "/mnt")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "mount-outside.txt", outside.Text(text.Page{Width: 80}))
	manifest, err := mount.Manifest("team-b", 3<<40)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "mount-manifest.yaml", manifest)
	own, err := mount.Manifest("default", 0)
	if err != nil || strings.Contains(own, "\n  name: unet3d\n") {
		t.Errorf("the operator's own claim would be taken (%v):\n%s", err, own)
	}
	restricted := builders.FileShare("default", "r", "training").Access(v1alpha1.AccessReadOnly, v1alpha1.SquashRoot, "10.0.0.0/8", "192.168.1.4").Build()
	restricted.Status = share.Status
	if mount, err = NewMount(restricted, nil, "/data"); err != nil || !strings.HasSuffix(mount.Command, ":/unet3d /data") || mount.Access[0] != "10.0.0.0/8, 192.168.1.4: ReadOnly" {
		t.Errorf("%v %+v", err, mount)
	}
	if _, err := NewMount(&w.FileShares[1], nil, "/mnt"); err == nil || !strings.Contains(err.Error(), "kubectl howdah explain fileshare/home -n default") {
		t.Errorf("a share without an address: %v", err)
	}
}
