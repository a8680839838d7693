package main

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
)

// An operator that is killed must not be away until its Lease expires.
func TestAnOperatorThatStartsAgainInItsPodLeadsAtOnce(t *testing.T) {
	leases := fake.NewClientset().CoordinationV1()
	leads := func(name, identity string, within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		led := false
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lease(leases, "ns", name, identity), LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led = true; cancel() },
				OnStoppedLeading: func() {}, // As after SIGKILL: the Lease is not released.
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		elector.Run(ctx)
		return led
	}
	if !leads("team-a", "pod_1", time.Minute) {
		t.Fatal("none leads")
	}
	if leads("team-a", "pod_2", time.Second) {
		t.Error("another pod leads while the Lease is valid")
	}
	if !leads("team-a", "pod_1", 10*time.Second) {
		t.Error("it does not lead after a restart")
	}
	if !leads("team-b", "pod_3", 10*time.Second) {
		t.Error("the operator of another installation in this namespace does not lead")
	}
}

func TestWithoutAnIdentityEachProcessHasItsOwn(t *testing.T) {
	if lock, err := (&operatorOptions{leaderElect: true}).leaderLock(nil, 0); lock != nil || err != nil {
		t.Errorf("%v, %v", lock, err)
	}
}
