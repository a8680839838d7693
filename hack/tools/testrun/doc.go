// Command testrun shows a run of go test and counts it.
//
//	go test -json ./... | testrun -stage unit -into .test-results/unit.json
//	testrun -total .test-results/*.json
//
// gotestsum's testjson reads, keeps and shows the events. This command decides what gotestsum does not
// know: a test with subtests counts as these, a Ginkgo suite as its specs, a package that does not build or that
// fails outside its tests as one failure; and several stages end with one line.
package main
