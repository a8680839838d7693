package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServerEnd is the last time that a data server stopped serving without a change of its configuration: what ended, why, and
// how long it took until it served again.
type ServerEnd struct {
	// endTime is when it ended; if that is not known, when the next pod or container started.
	// +required
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// cause is what ended. API clients must tolerate new values.
	// +required
	Cause EndCause `json:"cause,omitempty"`

	// message describes the end, for example "ganesha was killed by signal SIGSEGV".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message,omitempty"`

	// servedAfterMilliseconds is the time from endTime until the server served again; unset while it does not.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ServedAfterMilliseconds *int64 `json:"servedAfterMilliseconds,omitempty"`

	// count is the number of ends since the data server was created, without those of cause PodStopped.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count *int64 `json:"count,omitempty"`
}

// EndCause is what of a data server ended.
// +kubebuilder:validation:Enum=GaneshaEnded;ContainerEnded;PodLost;PodStopped
type EndCause string

// Causes of the end of a data server.
const (
	// EndGanesha: ganesha was killed or crashed. Its supervisor started it again.
	EndGanesha EndCause = "GaneshaEnded"
	// EndContainer: the supervisor was killed, and the container was started again in the same pod.
	EndContainer EndCause = "ContainerEnded"
	// EndPodLost: the pod was replaced without having been stopped in order, for example because its node was lost.
	EndPodLost EndCause = "PodLost"
	// EndPodStopped: the pod was stopped in order and replaced, for example by a drain or an update.
	EndPodStopped EndCause = "PodStopped"
)
