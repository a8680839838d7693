// Package filesharesnapshotschedule makes FileShareSnapshots by the clock and deletes those that retention does not keep. When that is (calendar.go),
// what stays (retention.go) and what a pass does (decide.go) is decided by functions that are given the time. It must not import another kind's controller.
package filesharesnapshotschedule
