package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/test/builders"
)

// asWritten is an object as an API server gives it that a manager wrote: with managed fields for all that it has, and with what kubectl apply
// notes if it was that.
func asWritten[T client.Object](object T, manager string, operation metav1.ManagedFieldsOperationType) T {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		panic(err)
	}
	if manager == "kubectl" {
		annotations := maps.Clone(object.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(text)
		object.SetAnnotations(annotations)
	}
	fields, err := json.Marshal(fieldsOf(content))
	if err != nil {
		panic(err)
	}
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "howdah.io/v1alpha1", FieldsType: "FieldsV1", FieldsV1: fieldsV1(fields),
	}))
	return object
}

func fieldsOf(content map[string]any) map[string]any {
	fields := map[string]any{}
	for key, value := range content {
		switch value := value.(type) {
		case map[string]any:
			fields["f:"+key] = fieldsOf(value)
		default:
			fields["f:"+key] = struct{}{}
		}
	}
	return fields
}

// What kubectl apply notes is not kept, and stays in the API: no patch that is made from what is kept touches it.
func TestCachedSharesLeaveWhatKubectlNotedInTheAPI(t *testing.T) {
	for name, transform := range map[string]func(any) (any, error){"shares": slimObject, "applied": keepApplied} {
		share := asWritten(builders.FileShare("ns", "s", "fs").Build(), "kubectl", metav1.ManagedFieldsOperationUpdate)
		object, err := transform(share)
		if err != nil {
			t.Fatal(err)
		}
		slim := object.(*v1alpha1.FileShare)
		if text, _ := json.Marshal(slim); strings.Contains(string(text), "managedFields") || strings.Contains(string(text), `\"spec\"`) {
			t.Errorf("%s: %s", name, text)
		}
		after := slim.DeepCopy()
		after.Finalizers, after.Annotations["other"] = []string{"x"}, "y"
		if patch, err := client.MergeFrom(slim).Data(after); err != nil || string(patch) != `{"metadata":{"annotations":{"other":"y"},"finalizers":["x"]}}` {
			t.Errorf("%s: %s, %v", name, patch, err)
		}
		delete(after.Annotations, "other")
		if patch, err := client.MergeFrom(slim).Data(after); err != nil || strings.Contains(string(patch), "annotations") {
			t.Errorf("%s: %s, %v", name, patch, err)
		}
	}
}

// The applier finds by its own managed fields that an object is as it left it.
func TestCachedObjectsKeepTheFieldsThatWereApplied(t *testing.T) {
	server := asWritten(&internalv1.DataServer{}, "howdah-fileserver", metav1.ManagedFieldsOperationApply)
	server = asWritten(asWritten(server, "kubelet", metav1.ManagedFieldsOperationUpdate), "argocd", metav1.ManagedFieldsOperationApply)
	ours := server.ManagedFields[0]
	object, err := keepApplied(server)
	if err != nil {
		t.Fatal(err)
	}
	if kept := object.(*internalv1.DataServer).ManagedFields; len(kept) != 1 || !slices.Equal(kept[0].FieldsV1.GetRawBytes(), ours.FieldsV1.GetRawBytes()) || kept[0].Manager != ours.Manager {
		t.Errorf("%+v", kept)
	}
}

// An address of a load balancer is kept from clients for some seconds after it got into the status.
func TestCachedServicesKeepWhenTheirStatusWasWritten(t *testing.T) {
	service := asWritten(asWritten(&corev1.Service{}, "howdah-fileserver", metav1.ManagedFieldsOperationApply), "balancer", metav1.ManagedFieldsOperationUpdate)
	service = asWritten(service, "another", metav1.ManagedFieldsOperationUpdate)
	early, late := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	service.ManagedFields[0].Time = ptr.To(metav1.Unix(3000, 0))
	service.ManagedFields[1].Subresource, service.ManagedFields[1].Time = "status", &late
	service.ManagedFields[2].Subresource, service.ManagedFields[2].Time = "status", &early
	object, err := keepStatusTime(service)
	if err != nil {
		t.Fatal(err)
	}
	kept := object.(*corev1.Service).ManagedFields
	if len(kept) != 2 || kept[0].Manager != "howdah-fileserver" || kept[1].Subresource != "status" || !kept[1].Time.Equal(&late) || kept[1].FieldsV1 != nil {
		t.Errorf("%+v", kept)
	}
	deleted := toolscache.DeletedFinalStateUnknown{Key: "ns/training"}
	if object, err := keepStatusTime(deleted); err != nil || object != any(deleted) {
		t.Errorf("one that is deleted without a last state: %v, %v", object, err)
	}
}

// BenchmarkCachedObjects tells what the objects that tenants can make take in the cache: bytes of each, as the API server gives it and as it is kept.
func BenchmarkCachedObjects(b *testing.B) {
	long := make([]string, 0, 64)
	for i := range 64 {
		long = append(long, fmt.Sprintf("2001:db8:1:%x:ffff:ffff:ffff:ffff/128", i))
	}
	for name, kind := range map[string]struct {
		n         int
		make      func(i int) client.Object
		transform func(any) (any, error)
	}{
		"10000 ShareDirectories": {10_000, func(i int) client.Object {
			directory := desired.ShareDirectory(builders.FileShare("ns", fmt.Sprint("s", i%50), "fs").Build(), fmt.Sprintf("train/%d", i), nil)
			directory.UID = "7b0ab2a4-0f0c-4a4e-9d0e-0d5f0a1b2c3d"
			return asWritten(asWritten(directory, "howdah", metav1.ManagedFieldsOperationUpdate), "namespace", metav1.ManagedFieldsOperationUpdate)
		}, slimDirectory},
		"1000 FileShares with the longest rules, by kubectl apply": {1000, func(i int) client.Object {
			share := builders.FileShare("ns", fmt.Sprint("s", i), "fs").Build()
			for range 32 {
				share.Spec.Access = append(share.Spec.Access, v1alpha1.AccessRule{Clients: long})
			}
			return asWritten(share, "kubectl", metav1.ManagedFieldsOperationUpdate)
		}, slimObject},
		"4096 FileShares": {4096, func(i int) client.Object {
			return asWritten(builders.FileShare("ns", fmt.Sprint("s", i), "fs").Directories("{0..99}").Build(), "kubectl", metav1.ManagedFieldsOperationUpdate)
		}, slimObject},
	} {
		for how, transform := range map[string]func(any) (any, error){"given": func(o any) (any, error) { return o, nil }, "kept": kind.transform} {
			b.Run(name+", "+how, func(b *testing.B) {
				for b.Loop() {
					before := heap()
					held := make([]any, 0, kind.n)
					for i := range kind.n {
						// Decoded, as from a watch: objects have their texts for themselves.
						text, err := json.Marshal(kind.make(i))
						if err != nil {
							b.Fatal(err)
						}
						object := kind.make(i).DeepCopyObject()
						switch object := object.(type) {
						case *v1alpha1.FileShare:
							*object = v1alpha1.FileShare{}
						case *internalv1.ShareDirectory:
							*object = internalv1.ShareDirectory{}
						}
						if err := json.Unmarshal(text, object); err != nil {
							b.Fatal(err)
						}
						kept, err := transform(object)
						if err != nil {
							b.Fatal(err)
						}
						held = append(held, kept)
					}
					b.ReportMetric(float64(heap()-before)/float64(kind.n), "B/object")
					runtime.KeepAlive(held)
				}
			})
		}
	}
}

// heap is how many bytes are in use after everything else was freed.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func fieldsV1(raw []byte) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	return fields
}
