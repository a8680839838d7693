package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileShareSnapshotSchedule makes FileShareSnapshots of a FileShare by the clock, and deletes those of its own that spec.retention does not keep.
// Deleting the schedule leaves its snapshots; one of the same name goes on with them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fsnapsched,categories=nfs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="FileShare",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time zone",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Snapshots",type=integer,JSONPath=`.status.snapshots`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 40 characters (no dots): names of snapshots are made from it"
type FileShareSnapshotSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the user wants.
	// +required
	Spec FileShareSnapshotScheduleSpec `json:"spec,omitzero"`
	// Why there is a default: see FileShare.

	// status is what the operator sees.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileShareSnapshotScheduleStatus `json:"status,omitempty,omitzero"`
}

// FileShareSnapshotScheduleSpec is what the user wants of a FileShareSnapshotSchedule.
// +kubebuilder:validation:XValidation:rule="self.fileShareRef == oldSelf.fileShareRef",message="fileShareRef can't be changed: retention would lose sight of the snapshots of the other share; make a new schedule"
type FileShareSnapshotScheduleSpec struct {
	// fileShareRef names the FileShare, in this Kubernetes namespace.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// schedule is when, as in a CronJob: "MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK" ("0 3 * * *": at three every night), or @hourly, @daily,
	// @weekly, @monthly.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *([^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+|@(hourly|daily|midnight|weekly|monthly|yearly|annually)) *$') && !self.contains('=')",message="schedule must be five fields, MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK, for example \"0 3 * * *\", or @hourly, @daily, @weekly or @monthly; a time zone goes into timeZone"
	// +required
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the time zone of schedule, as IANA names it: Europe/Berlin; unset means Etc/UTC. Names of snapshots are in UTC all the same.
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone must be a name of the IANA data base: Europe/Berlin, Etc/UTC"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how late a snapshot may be made that could not be made in time; a later one is left out. Unset means no limit. Of
	// several that were missed only the last is made.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	StartingDeadlineSeconds int64 `json:"startingDeadlineSeconds,omitempty"`

	// execution is Active, or Suspended: then no snapshots are made, nor deleted, and what is missed is not made up for. Unset means Active.
	// Clients must tolerate new values.
	// +kubebuilder:default=Active
	// +optional
	Execution Execution `json:"execution,omitempty"`

	// retention says which of the schedule's snapshots stay. The newest that is Ready always does. Of the others five a minute are deleted at most.
	// +required
	Retention SnapshotRetention `json:"retention,omitzero"`
}

// SnapshotRetention says which snapshots of a schedule stay: those that one of its fields keeps. The others are deleted.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.keepLast) || has(self.keepForSeconds)",message="retention must say what stays: keepLast: 7, or keepForSeconds: 604800, or both; Ceph has 100 snapshots of a share at most"
type SnapshotRetention struct {
	// keepLast is how many of the newest stay.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	KeepLast int32 `json:"keepLast,omitempty"`

	// keepForSeconds is the age up to which they stay: 604800 is a week. While no new snapshot becomes Ready, old ones stay, and so do those that
	// are not old enough by the clocks of the API server, the operator and the storage alike.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=315360000
	// +optional
	KeepForSeconds int64 `json:"keepForSeconds,omitempty"`
}

// FileShareSnapshotScheduleStatus is what the operator sees of a FileShareSnapshotSchedule.
// +kubebuilder:validation:MinProperties=1
type FileShareSnapshotScheduleStatus struct {
	// conditions are Ready, ClocksAgree, and Reconciling or Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the last complete pass.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// sinceTime is when the schedule as it is now came into force: what it would have asked for before is not missed.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`

	// lastScheduleTime is the last time of the schedule for which a snapshot was asked for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the next; unset while nothing is made.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// snapshots is how many of the schedule's snapshots there are.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Snapshots *int32 `json:"snapshots,omitempty"`
}

// FileShareSnapshotScheduleList is a list of FileShareSnapshotSchedules.
// +kubebuilder:object:root=true
type FileShareSnapshotScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileShareSnapshotSchedule `json:"items"`
}
