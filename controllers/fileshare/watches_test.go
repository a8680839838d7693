package fileshare

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestSharesHearOnlyWhatTheyReadOfTheirFileServer(t *testing.T) {
	number, bytes := int32(7), int64(1<<30)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.FileServer)
		heard  bool
	}{
		"a directory more on a server": {func(f *v1alpha1.FileServer) { f.Status.Servers[0].Directories = &number }, false},
		"connections": {func(f *v1alpha1.FileServer) {
			f.Status.Servers[0].Connections = v1alpha1.FileServerConnections{Used: &number, Limit: 64}
			f.Status.NamespaceServers.Connections = v1alpha1.FileServerConnections{Used: &number, Limit: 64}
		}, false},
		"an end, a failover, a node": {func(f *v1alpha1.FileServer) {
			s := &f.Status.Servers[0]
			s.LastEnd, s.NodeName, s.Address = v1alpha1.ServerEnd{Message: "ganesha was killed"}, "n2", "10.0.0.9"
			s.LastFailover, s.ConfigRevision = v1alpha1.ServerFailover{NodeName: "n1"}, &bytes
			f.Status.NodeAddresses, f.Status.ReadyReplicas = &number, &number
		}, false},
		"a fuller volume": {func(f *v1alpha1.FileServer) {
			f.Status.Capacity.UsedBytes, f.Status.Capacity.FreeBytes, f.Status.Capacity.ProvisionedBytes = &bytes, &bytes, &bytes
			f.Status.Servers[0].Capacity, f.Status.Servers[0].Fill = f.Status.Capacity, v1alpha1.FillAbove90
		}, false},
		"a condition's message": {func(f *v1alpha1.FileServer) {
			f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileServerServersAvailable, Status: metav1.ConditionTrue, Message: "3 of 3"}}
		}, false},
		"the address":       {func(f *v1alpha1.FileServer) { f.Status.Address = "10.0.0.1" }, true},
		"a larger volume":   {func(f *v1alpha1.FileServer) { f.Status.Capacity.TotalBytes = &bytes }, true},
		"a server is away":  {func(f *v1alpha1.FileServer) { f.Status.Servers[0].State = v1alpha1.ServerUnavailable }, true},
		"its specification": {func(f *v1alpha1.FileServer) { f.Generation++ }, true},
		"the storage fails": {func(f *v1alpha1.FileServer) {
			f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileServerStorageAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStorageFailing}}
		}, true},
		"the storage is degraded": {func(f *v1alpha1.FileServer) {
			f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileServerStorageAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStorageDegraded}}
		}, false},
		"namespace servers answer": {func(f *v1alpha1.FileServer) {
			f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileServerNamespaceServersAvailable, Status: metav1.ConditionTrue}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := builders.FileServer("ns", "fs").Build()
			before.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-0", State: v1alpha1.ServerServing}}
			after := before.DeepCopy()
			tc.change(after)
			if heard := fileServerChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); heard != tc.heard {
				t.Errorf("heard: %v, want %v", heard, tc.heard)
			}
		})
	}
}
