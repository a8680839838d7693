// Package counters reads what ganesha 9.14 counts of itself: the text that its own exporter gives Prometheus. Names, units and labels are
// ganesha's; what Howdah makes of them is in internal/dataserver. It does no I/O but reading what it is given.
package counters
