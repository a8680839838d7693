package volumes

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/test/builders"
)

func namedNode(name, zone string, ready corev1.ConditionStatus) corev1.Node {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return node
}

func only(key string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}},
	}}}
}

func attachment(name, volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-va"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}

// What is deleted follows from this: a volume that is not the claim's own must have no attachments here.
func TestTheVolumesOfALostDataServer(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume)
		nodes       []string
		attachments int
	}{
		"every node can use it": {func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, []string{"n0", "n1"}, 1},
		"a zone": {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = only(corev1.LabelTopologyZone, "b")
		}, []string{"n1"}, 1},
		"a node": {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = only(corev1.LabelHostname, "n2")
		}, nil, 1},
		"an affinity that is no such": {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = only("no key!", "n1")
		}, nil, 1},
		"the volume is another claim's": {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }, []string{"n0", "n1"}, 0},
		"the volume is free":            {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, []string{"n0", "n1"}, 0},
		"the claim has none":            {func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { claim.Spec.VolumeName = "" }, []string{"n0", "n1"}, 0},
		"the volume is gone":            {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Name = "elsewhere" }, []string{"n0", "n1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claim := builders.Claim("ns", "data-0-fs-1", "standard").UID("uid-of-claim").Build()
			claim.Spec.VolumeName = "pv"
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: "uid-of-claim"}}}
			tc.change(claim, pv)
			s := &Storage{
				Observation: backendapi.Observation{
					FileServer: builders.FileServer("ns", "fs").Build(), Lost: map[string]bool{"fs-1": true}, ClosedNodes: map[string]bool{"n4": true},
					Nodes: []corev1.Node{namedNode("n0", "a", "True"), namedNode("n1", "b", "True"), namedNode("n2", "a", "Unknown"), namedNode("n4", "b", "True")},
				},
				All: map[string]corev1.PersistentVolumeClaim{claim.Name: *claim},
			}
			live := fake.NewClientBuilder().WithObjects(pv, attachment("ours", "pv", "n2"), attachment("another", "pv-of-another", "n2")).Build()
			if err := s.readAttached(context.Background(), live); err != nil {
				t.Fatal(err)
			}
			volumes := s.Volumes("fs-1")
			if len(volumes) != 1 || volumes[0].Claim != "data-0-fs-1" || !reflect.DeepEqual(volumes[0].Nodes, tc.nodes) || len(volumes[0].Attachments) != tc.attachments {
				t.Fatalf("%+v", volumes)
			}
			for _, a := range volumes[0].Attachments {
				if a.Name != "ours" || a.UID != "uid-of-va" || a.Version == "" || a.Node != "n2" || a.Ending {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// An operator that may not read VolumeAttachments must not try.
func TestNoVolumeAttachmentIsReadWhileNoDataServerIsLost(t *testing.T) {
	live := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			t.Error("they are read")
			return nil
		},
	})
	s := &Storage{}
	if err := s.readAttached(context.Background(), live); err != nil || len(s.Volumes("fs-1")) != 0 {
		t.Errorf("%v, %v", err, s.Volumes("fs-1"))
	}
}

func TestTheStateOfAnAttachment(t *testing.T) {
	a := attachment("ours", "pv", "n2")
	a.ResourceVersion, a.DeletionTimestamp = "12", &metav1.Time{}
	a.Status.DetachError = &storagev1.VolumeError{Message: "array does not answer"}
	want := failover.Attachment{Name: "ours", UID: "uid-of-va", Version: "12", Node: "n2", Ending: true, Fault: "array does not answer"}
	if got := attachmentOf(a); got != want {
		t.Errorf("%+v", got)
	}
}

// Drivers of local disks have keys of their own.
func TestAVolumeThatNoOtherNodeCanUseIsPinned(t *testing.T) {
	s := &Storage{Observation: backendapi.Observation{Nodes: []corev1.Node{namedNode("n0", "a", "True"), namedNode("n1", "b", "Unknown")}}}
	s.Nodes[0].Labels["topology.example.com/node"] = "n0"
	s.Nodes[1].Labels["topology.example.com/node"] = "n1"
	pv := func(affinity *corev1.VolumeNodeAffinity) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: affinity}}
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		node string
		want bool
	}{
		"its own node":             {pv(only("topology.example.com/node", "n1")), "n1", true},
		"two nodes":                {pv(only("topology.example.com/node", "n0", "n1")), "n1", false},
		"another one that is lost": {pv(only("topology.example.com/node", "n1")), "n0", false},
		"no affinity":              {pv(nil), "n1", false},
		"it never ran":             {pv(only("topology.example.com/node", "n1")), "", false},
	} {
		if got := s.noOtherNode(tc.pv, tc.node); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
