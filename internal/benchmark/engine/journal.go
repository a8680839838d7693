package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Journal has what must outlive the pods of a run: the address of
// the coordinator, progress, and the result. Keys are those of package benchmark.
type Journal interface {
	// Record sets keys, and leaves others as they are.
	Record(ctx context.Context, values map[string]string) error
	// Read gets all keys.
	Read(ctx context.Context) (map[string]string, error)
}

// configMapJournal keeps it in the ConfigMap that the operator made for the job.
type configMapJournal struct {
	client corev1client.ConfigMapInterface
	name   string
}

// NewConfigMapJournal is the journal in a ConfigMap, for a pod with an account that may get and patch it.
func NewConfigMapJournal(namespace, name string) (Journal, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("the journal is a ConfigMap and this is no pod (use --journal-directory): %w", err)
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &configMapJournal{client: client.ConfigMaps(namespace), name: name}, nil
}

func (j *configMapJournal) Record(ctx context.Context, values map[string]string) error {
	patch, err := json.Marshal(map[string]any{"data": values})
	if err != nil {
		return err
	}
	// A merge patch: clients write different keys of one object at the same time.
	if _, err := j.client.Patch(ctx, j.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "howdah-benchmark"}); err != nil {
		return fmt.Errorf("writing to ConfigMap %s: %w", j.name, err)
	}
	return nil
}

func (j *configMapJournal) Read(ctx context.Context) (map[string]string, error) {
	configMap, err := j.client.Get(ctx, j.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", j.name, err)
	}
	return configMap.Data, nil
}

// directoryJournal keeps each key in a file, for runs without Kubernetes.
type directoryJournal struct{ directory string }

// NewDirectoryJournal is the journal in a directory that all clients see.
func NewDirectoryJournal(directory string) Journal { return &directoryJournal{directory: directory} }

func (j *directoryJournal) Record(_ context.Context, values map[string]string) error {
	for key, value := range values {
		path := filepath.Join(j.directory, key)
		temporary := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
		if err := os.WriteFile(temporary, []byte(value), 0o600); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if err := os.Rename(temporary, path); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

func (j *directoryJournal) Read(context.Context) (map[string]string, error) {
	entries, err := os.ReadDir(j.directory)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	values := map[string]string{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".tmp" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(j.directory, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		values[e.Name()] = string(text)
	}
	return values, nil
}
