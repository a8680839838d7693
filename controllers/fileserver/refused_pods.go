package fileserver

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/podrefusal"
	"github.com/howdah/howdah/internal/naming"
)

// readDeployments reads whether pods of namespace servers or of the steward are refused.
func (o *observed) readDeployments(ctx context.Context, c client.Client) error {
	for name, refusal := range map[string]*string{
		naming.NamespaceServers(o.fileServer.Name): &o.namespaceRefusal, naming.Steward(o.fileServer.Name): &o.stewardRefusal,
	} {
		var deployment appsv1.Deployment
		err := c.Get(ctx, client.ObjectKey{Namespace: o.fileServer.Namespace, Name: name}, &deployment)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if deployment.Labels[v1alpha1.FileServerLabel] == o.fileServer.Name && !isLeftover(&deployment, o.fileServer) {
			*refusal = podrefusal.OfDeployment(&deployment)
		}
	}
	return nil
}

// readRefusals reads why pods of data servers are missing. It reads events only while pods are missing.
func (o *observed) readRefusals(ctx context.Context, live client.Reader) error {
	if o.statefulSet == nil || o.statefulSet.Spec.Replicas == nil {
		return nil
	}
	missing := map[string]string{}
	for ordinal := range *o.statefulSet.Spec.Replicas {
		if name := naming.DataServer(o.fileServer.Name, ordinal); o.podOf(name) == nil && o.earlierWaits(name) == "" {
			missing[name] = ""
		}
	}
	o.refused = missing
	if len(missing) == 0 || o.isStatefulSetNew() {
		return nil
	}
	refusals, err := podrefusal.Read(ctx, live, o.statefulSet)
	for name := range missing {
		missing[name] = refusals.Of(name)
	}
	return err
}

func (o *observed) isStatefulSetNew() bool {
	return o.now.Sub(o.statefulSet.CreationTimestamp.Time) < podrefusal.Grace
}

// refusedAgain is when to read the events again; 0 if no pod is missing.
func (o *observed) refusedAgain() time.Duration {
	switch {
	case len(o.refused) == 0:
		return 0
	case o.isStatefulSetNew():
		return podrefusal.Grace
	}
	return podrefusal.Again
}

// podWaitsOf is what keeps the pod of a data server from running.
func (o *observed) podWaitsOf(name string, pod *corev1.Pod) string {
	switch {
	case pod != nil:
	case o.refused[name] != "":
		return refusedText(o.refused[name])
	case o.earlierWaits(name) != "":
		return o.earlierWaits(name)
	}
	return podWaits(pod)
}

func refusedText(refusal string) string { return "its pod is refused: " + refusal }

// refusalChanged lets pass a Deployment whose pods are refused, or are not any more.
func refusalChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*appsv1.Deployment)
		after, ok2 := e.ObjectNew.(*appsv1.Deployment)
		return ok && ok2 && podrefusal.OfDeployment(before) != podrefusal.OfDeployment(after)
	}}
}
