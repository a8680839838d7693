// Package v1alpha1 is the contract between Howdah's own parts: the operator, the instance managers and the
// namespace servers write these kinds for each other (docs/design/2026-11-22-api.md). Users may read them. They
// may change with any release, together with the images.
//
// The folder is not called internal, or Go would let nothing outside of api/ import it. Import it as internalv1.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=internal.howdah.io
package v1alpha1
