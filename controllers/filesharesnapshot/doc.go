// Package filesharesnapshot reconciles FileShareSnapshots. It writes a ShareSnapshot in the FileServer's namespace,
// which the steward makes and removes, and copies its conditions. A pass observes, decides (pure) and reports. It must
// not import another kind's controller.
package filesharesnapshot
