// Package index decides by what the manager's cache finds objects, so that no pass looks through all objects of a
// Kubernetes namespace: a list with one of these fields costs as much as what it returns. A list by labels alone looks at every
// object of its kind. It decides nothing about what is done with the objects, and must not import a controller.
package index
