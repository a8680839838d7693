package fileserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/rollout"
)

// turns remembers which FileServer began last with a change by the operator: the cache shows what takeTurn has written only later, and status of the
// StatefulSet only when the first pod is made.
type turns struct {
	mutex sync.Mutex
	last  string
}

func (t *turns) holder() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.last
}

// leave is called for a FileServer that has nothing to do.
func (t *turns) leave(fileServer string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.last == fileServer {
		t.last = ""
	}
}

// take tells whether a FileServer may begin: heldBy, which is asked under a lock, has none that must be done first.
func (t *turns) take(fileServer string, heldBy func(holder string) (string, error)) (bool, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if holder, err := heldBy(t.last); err != nil || holder != "" {
		return false, err
	}
	t.last = fileServer
	return true, nil
}

// takeTurn tells whether the FileServer may begin now with a change by the operator. That is written down before the first pod goes: an operator that
// is restarted must know it while the last pod starts, and nothing else shows it if a change is taken back.
func (r *Reconciler) takeTurn(ctx context.Context, o *observed) (bool, error) {
	self := client.ObjectKeyFromObject(o.fileServer)
	first, err := r.turns.take(self.String(), func(holder string) (string, error) {
		others, err := readProgress(ctx, r.Client, self, holder)
		return rollout.HeldBy(o.progress(holder), others), err
	})
	if err != nil || !first || hasTurn(o.statefulSet) {
		return first, err
	}
	if err := r.writeTurn(ctx, o, v1alpha1.RolloutTurnTaken); err != nil {
		r.turns.leave(self.String())
		return false, err
	}
	return true, nil
}

// giveBack gives the turn back after an eviction that failed, if the change has not begun: what keeps it from that may last long, such as a second budget
// for the pods, and is not to keep others. An answer that is lost says nothing of the pod, and the cache may be behind, so the API server is asked.
func (r *Reconciler) giveBack(ctx context.Context, o *observed, d decision, pod *corev1.Pod) error {
	if len(d.rollout.Outdated) < int(d.input.Replicas) {
		return nil // Others have the new template already.
	}
	var now corev1.Pod
	exists, err := lookup.Object(ctx, r.Live, client.ObjectKeyFromObject(pod), &now)
	if err != nil || !exists || now.UID != pod.UID || now.DeletionTimestamp != nil {
		return err
	}
	return r.leaveTurn(ctx, o)
}

// leaveTurn gives the turn back.
func (r *Reconciler) leaveTurn(ctx context.Context, o *observed) error {
	r.turns.leave(client.ObjectKeyFromObject(o.fileServer).String())
	if recordOf(o.statefulSet).Cause != rollout.Operator && !hasTurn(o.statefulSet) {
		return nil
	}
	return client.IgnoreNotFound(r.writeTurn(ctx, o, nil))
}

// writeTurn writes the annotation for the turn; nil removes it.
func (r *Reconciler) writeTurn(ctx context.Context, o *observed, value any) error {
	set := o.statefulSet
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": set.UID, "annotations": map[string]any{v1alpha1.RolloutTurnAnnotation: value},
	}})
	if err != nil {
		return err
	}
	err = r.Patch(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return fmt.Errorf("writing whose turn a change is to StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

func hasTurn(set *appsv1.StatefulSet) bool {
	return set.Annotations[v1alpha1.RolloutTurnAnnotation] == v1alpha1.RolloutTurnTaken
}
