package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger remembers what was applied to which object, so that an object that is
// still as we left it is not written again.
//
// "As we left it" is read from the object's managed fields, not from its
// resourceVersion (which moves with every status): whoever changes or removes a
// field that we applied takes it out of our entry
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management), so as long as our
// entry is what it was after our last write, so are all of our values. The ledger is a shortcut, not state:
// a fresh process applies everything once, and the API server stores nothing that did not change.
type ledger struct {
	mu      sync.Mutex
	entries map[identity]entry
}

type identity struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// String is the kind and name, for errors.
func (i identity) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.NamespacedName.String()
}

type digest [sha256.Size]byte

type entry struct {
	desired digest
	uid     types.UID
	fields  []byte
}

func newLedger() *ledger { return &ledger{entries: map[identity]entry{}} }

func identify(object *unstructured.Unstructured) identity {
	return identity{object.GroupVersionKind(), client.ObjectKeyFromObject(object)}
}

func digestOf(object *unstructured.Unstructured) (digest, error) {
	// encoding/json sorts the keys of maps, so equal objects have equal text.
	text, err := json.Marshal(object.Object)
	if err != nil {
		return digest{}, err
	}
	return sha256.Sum256(text), nil
}

// unchanged tells whether present is as the last record left it, and desired says the same.
func (l *ledger) unchanged(id identity, desired digest, present client.Object, fieldManager string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.entries[id]
	return ok && last.desired == desired && last.uid == present.GetUID() &&
		len(last.fields) > 0 && bytes.Equal(last.fields, fieldsOf(present, fieldManager))
}

func (l *ledger) record(id identity, desired digest, applied client.Object, fieldManager string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id] = entry{desired: desired, uid: applied.GetUID(), fields: fieldsOf(applied, fieldManager)}
}

func (l *ledger) forget(id identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, id)
}

// fieldsOf is the set of fields that the field manager has applied, in one
// order: what an informer decodes and what an apply returns are ordered differently.
func fieldsOf(object client.Object, fieldManager string) []byte {
	for _, managed := range object.GetManagedFields() {
		if managed.Manager == fieldManager && managed.Operation == metav1.ManagedFieldsOperationApply &&
			managed.Subresource == "" && managed.FieldsV1 != nil {
			var fields map[string]any
			if json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields) != nil {
				return nil
			}
			text, err := json.Marshal(fields)
			if err != nil {
				return nil
			}
			return text
		}
	}
	return nil
}
