package fileserver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/internal/naming"
)

// mounting makes a pod that mounts Secrets.
func mounting(name string, secrets ...string) corev1.Pod {
	made := *pod(corev1.PodRunning, true)
	made.Name, made.Spec.NodeName = name, "node-a"
	for _, secret := range secrets {
		made.Spec.Volumes = append(made.Spec.Volumes, corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	}
	return made
}

func controlled(pod corev1.Pod, by types.UID) corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "fs", UID: by, Controller: ptr.To(true)}}
	return pod
}

func TestPodsOfAnEarlierFileServerAreKnownByTheirCertificates(t *testing.T) {
	const mine, earlier = "uid-now", "uid-before"
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "fs", UID: "set-now"}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		set  *appsv1.StatefulSet
		want bool
	}{
		"its own":                 {controlled(mounting("fs-0", naming.Certificates("fs", mine, 1, 0)), "set-now"), set, false},
		"with later certificates": {mounting("fs-0", naming.Certificates("fs", mine, 7, 3), naming.HandleKeys("fs", mine, 7)), set, false},
		"its own, of a StatefulSet that a user deleted":  {controlled(mounting("fs-0", naming.Certificates("fs", mine, 1, 0)), "set-before"), set, false},
		"the same, before the next StatefulSet":          {controlled(mounting("fs-0", naming.Certificates("fs", mine, 1, 0)), "set-before"), nil, false},
		"an earlier one's":                               {controlled(mounting("fs-0", naming.Certificates("fs", earlier, 1, 0)), "set-before"), set, true},
		"an earlier one's, whose StatefulSet is there":   {controlled(mounting("fs-0", naming.Certificates("fs", earlier, 2, 0)), "set-before"), nil, true},
		"an earlier one's, after a loss of certificates": {mounting("fs-0", naming.Certificates("fs", earlier, 1, 2)), nil, true},
		"of a StatefulSet that was taken over":           {controlled(mounting("fs-0", naming.Certificates("fs", earlier, 1, 0)), "set-now"), set, false},
		"without certificates":                           {mounting("fs-0", naming.HandleKeys("fs", earlier, 1), "fs-certificates"), set, false},
		"with those of another name":                     {mounting("fs-0", naming.Certificates("fs-2", earlier, 1, 0)), set, false},
	} {
		o, _ := world()
		o.fileServer.UID, o.statefulSet = mine, tc.set
		if got := o.isEarlier(&tc.pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestAnEarlierPodInTheWayIsNamed(t *testing.T) {
	const text = "its pod is made when the one of an earlier FileServer of this name is gone"
	notReady := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	ready := *notReady.DeepCopy()
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  string
	}{
		"it ends":                 {[]corev1.Node{ready}, text},
		"its node is gone":        {nil, text},
		"its node does not work":  {[]corev1.Node{notReady}, text + "; node node-a, where that is, is not ready: it waits for that node, or"},
		"the command has it, too": {[]corev1.Node{notReady}, "kubectl taint node node-a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
	} {
		o, d := world()
		o.fileServer.UID, o.nodes = "uid-now", tc.nodes
		o.takePods([]corev1.Pod{mounting("fs-0", naming.Certificates("fs", "uid-now", 1, 0)), mounting("fs-1", naming.Certificates("fs", "uid-before", 1, 0))})
		if got := slices.Sorted(maps.Keys(o.pods)); !slices.Equal(got, []string{"fs-0"}) {
			t.Errorf("%s: the pods are %v", name, got)
		}
		if got := serversCondition(d, reportServers(o, d), "").Message; !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %s in it", name, got, tc.want)
		}
	}
}
