package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Finding is a kind of wrong data.
type Finding int

// Findings.
const (
	BadBlock Finding = iota
	StolenLock
	LostName
	ExtraName
)

// Meter measures the operations in one directory, and counts what is wrong. It may be used concurrently.
type Meter struct {
	now func() time.Time

	mutex   sync.Mutex
	found   Directory
	waiting map[int]operation
	next    int
}

// operation is one that is under way.
type operation struct {
	kind  Operation
	name  string
	began time.Time
}

// NewMeter makes a meter for a directory. now is the clock, with a monotonic reading.
func NewMeter(path string, now func() time.Time) *Meter {
	return &Meter{now: now, waiting: map[int]operation{}, found: Directory{Path: path, Kinds: map[Operation]Timing{}, Errors: map[string]int64{}}}
}

func (m *Meter) begin(kind Operation, name string) (id int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.next++
	m.waiting[m.next] = operation{kind, name, m.now()}
	return m.next
}

// end is the end of an operation; done is false if it was given up.
func (m *Meter) end(id int, done bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	work, now := m.waiting[id], m.now()
	delete(m.waiting, id)
	if !done {
		m.found.Unfinished = appendBounded(m.found.Unfinished, describe(work, now))
	}
	m.found.count(work, now, done)
}

func describe(work operation, now time.Time) string {
	return fmt.Sprintf("%s %s, waiting for %.1f s", work.kind, work.name, now.Sub(work.began).Seconds())
}

// count counts an operation that took until now.
func (d *Directory) count(work operation, now time.Time, done bool) {
	took := now.Sub(work.began)
	timing := d.Kinds[work.kind]
	if done {
		d.Operations++
		timing.Count++
	}
	stall := Stall{Seconds: took.Seconds(), At: work.began.UTC(), Operation: work.kind, Name: work.name}
	if stall.Seconds > timing.Longest {
		timing.Longest, timing.At = stall.Seconds, stall.At
	}
	d.Kinds[work.kind] = timing
	if stall.Seconds > d.Longest.Seconds {
		d.Longest = stall
	}
	if took < stallFrom {
		return
	}
	d.Stalls = append(d.Stalls, stall)
	if len(d.Stalls) > maxListed {
		shortest := slices.MinFunc(d.Stalls, func(a, b Stall) int { return cmp.Compare(a.Seconds, b.Seconds) })
		d.Stalls = slices.DeleteFunc(d.Stalls, func(s Stall) bool { return s == shortest })
	}
}

// failed counts an error of an operation.
func (m *Meter) failed(kind Operation, name string, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var errno syscall.Errno
	switch {
	case errors.Is(err, syscall.ESTALE):
		m.found.Stale++
		if isListing(err) {
			m.found.StaleListings++
		}
	case errors.As(err, &errno):
		m.found.Errors[errnoName(errno)]++
	default:
		m.found.Errors["other"]++
	}
	if m.found.FirstError == "" {
		m.found.FirstError = fmt.Sprintf("%s %s: %v (at %s)", kind, name, err, m.now().UTC().Format(clockFormat))
	}
}

func (m *Meter) doubtful() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.found.Doubtful++
}

// checked counts comparisons.
func (m *Meter) checked(count int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.found.Checked += int64(count)
}

// wrong counts wrong data.
func (m *Meter) wrong(what Finding, format string, args ...any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	switch what {
	case BadBlock:
		m.found.BadBlocks++
	case StolenLock:
		m.found.StolenLocks++
	case LostName:
		m.found.LostNames++
	case ExtraName:
		m.found.ExtraNames++
	}
	m.found.Findings = appendBounded(m.found.Findings, fmt.Sprintf(format, args...)+" (at "+m.now().UTC().Format(clockFormat)+")")
}

// counted counts an operation of the random load in its second.
func (m *Meter) counted() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now := m.now()
	if m.found.Random == nil {
		m.found.Random = &Random{From: now.UTC()}
	}
	r := m.found.Random
	second := int(now.Sub(r.From) / time.Second)
	if second >= len(r.PerSecond)+maxSeconds { // Nothing of what is known is of the last two hours.
		r.From, r.PerSecond, second = now.UTC(), nil, 0
	}
	for second >= len(r.PerSecond) {
		r.PerSecond = append(r.PerSecond, 0)
	}
	r.PerSecond[second]++
	if surplus := len(r.PerSecond) - 2*maxSeconds; surplus >= 0 {
		r.From = r.From.Add(time.Duration(surplus+maxSeconds) * time.Second)
		r.PerSecond = slices.Clone(r.PerSecond[surplus+maxSeconds:])
	}
}

// Found is what was found until now. Operations that still wait are unfinished, and count as stalls until now.
func (m *Meter) Found() Directory {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := m.found
	found.Kinds, found.Errors = maps.Clone(found.Kinds), maps.Clone(found.Errors)
	found.Stalls, found.Findings, found.Unfinished = slices.Clone(found.Stalls), slices.Clone(found.Findings), slices.Clone(found.Unfinished)
	if found.Random != nil {
		found.Random = &Random{From: found.Random.From, PerSecond: slices.Clone(found.Random.PerSecond)}
	}
	now := m.now()
	for _, id := range slices.Sorted(maps.Keys(m.waiting)) {
		found.Unfinished = appendBounded(found.Unfinished, describe(m.waiting[id], now))
		found.count(m.waiting[id], now, false)
	}
	return found
}

// Waiting is how long the oldest operation that is under way waits, and its description.
func (m *Meter) Waiting() (time.Duration, string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now, longest, text := m.now(), time.Duration(0), ""
	for _, work := range m.waiting {
		if took := now.Sub(work.began); took > longest {
			longest, text = took, describe(work, now)
		}
	}
	return longest, text
}

func appendBounded(list []string, text string) []string {
	if len(list) >= maxListed {
		return list
	}
	return append(list, text)
}
