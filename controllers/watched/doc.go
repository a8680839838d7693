// Package watched has which Kubernetes namespaces the operator watches. It decides nothing about objects, and must not import a
// controller.
package watched
