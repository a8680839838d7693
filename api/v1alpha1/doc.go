// Package v1alpha1 is the contract of Howdah: its kinds, their validation, the
// types and reasons of their conditions, and the keys of labels, annotations
// and finalizers.
//
// Users write FileServer, FileShare, FileShareSnapshot, FileShareSnapshotSchedule and MLPerfStorageJob. What Howdah's own parts write for each
// other is in api/internalapi (docs/design/2026-11-22-api.md).
//
// The package imports apimachinery and k8s.io/api only.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=howdah.io
package v1alpha1
