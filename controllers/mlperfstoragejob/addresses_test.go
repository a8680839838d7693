package mlperfstoragejob

import (
	"slices"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

func TestCountersAreReadAtThePortThatThePodHas(t *testing.T) {
	for name, test := range map[string]struct {
		status internalv1.DataServerStatus
		want   []string
	}{
		"a network of its own": {internalv1.DataServerStatus{PodIP: "10.244.1.7"}, []string{"10.244.1.7", "10.96.0.10"}},
		"its node's network":   {internalv1.DataServerStatus{PodIP: "10.0.0.1", FirstPort: 20490}, []string{"10.0.0.1:20492", "10.96.0.10"}},
		"by IPv6":              {internalv1.DataServerStatus{PodIP: "fd00::1", FirstPort: 20490}, []string{"[fd00::1]:20492", "10.96.0.10"}},
		"no pod yet":           {internalv1.DataServerStatus{FirstPort: 20490}, []string{"10.96.0.10"}},
	} {
		server := &internalv1.DataServer{Spec: internalv1.DataServerSpec{Address: "10.96.0.10"}, Status: test.status}
		if got := serverOf(server, nil).Addresses; !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
