package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAVolumeIsPinnedIfItsNodeAffinityNamesOneNode(t *testing.T) {
	volume := func(terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}}}
	}
	by := func(key string, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"no affinity": {&corev1.PersistentVolume{}, false},
		"a host name": {volume(by(corev1.LabelHostname, "n2")), true},
		"two hosts":   {volume(by(corev1.LabelHostname, "n2", "n3")), false},
		"a zone":      {volume(by(corev1.LabelTopologyZone, "z1")), false},
		"either":      {volume(by(corev1.LabelHostname, "n2"), by(corev1.LabelTopologyZone, "z1")), false},
	} {
		if got := isPinned(tc.pv); got != tc.want {
			t.Errorf("%s: pinned %v", name, got)
		}
	}
}
