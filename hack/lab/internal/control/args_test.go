package control

import (
	"slices"
	"testing"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// The API server listens at one address, of the family of the first Services: it refuses others.
func TestTheAPIServerHasTheFamiliesOfTheLab(t *testing.T) {
	for family, want := range map[plan.Family][]string{
		"":        {"--bind-address=10.88.0.1", "--advertise-address=10.88.0.1", "--service-cluster-ip-range=10.96.0.0/16"},
		plan.IPv6: {"--bind-address=fd00:10:88::1", "--advertise-address=fd00:10:88::1", "--service-cluster-ip-range=fd00:10:96::/112"},
		plan.Dual: {"--bind-address=10.88.0.1", "--advertise-address=10.88.0.1", "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112"},
	} {
		p := &Plane{Settings: plan.Settings{Family: family}}
		args := p.apiserverArgs()
		for _, arg := range want {
			if !slices.Contains(args, arg) {
				t.Errorf("%q: no %s in %q", family, arg, args)
			}
		}
	}
}
