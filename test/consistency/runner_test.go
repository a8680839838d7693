package consistency

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a share in memory with a fault.
type memory struct {
	mu    sync.Mutex
	state tree
	files map[string]string
	// older are the states before the last changes.
	older []tree
	fault fault
}

type fault string

const (
	none fault = ""
	// lag: what is shown is older. late: the same, but has a client's own changes.
	lag  fault = "lag"
	late fault = "late"
	// torn: a rename takes two steps.
	torn fault = "torn"
	// lost: each tenth change is answered as done, and is not.
	lost fault = "lost"
	// deaf: each tenth change is done without an answer.
	deaf fault = "deaf"
	// unlocked: locks do not keep others out.
	unlocked fault = "unlocked"
	// cached: files are read as they were.
	cached fault = "cached"
)

// user is a client of it.
type user struct {
	m      *memory
	random *rand.Rand
	known  map[string]string
	// own is how many changes there were with this user's last one.
	own int
}

func (u *user) Server() string { return "" }

func (u *user) nap() { time.Sleep(time.Duration(u.random.IntN(2000)) * time.Microsecond) }

func (u *user) Do(ctx context.Context, r Request) (Answer, bool, error) {
	u.nap()
	defer u.nap()
	if r.Kind == Read || r.Kind == Write || r.Kind == Swap {
		return u.file(r), false, nil
	}
	m := u.m
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.state
	shown := len(m.older) - 3
	if m.fault == late {
		shown = max(shown, u.own)
	}
	if (m.fault == lag || m.fault == late) && shown >= 0 && shown < len(m.older) && !r.Kind.Changes() {
		state = m.older[shown]
	}
	var a Answer
	if refusals := state.refusals(r); len(refusals) > 0 {
		a.Error = refusals[0]
		return a, false, nil
	}
	if r.Kind == List {
		a.Names = state.names(r.Path)
	}
	if !r.Kind.Changes() {
		return a, false, nil
	}
	m.older = append(m.older, m.state)
	u.own = len(m.older)
	switch tenth := u.random.IntN(10) == 0; {
	case m.fault == lost && tenth:
		return a, false, nil
	case m.fault == torn && r.Kind == Rename && r.Path != r.To:
		m.state = m.state.without(r.Path)
		m.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		m.mu.Lock()
		m.state = m.state.with(r.To)
		return a, false, nil
	case m.fault == deaf && tenth:
		m.state = m.state.apply(r)
		return a, false, errors.New("no answer")
	}
	m.state = m.state.apply(r)
	return a, false, nil
}

func (u *user) file(r Request) Answer {
	m := u.m
	m.mu.Lock()
	defer m.mu.Unlock()
	a := Answer{Got: m.files[r.Path]}
	if known, ok := u.known[r.Path]; ok && m.fault == cached && u.random.IntN(4) > 0 {
		a.Got = known
	}
	u.known[r.Path] = a.Got
	if r.Kind == Swap && m.fault == unlocked {
		m.mu.Unlock()
		u.nap()
		m.mu.Lock()
	}
	if r.Kind != Read {
		m.files[r.Path] = r.Value
	}
	if r.Kind == Write {
		a.Got = ""
	}
	return a
}

// Whole runs: clients in fake time, on a share that is right, and on shares with a fault each, which must be found.
func TestARunFindsWhatIsWrongWithAShare(t *testing.T) {
	for _, test := range []struct {
		fault     fault
		promise   Promise
		tree, reg bool
		open      bool
	}{
		{fault: none},
		{fault: deaf},
		{fault: lag, tree: true},
		{fault: late, tree: true},
		{fault: late, promise: Promise{Stale: 200 * time.Millisecond}},
		{fault: lag, promise: Promise{Stale: 200 * time.Millisecond}, tree: true},
		{fault: torn, tree: true},
		{fault: lost, tree: true},
		{fault: unlocked, reg: true},
		{fault: cached, reg: true, open: true},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			var history History
			synctest.Test(t, func(t *testing.T) {
				m := &memory{state: newTree("k0", "k1"), files: map[string]string{}, fault: test.fault}
				runner := NewRunner()
				var users []Client
				for i := range 4 {
					users = append(users, &user{m: m, random: rand.New(rand.NewPCG(7, uint64(i))), known: map[string]string{}})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				directories := &Directories{Kept: []string{"k0", "k1"}, Gone: []string{"g"}, Names: []string{"x", "y"}}
				files := &Files{Locked: []string{"a"}, Open: []string{"b"}}
				runner.Load(ctx, 1, users, time.Millisecond, time.Second, func(random *rand.Rand) Request {
					if random.IntN(2) == 0 {
						return files.Next(random)
					}
					return directories.Next(random)
				})
				history = runner.History()
			})
			for what, found := range map[string]struct {
				v    Verdict
				want bool
			}{
				"directories":         {Tree(history, []string{"k0", "k1"}, test.promise, limit), test.tree},
				"files with locks":    {Registers(history, limit), test.reg},
				"files without locks": {CloseToOpen(history), test.open},
			} {
				if len(found.v.Undecided) > 0 || (len(found.v.Violations) > 0) != found.want {
					t.Errorf("%s of %d operations: violations %v, undecided %v; want violations: %v", what, len(history), found.v.Violations, found.v.Undecided, found.want)
				}
			}
			answered, _ := history.Count()
			if answered < 100 || !slices.ContainsFunc(history, func(o Operation) bool { return o.Kind == Rename && o.Error == "" }) {
				t.Errorf("%d operations with an answer are too few to mean anything", answered)
			}
		})
	}
}

// The check of a lab does not know which server a client had, so all that is done while one is lost may have been done twice. Nine clients
// do hundreds of such operations, and the check must end all the same. It does not if they may also happen after their answers.
func TestManyOperationsThatMayBeDoneTwiceAreJudged(t *testing.T) {
	window := Window{Until: time.Hour}
	promise := Promise{Stale: 3 * time.Second, Behind: []Window{window}, Refusals: true}
	for fault, want := range map[fault]bool{none: false, lost: true} {
		var history History
		synctest.Test(t, func(t *testing.T) {
			m := &memory{state: newTree("k0", "k1"), files: map[string]string{}, fault: fault}
			var users []Client
			for i := range 9 {
				users = append(users, &user{m: m, random: rand.New(rand.NewPCG(7, uint64(i))), known: map[string]string{}})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
			defer cancel()
			runner := NewRunner()
			directories := &Directories{Kept: []string{"k0", "k1"}, Gone: []string{"g"}, Names: []string{"x", "y", "z"}}
			runner.Load(ctx, 1, users, time.Millisecond, time.Second, directories.Next)
			history = runner.History()
		})
		v := Tree(history.TwiceDuring(window), []string{"k0", "k1"}, promise, limit)
		if len(v.Undecided) > 0 || (len(v.Violations) > 0) != want {
			t.Errorf("fault %q in %d operations: violations %v, undecided %v", fault, len(history), v.Violations, v.Undecided)
		}
		if answered, _ := history.Count(); answered < 200 {
			t.Errorf("%d operations are too few to mean anything", answered)
		}
	}
}

// hung never answers.
type hung struct{}

func (hung) Server() string { return "" }

func (hung) Do(ctx context.Context, _ Request) (Answer, bool, error) {
	<-ctx.Done()
	return Answer{}, false, ctx.Err()
}

func TestAnOperationThatDoesNotEndIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := NewRunner()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		runner.Load(ctx, 1, []Client{hung{}}, 0, time.Minute, func(*rand.Rand) Request { return statX })
		history := runner.History()
		if len(history) != 1 || !history[0].Open() || runner.Now() != time.Second+time.Minute {
			t.Errorf("after %v: %v", runner.Now(), history)
		}
	})
}
