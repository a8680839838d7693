package apply

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyLostRacesAreQuiet(t *testing.T) {
	lost := fmt.Errorf("writing the status of x: %w", apierrors.NewConflict(schema.GroupResource{Resource: "fileshares"}, "x", errors.New("moved on")))
	broken := errors.New("no such node")
	for name, tc := range map[string]struct {
		errs         []error
		again, fails bool
	}{
		"nothing":                     {nil, false, false},
		"no error":                    {[]error{nil, nil}, false, false},
		"a lost race":                 {[]error{nil, lost}, true, false},
		"two lost races":              {[]error{lost, lost}, true, false},
		"an error":                    {[]error{broken}, false, true},
		"a lost race beside an error": {[]error{broken, lost}, false, true},
		"an error after a lost race":  {[]error{lost, broken}, false, true},
		"lost races joined before":    {[]error{errors.Join(lost, lost)}, true, false},
		"an error joined before":      {[]error{fmt.Errorf("children: %w", errors.Join(lost, broken))}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Outcome(tc.errs...)
			if (err != nil) != tc.fails || (result.RequeueAfter > 0) != tc.again {
				t.Errorf("result %+v, error %v", result, err)
			}
			if tc.fails && !errors.Is(err, broken) {
				t.Errorf("%v hides what is broken", err)
			}
		})
	}
}
