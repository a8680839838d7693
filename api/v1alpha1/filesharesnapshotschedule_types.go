package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileShareSnapshotSchedule creates FileShareSnapshots of a FileShare on a schedule, and deletes those of its own that
// spec.retention does not keep. Its snapshots stay when the schedule is deleted; a new schedule with the same name
// continues with them.
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
	// spec is the desired state.
	// +required
	Spec FileShareSnapshotScheduleSpec `json:"spec,omitzero"`
	// Reason for the default: see FileShare.

	// status is the observed state.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileShareSnapshotScheduleStatus `json:"status,omitempty,omitzero"`
}

// FileShareSnapshotScheduleSpec is the desired state of a FileShareSnapshotSchedule.
// +kubebuilder:validation:XValidation:rule="self.fileShareRef == oldSelf.fileShareRef",message="fileShareRef can't be changed: snapshots of the other share would never be deleted; create another schedule"
type FileShareSnapshotScheduleSpec struct {
	// fileShareRef names the FileShare, in this Kubernetes namespace.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// schedule is when snapshots are made, in the format of a CronJob: "MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK" ("0
	// 3 * * *": every night at three), or @hourly, @daily, @weekly, @monthly.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *([^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+|@(hourly|daily|midnight|weekly|monthly|yearly|annually)) *$') && !self.contains('=')",message="schedule must be five fields, MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK, for example \"0 3 * * *\", or @hourly, @daily, @weekly or @monthly; a time zone goes into timeZone"
	// +required
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the IANA time zone of schedule, for example Europe/Berlin; unset means Etc/UTC. Names of snapshots
	// always have the time in UTC.
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone must be a name of the IANA time zone database: Europe/Berlin, Etc/UTC"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how late a missed snapshot may be made; after that it is skipped. Unset means no
	// limit. If several were missed, only the last is made.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	StartingDeadlineSeconds int64 `json:"startingDeadlineSeconds,omitempty"`

	// execution is Active or Suspended; unset means Active. While it is Suspended, snapshots are neither made nor
	// deleted, and missed snapshots are not made later. API clients must tolerate new values.
	// +kubebuilder:default=Active
	// +optional
	Execution Execution `json:"execution,omitempty"`

	// retention is which of the schedule's snapshots to keep. The latest Ready snapshot is always kept. At most five
	// others are deleted each minute.
	// +required
	Retention SnapshotRetention `json:"retention,omitzero"`
}

// SnapshotRetention is which snapshots of a schedule to keep. A snapshot stays if at least one of the fields keeps it;
// the others are deleted.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.keepLast) || has(self.keepForSeconds)",message="retention must have keepLast (for example 7), keepForSeconds (for example 604800) or both; Ceph allows 100 snapshots of a share"
type SnapshotRetention struct {
	// keepLast is the number of latest snapshots to keep.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	KeepLast int32 `json:"keepLast,omitempty"`

	// keepForSeconds is the age up to which snapshots are kept, in seconds: 604800 is a week. Old snapshots stay while
	// no new snapshot becomes Ready. A snapshot also stays until it is old enough by the clocks of the API server, the
	// operator and the storage.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=315360000
	// +optional
	KeepForSeconds int64 `json:"keepForSeconds,omitempty"`
}

// FileShareSnapshotScheduleStatus is the observed state of a FileShareSnapshotSchedule.
// +kubebuilder:validation:MinProperties=1
type FileShareSnapshotScheduleStatus struct {
	// conditions are Ready, ClocksAgree, and Reconciling or Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the operator last processed completely.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// effectiveTime is since when the current schedule is in effect. Times of the schedule before it do not count as
	// missed.
	// +optional
	EffectiveTime *metav1.Time `json:"effectiveTime,omitempty"`

	// lastScheduleTime is the last time of the schedule for which a snapshot was requested.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the next time of the schedule; unset while no snapshots are made.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// snapshots is the number of the schedule's snapshots.
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
