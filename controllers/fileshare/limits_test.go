package fileshare

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// crowd is the shares of a FileServer with limits, as the API server has them.
type crowd struct {
	ledger ledger
	shares []v1alpha1.FileShare
	limits v1alpha1.FileServerLimits
}

func (c *crowd) add(namespace string, edit ...func(*v1alpha1.FileShare)) *v1alpha1.FileShare {
	i := len(c.shares)
	share := builders.FileShare(namespace, fmt.Sprintf("s%d", (i*7919)%5000), "fs").Path(fmt.Sprintf("/s%d", i)).Created(decideTime.Add(time.Duration(i) * time.Second)).Build()
	share.UID, share.Generation = types.UID(fmt.Sprint("uid-", i)), 1
	if namespace != "ns" {
		share.Spec.FileServerRef.Namespace = "ns"
	}
	for _, e := range edit {
		e(share)
	}
	c.shares = append(c.shares, *share)
	c.ledger.see(share)
	return &c.shares[i]
}

// crowdSurroundings has the directories that deleted shares of tenant ns left.
type crowdSurroundings int

func (crowdSurroundings) allows(namespace string) bool { return namespace != "forbidden" }

func (c crowdSurroundings) retained() (taken limits.Taken) {
	if c > 0 {
		taken.Add("ns", limits.Usage{Directories: int(c)})
	}
	return taken
}

// pass is what a pass decides of a share; its status is written if it is to be seen by later ones.
func (c *crowd) pass(i int, written bool) (*finding, limits.Grant) {
	o := passOf(&c.shares[i])
	o.fileServer.Spec.Limits = c.limits
	o.grant = c.ledger.admit(o, limits.Of(o.fileServer, maxShares(o), 1), crowdSurroundings(0))
	d := decide(o)
	if written {
		c.shares[i].Status = statusOf(o, d, outcome{})
		c.ledger.see(c.shares[i].DeepCopy())
	}
	return d.blocked, o.grant
}

func refused(found *finding) bool {
	return found != nil && (found.reason == v1alpha1.ReasonLimitReached || found.reason == v1alpha1.ReasonTooManyShares)
}

// Of one share more than fit, only the newest is refused, whatever it is called.
func TestTheNewestOfTooManySharesIsRefused(t *testing.T) {
	var c crowd
	most := maxShares(passOf(builders.FileShare("ns", "s", "fs").Build()))
	for range most + 1 {
		c.add("ns")
	}
	for at, out := range map[int]bool{0: false, most - 1: false, most: true} {
		found, _ := c.pass(at, false)
		if refused(found) != out {
			t.Errorf("share number %d: %+v", at, found)
		}
		if out && (found.reason != v1alpha1.ReasonTooManyShares || !strings.Contains(found.message, "can have 4096 shares")) {
			t.Errorf("%+v", found)
		}
	}
}

// The attack: ten thousand directories in one line, in more shares than fit. Nothing is made of the newest, and the condition says what to raise.
func TestBracesCountBeforeTheyBecomeObjects(t *testing.T) {
	var c crowd
	for range 17 {
		c.add("ns", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{0..9999}"} })
	}
	for i := range c.shares {
		found, _ := c.pass(i, true)
		if refused(found) != (i >= 10) {
			t.Errorf("share %d: %+v", i, found)
		}
	}
	const want = "FileServer fs allows all shares together 100000 directories (spec.limits.total.directories); others have 100000 and this one would have 10000: " +
		"ask the administrator of the FileServer to raise spec.limits.total.directories, or make room"
	if found, _ := c.pass(16, false); found.reason != v1alpha1.ReasonLimitReached || found.message != want {
		t.Errorf("%+v", found)
	}
}

// Whatever pass comes first, and however late its status is seen: the older share is let in, and it stays so.
func TestTheSameShareStaysRefused(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var c crowd
		c.limits.Total.Directories = 100
		for range 12 {
			n := 10 + random.IntN(20)
			c.add("ns", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{fmt.Sprintf("{1..%d}", n)} })
		}
		want := map[int]bool{}
		for used, i := 0, 0; i < len(c.shares); i++ {
			n := wantsOf(&c.shares[i], nil).Directories
			if want[i] = used+n <= 100; want[i] {
				used += n
			}
		}
		for round := range 4 {
			for _, i := range random.Perm(len(c.shares)) {
				if found, _ := c.pass(i, round > 0 && random.IntN(2) == 0); refused(found) == want[i] {
					t.Fatalf("seed %d, round %d, share %d: %+v", seed, round, i, found)
				}
			}
		}
	}
}

// Room that was given is not given again while no status tells of it.
func TestRoomIsGivenOnce(t *testing.T) {
	var c crowd
	c.limits.Total.Directories = 10
	grows := func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{1..2}"} }
	c.add("ns", grows)
	c.add("ns", grows)
	for i := range c.shares {
		c.pass(i, true)
		c.shares[i].Spec.Directories = []string{"{1..8}"}
	}
	if _, grant := c.pass(1, false); grant.Directories != nil || grant.Has.Directories != 8 {
		t.Errorf("the first: %+v", grant)
	}
	if _, grant := c.pass(0, false); grant.Directories == nil || grant.Has.Directories != 2 {
		t.Errorf("the second: %+v", grant)
	}
}

func TestATenantIsBoundedAndOthersAreNot(t *testing.T) {
	var c crowd
	c.limits.PerNamespace = v1alpha1.ShareLimits{Shares: 2, AccessNetworks: 100}
	wide := func(s *v1alpha1.FileShare) {
		rule := v1alpha1.AccessRule{}
		for i := range 60 {
			rule.Clients = append(rule.Clients, fmt.Sprintf("10.0.%d.0/24", i))
		}
		s.Spec.Access = []v1alpha1.AccessRule{rule}
	}
	of := func(namespace string) func(*v1alpha1.FileShare) {
		return func(s *v1alpha1.FileShare) {
			s.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: namespace, Name: "claim"}
		}
	}
	for i, tc := range []struct {
		namespace string
		edit      func(*v1alpha1.FileShare)
		field     string
	}{
		{"team-a", wide, ""},
		{"team-a", wide, "spec.limits.perNamespace.accessNetworks"},
		{"team-a", of("team-b"), ""}, // It says so itself, and counts for its own namespace.
		{"team-a", of(""), "spec.limits.perNamespace.shares"},
		{"ns", of("team-b"), ""},
		{"ns", of("team-b"), ""},
		{"ns", of("team-b"), "spec.limits.perNamespace.shares"},
		{"ns", wide, ""},
		{"ns", wide, ""},
		{"ns", wide, ""},
	} {
		share := c.add(tc.namespace, tc.edit)
		found, grant := c.pass(i, true)
		if tc.field == "" && grant.Refused != nil || tc.field != "" && (grant.Refused == nil || grant.Refused.Field != tc.field || !refused(found)) {
			t.Errorf("%d, %s: %+v, %+v", i, naming.KeyOf(share), grant, grant.Refused)
		}
	}
}

// A share that its FileServer never allowed takes no room from others.
func TestAShareThatIsNotAllowedTakesNoRoom(t *testing.T) {
	var c crowd
	c.limits.Total.Shares = 1
	c.add("forbidden")
	c.add("ns")
	if found, grant := c.pass(1, true); refused(found) || !grant.Admitted {
		t.Errorf("%+v", found)
	}
}

// A share of before there were limits has what it has, also if that is more than they allow.
func TestLimitsTakeNothingAway(t *testing.T) {
	var c crowd
	c.limits.Total = v1alpha1.ShareLimits{Shares: 1, Directories: 1, AccessNetworks: 1}
	for range 2 {
		c.add("ns", func(s *v1alpha1.FileShare) {
			s.Status.InventoryGeneration, s.Status.Directories.Count = 1, ptr.To[int32](7)
			s.Status.Conditions = []metav1.Condition{conditions.True(v1alpha1.FileSharePlaced, v1alpha1.ReasonReady, "")}
		})
	}
	for i := range c.shares {
		if found, grant := c.pass(i, true); refused(found) || !grant.Admitted {
			t.Errorf("share %d: %+v", i, found)
		}
	}
}

// What is served goes on as it was when it may not grow: no directory is made, no export changes, and each condition says so.
func TestGrowthThatIsRefusedLeavesWhatIsServed(t *testing.T) {
	o := twoServers()
	refusal := &limits.Refusal{Tenant: "team-a", Field: "spec.limits.perNamespace.directories", Unit: "directories", Limit: 3, Others: 2, Wanted: 9}
	o.share.Spec.Directories = []string{"{1..9}"}
	o.share.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/8"}}}
	o.grant = limits.Grant{Admitted: true, Directories: refusal, AccessNetworks: refusal}
	d := decide(o)
	if d.blocked != nil || len(d.directories.create) > 0 || len(d.exports.change)+len(d.exports.create)+len(d.exports.remove) > 0 {
		t.Errorf("%+v", d)
	}
	status := statusOf(o, d, outcome{})
	for _, kind := range []string{v1alpha1.FileSharePlaced, v1alpha1.FileShareExported, v1alpha1.ConditionReady} {
		if conditions.Reason(status.Conditions, kind) != v1alpha1.ReasonGrowthRefused || !strings.Contains(conditions.Message(status.Conditions, kind), "raise spec.limits.perNamespace.directories") {
			t.Errorf("%s: %s", kind, conditions.Message(status.Conditions, kind))
		}
	}
	if d.again != lookForRoom && d.again == 0 {
		t.Errorf("again in %s", d.again)
	}
}

func TestWhoMakesRoom(t *testing.T) {
	used := func(directories, networks int32) *v1alpha1.FileShare {
		s := builders.FileShare("ns", "s", "fs").Build()
		s.Status.LimitsUsed = v1alpha1.ShareLimitsUsed{Directories: &directories, AccessNetworks: &networks}
		return s
	}
	placed := func(reason string) *v1alpha1.FileShare {
		s := builders.FileShare("ns", "s", "fs").Build()
		s.Status.Conditions = []metav1.Condition{conditions.False(v1alpha1.FileSharePlaced, reason, "")}
		return s
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.FileShare
		want          bool
	}{
		"fewer directories":           {used(3, 1), used(2, 1), true},
		"fewer networks":              {used(3, 2), used(3, 1), true},
		"more":                        {used(3, 1), used(4, 1), false},
		"the same":                    {used(3, 1), used(3, 1), false},
		"let in":                      {placed(v1alpha1.ReasonLimitReached), used(3, 1), false},
		"in conflict, not waiting":    {builders.FileShare("ns", "s", "fs").Build(), placed(v1alpha1.ReasonPathConflict), true},
		"refused, and waits from now": {builders.FileShare("ns", "s", "fs").Build(), placed(v1alpha1.ReasonLimitReached), false},
	} {
		if got := makesRoom(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSharesThatAreGoneAreForgotten(t *testing.T) {
	var c crowd
	for range 300 {
		c.add("ns")
	}
	for i := range c.shares {
		c.pass(i, false)
	}
	if got := len(c.ledger.shares); got != 300 {
		t.Errorf("%d shares are remembered, want 300", got)
	}
	for i := 1; i < 300; i++ {
		c.ledger.forget(client.ObjectKeyFromObject(&c.shares[i]), c.shares[i].UID)
	}
	if got := len(c.ledger.shares); got != 1 {
		t.Errorf("with one share left %d are remembered", got)
	}
	c.ledger.forget(client.ObjectKeyFromObject(&c.shares[0]), "another")
	if got := len(c.ledger.shares); got != 1 {
		t.Error("a share was forgotten in the place of an earlier one of its name")
	}
	c.ledger.forget(client.ObjectKeyFromObject(&c.shares[0]), c.shares[0].UID)
	if len(c.ledger.shares) != 0 || len(c.ledger.books) != 0 {
		t.Errorf("left: %v, %v", c.ledger.shares, c.ledger.books)
	}
}
