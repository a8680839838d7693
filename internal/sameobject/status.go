package sameobject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one of a JSON patch (RFC 6902). The API server does all of them or none.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// PatchStatus sets fields of an object's status, by their paths in JSON ("a", "a/b"), and replaces their values as a whole; nil takes a field away.
// Other fields stay as they are, whoever writes them at the same time. If the name is that of another object by now, nothing is written, and the
// error is a conflict; it is one, too, if what has the field, or the field that is to go, is not there. object gets the answer.
func PatchStatus(ctx context.Context, c client.StatusClient, object client.Object, uid types.UID, fields map[string]any) error {
	return patchStatus(ctx, c, object, fmt.Sprintf("another object than %s", uid), fields, operation{"test", "/metadata/uid", uid})
}

// PatchStatusAsRead is PatchStatus for an object as it was read: if anything has changed it since, nothing is written, and the error is a conflict.
func PatchStatusAsRead(ctx context.Context, c client.StatusClient, object client.Object, fields map[string]any) error {
	version := object.GetResourceVersion()
	return patchStatus(ctx, c, object, fmt.Sprintf("no longer version %s", version), fields,
		operation{"test", "/metadata/uid", object.GetUID()}, operation{"test", "/metadata/resourceVersion", version})
}

// patchStatus sets fields of a status if the tests pass. otherwise says what the object is if they do not.
func patchStatus(ctx context.Context, c client.StatusClient, object client.Object, otherwise string, fields map[string]any, tests ...operation) error {
	operations := tests
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		op := "add"
		if fields[name] == nil {
			op = "remove"
		}
		operations = append(operations, operation{op, "/status/" + name, fields[name]})
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encode a status: %w", err)
	}
	err = c.Status().Patch(ctx, object, client.RawPatch(types.JSONPatchType, body))
	if doesNotApply(err) {
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("it is %s, or its status has no such place: %w", otherwise, err))
	}
	return err
}

// doesNotApply tells whether the API server could not do the operations. It says so in general words; of an object that is not valid it names the
// fields.
func doesNotApply(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
