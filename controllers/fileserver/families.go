package fileserver

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/admissible"
)

// familiesHold is how long the answer of the API server counts: it starts with its families, so another answer comes after its next start.
const familiesHold = time.Minute

// families are those of which Services can have addresses in this cluster.
type families struct {
	mu    sync.Mutex
	known []corev1.IPFamily
	asked time.Time
}

// read finds them for a FileServer that needs both. Neither an object nor the addresses of nodes has them for sure, so the API server is asked what it
// would make of a Service (a dry run: nothing is stored, and no address is taken). If it does not answer that, because of an admission policy for
// example, nothing is known: then it refuses the Services themselves, or makes them.
func (f *families) read(ctx context.Context, c client.Client, fs *v1alpha1.FileServer, now time.Time) []corev1.IPFamily {
	if !desired.HasOutside(fs) || fs.Spec.Network.LoadBalancer.IPFamilyPolicy != corev1.IPFamilyPolicyRequireDualStack {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.asked); len(f.known) > 0 && age >= 0 && age < familiesHold {
		return f.known
	}
	question := desired.FamiliesQuestion(fs)
	if err := c.Create(ctx, question, client.DryRunAll, client.FieldOwner(FieldManager)); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("it is not known of which families Services can have addresses", "err", err.Error())
		f.known = nil
		return nil
	}
	f.known, f.asked = question.Spec.IPFamilies, now
	return f.known
}

// readFamilies finds the values that can't be used because of the families that Services have here.
func (o *observed) readFamilies(ctx context.Context, c client.Client, f *families) error {
	faults := admissible.Families(&o.fileServer.Spec, f.read(ctx, c, o.fileServer, o.now))
	o.lacksFamily = len(faults) > 0
	o.badValues.Outside = append(o.badValues.Outside, faults...)
	return nil
}

// familiesAgain is when the API server is asked again; 0: it has what is needed.
func (o *observed) familiesAgain() time.Duration {
	if o.lacksFamily {
		return familiesHold
	}
	return 0
}
