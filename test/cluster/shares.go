package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ShareReady gives nil if a share of the run's namespace is Ready, else an error that says what it waits for.
func (c *Cluster) ShareReady(ctx context.Context, name string) error {
	share := &v1alpha1.FileShare{}
	if err := c.Get(ctx, name, share); err != nil {
		return err
	}
	return Expect(share.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
}
