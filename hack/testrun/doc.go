// Command testrun shows a run of go test and counts it.
//
//	go test -json ./... | testrun -stage unit -into .test-results/unit.json
//	testrun -total .test-results/*.json
//
// It decides how results are counted: a Go test is one, a Ginkgo suite as many as it has specs, a
// package that does not build or that panics outside a test is one failure. It must not import
// anything outside the standard library: it runs before anything else is known to build.
package main
