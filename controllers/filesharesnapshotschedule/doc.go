// Package filesharesnapshotschedule makes FileShareSnapshots on a schedule and deletes those that retention does not
// keep. Functions that get the time as an argument decide when snapshots are made (calendar.go), which ones stay
// (retention.go) and what a pass does (decide.go). It must not import another kind's controller.
package filesharesnapshotschedule
