// Package filesharesnapshot has a FileShareSnapshot made and removed: it writes a ShareSnapshot where the FileServer is, which the FileServer's
// steward acts upon, and repeats what that says. A pass observes, decides (pure) and reports. It must not import another kind's controller.
package filesharesnapshot
