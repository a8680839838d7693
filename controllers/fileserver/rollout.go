package fileserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rollout"
)

const (
	// startLimit is how long a data server that runs may not serve before a rollout counts it as stuck. Kernels' clients and a storage
	// that is slow take a part of it.
	startLimit = 2 * time.Minute
	// placeLimit is how long the scheduler and the kubelet may take to bring a pod up.
	placeLimit = time.Minute
	// restartLimit is how often a container may end before it counts as stuck.
	restartLimit = 2
	// evictTimeout bounds an eviction with all its tries.
	evictTimeout = 5 * time.Second
	// rolloutAgain is when a rollout that waits looks again though nothing happens: budgets and other FileServers cause no pass.
	rolloutAgain = 5 * time.Second
)

// rolloutInput is what the decision about the data servers' pods needs.
func (o *observed) rolloutInput(replicas int32) rollout.Input {
	in := rollout.Input{HeldBy: o.rolloutHeldBy}
	set := o.statefulSet
	if set == nil {
		return in
	}
	// Without a digest of its own the template is not known to be the one that pods are compared with.
	in.Observed = set.Status.ObservedGeneration == set.Generation && set.Status.UpdateRevision != ""
	in.OnDelete = set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	in.Complete = isComplete(set)
	for ordinal := range replicas {
		in.Servers = append(in.Servers, o.rolloutServer(naming.DataServer(o.fileServer.Name, ordinal)))
	}
	return in
}

// isComplete: every data server was ready with the newest template once.
func isComplete(set *appsv1.StatefulSet) bool {
	return set.Status.CurrentRevision == set.Status.UpdateRevision
}

func (o *observed) rolloutServer(name string) rollout.Server {
	pod, dataServer := o.podOf(name), o.dataServers[name]
	s := rollout.Server{Name: name, Waits: o.waitsOf(name)}
	if pod == nil {
		if refusal := o.refused[name]; refusal != "" {
			s.Stuck = refusedText(refusal)
		}
		return s
	}
	s.Made, s.Ending = true, pod.DeletionTimestamp != nil
	s.Outdated = pod.Labels[appsv1.StatefulSetRevisionLabel] != o.statefulSet.Status.UpdateRevision
	s.Serves = o.servesFrom(name, pod)
	s.InGrace = conditions.IsFalse(dataServer.Status.Conditions, internalv1.GraceEnded)
	s.OnLostNode = pod.Spec.NodeName != "" && !o.isNodeReady(pod.Spec.NodeName)
	if node := pod.Spec.NodeName; o.closedNodes[node] && o.storage.IsPinned(name) {
		s.Held = fmt.Sprintf("its volume is on node %s only, which takes no pod now: the node is cordoned, or has a taint or labels that spec.placement does not allow", node)
	}
	if !s.Serves {
		s.Stuck = stuckWhy(pod, &dataServer, o.isGoodForOthers(name), s.Waits, o.now)
	}
	return o.withImage(s, pod)
}

// servesFrom tells whether a data server serves from a pod. Its last report may be that of the pod before.
func (o *observed) servesFrom(name string, pod *corev1.Pod) bool {
	dataServer := o.dataServers[name]
	return pod.DeletionTimestamp == nil && o.stateOf(name) == fleet.Serving && isReportOf(&dataServer.Status, pod)
}

// isGoodForOthers tells whether another data server serves from the same storage: what this one finds wrong with it is of its own pod then.
func (o *observed) isGoodForOthers(name string) bool {
	if !o.isShared() {
		return false
	}
	for other, pod := range o.pods {
		if other != name && o.servesFrom(other, &pod) {
			return true
		}
	}
	return false
}

// isReportOf tells whether a pod of a data server has written the status. On a node's network pods have the node's address. Older
// releases do not report the pod's UID.
func isReportOf(status *internalv1.DataServerStatus, pod *corev1.Pod) bool {
	if status.PodUID != "" {
		return status.PodUID == string(pod.UID)
	}
	return status.PodIP == "" || status.PodIP == pod.Status.PodIP
}

// readRollouts finds out which other FileServer's change must be done before this one's may begin. It looks only if this one's is the
// operator's, and is not done.
func (o *observed) readRollouts(ctx context.Context, c client.Reader, turns *turns) error {
	self := o.progress(turns.holder())
	if o.statefulSet == nil {
		turns.leave(self.FileServer)
		return nil
	}
	outdated, err := haveOutdated(ctx, c, o.statefulSet, o.fileServer.Name)
	if err != nil {
		return err
	}
	if self.Cause != rollout.Operator || isDone(o.statefulSet, outdated, self.Holds) {
		turns.leave(self.FileServer)
		o.turnIsOver = true
		return nil
	}
	others, err := readProgress(ctx, c, client.ObjectKeyFromObject(o.fileServer), turns.holder())
	o.rolloutHeldBy = rollout.HeldBy(self, others)
	return err
}

// isDone tells whether nothing is left of a change of the pods. If one is taken back before all pods had it, the StatefulSet calls the earlier
// revision that of all pods at once. outdated: there are pods with another one. holds: it is the FileServer's turn, so the last pod must be ready, too. A
// pod that is being stopped is ready until its program has ended, and counts as none of the newest revision.
func isDone(set *appsv1.StatefulSet, outdated, holds bool) bool {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	return isComplete(set) && !outdated && (!holds || set.Status.ReadyReplicas >= replicas && set.Status.UpdatedReplicas >= replicas)
}

// haveOutdated tells whether there are pods of another revision than the newest. It matters where a change looks complete, and most StatefulSets have
// as many pods with the newest revision as there are. It leaves out pods that are being stopped: on a lost node that takes until the node is back.
func haveOutdated(ctx context.Context, c client.Reader, set *appsv1.StatefulSet, fileServer string) (bool, error) {
	if !isComplete(set) || set.Status.UpdatedReplicas >= set.Status.Replicas {
		return false, nil
	}
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(set.Namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)), client.UnsafeDisableDeepCopy)
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		// One of an earlier StatefulSet of the name goes by itself.
		controller := metav1.GetControllerOf(&pod)
		isOther := controller != nil && controller.UID != set.UID
		return pod.DeletionTimestamp == nil && !isOther && pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision
	}), err
}

// progress is how far the change of this FileServer's pods is. holder is the one that began last, as far as this process knows.
func (o *observed) progress(holder string) rollout.Progress {
	p := rollout.Progress{FileServer: client.ObjectKeyFromObject(o.fileServer).String()}
	p.Holds = p.FileServer == holder
	if o.statefulSet != nil {
		p.Cause, p.Updated = recordOf(o.statefulSet).Cause, o.statefulSet.Status.UpdatedReplicas
		p.Holds = p.Holds || hasTurn(o.statefulSet)
	}
	return p
}

func recordOf(set *appsv1.StatefulSet) rollout.Record {
	return rollout.ParseRecord(set.Annotations[v1alpha1.RolloutAnnotation])
}

// readProgress reads how far the changes of all other FileServers are. holder is the one that began last, as far as this process knows.
func readProgress(ctx context.Context, c client.Reader, except types.NamespacedName, holder string) (others []rollout.Progress, err error) {
	var list appsv1.StatefulSetList
	if err := c.List(ctx, &list, client.MatchingLabels{v1alpha1.ComponentLabel: naming.ComponentDataServer}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		set := &list.Items[i]
		key := types.NamespacedName{Namespace: set.Namespace, Name: set.Labels[v1alpha1.FileServerLabel]}
		if key == except || isComplete(set) && recordOf(set).Cause != rollout.Operator {
			continue
		}
		outdated, err := haveOutdated(ctx, c, set, key.Name)
		if err != nil {
			return nil, err
		}
		holds := key.String() == holder || hasTurn(set)
		if isDone(set, outdated, holds) {
			continue
		}
		var fs v1alpha1.FileServer
		if err := c.Get(ctx, key, &fs); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		others = append(others, rollout.Progress{
			FileServer: key.String(), Cause: recordOf(set).Cause, Updated: set.Status.UpdatedReplicas, Holds: holds,
			Paused: conditions.IsPaused(&fs) || fs.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(others, func(a, b rollout.Progress) int { return strings.Compare(a.FileServer, b.FileServer) })
	return others, nil
}

// nextRecord is what is kept of the template that is applied now.
func (o *observed) nextRecord(in desired.FileServerInput) (rollout.Record, error) {
	digest, err := desired.TemplateDigest(in)
	if err != nil {
		return rollout.Record{}, err
	}
	var before rollout.Record
	if o.statefulSet != nil {
		before = recordOf(o.statefulSet)
	}
	return before.Next(digest, o.fileServer.Generation, o.statefulSet != nil, in.CertificatesLost != o.certificatesLost()), nil
}

// changesTemplate tells whether the pods of data servers become others by what is applied now. What is observed is about the pods before.
func (o *observed) changesTemplate(in desired.FileServerInput) bool {
	if o.statefulSet == nil || in.Storage.Missing {
		return false
	}
	next, err := o.nextRecord(in)
	return err == nil && next.Template != recordOf(o.statefulSet).Template
}

// replacePod stops the pod that the plan names, and returns what keeps it from that, if anything does. Its StatefulSet makes the next one. It is
// an eviction, so the disruption budget lets no drain take another one at the same time.
func (r *Reconciler) replacePod(ctx context.Context, o *observed, d decision) (waits string, err error) {
	if o.turnIsOver && hasTurn(o.statefulSet) {
		if err := r.leaveTurn(ctx, o); err != nil {
			return "", err
		}
	}
	plan := d.rollout
	pod := o.podOf(plan.Next)
	// Of a template that is applied in this pass it is not known which pods are of it.
	if !plan.Now || pod == nil || d.templateChanged {
		return "", nil
	}
	name := naming.DataServerAccount(o.fileServer.Name)
	refused := fmt.Sprintf("PodDisruptionBudget %s lets no pod of a data server go now", name)
	// A client tries again for minutes what a budget refuses, and a pass must not.
	if !plan.Healing {
		var budget policyv1.PodDisruptionBudget
		if err := r.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, &budget); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		if budget.Status.DisruptionsAllowed < 1 || budget.Status.ObservedGeneration < budget.Generation {
			return refused, nil
		}
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	if !plan.Healing && recordOf(o.statefulSet).Cause == rollout.Operator {
		first, err := r.takeTurn(ctx, o)
		if err != nil || !first {
			return "", err
		}
	}
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err = r.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, eviction)
	if err != nil && !plan.Healing {
		if err := r.giveBack(outer, o, d, pod); err != nil {
			return "", err
		}
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", nil // It is gone.
	case apierrors.IsTooManyRequests(err), errors.Is(err, context.DeadlineExceeded):
		return refused, nil // A drain has taken another one a moment ago.
	case err != nil:
		return "", fmt.Errorf("replacing pod %s: %w", pod.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("replacing the pod of a data server", "pod", pod.Name, "uid", pod.UID, "left", len(plan.Outdated))
	why := "the others serve"
	if plan.Healing {
		why = "it does not serve: " + o.waitsOf(plan.Next)
	}
	r.Events.Eventf(o.fileServer, nil, corev1.EventTypeNormal, "DataServerReplaced", "Replace",
		"the pod of data server %s is replaced by one with image %s (%s); %d still have earlier pods", plan.Next, imageOf(&o.statefulSet.Spec.Template.Spec), why, len(plan.Outdated)-1)
	return "", nil
}

func imageOf(pod *corev1.PodSpec) string {
	if len(pod.Containers) == 0 {
		return "none"
	}
	return pod.Containers[0].Image
}

// rolloutAgainAfter is when to look again though nothing happens; 0 if there is nothing to replace.
func rolloutAgainAfter(plan rollout.Plan) time.Duration {
	if plan.State == rollout.Unknown || plan.State == rollout.UpToDate {
		return 0
	}
	return rolloutAgain
}
