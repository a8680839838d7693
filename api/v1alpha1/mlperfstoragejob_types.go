package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MLPerfStorageJob runs an MLPerf Storage workload on real mounts of a FileShare and gives a verdict. The workload
// can't be changed; create another job for another run.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mlps,categories=nfs
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Workload",type=string,JSONPath=`.spec.workload`
// +kubebuilder:printcolumn:name="Accelerators",type=integer,JSONPath=`.spec.accelerator.count`
// +kubebuilder:printcolumn:name="AU",type=string,JSONPath=`.status.result.auPercent`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.result.verdict`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",message="metadata.name must be at most 50 characters: pod names are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label (no dots): host names of pods are made from it"
type MLPerfStorageJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state.
	// +required
	Spec MLPerfStorageJobSpec `json:"spec,omitzero"`
	// Reason for the default: kstatus, which Flux and others use to wait, considers an object without any status Current.

	// status is the observed state.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status MLPerfStorageJobStatus `json:"status,omitempty,omitzero"`
}

// MLPerfStorageJobSpec is the desired run.
// +kubebuilder:validation:XValidation:rule="self.fileShareRef == oldSelf.fileShareRef && self.workload == oldSelf.workload && self.accelerator == oldSelf.accelerator && self.clients == oldSelf.clients && has(self.mount) == has(oldSelf.mount) && (!has(self.mount) || self.mount == oldSelf.mount) && self.engine == oldSelf.engine && has(self.dataset) == has(oldSelf.dataset) && (!has(self.dataset) || self.dataset == oldSelf.dataset) && self.epochs == oldSelf.epochs && self.readThreads == oldSelf.readThreads && has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement) && has(self.pods) == has(oldSelf.pods) && (!has(self.pods) || self.pods == oldSelf.pods) && has(self.resources) == has(oldSelf.resources) && (!has(self.resources) || self.resources == oldSelf.resources)",message="only execution, activeDeadlineSeconds and ttlSecondsAfterFinished can be changed; for another run create another job"
// +kubebuilder:validation:XValidation:rule="self.accelerator.count >= self.clients && self.accelerator.count % self.clients == 0",message="accelerator.count must be a multiple of clients: every client drives the same number of accelerators"
// +kubebuilder:validation:XValidation:rule="!has(self.dataset) || !has(self.dataset.samples) || self.dataset.samples >= 7 * self.accelerator.count",message="dataset.samples must be at least 7 for each accelerator: a step reads a batch of 7"
type MLPerfStorageJobSpec struct {
	// fileShareRef names the FileShare, in the same Kubernetes namespace.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// workload is the MLPerf Storage workload; unset means unet3d.
	// +kubebuilder:default=unet3d
	// +optional
	Workload Workload `json:"workload,omitempty"`

	// accelerator is the accelerator that the run emulates.
	// +required
	Accelerator Accelerator `json:"accelerator,omitzero"`

	// clients is the number of client pods, each on its own node; unset means 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +optional
	Clients int32 `json:"clients,omitempty"`

	// mount configures the NFS mount of the clients.
	// +kubebuilder:default={}
	// +optional
	Mount *BenchmarkMount `json:"mount,omitempty"`

	// engine is the load engine; unset means Native. API clients must tolerate new values.
	// +kubebuilder:default=Native
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// dataset describes the data that is read.
	// +optional
	Dataset *Dataset `json:"dataset,omitempty"`

	// epochs is the number of times that the dataset is read in a run; unset means 5, as in MLPerf Storage.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Epochs int32 `json:"epochs,omitempty"`

	// readThreads is the number of readers of each accelerator; unset means 4.
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +optional
	ReadThreads int32 `json:"readThreads,omitempty"`

	// placement selects the nodes for client pods. No two client pods run in the same topologyKey, by default a node.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// pods has settings for the client pods.
	// +optional
	Pods *PodSettings `json:"pods,omitempty"`

	// resources are the compute resources of each client pod's container. Unset means requests of 100m CPU and 64Mi
	// memory, and no limits. Limits change what is measured: the page cache counts to the memory limit, and a CPU limit
	// slows reading. A run that loses time to its CPU limit has the verdict Invalid.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims) || size(self.claims) == 0",message="resources.claims can't be used: client pods have no resource claims"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="resources.requests of cpu must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="resources.requests of memory must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="resources.requests of ephemeral-storage must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('0')) == 0 || quantity(string(self.limits['memory'])).compareTo(quantity('64Mi')) >= 0",message="resources.limits of memory must be at least 64Mi, or \"0\" for no limit"
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// execution is Active or Suspended. When it is Suspended, the client pods are deleted and the dataset stays. When
	// it is Active again, the job continues with the dataset and restarts a run that was interrupted. A finished job
	// does not change.
	// +kubebuilder:default=Active
	// +optional
	Execution Execution `json:"execution,omitempty"`

	// activeDeadlineSeconds is the maximum duration of the job, in seconds since status.startTime. After it the client
	// pods are deleted and the job has failed. Unset means no limit. The time starts again when a suspended job becomes
	// active.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveDeadlineSeconds int32 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long a finished job is kept, in seconds. After that it is deleted with its result;
	// the dataset stays on the share. Unset means no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// Execution is whether a job's client pods run, or a schedule makes snapshots.
// +kubebuilder:validation:Enum=Active;Suspended
type Execution string

// Executions.
const (
	// ExecutionActive: client pods run, snapshots are made.
	ExecutionActive Execution = "Active"
	// ExecutionSuspended: there are no client pods, no snapshots are made.
	ExecutionSuspended Execution = "Suspended"
)

// Workload is a workload of MLPerf Storage.
// +kubebuilder:validation:Enum=unet3d
type Workload string

// WorkloadUnet3d is image segmentation: batches of 7 samples of about 147 MB.
const WorkloadUnet3d Workload = "unet3d"

// Engine is a load engine.
// +kubebuilder:validation:Enum=Native
type Engine string

// EngineNative is Howdah's own engine, which reads as DLIO does.
const EngineNative Engine = "Native"

// Accelerator is the accelerator that a run emulates.
type Accelerator struct {
	// type is the accelerator: H100 computes 0.323 s per step, A100 0.636 s (MLPerf Storage v1.0 and v2.0).
	// +required
	Type AcceleratorType `json:"type,omitempty"`

	// count is the number of accelerators of all clients together.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +required
	Count int32 `json:"count,omitempty"`
}

// AcceleratorType is a type of accelerator.
// +kubebuilder:validation:Enum=H100;A100
type AcceleratorType string

// Accelerator types.
const (
	// AcceleratorH100 computes 0.323 s per step of unet3d.
	AcceleratorH100 AcceleratorType = "H100"
	// AcceleratorA100 computes 0.636 s per step of unet3d.
	AcceleratorA100 AcceleratorType = "A100"
)

// BenchmarkMount configures the NFS mount of the clients.
type BenchmarkMount struct {
	// nconnect is the number of TCP connections to each server; unset means 16.
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Nconnect int32 `json:"nconnect,omitempty"`
}

// Dataset is the data that a run reads.
type Dataset struct {
	// samples is the number of files, with one sample each; unset means 42 for each accelerator. MLPerf requires 3500
	// for each accelerator, and five times the clients' memory in total.
	// +kubebuilder:validation:Minimum=7
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	Samples int32 `json:"samples,omitempty"`

	// sampleSize is the mean size of a sample; unset means 146600628 bytes, as in MLPerf Storage. The standard
	// deviation is scaled with it.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="sampleSize must be a Kubernetes quantity, without a space: 400k, 1Mi (not \"400 kB\")"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('4Ki')) >= 0",message="sampleSize must be at least 4Ki"
	// +optional
	SampleSize *resource.Quantity `json:"sampleSize,omitempty"`
}

// MLPerfStorageJobStatus is the observed state of a run.
// +kubebuilder:validation:MinProperties=1
type MLPerfStorageJobStatus struct {
	// conditions are Succeeded (its reason is the current step) and DatasetReady, and Reconciling or Stalled while they
	// are true.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the operator last processed completely.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// progress is how far the current step is, as text: "epoch 2/5, step 30/40".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Progress string `json:"progress,omitempty"`

	// startTime is when the job started, or continued after it had been suspended; unset while it is suspended.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job finished, with or without a verdict.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// result is the outcome.
	// +optional
	Result BenchmarkResult `json:"result,omitempty,omitzero"`
}

// MLPerfStorageJobList is a list of MLPerfStorageJobs.
// +kubebuilder:object:root=true
type MLPerfStorageJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MLPerfStorageJob `json:"items"`
}
