package kubeapi

import (
	"testing"
	"time"
)

// timeout is how long a test waits for what must happen.
const timeout = 2 * time.Minute

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
