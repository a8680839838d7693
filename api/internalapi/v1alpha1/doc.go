// Package v1alpha1 has the kinds that Howdah's components write for each other: the operator, the data servers'
// supervisors, the namespace servers and the stewards (docs/design/2026-11-22-api.md). Users may read them. They may
// change with any release, together with the images.
//
// The folder is not called internal, because Go would then allow only packages below api/ to import it. Import it as
// internalv1.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=internal.howdah.io
package v1alpha1
