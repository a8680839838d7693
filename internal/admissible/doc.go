// Package admissible finds the values of a specification that Howdah copies into pods and Services, and that the API server would refuse there. The
// schema can't find them: what a rule about the entries of a map or of a nested list may cost is not bounded.
//
// It is pure. It imports the API types and the validation of Kubernetes' own libraries only. It must not refuse what the API server takes, except for
// node affinities that no scheduler can read, and networks with bits of hosts, which Kubernetes takes before 1.36. test/integration (bad_values_test.go) asks a real API server.
package admissible
