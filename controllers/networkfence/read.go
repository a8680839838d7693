// Package networkfence reads what csi-addons knows of fences: NetworkFences, their classes, and from where nodes use storages. It reads past
// any cache, only when asked, and watches nothing: csi-addons may not be installed, may come later, and may go.
//
// It decides nothing (internal/failover does), makes no fence and lifts none.
package networkfence

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/failover"
)

// version is what csi-addons has had since its first release. There is no other.
var version = schema.GroupVersion{Group: "csiaddons.openshift.io", Version: "v1alpha1"}

// ownParameters are those of a class that are csi-addons' own, and say nothing about the storage.
const ownParameters = "csiaddons.openshift.io/"

// Read reads all. It returns the zero value if csi-addons is not installed, or if there is no fence. A field that is not of the type that
// csi-addons gives it counts as missing, and a fence that lacks one says nothing.
func Read(ctx context.Context, live client.Reader) (failover.StorageFences, error) {
	var fences, classes, nodes []unstructured.Unstructured
	for _, kind := range []struct {
		name string
		into *[]unstructured.Unstructured
	}{{"NetworkFence", &fences}, {"NetworkFenceClass", &classes}, {"CSIAddonsNode", &nodes}} {
		var err error
		*kind.into, err = list(ctx, live, kind.name)
		if apierrors.IsForbidden(err) {
			return failover.StorageFences{Fault: "the operator may not list objects of kind " + kind.name + ": apply the role of failover with volumes, of this version"}, nil
		}
		if err != nil || len(fences) == 0 {
			return failover.StorageFences{}, err
		}
	}
	storages := map[string]failover.StorageOf{}
	for i := range classes {
		storages[classes[i].GetName()] = storageOf(&classes[i], "provisioner")
	}
	var known failover.StorageFences
	for i := range fences {
		known.Fences = append(known.Fences, fenceOf(&fences[i], storages))
	}
	for i := range nodes {
		known.Clients = append(known.Clients, clientsOf(&nodes[i], storages)...)
	}
	return known, nil
}

// list is empty where the kind is not installed.
func list(ctx context.Context, live client.Reader, kind string) ([]unstructured.Unstructured, error) {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(version.WithKind(kind + "List"))
	err := live.List(ctx, objects)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading objects of kind %s: %w", kind, err)
	}
	return objects.Items, nil
}

func fenceOf(object *unstructured.Unstructured, classes map[string]failover.StorageOf) failover.NetworkFence {
	fence := failover.NetworkFence{
		Name: object.GetName(), State: text(object, "spec", "fenceState"), Result: text(object, "status", "result"),
		Generation: object.GetGeneration(), Made: object.GetCreationTimestamp().Time, Ending: object.GetDeletionTimestamp() != nil,
	}
	fence.CIDRs, _, _ = unstructured.NestedStringSlice(object.Object, "spec", "cidrs")
	fence.Storage = storageOf(object, "driver")
	if class := text(object, "spec", "networkFenceClassName"); class != "" {
		// The class comes first, and its parameters are added to those of the fence (csi-addons, processFencingRequest).
		own := fence.Storage.Parameters
		fence.Storage = failover.StorageOf{Driver: classes[class].Driver, Parameters: maps.Clone(own)}
		if fence.Storage.Parameters == nil {
			fence.Storage.Parameters = map[string]string{}
		}
		maps.Copy(fence.Storage.Parameters, classes[class].Parameters)
	}
	return fence
}

// clientsOf is from where one node uses the storages of one driver.
func clientsOf(object *unstructured.Unstructured, classes map[string]failover.StorageOf) (clients []failover.StorageClient) {
	driver, node := text(object, "spec", "driver", "name"), text(object, "spec", "driver", "nodeID")
	reports, _, _ := unstructured.NestedSlice(object.Object, "status", "networkFenceClientStatus")
	for _, report := range reports {
		of, _ := report.(map[string]any)
		class, _, _ := unstructured.NestedString(of, "networkFenceClassName")
		details, _, _ := unstructured.NestedSlice(of, "ClientDetails") // csi-addons writes it with a capital letter.
		client := failover.StorageClient{Node: node, Storage: classes[class]}
		for _, detail := range details {
			fields, _ := detail.(map[string]any)
			cidrs, _, _ := unstructured.NestedStringSlice(fields, "cidrs")
			client.CIDRs = append(client.CIDRs, cidrs...)
		}
		if client.Storage.Driver == driver && driver != "" {
			clients = append(clients, client)
		}
	}
	return clients
}

func storageOf(object *unstructured.Unstructured, driver string) failover.StorageOf {
	storage := failover.StorageOf{Driver: text(object, "spec", driver)}
	parameters, _, _ := unstructured.NestedStringMap(object.Object, "spec", "parameters")
	for key := range parameters {
		if strings.HasPrefix(key, ownParameters) {
			delete(parameters, key)
		}
	}
	storage.Parameters = parameters
	return storage
}

func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}
