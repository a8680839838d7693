package tree

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhoMaySetAttributes(t *testing.T) {
	v := func(n uint32) *uint32 { return &n }
	past, now := &TimeSetting{Time: time.Unix(1, 0)}, &TimeSetting{Now: true}
	dir := Entry{Owner: 1000, Group: 100, Mode: 0o775}
	var (
		root     = Credentials{}
		owner    = Credentials{UID: 1000, GID: 1000, Groups: []uint32{100, 27}}
		outsider = Credentials{UID: 1000, GID: 1000} // the owner, but not in the directory's group
		member   = Credentials{UID: 2000, GID: 100}
		other    = Credentials{UID: 3000, GID: 3000}
		squashed = Credentials{UID: SquashedID, GID: SquashedID} // a squashed root
	)
	for name, tc := range map[string]struct {
		caller Credentials
		ask    Settings
		want   Settings
		err    error
	}{
		"root gives a directory away":                  {caller: root, ask: Settings{Owner: v(5), Group: v(6)}, want: Settings{Owner: v(5), Group: v(6)}},
		"the owner does not":                           {caller: owner, ask: Settings{Owner: v(5)}, err: ErrNotOwner},
		"the owner may say that it is its own":         {caller: owner, ask: Settings{Owner: v(1000)}, want: Settings{Owner: v(1000)}},
		"another does not take it":                     {caller: other, ask: Settings{Owner: v(3000)}, err: ErrNotOwner},
		"another may not even say whose it is":         {caller: other, ask: Settings{Owner: v(1000)}, err: ErrNotOwner},
		"the owner gives it to a group of his":         {caller: owner, ask: Settings{Group: v(27)}, want: Settings{Group: v(27)}},
		"the owner does not give it to others":         {caller: owner, ask: Settings{Group: v(6)}, err: ErrNotOwner},
		"the owner keeps a group he is not in":         {caller: outsider, ask: Settings{Group: v(100)}, want: Settings{Group: v(100)}},
		"a member of the group does not":               {caller: member, ask: Settings{Group: v(100)}, err: ErrNotOwner},
		"the owner changes the mode":                   {caller: owner, ask: Settings{Mode: v(0o2770)}, want: Settings{Mode: v(0o2770)}},
		"root changes the mode":                        {caller: root, ask: Settings{Mode: v(0o2770)}, want: Settings{Mode: v(0o2770)}},
		"a squashed root does not":                     {caller: squashed, ask: Settings{Mode: v(0o777)}, err: ErrNotOwner},
		"a member does not":                            {caller: member, ask: Settings{Mode: v(0o777)}, err: ErrNotOwner},
		"setgid is for those who are in the group":     {caller: outsider, ask: Settings{Mode: v(0o2770)}, want: Settings{Mode: v(0o770)}},
		"setgid with a new group that the owner is in": {caller: owner, ask: Settings{Mode: v(0o2770), Group: v(27)}, want: Settings{Mode: v(0o2770), Group: v(27)}},
		"the owner sets times":                         {caller: owner, ask: Settings{Access: now, Modify: past}, want: Settings{Access: now, Modify: past}},
		"who may write sets times to now":              {caller: member, ask: Settings{Access: now, Modify: now}, want: Settings{Access: now, Modify: now}},
		"who may write does not set the past":          {caller: member, ask: Settings{Modify: past}, err: ErrNotOwner},
		"who may not write does not touch":             {caller: other, ask: Settings{Modify: now}, err: ErrNoPermission},
		"root touches":                                 {caller: root, ask: Settings{Modify: past}, want: Settings{Modify: past}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dir.Allow(tc.caller, tc.ask)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
