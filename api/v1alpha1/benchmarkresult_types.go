package v1alpha1

// BenchmarkResult is the outcome of a run. Ratios are decimal strings.
type BenchmarkResult struct {
	// verdict is Passed if the mean AU is at or above 90 %, and Invalid if the run says nothing about the
	// share because clients were short of CPU. Clients must tolerate new values.
	// +required
	Verdict Verdict `json:"verdict,omitempty"`

	// message tells why the verdict is Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// label tells what the result may be called. It is never an MLPerf result.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Label string `json:"label,omitempty"`

	// engine is the load engine that ran.
	// +required
	Engine Engine `json:"engine,omitempty"`

	// accelerators is the number of accelerators emulated.
	// +kubebuilder:validation:Minimum=1
	// +required
	Accelerators int32 `json:"accelerators,omitempty"`

	// auPercent is the mean accelerator utilization in percent, as DLIO computes it: "93.41".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	AUPercent string `json:"auPercent,omitempty"`

	// samplesPerSecond is the mean over the epochs of the sum over the accelerators.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	SamplesPerSecond string `json:"samplesPerSecond,omitempty"`

	// bytesPerSecond is the mean rate of bytes really read, of all clients.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`

	// bytesRead is the number of bytes read in the run.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesRead *int64 `json:"bytesRead,omitempty"`

	// perClient is the share of each client.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	PerClient []ClientResult `json:"perClient,omitempty"`

	// perServer is the share of each data server, from the servers' own counters.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PerServer []ServerResult `json:"perServer,omitempty"`

	// rules are the rules of MLPerf Storage that were looked at.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Rules []RuleResult `json:"rules,omitempty"`
}

// Verdict is the outcome of a run.
// +kubebuilder:validation:Enum=Passed;Failed;Invalid
type Verdict string

// Verdicts.
const (
	// VerdictPassed: AU is at or above the limit.
	VerdictPassed Verdict = "Passed"
	// VerdictFailed: AU is below the limit.
	VerdictFailed Verdict = "Failed"
	// VerdictInvalid: clients were short of CPU, so that the run says nothing about the share.
	VerdictInvalid Verdict = "Invalid"
)

// ClientResult is the share of one client.
type ClientResult struct {
	// name is the name of the client pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// nodeName is the node that the client ran on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// auPercent is the mean AU of the client's accelerators.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	AUPercent string `json:"auPercent,omitempty"`

	// cpuLeftPercent is how much of the CPUs of the client's node was left during the run, in the mean:
	// "63.20"; unset if that is not known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +optional
	CPULeftPercent string `json:"cpuLeftPercent,omitempty"`

	// bytesPerSecond is the mean rate of bytes read by the client.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`
}

// ServerResult is the share of one data server.
type ServerResult struct {
	// name is the name of the data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// bytesRead is the number of bytes of READ payload that ganesha counted during the run.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesRead *int64 `json:"bytesRead,omitempty"`

	// bytesPerSecond is the mean rate of them.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`
}

// RuleResult tells whether a rule of MLPerf Storage was kept.
type RuleResult struct {
	// name is a short name of the rule.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// state is Kept or Broken. Clients must tolerate new values.
	// +required
	State RuleState `json:"state,omitempty"`

	// message gives the figures.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Message string `json:"message,omitempty"`
}

// RuleState tells whether a rule was kept.
// +kubebuilder:validation:Enum=Kept;Broken
type RuleState string

// States of a rule.
const (
	// RuleKept: the run kept the rule.
	RuleKept RuleState = "Kept"
	// RuleBroken: the run broke the rule.
	RuleBroken RuleState = "Broken"
)
