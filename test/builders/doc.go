// Package builders makes objects for tests, one call for each thing that a test
// cares about: builders.FileServer("ns", "training").Replicas(3).Build(). What a test does not mention is
// the shortest valid value, or the schema's default.
package builders
