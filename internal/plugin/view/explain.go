package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Explanation is why an object is not Ready, and what to do.
type Explanation struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Condition
	// Causes begin with the root cause.
	Causes []Cause  `json:"causes,omitempty"`
	Advice []string `json:"advice,omitempty"`
	Hidden []Hidden `json:"hidden,omitempty"`
}

// Cause is a condition that does not hold, or an object that fails.
type Cause struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Type is the condition's; "" if the cause is not a condition.
	Type    string `json:"type,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is for how long.
	Since  string  `json:"since,omitempty"`
	Events []Event `json:"events,omitempty"`
}

// Event is one of an object.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
	Age     string `json:"age"`
}

// maxCauses limits an explanation: a hundred pods that are not scheduled have one cause.
const maxCauses = 24

// maxAlike is how many causes of the same reason and message are listed one by one.
const maxAlike = 3

// explainer collects causes; a cause comes before its effects.
type explainer struct {
	w      *World
	causes []Cause
	advice []string
	seen   map[string]bool
	alike  map[string]int
	left   map[string]int // How many causes were left out, by likeness.
}

// ExplainFileServer explains a FileServer.
func ExplainFileServer(w *World, fs *v1alpha1.FileServer) Explanation {
	e := newExplainer(w)
	e.fileServer(fs)
	return e.result("FileServer", &fs.ObjectMeta, summary(fs.Status.Conditions, v1alpha1.ConditionReady))
}

// ExplainFileShare explains a FileShare.
func ExplainFileShare(w *World, share *v1alpha1.FileShare) Explanation {
	e := newExplainer(w)
	e.fileShare(share)
	return e.result("FileShare", &share.ObjectMeta, summary(share.Status.Conditions, v1alpha1.ConditionReady))
}

// ExplainJob explains an MLPerfStorageJob.
func ExplainJob(w *World, job *v1alpha1.MLPerfStorageJob) Explanation {
	e := newExplainer(w)
	if share := w.FileShare(job.Namespace, job.Spec.FileShareRef.Name); share != nil && reasonOf(job.Status.Conditions, v1alpha1.JobSucceeded) == v1alpha1.ReasonWaitingForShare {
		e.fileShare(share)
	}
	for _, pod := range w.podsOf(job.Namespace, map[string]string{v1alpha1.JobLabel: job.Name}) {
		e.pod(pod)
	}
	e.conditions("MLPerfStorageJob", &job.ObjectMeta, job.Status.Conditions, v1alpha1.JobDatasetReady, v1alpha1.JobSucceeded)
	return e.result("MLPerfStorageJob", &job.ObjectMeta, summary(job.Status.Conditions, v1alpha1.JobSucceeded))
}

// ExplainDataServer explains a data server.
func ExplainDataServer(w *World, server *internalv1.DataServer) Explanation {
	e := newExplainer(w)
	e.dataServer(server.Namespace, server.Name)
	return e.result("DataServer", &server.ObjectMeta, summary(server.Status.Conditions, v1alpha1.ConditionReady))
}

func newExplainer(w *World) *explainer {
	return &explainer{w: w, seen: map[string]bool{}, alike: map[string]int{}, left: map[string]int{}}
}

func (e *explainer) result(kind string, object *metav1.ObjectMeta, is Condition) Explanation {
	if is.Health == Unseen && len(e.causes) == 0 {
		e.add(Cause{
			Kind: kind, Namespace: object.Namespace, Name: object.Name, Reason: "NotSeen", Since: age(e.w.Now, object.CreationTimestamp),
			Message: "it has no conditions: the operator has not seen it",
		}, "Check that the operator runs (kubectl get deployment -A -l app.kubernetes.io/name=howdah) and watches this namespace (the chart's watchNamespaces).")
	}
	if object.DeletionTimestamp != nil {
		e.add(Cause{
			Kind: kind, Namespace: object.Namespace, Name: object.Name, Reason: v1alpha1.ReasonDeleting, Since: age(e.w.Now, *object.DeletionTimestamp),
			Message: "it is being deleted and waits for its finalizers: " + strings.Join(object.Finalizers, ", "),
		}, "")
	}
	for i := range e.causes {
		key := e.causes[i].likeness()
		if n := e.left[key]; n > 0 && (i == len(e.causes)-1 || e.causes[i+1].likeness() != key) {
			e.causes[i].Message += fmt.Sprintf(" (and %d more like this)", n)
		}
	}
	if more := len(e.causes) - maxCauses; more > 0 {
		// The object's own conditions come last and sum up the rest.
		e.causes = slices.Concat(e.causes[:maxCauses/2], e.causes[len(e.causes)-maxCauses/2:])
	}
	return Explanation{
		Kind: kind, Namespace: object.Namespace, Name: object.Name, Condition: is, Causes: e.causes, Advice: e.advice, Hidden: e.w.Hidden,
	}
}

func (c *Cause) likeness() string { return c.Kind + " " + c.Type + " " + c.Reason + " " + c.Message }

func (e *explainer) add(c Cause, do string) {
	key := c.Kind + " " + c.Namespace + "/" + c.Name + " " + c.Type + " " + c.Reason
	if e.seen[key] {
		return
	}
	e.seen[key] = true
	if e.alike[c.likeness()]++; e.alike[c.likeness()] > maxAlike {
		e.left[c.likeness()]++
		return
	}
	if do != "" && !slices.Contains(e.advice, do) {
		e.advice = append(e.advice, do)
	}
	e.causes = append(e.causes, c)
}

// conditions adds the conditions of an object that do not hold, in the order of the given types, and those that hold with a caveat.
func (e *explainer) conditions(kind string, object *metav1.ObjectMeta, all []metav1.Condition, types ...string) {
	for i, t := range types {
		c := condition(all, t)
		if c == nil || c.Status == metav1.ConditionTrue && advice[c.Reason] == "" {
			continue
		}
		cause := Cause{
			Kind: kind, Namespace: object.Namespace, Name: object.Name, Type: t, Reason: c.Reason, Message: c.Message, Since: age(e.w.Now, c.LastTransitionTime),
		}
		// The summary repeats the message of a part; only its own faults have reasons that no part has.
		if i == len(types)-1 && len(types) > 1 && slices.ContainsFunc(types[:i], func(part string) bool { return reasonOf(all, part) == c.Reason }) {
			continue
		}
		// A part that waits for another part is not a cause.
		if c.Status == metav1.ConditionUnknown && c.Reason == v1alpha1.ReasonPending && i < len(types)-1 {
			continue
		}
		if i == len(types)-1 || c.Reason == v1alpha1.ReasonApplyFailed {
			cause.Events = e.events(kind, object.Namespace, object.Name)
		}
		e.add(cause, advice[c.Reason])
	}
	if paused := condition(all, v1alpha1.ConditionPaused); paused != nil {
		e.add(Cause{
			Kind: kind, Namespace: object.Namespace, Name: object.Name, Type: paused.Type, Reason: paused.Reason, Message: paused.Message,
			Since: age(e.w.Now, paused.LastTransitionTime),
		}, strings.ReplaceAll(advice[v1alpha1.ReasonPaused], "OBJECT", strings.ToLower(kind)+"/"+object.Name))
	}
}

func (e *explainer) fileServer(fs *v1alpha1.FileServer) {
	// Without storage there are no pods: then they are not the cause.
	if storage := condition(fs.Status.Conditions, v1alpha1.FileServerStorageAvailable); storage != nil && storage.Status != metav1.ConditionTrue &&
		storage.Reason != v1alpha1.ReasonPending && storage.Reason != v1alpha1.ReasonClaimsPending &&
		!slices.ContainsFunc(fs.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return e.w.pod(fs.Namespace, s.Name) != nil }) {
		e.conditions("FileServer", &fs.ObjectMeta, fs.Status.Conditions, v1alpha1.FileServerStorageAvailable)
	}
	if !holds(fs.Status.Conditions, v1alpha1.FileServerStorageAvailable) {
		for i := range e.w.Claims {
			claim := &e.w.Claims[i]
			if claim.Namespace == fs.Namespace && claim.Labels[v1alpha1.FileServerLabel] == fs.Name && claim.Status.Phase != corev1.ClaimBound {
				e.claim(claim)
			}
		}
	}
	for _, s := range fs.Status.Servers {
		if s.State != v1alpha1.ServerServing || !holds(fs.Status.Conditions, v1alpha1.FileServerConfigApplied) {
			e.dataServer(fs.Namespace, s.Name)
		}
	}
	if !holds(fs.Status.Conditions, v1alpha1.FileServerStorageAvailable) {
		for _, d := range e.w.dataServersOf(fs) {
			if c := condition(d.Status.Conditions, v1alpha1.ConditionReady); c != nil && (c.Reason == internalv1.ReasonVolumeRefused || c.Reason == internalv1.ReasonCephUnusable) {
				e.dataServer(d.Namespace, d.Name)
			}
		}
	}
	if !holds(fs.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable) {
		for _, pod := range e.w.podsOf(fs.Namespace, naming.SelectNamespaceServers(fs.Name)) {
			e.pod(pod)
		}
	}
	e.conditions("FileServer", &fs.ObjectMeta, fs.Status.Conditions,
		v1alpha1.FileServerStorageAvailable, v1alpha1.FileServerServersAvailable, v1alpha1.FileServerNamespaceServersAvailable, v1alpha1.FileServerConfigApplied,
		v1alpha1.FileServerServersUpdated, v1alpha1.ConditionReady)
}

// dataServer puts the pod first: the rest depends on it.
func (e *explainer) dataServer(namespace, name string) {
	if pod := e.w.pod(namespace, name); pod != nil {
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil || pod.Spec.NodeName != "" {
				continue
			}
			for i := range e.w.Claims {
				if c := &e.w.Claims[i]; c.Namespace == namespace && c.Name == v.PersistentVolumeClaim.ClaimName && c.Status.Phase != corev1.ClaimBound {
					e.claim(c)
				}
			}
		}
		e.pod(pod)
	} else if !e.w.IsHidden(ResourcePods, namespace) && len(e.w.Pods) > 0 {
		e.add(Cause{
			Kind: "Pod", Namespace: namespace, Name: name, Reason: "Missing", Message: "the pod does not exist",
			Events: e.events("StatefulSet", namespace, name[:max(0, strings.LastIndexByte(name, '-'))]),
		}, "")
	}
	for i := range e.w.DataServers {
		d := &e.w.DataServers[i]
		if d.Namespace != namespace || d.Name != name {
			continue
		}
		// A pod without a node can't answer: that is not a cause of its own.
		pod := e.w.pod(namespace, name)
		if u := d.Status.Unreachable; u.SeenBy != "" && u.SinceTime != nil && (pod == nil || pod.Spec.NodeName != "") {
			e.add(Cause{
				Kind: "DataServer", Namespace: namespace, Name: name, Type: "Unreachable", Reason: "NoAnswer", Since: age(e.w.Now, *u.SinceTime),
				Message: fmt.Sprintf("it does not answer NFS at %s (seen by namespace server %s); node %s", d.Spec.Address, u.SeenBy, cmp.Or(d.Status.NodeName, "?")),
			}, "Check the node (kubectl get node): the pod of a lost node is shown as Running for minutes. Clients of its directories wait until the data server is back.")
		}
		if end := lastEnd(e.w.Now, &v1alpha1.FileServerServerStatus{}, d); end != nil && !end.isOver() {
			e.add(Cause{Kind: "DataServer", Namespace: namespace, Name: name, Reason: string(end.Cause), Message: end.Message, Since: end.Age}, "")
		}
		e.conditions("DataServer", &d.ObjectMeta, d.Status.Conditions, v1alpha1.ConditionReady)
	}
}

func (e *explainer) claim(claim *corev1.PersistentVolumeClaim) {
	e.add(Cause{
		Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, Reason: string(cmp.Or(claim.Status.Phase, corev1.ClaimPending)),
		Message: "not bound to a volume", Since: age(e.w.Now, claim.CreationTimestamp), Events: e.events("PersistentVolumeClaim", claim.Namespace, claim.Name),
	}, advice[v1alpha1.ReasonClaimsPending])
}

func (e *explainer) pod(pod *corev1.Pod) {
	found := podTrouble(pod)
	if found.reason == "" {
		return
	}
	since := pod.CreationTimestamp
	if c := podReady(pod); c != nil && !c.LastTransitionTime.IsZero() {
		since = c.LastTransitionTime
	}
	e.add(Cause{
		Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Reason: found.reason, Message: found.message, Since: age(e.w.Now, since),
		Events: e.events("Pod", pod.Namespace, pod.Name),
	}, podAdvice[cmp.Or(found.before, found.reason)])
}

func podReady(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ofServers are reasons of a share whose cause is its FileServer or a data server.
var ofServers = map[string]bool{
	v1alpha1.ReasonFileServerNotReady: true, v1alpha1.ReasonDataServersUnavailable: true, v1alpha1.ReasonExportsPending: true,
	v1alpha1.ReasonInventoryPending: true, v1alpha1.ReasonDirectoriesPending: true,
}

func (e *explainer) fileShare(share *v1alpha1.FileShare) {
	types := []string{
		v1alpha1.FileShareCloned, v1alpha1.FileSharePlaced, v1alpha1.FileShareExported, v1alpha1.FileShareInventoried, v1alpha1.FileShareJunctionsResolved,
		v1alpha1.FileShareClaimAvailable, v1alpha1.FileShareQuotaEnforced, v1alpha1.FileShareHotDirectoriesServed,
	}
	namespace := naming.ServerNamespace(share)
	waits := slices.ContainsFunc(types, func(t string) bool { return ofServers[reasonOf(share.Status.Conditions, t)] })
	if fs := e.w.FileServer(namespace, share.Spec.FileServerRef.Name); fs != nil && waits {
		e.fileServer(fs)
	}
	if waits {
		for i := range e.w.Exports {
			if x := &e.w.Exports[i]; x.Namespace == namespace && x.Spec.FileShareRef.Name == naming.KeyOf(share) && x.Spec.FileServerRef.Name == share.Spec.FileServerRef.Name {
				e.conditions("ShareExport", &x.ObjectMeta, x.Status.Conditions, internalv1.ExportServing)
			}
		}
		for _, d := range e.w.directoriesOf(namespace, share.Spec.FileServerRef.Name, naming.KeyOf(share)) {
			if d.State() != internalv1.DirectoryReady {
				e.add(Cause{
					Kind: "ShareDirectory", Namespace: d.Namespace, Name: d.Spec.Path, Reason: string(d.State()), Since: age(e.w.Now, d.CreationTimestamp),
					Message: "waits for data server " + d.Spec.DataServerRef.Name,
				}, "")
			}
		}
	}
	e.conditions("FileShare", &share.ObjectMeta, share.Status.Conditions, append(types, v1alpha1.ConditionReady)...)
}

// holds reports whether a condition is True.
func holds(all []metav1.Condition, kind string) bool {
	c := condition(all, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}

func reasonOf(all []metav1.Condition, kind string) string {
	if c := condition(all, kind); c != nil {
		return c.Reason
	}
	return ""
}

// maxEvents is how many events of an object are shown.
const maxEvents = 3

// events are the newest warnings of an object, or the newest events if there is no warning.
func (e *explainer) events(kind, namespace, name string) []Event {
	var found []*corev1.Event
	for i := range e.w.Events {
		ev := &e.w.Events[i]
		if ev.InvolvedObject.Kind == kind && ev.InvolvedObject.Namespace == namespace && ev.InvolvedObject.Name == name {
			found = append(found, ev)
		}
	}
	if warnings := slices.DeleteFunc(slices.Clone(found), func(ev *corev1.Event) bool { return ev.Type != corev1.EventTypeWarning }); len(warnings) > 0 {
		found = warnings
	}
	slices.SortStableFunc(found, func(a, b *corev1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	var newest []Event
	for _, ev := range found[:min(len(found), maxEvents)] {
		count := max(1, ev.Count)
		if ev.Series != nil {
			count = max(count, ev.Series.Count)
		}
		newest = append(newest, Event{Type: ev.Type, Reason: ev.Reason, Message: ev.Message, Count: count, Age: age(e.w.Now, metav1.NewTime(lastSeen(ev)))})
	}
	return newest
}

func lastSeen(ev *corev1.Event) (last time.Time) {
	times := []time.Time{ev.FirstTimestamp.Time, ev.LastTimestamp.Time, ev.EventTime.Time}
	if ev.Series != nil {
		times = append(times, ev.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
