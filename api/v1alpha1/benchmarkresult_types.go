package v1alpha1

// BenchmarkResult is the outcome of a run. Ratios are decimal strings.
type BenchmarkResult struct {
	// verdict is Passed if the mean accelerator utilization (AU) is at least 90 %, Failed if it is less, and Invalid if
	// clients lacked CPU, so that the result does not measure the share. API clients must tolerate new values.
	// +required
	Verdict Verdict `json:"verdict,omitempty"`

	// message is why the verdict is Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// label is what the result may be called. It is never an MLPerf result.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Label string `json:"label,omitempty"`

	// engine is the load engine that ran.
	// +required
	Engine Engine `json:"engine,omitempty"`

	// accelerators is the number of emulated accelerators.
	// +kubebuilder:validation:Minimum=1
	// +required
	Accelerators int32 `json:"accelerators,omitempty"`

	// auPercent is the mean accelerator utilization in percent, as DLIO computes it: "93.41".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	AUPercent string `json:"auPercent,omitempty"`

	// samplesPerSecond is the sum over the accelerators, averaged over the epochs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	SamplesPerSecond string `json:"samplesPerSecond,omitempty"`

	// bytesPerSecond is the mean read rate of all clients together.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`

	// bytesRead is the number of bytes read in the run.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesRead *int64 `json:"bytesRead,omitempty"`

	// perClient is the result of each client.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	PerClient []ClientResult `json:"perClient,omitempty"`

	// perServer is the result of each data server, from the servers' own counters.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PerServer []ServerResult `json:"perServer,omitempty"`

	// rules are the rules of MLPerf Storage that were checked.
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
	// VerdictPassed: the accelerator utilization (AU) is at or above the limit.
	VerdictPassed Verdict = "Passed"
	// VerdictFailed: the accelerator utilization (AU) is below the limit.
	VerdictFailed Verdict = "Failed"
	// VerdictInvalid: clients lacked CPU, so the result does not measure the share.
	VerdictInvalid Verdict = "Invalid"
)

// ClientResult is the result of one client.
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

	// cpuIdlePercent is the mean idle CPU time of the client's node during the run, in percent: "63.20". Unset if it is
	// not known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +optional
	CPUIdlePercent string `json:"cpuIdlePercent,omitempty"`

	// bytesPerSecond is the client's mean read rate.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`
}

// ServerResult is the result of one data server.
type ServerResult struct {
	// name is the name of the data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// bytesRead is the number of bytes in READ replies that ganesha counted during the run.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesRead *int64 `json:"bytesRead,omitempty"`

	// bytesPerSecond is the mean rate of bytesRead.
	// +kubebuilder:validation:Minimum=0
	// +required
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"`
}

// RuleResult is whether the run kept a rule of MLPerf Storage.
type RuleResult struct {
	// name is a short name of the rule.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// state is Kept or Broken. API clients must tolerate new values.
	// +required
	State RuleState `json:"state,omitempty"`

	// message has the numbers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Message string `json:"message,omitempty"`
}

// RuleState is whether a run kept a rule.
// +kubebuilder:validation:Enum=Kept;Broken
type RuleState string

// States of a rule.
const (
	// RuleKept: the run kept the rule.
	RuleKept RuleState = "Kept"
	// RuleBroken: the run broke the rule.
	RuleBroken RuleState = "Broken"
)
