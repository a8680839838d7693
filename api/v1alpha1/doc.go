// Package v1alpha1 is the public API of Howdah: its kinds, their validation, the types and reasons of their conditions,
// and the keys of labels, annotations and finalizers.
//
// Users create FileServers, FileShares, FileShareSnapshots, FileShareSnapshotSchedules and MLPerfStorageJobs. The kinds
// that Howdah's components write for each other are in api/internalapi (docs/design/2026-11-22-api.md).
//
// The package imports apimachinery and k8s.io/api only.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=howdah.io
package v1alpha1
