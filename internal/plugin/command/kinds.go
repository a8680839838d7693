package command

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/howdah/howdah/api/v1alpha1"
)

type (
	kubeObject = runtime.Object
	fileServer = v1alpha1.FileServer
	fileShare  = v1alpha1.FileShare
)

// fileServerSelector chooses what belongs to a FileServer.
func fileServerSelector(name string) string { return v1alpha1.FileServerLabel + "=" + name }

func keep[T any](all []T, good func(*T) bool) (kept []T) {
	for i := range all {
		if good(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}
