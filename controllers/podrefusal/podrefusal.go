// Package podrefusal finds why the API server refuses the pods of a Deployment, a StatefulSet or a Job: a ResourceQuota,
// a LimitRange, Pod Security or an admission webhook. A Deployment has it in a condition; the others have it in events
// only. It decides nothing, and must not import a controller.
package podrefusal

import (
	"context"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/conditions"
)

const (
	// Grace is how long a new StatefulSet or Job may have no pods before its events are read.
	Grace = 2 * time.Second
	// Again is when to read the events again while pods are missing: events start no reconcile.
	Again = 10 * time.Second

	// maxEvents bounds what is read. Kubernetes makes at most some 40 events for an object in the hour that it keeps them.
	maxEvents = 100
	// maxMessage bounds what is kept of a message, in bytes.
	maxMessage = 512

	reasonFailed, reasonMade = "FailedCreate", "SuccessfulCreate"
)

// What the controller of StatefulSets writes of a pod, and of a pod's claim. Kubernetes 1.36.3 begins it with a capital
// letter (seen with its own admission and controllers); earlier text had a small one.
var (
	madePod   = regexp.MustCompile(`\b[Cc]reate Pod (\S+) in StatefulSet `)
	madeClaim = regexp.MustCompile(`\b[Cc]reate Claim `)
)

// Refusals are why pods of one object are refused.
type Refusals struct {
	events []corev1.Event
}

// Read reads the events of a StatefulSet or a Job. Reader must read past the cache. Without the right to read events
// there are no refusals: they only explain why pods are missing.
func Read(ctx context.Context, reader client.Reader, owner client.Object) (Refusals, error) {
	var list corev1.EventList
	err := reader.List(ctx, &list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{"involvedObject.uid": string(owner.GetUID())}, client.Limit(maxEvents))
	if apierrors.IsForbidden(err) {
		return Refusals{}, nil
	}
	return Refusals{events: list.Items}, err
}

// Of returns why a pod is refused, "" if that is not known. Where no event names the pod, another pod's refusal counts:
// a StatefulSet does not try the next pod before it has made the first.
func (r Refusals) Of(pod string) string {
	event := newest(r.events, func(e *corev1.Event) bool {
		of := madePod.FindStringSubmatch(e.Message)
		return of != nil && of[1] == pod
	})
	if event == nil {
		return r.Any()
	}
	return messageOf(event)
}

// Any returns why the newest refused pod is refused, "" if the newest pod is made.
func (r Refusals) Any() string {
	event := newest(r.events, func(*corev1.Event) bool { return true })
	if event == nil {
		return ""
	}
	return messageOf(event)
}

// newest returns the newest event about making a pod; of two in the same second, the failure.
func newest(events []corev1.Event, matches func(*corev1.Event) bool) (found *corev1.Event) {
	for i := range events {
		e := &events[i]
		if e.Reason != reasonFailed && e.Reason != reasonMade || madeClaim.MatchString(e.Message) || !matches(e) {
			continue
		}
		if found == nil || timeOf(e).After(timeOf(found)) || timeOf(e).Equal(timeOf(found)) && e.Reason == reasonFailed {
			found = e
		}
	}
	return found
}

func timeOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Truncate(time.Second)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Truncate(time.Second)
	}
	return e.CreationTimestamp.Time
}

func messageOf(e *corev1.Event) string {
	if e.Reason != reasonFailed || e.Type != corev1.EventTypeWarning {
		return ""
	}
	text := strings.TrimPrefix(e.Message, "(combined from similar events): ")
	if _, cause, ok := strings.Cut(text, " failed error: "); ok { // A StatefulSet's.
		text = cause
	}
	return admission(strings.TrimPrefix(text, "Error creating: ")) // A Job's.
}

// OfDeployment returns why pods of a Deployment are refused, "" if none is.
func OfDeployment(deployment *appsv1.Deployment) string {
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == reasonFailed {
			return admission(c.Message)
		}
	}
	return ""
}

var refusedPod = regexp.MustCompile(`pods "[^"]*" is forbidden: `)

// admission is the admission's own message. It leaves out the name of the pod: names have a random part, which would
// change a condition with every try.
func admission(message string) string {
	return conditions.Shown(refusedPod.ReplaceAllString(message, ""), maxMessage)
}
