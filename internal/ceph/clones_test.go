package ceph

import "testing"

func TestCloneStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		want   CloneState
	}{
		"as Ceph 18 answers": {`{"status":{"state":"in-progress","source":{"volume":"fs1","subvolume":"a","snapshot":"now","group":"g"}}}`, CloneState{State: "in-progress"}},
		"as Ceph 19.2 answers": {
			`{"status":{"state":"in-progress","source":{},"progress_report":{"percentage cloned":"12.24%","amount cloned":"376M/3.0G","files cloned":"4/6"}}}`,
			CloneState{State: "in-progress", Progress: "12.24%, 376M/3.0G"},
		},
		"done":              {`{"status":{"state":"complete"}}`, CloneState{State: "complete"}},
		"failed":            {`{"status":{"state":"failed","failure":{"errno":"28","error_msg":"No space left on device"}}}`, CloneState{State: "failed", Failure: "No space left on device (28)"}},
		"failed, no text":   {`{"status":{"state":"failed"}}`, CloneState{State: "failed"}},
		"cancelled":         {`{"status":{"state":"canceled","failure":{"errno":4,"error_msg":"user interrupted clone operation"}}}`, CloneState{State: "canceled", Failure: "user interrupted clone operation (4)"}},
		"nothing":           {`{}`, CloneState{}},
		"something else":    {`Error`, CloneState{}},
		"another's pending": {`{"status":{"state":"pending"}}`, CloneState{State: "pending"}},
	} {
		got, err := ParseCloneStatus(tc.answer)
		if got != tc.want || (err != nil) != (tc.want == CloneState{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.HasFailed() && got.IsComplete() {
			t.Errorf("%s: failed and complete", name)
		}
	}
}
