package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaderElectionID is the Lease of the active operator, unless a flag names another.
const leaderElectionID = "howdah-operator"

// podNamespaceFile is where a pod finds the Kubernetes namespace that it is in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// leaderLock is the Lease of the active operator for one that keeps its identity when its container starts again: it goes on at once, instead of
// waiting until the Lease of its last process expires. Two processes never have one identity: a container starts after the one before has ended.
// nil without an identity: controller-runtime makes another one for each process.
func (o *operatorOptions) leaderLock(config *rest.Config, renewDeadline time.Duration) (resourcelock.Interface, error) {
	if !o.leaderElect || o.leaderIdentity == "" {
		return nil, nil
	}
	namespace := o.leaderNamespace
	if namespace == "" {
		text, err := os.ReadFile(podNamespaceFile)
		if err != nil {
			return nil, fmt.Errorf("finding the Kubernetes namespace of the Lease: --leader-election-namespace names it outside of a pod: %w", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name: %w", err)
	}
	own := rest.CopyConfig(config)
	// One request that gets no answer must not cost the Lease.
	own.Timeout = max(renewDeadline/2, time.Second)
	leases, err := coordination.NewForConfig(rest.AddUserAgent(own, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("preparing the election of the active operator: %w", err)
	}
	return lease(leases, namespace, o.leaderID, host+"_"+o.leaderIdentity), nil
}

func lease(leases coordination.LeasesGetter, namespace, name, identity string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}
