package apply

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/rewound"
)

// appliedCache remembers what was applied to which object, so that an unchanged object is not written again.
//
// Whether an object is unchanged follows from its managed fields, not from its resourceVersion, which changes with
// every status. If another writer changes or removes a field that we applied, the field leaves our entry
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management), so while our entry is the same
// as after our last write, all our values are too. The cache is only a shortcut: a new process applies everything once,
// and the API server stores nothing that did not change.
type appliedCache struct {
	mu sync.Mutex
	// entries are by owner (naming.Owner), so that they go with it: the garbage collector deletes children, and no pass sees it.
	entries map[string]map[identity]entry
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

// entry is what is known of a child since its last write.
type entry struct {
	desired digest
	uid     types.UID
	// fields is of the sorted set of fields that were applied, seen of that set in the order in which the informer had it;
	// zero: not known.
	fields, seen digest
	// last is the object as it was seen last, by UID and version alone. If it is older then, the API's database was restored from a backup, and
	// its values may be others with the same fields.
	last metav1.PartialObjectMetadata
}

func newAppliedCache() *appliedCache { return &appliedCache{entries: map[string]map[identity]entry{}} }

func identify(object *unstructured.Unstructured) identity {
	return identity{object.GroupVersionKind(), client.ObjectKeyFromObject(object)}
}

// identityOf reads the identity of an apply configuration in JSON.
func identityOf(text []byte) (identity, error) {
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &head); err != nil {
		return identity{}, err
	}
	return identity{head.GroupVersionKind(), client.ObjectKeyFromObject(&head)}, nil
}

func digestOf(text []byte, more ...string) (sum digest) {
	hash := sha256.New()
	hash.Write(text)
	for _, part := range more {
		hash.Write([]byte{0})
		hash.Write([]byte(part))
	}
	return digest(hash.Sum(nil))
}

// unchanged reports whether present is as the last write left it, and desired is the same.
func (c *appliedCache) unchanged(owner string, id identity, desired digest, present client.Object, fieldManager string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.entries[owner][id]
	if !ok || last.desired != desired || last.uid != present.GetUID() || last.fields == (digest{}) {
		return false
	}
	if rewound.IsEarlier(present, &last.last) {
		return false
	}
	last.last.UID, last.last.ResourceVersion = present.GetUID(), present.GetResourceVersion()
	c.entries[owner][id] = last
	raw := rawFieldsOf(present, fieldManager)
	seen := sha256.Sum256(raw)
	if seen == last.seen {
		return true
	}
	if sorted(raw) != last.fields {
		return false
	}
	last.seen = seen
	c.entries[owner][id] = last
	return true
}

func (c *appliedCache) remember(owner string, id identity, desired digest, applied client.Object, fieldManager string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[owner] == nil {
		c.entries[owner] = map[identity]entry{}
	}
	c.entries[owner][id] = entry{desired: desired, uid: applied.GetUID(), fields: sorted(rawFieldsOf(applied, fieldManager))}
}

func (c *appliedCache) forget(owner string, id identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries[owner], id)
	if len(c.entries[owner]) == 0 {
		delete(c.entries, owner)
	}
}

func (c *appliedCache) forgetAll(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, owner)
}

func (c *appliedCache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, children := range c.entries {
		n += len(children)
	}
	return n
}

// rawFieldsOf is the set of fields that the field manager has applied, in JSON; nil if there is none.
func rawFieldsOf(object client.Object, fieldManager string) []byte {
	for _, managed := range object.GetManagedFields() {
		if managed.Manager == fieldManager && managed.Operation == metav1.ManagedFieldsOperationApply &&
			managed.Subresource == "" && managed.FieldsV1 != nil {
			return managed.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// sorted is the digest of a sorted set of fields, because informers and apply responses have them in different orders;
// zero if it is none.
func sorted(raw []byte) digest {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return digest{}
	}
	// encoding/json sorts the keys of maps, so equal sets have equal text.
	text, err := json.Marshal(fields)
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(text)
}
