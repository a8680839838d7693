package v1alpha1

import "testing"

func TestWhatNoStatusMeans(t *testing.T) {
	owned := ShareDirectorySpec{DataServerRef: DataServerReference{Name: "fs-0"}}
	renamed := owned
	renamed.RenamedFrom = "a"
	for name, tc := range map[string]struct {
		spec  ShareDirectorySpec
		state DirectoryState
		want  DirectoryState
	}{
		"in the namespace only: it exists with its object":  {want: DirectoryReady},
		"owned: it is to be made":                           {spec: owned, want: DirectoryCreating},
		"renamed: it has one of two names":                  {spec: renamed, want: DirectoryRenaming},
		"renamed in the namespace only":                     {spec: ShareDirectorySpec{RenamedFrom: "a"}, want: DirectoryRenaming},
		"a status counts":                                   {spec: owned, state: DirectoryReady, want: DirectoryReady},
		"a status counts for one that was renamed":          {spec: renamed, state: DirectoryReady, want: DirectoryReady},
		"a status counts for one that is taken back in use": {spec: renamed, state: DirectoryCreating, want: DirectoryCreating},
	} {
		if got := (&ShareDirectory{Spec: tc.spec, Status: ShareDirectoryStatus{State: tc.state}}).State(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
