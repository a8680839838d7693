package exporter

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// crashSeeds is how many random schedules are tried: HOWDAH_CRASH_LIVES, or some that take seconds.
func crashSeeds(t *testing.T) (first, last uint64) {
	text := os.Getenv("HOWDAH_CRASH_LIVES")
	if text == "" {
		return 1, 30
	}
	from, to, ok := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 64)
	if !ok {
		return 1, first
	}
	last, err2 := strconv.ParseUint(to, 10, 64)
	if err != nil || err2 != nil {
		t.Fatalf("HOWDAH_CRASH_LIVES is %q: give a number of seeds, or the first and the last as in 7-7", text)
	}
	return first, last
}

// modelQuiet is how long everything may take to come to rest.
const modelQuiet = 25 * time.Minute

// A share is deleted and made again, with its data or without, while everything that works on it is killed: in the end its data is
// where it should be, or is gone where it should be, and at no time does a share show data that was deleted.
func TestNoScheduleOfDeletionsKeepsOrLosesDataAgainstThePolicy(t *testing.T) {
	first, last := crashSeeds(t)
	for seed := first; seed <= last; seed++ {
		if wrong, trail := runLives(t, seed, first == last); len(wrong) > 0 {
			t.Errorf("seed %d:\n  %s", seed, strings.Join(wrong, "\n  "))
			if first == last {
				t.Log("\n" + strings.Join(trail, "\n"))
			}
		}
	}
}

func runLives(t *testing.T, seed uint64, telling bool) (wrong, trail []string) {
	random := rand.New(rand.NewPCG(seed, 3))
	return inModel(t, seed, telling, func(u *users) {
		u.single, u.declared = random.IntN(4) == 0, random.IntN(2) == 0
		if random.IntN(2) == 0 {
			u.mustCreate(builders.FileShare("ns", "other", "fs").Depth(1).Build())
		}
		u.live(random)
	})
}

// inModel lets users do something, and judges what is left.
func inModel(t *testing.T, seed uint64, telling bool, do func(u *users)) (wrong, trail []string) {
	synctest.Test(t, func(t *testing.T) {
		u := &users{model: newModel(t, seed, telling), made: map[string]int{}}
		end := u.begin()
		do(u)
		time.Sleep(modelQuiet)
		u.Look()
		u.judge()
		end()
		for _, file := range u.files {
			_ = file.root.Close()
		}
		wrong, trail = u.wrong, u.trail
	})
	return wrong, trail
}

// The same with one mishap: at each call of each process from the deletion of a share to the readiness of the next of its name. Only with
// HOWDAH_CRASH_LIVES at each, else at some.
func TestADeletionThatIsCutAtAnyCallIsFinished(t *testing.T) {
	every := 1
	if os.Getenv("HOWDAH_CRASH_LIVES") == "" {
		every = 199
	}
	for _, first := range []v1alpha1.ReclaimPolicy{v1alpha1.ReclaimRetain, v1alpha1.ReclaimDelete} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the only share %v", first, alone), func(t *testing.T) {
				calls, schedules, at := 0, 0, 0
				if wrong, _ := cutOnce(t, first, alone, 0, noMishap, &calls); len(wrong) > 0 {
					t.Fatalf("without any mishap: %v", wrong)
				}
				for step := 1; step <= calls; step++ {
					for _, what := range mishaps {
						if at++; at%every != 0 {
							continue
						}
						schedules++
						if wrong, call := cutOnce(t, first, alone, step, what, nil); len(wrong) > 0 {
							t.Errorf("%q (call %d) %s:\n  %s", call, step, what, strings.Join(wrong, "\n  "))
						}
					}
				}
				t.Logf("%d calls, %d schedules", calls, schedules)
			})
		}
	}
}

// cutOnce has a share deleted and made again with the other policy, with one mishap.
func cutOnce(t *testing.T, first v1alpha1.ReclaimPolicy, alone bool, step int, what mishap, calls *int) (wrong []string, call string) {
	second := v1alpha1.ReclaimDelete
	if first == second {
		second = v1alpha1.ReclaimRetain
	}
	wrong, _ = inModel(t, 1, false, func(u *users) {
		u.declared = true
		if !alone {
			u.mustCreate(builders.FileShare("ns", "other", "fs").Depth(1).Build())
		}
		u.beginWith(first)
		u.cutWith(func(_ *modelProcess, at string) mishap {
			if u.calls != step {
				return noMishap
			}
			call = at
			return what
		})
		u.delete()
		if !u.create(second, 10*time.Minute) || !u.AwaitUsable(10*time.Minute) {
			u.fault("the share is not ready again")
		}
		u.Look()
		if calls != nil {
			*calls = u.calls
		}
		u.write()
	})
	return wrong, call
}

// live is what happens to the share in a schedule.
func (u *users) live(random *rand.Rand) {
	policies := []v1alpha1.ReclaimPolicy{v1alpha1.ReclaimRetain, v1alpha1.ReclaimDelete}
	u.create(policies[random.IntN(2)], time.Minute)
	if !u.AwaitUsable(time.Minute) {
		u.fault("the first share is not ready without any mishap")
		return
	}
	if !u.single {
		for _, name := range []string{"p", "p/a", "p/b", "p/c"} {
			u.mkdir(0, name, time.Minute)
		}
	}
	u.write()
	if len(u.files) == 0 {
		u.fault("nothing could be written")
	}
	var clients sync.WaitGroup
	defer clients.Wait()
	looking := make(chan struct{})
	defer close(looking)
	clients.Go(func() {
		for {
			select {
			case <-looking:
				return
			case <-time.After(u.between(20*time.Millisecond, 400*time.Millisecond)):
				u.Look()
			}
		}
	})
	u.spoil(random)
	lives := 1 + random.IntN(3)
	for n := 1; ; n++ {
		if !u.single && random.IntN(2) == 0 {
			name, now := "p/late-"+strconv.Itoa(n), len(u.lives)-1
			clients.Go(func() { u.mkdir(now, name, 30*time.Second) })
			time.Sleep(u.between(0, 50*time.Millisecond))
		}
		u.delete()
		if n > lives {
			time.Sleep(time.Minute)
			return
		}
		if !u.create(policies[random.IntN(2)], 10*time.Minute) {
			u.fault("the deletion of share %d does not end", n-1)
			return
		}
		switch random.IntN(4) {
		case 0:
			time.Sleep(u.between(0, 100*time.Millisecond))
		case 1:
			time.Sleep(u.between(0, 20*time.Second))
		default:
			u.AwaitUsable(3 * time.Minute)
			u.write()
		}
		if n == lives && random.IntN(2) == 0 {
			time.Sleep(time.Minute)
			return
		}
	}
}

// spoil has some calls go wrong from now on.
func (u *users) spoil(random *rand.Rand) {
	left, rare := random.IntN(5), 5+random.IntN(60)
	own := rand.New(rand.NewPCG(random.Uint64(), 5))
	away := random.IntN(4) == 0
	u.mu.Lock()
	u.laggy = random.IntN(3) > 0
	u.cutting = func(*modelProcess, string) mishap {
		if left == 0 || own.IntN(rare) > 0 {
			return noMishap
		}
		left--
		return mishaps[own.IntN(len(mishaps))]
	}
	server := naming.DataServer("fs", int32(random.IntN(modelServers)))
	p := u.alive[server]
	if away {
		u.out[server] = time.Now().Add(time.Duration(5+random.IntN(120)) * time.Second)
	}
	u.mu.Unlock()
	if away && p != nil {
		p.die()
		time.Sleep(u.between(0, 10*time.Second))
	}
}

// beginWith makes a share with data.
func (u *users) beginWith(policy v1alpha1.ReclaimPolicy) {
	u.create(policy, time.Minute)
	u.AwaitUsable(time.Minute)
	for _, name := range []string{"p", "p/a", "p/b"} {
		u.mkdir(0, name, time.Minute)
	}
	u.write()
	time.Sleep(10 * time.Second)
}

// A share takes the data of its name with it, whether or not a data server was asked to export it by then.
func TestAShareThatIsDeletedAtOnceTakesItsDataWithIt(t *testing.T) {
	wrong, trail := inModel(t, 1, true, func(u *users) {
		u.beginWith(v1alpha1.ReclaimRetain)
		u.delete()
		fails := func(_ *modelProcess, what string) mishap {
			if strings.HasPrefix(what, "API create ShareExport") {
				return refused
			}
			return noMishap
		}
		u.cutWith(fails)
		u.create(v1alpha1.ReclaimDelete, time.Minute)
		for share := (&v1alpha1.FileShare{}); len(share.Finalizers) == 0; time.Sleep(time.Millisecond) {
			_ = u.api.Get("s", share)
		}
		time.Sleep(time.Second)
		u.delete()
		time.Sleep(time.Second)
		u.cutWith(func(*modelProcess, string) mishap { return noMishap })
		u.create(v1alpha1.ReclaimRetain, time.Minute)
		u.AwaitUsable(time.Minute)
	})
	if len(wrong) > 0 {
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), strings.Join(trail, "\n"))
	}
}

// ShareDirectories that are taken back into use get a new state first and lose their label then. In between they are both.
func TestAShareThatIsDeletedWhileItTakesItsDirectoriesBackGoes(t *testing.T) {
	wrong, trail := inModel(t, 1, true, func(u *users) {
		u.beginWith(v1alpha1.ReclaimRetain)
		u.delete()
		between := make(chan struct{})
		u.cutWith(func(_ *modelProcess, what string) mishap {
			if !strings.Contains(what, `"howdah.io/retained":null`) {
				return noMishap
			}
			select {
			case <-between:
			default:
				close(between)
			}
			return refused
		})
		u.create(v1alpha1.ReclaimRetain, time.Minute)
		<-between
		u.delete()
		time.Sleep(time.Minute)
		u.cutWith(func(*modelProcess, string) mishap { return noMishap })
		if !u.create(v1alpha1.ReclaimRetain, time.Minute) {
			u.fault("the deletion does not end")
		}
		u.AwaitUsable(time.Minute)
	})
	if len(wrong) > 0 {
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), strings.Join(trail, "\n"))
	}
}
