package fileserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

func TestClientsOfALostNodeAreNamedUntilGraceHasEnded(t *testing.T) {
	fenced := v1alpha1.ServerFailover{NodeName: "n2", FencedTime: at(10)}
	stopped, serving, deletedNode := fenced, fenced, fenced
	stopped.StoppedTime, serving.ServingTime, deletedNode.NodeName = at(11), at(30), "n9"
	for name, test := range map[string]struct {
		record v1alpha1.ServerFailover
		grace  metav1.ConditionStatus
		want   []string
	}{
		"no failover":                  {v1alpha1.ServerFailover{}, metav1.ConditionTrue, nil},
		"detected, and not fenced":     {v1alpha1.ServerFailover{NodeName: "n2", DetectedTime: at(8)}, metav1.ConditionTrue, nil},
		"fenced":                       {fenced, metav1.ConditionTrue, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1"}},
		"stopped":                      {stopped, metav1.ConditionTrue, nil},
		"serving elsewhere, in grace":  {serving, metav1.ConditionFalse, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1"}},
		"serving elsewhere, and ended": {serving, metav1.ConditionTrue, nil},
		"the Node was deleted":         {deletedNode, metav1.ConditionTrue, nil},
	} {
		o := lostNode()
		o.nodes[2].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}}
		o.nodes[2].Spec.PodCIDRs = []string{"10.244.2.0/24"}
		o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-2", LastFailover: test.record}}
		server := o.dataServers["fs-2"]
		server.Status.Conditions = append(slices.Clone(server.Status.Conditions), metav1.Condition{Type: internalv1.GraceEnded, Status: test.grace})
		o.dataServers["fs-2"] = server
		var got []string
		for _, address := range o.lostNodeAddresses()["fs-2"] {
			got = append(got, address.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
