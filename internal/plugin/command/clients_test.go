package command

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhyAServerWasNotAsked(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"you may not get pods/proxy in namespace team-a": apierrors.NewForbidden(pods, "training-0:9588",
			errors.New(`User "jane" cannot get resource "pods/proxy" in API group "" in the namespace "team-a"`)),
		"blocked by a proxy":    apierrors.NewForbidden(pods, "training-0:9588", errors.New("blocked by a proxy")),
		"older release":         apierrors.NewNotFound(pods, "training-0:9588"),
		"can't reach port 9588": apierrors.NewServiceUnavailable("dial tcp: connection refused"),
	} {
		if got := whyNotAsked(t.Context(), err, "team-a", 9588, askTimeout); !strings.Contains(got, want) || want != "you may not get pods/proxy in namespace team-a" && strings.Contains(got, "you may not") {
			t.Errorf("%v: %s", err, got)
		}
	}
}
