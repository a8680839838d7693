// Package failover decides when a data server whose node is lost is started on another node. It is pure: Decide gets what was
// observed, and returns what to do. It never decides on a node that is NotReady, or on a server that does not answer, alone:
// the pod of the lost server is deleted only after the storage has confirmed that the pod's clients are fenced, or, where Howdah can
// fence nothing, while there is evidence that the machine is off (power.go) or refused by the storage (networkfence.go).
package failover
