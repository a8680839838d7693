package networkfence

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/failover"
)

// objects are what the API has, by kind; a kind that is missing is not installed.
type objects struct {
	client.Reader
	kinds map[string][]map[string]any
	err   error
	asked []string
}

func (o *objects) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	kind := into.GetObjectKind().GroupVersionKind()
	o.asked = append(o.asked, kind.Kind)
	if o.err != nil {
		return o.err
	}
	items, installed := o.kinds[kind.Kind]
	if !installed {
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	}
	for _, item := range items {
		into.(*unstructured.UnstructuredList).Items = append(into.(*unstructured.UnstructuredList).Items, unstructured.Unstructured{Object: item})
	}
	return nil
}

type fields = map[string]any

func object(name string, spec, status fields) fields {
	return fields{"metadata": fields{"name": name, "generation": int64(1)}, "spec": spec, "status": status}
}

func TestWhatIsReadOfFences(t *testing.T) {
	secret := "csiaddons.openshift.io/networkfence-secret-name"
	api := &objects{kinds: map[string][]map[string]any{
		"NetworkFenceList": {
			object("by-class", fields{"networkFenceClassName": "rbd", "driver": "ignored", "fenceState": "Fenced", "cidrs": []any{"10.0.0.2/32"}}, fields{"result": "Succeeded"}),
			object("by-driver", fields{"driver": "d", "parameters": fields{"clusterID": "b"}, "fenceState": "Unfenced"}, nil),
			object("class-gone", fields{"networkFenceClassName": "gone", "driver": "d"}, nil),
			object("broken", fields{"driver": int64(1), "cidrs": "10.0.0.0/8", "fenceState": false}, fields{"result": []any{}}),
		},
		"NetworkFenceClassList": {object("rbd", fields{"provisioner": "d", "parameters": fields{"clusterID": "a", secret: "s"}}, nil)},
		"CSIAddonsNodeList": {
			object("x", fields{"driver": fields{"name": "d", "nodeID": "n2", "endpoint": "e"}}, fields{"networkFenceClientStatus": []any{
				fields{"networkFenceClassName": "rbd", "ClientDetails": []any{fields{"id": "1", "cidrs": []any{"10.0.0.2/32"}}, fields{"id": "2", "cidrs": []any{"fd00::2/128"}}}},
				fields{"networkFenceClassName": "gone", "ClientDetails": []any{fields{"id": "1", "cidrs": []any{"10.0.0.9/32"}}}},
			}}),
			object("of another driver than its class", fields{"driver": fields{"name": "e", "nodeID": "n2"}}, fields{"networkFenceClientStatus": []any{fields{"networkFenceClassName": "rbd"}}}),
			object("without a report", fields{"driver": fields{"name": "d", "nodeID": "n3"}}, nil),
		},
	}}
	known, err := Read(context.Background(), api)
	if err != nil {
		t.Fatal(err)
	}
	a := failover.StorageOf{Driver: "d", Parameters: map[string]string{"clusterID": "a"}}
	wanted := failover.StorageFences{
		Fences: []failover.NetworkFence{
			{Name: "by-class", Generation: 1, Storage: a, CIDRs: []string{"10.0.0.2/32"}, State: "Fenced", Result: "Succeeded"},
			{Name: "by-driver", Generation: 1, Storage: failover.StorageOf{Driver: "d", Parameters: map[string]string{"clusterID": "b"}}, State: "Unfenced"},
			{Name: "class-gone", Generation: 1, Storage: failover.StorageOf{Parameters: map[string]string{}}},
			{Name: "broken", Generation: 1},
		},
		Clients: []failover.StorageClient{{Node: "n2", Storage: a, CIDRs: []string{"10.0.0.2/32", "fd00::2/128"}}},
	}
	if !reflect.DeepEqual(known, wanted) {
		t.Errorf("%+v\nwant %+v", known, wanted)
	}
}

// Without csi-addons nothing is evidence, and nothing fails.
func TestFencesThatCanNotBeRead(t *testing.T) {
	what := schema.GroupResource{Group: version.Group, Resource: "networkfences"}
	for name, err := range map[string]error{
		"not installed": &meta.NoKindMatchError{}, "uninstalled a moment ago": apierrors.NewNotFound(what, ""),
	} {
		if known, err := Read(context.Background(), &objects{err: err}); err != nil || !reflect.DeepEqual(known, failover.StorageFences{}) {
			t.Errorf("%s: %+v, %v", name, known, err)
		}
	}
	known, err := Read(context.Background(), &objects{err: apierrors.NewForbidden(what, "", nil)})
	if err != nil || !strings.Contains(known.Fault, "may not list objects of kind NetworkFence") {
		t.Errorf("not allowed: %+v, %v", known, err)
	}
	if _, err := Read(context.Background(), &objects{err: errors.New("the API server is away")}); err == nil {
		t.Error("an API server that does not answer is taken for one without fences")
	}
	none := &objects{kinds: map[string][]map[string]any{"NetworkFenceList": nil}}
	if known, err := Read(context.Background(), none); err != nil || len(known.Fences) != 0 || len(none.asked) != 1 {
		t.Errorf("without a fence the rest need not be read: %v, %v", none.asked, err)
	}
	early := &objects{kinds: map[string][]map[string]any{"NetworkFenceList": {object("f", fields{"networkFenceClassName": "c"}, nil)}}}
	if known, err := Read(context.Background(), early); err != nil || len(known.Fences) != 1 || known.Fences[0].Storage.Driver != "" {
		t.Errorf("a csi-addons of before classes: %+v, %v", known, err)
	}
}
