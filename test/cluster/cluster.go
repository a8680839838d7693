package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// PollInterval is the time between two polls of a condition. Tests with a timeout of a few seconds need it to be short.
const PollInterval = 200 * time.Millisecond

// Cluster is a cluster with Howdah installed.
type Cluster struct {
	client.Client
	// Namespace is the Kubernetes namespace that the run made and will remove.
	Namespace string
	// ClientImage has a shell, coreutils and howdah; client pods run it.
	ClientImage string
	watcher     client.WithWatch
}

// Connect uses KUBECONFIG and makes a new Kubernetes namespace whose name starts with prefix.
// CLIENT_IMAGE names the image of client pods; it must be present on the nodes.
func Connect(ctx context.Context, prefix string) (*Cluster, error) {
	return connect(ctx, metav1.ObjectMeta{GenerateName: prefix + "-"})
}

// ConnectTo is Connect for a namespace of a given name, which it makes unless it is there.
func ConnectTo(ctx context.Context, namespace string) (*Cluster, error) {
	return connect(ctx, metav1.ObjectMeta{Name: namespace})
}

func connect(ctx context.Context, meta metav1.ObjectMeta) (*Cluster, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: set KUBECONFIG (make lab-up prints it): %w", err)
	}
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(internalv1.AddToScheme(scheme))
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	image := os.Getenv("CLIENT_IMAGE")
	if image == "" {
		return nil, errors.New("CLIENT_IMAGE is not set: name an image with a shell and howdah that the nodes have, e.g. the server image")
	}
	// Data servers need capabilities beyond the baseline level (docs/operate/security.md).
	meta.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
	namespace := &corev1.Namespace{ObjectMeta: meta}
	if err := c.Create(ctx, namespace); err != nil && (meta.Name == "" || !apierrors.IsAlreadyExists(err)) {
		return nil, fmt.Errorf("make a namespace: %w", err)
	}
	return &Cluster{Client: c, Namespace: namespace.Name, ClientImage: image, watcher: c}, nil
}

// Get reads the named object of the run's namespace into object.
func (c *Cluster) Get(ctx context.Context, name string, object client.Object) error {
	return c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, object)
}

// Follow calls changed for each change of the run's objects of list's kind, as the API server sends them, until ctx ends.
// It returns once the watch is begun. changed is called by a goroutine of its own.
func (c *Cluster) Follow(ctx context.Context, list client.ObjectList, changed func(client.Object)) error {
	events, err := c.watcher.Watch(ctx, list, client.InNamespace(c.Namespace))
	if err != nil {
		return err
	}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if object, is := event.Object.(client.Object); is && event.Type != watch.Deleted {
				changed(object)
			}
		}
	}()
	return nil
}

// WaitFor polls condition until it gives nil, and returns its last error when ctx ends.
func WaitFor(ctx context.Context, what string, condition func(context.Context) error) error {
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		case <-tick.C:
		}
	}
}

// WaitGone waits until the object is no longer in the API.
func (c *Cluster) WaitGone(ctx context.Context, object client.Object) error {
	return WaitFor(ctx, object.GetName()+" to be gone", func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("still there")
	})
}

// Condition finds a condition, or gives one of status Unknown that says that it is missing.
func Condition(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Message: "not reported yet"}
}

// Expect gives nil if the condition has the status, else an error that quotes it.
func Expect(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) error {
	if got := Condition(conditions, kind); got.Status != status {
		return fmt.Errorf("%s is %s, not %s: %s: %s", kind, got.Status, status, got.Reason, got.Message)
	}
	return nil
}
