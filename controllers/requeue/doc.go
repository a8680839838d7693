// Package requeue has when a reconcile runs again: after an error, and at the first of several times. It decides nothing about objects,
// and must not import a controller.
package requeue
