package load

import (
	"maps"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Operation is a kind of work that an application waits for.
type Operation string

// Operations. The time of each includes all tries until it is done.
const (
	// Make is a file created, written, brought to stable storage and closed.
	Make Operation = "make"
	// Append is a block written into a file that stays open, and brought to stable storage.
	Append Operation = "append"
	// Read is a block read, around the client's cache where the file system can.
	Read Operation = "read"
	// OpenFile is a file opened for writing, and closed.
	OpenFile Operation = "open"
	// Rename is a file or a directory renamed.
	Rename Operation = "rename"
	// Remove is a file or a directory removed.
	Remove Operation = "remove"
	// List is a directory read.
	List Operation = "list"
	// Mkdir is a directory made.
	Mkdir Operation = "mkdir"
	// Lock is a block written by the holder of a lock, and read again.
	Lock Operation = "lock"
	// RandomRead and RandomWrite are the 8 KiB operations of the random load.
	RandomRead  Operation = "random read"
	RandomWrite Operation = "random write"
)

const (
	// stallFrom is from when on a stall is listed by itself.
	stallFrom = time.Second
	// maxListed bounds the lists of a result: stalls, findings, unfinished operations.
	maxListed = 20
	// maxSeconds bounds the figures of the random load, which are one for each second: the last two hours.
	maxSeconds = 7200
)

// Result is what a load found.
type Result struct {
	Run     string    `json:"run"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// OwnPause is the longest time in which this client itself did not run, in seconds. Stalls up to it say nothing about the storage.
	OwnPause    float64     `json:"ownPauseSeconds"`
	Directories []Directory `json:"directories"`
	// Together is the random load of all directories, with the effects of events; unset if there is one directory, or no event.
	Together *Random `json:"together,omitempty"`
}

// Directory is what a load found in one directory.
type Directory struct {
	Path string `json:"path"`
	// Operations counts those that are done; Kinds has them by kind.
	Operations int64                `json:"operations"`
	Kinds      map[Operation]Timing `json:"kinds"`
	// Longest is the operation that took longest, Stalls are the longest of those from a second on, in the order of time.
	Longest Stall   `json:"longestStall"`
	Stalls  []Stall `json:"stalls,omitempty"`
	// Errors counts errors by errno, without ESTALE, which is Stale. An operation that fails is tried again.
	Errors map[string]int64 `json:"errors,omitempty"`
	Stale  int64            `json:"estale"`
	// StaleListings are those of Stale that a listing under way got: its directory is open, and not looked up again by its path.
	StaleListings int64  `json:"estaleListings,omitempty"`
	FirstError    string `json:"firstError,omitempty"`
	// Doubtful counts answers that say that something was done already: a server was killed after it had done it, and was asked again.
	Doubtful int64 `json:"doubtful"`
	// BadBlocks, StolenLocks, LostNames and ExtraNames count wrong data; Findings describes the first of them.
	BadBlocks   int64    `json:"badBlocks"`
	StolenLocks int64    `json:"stolenLocks"`
	LostNames   int64    `json:"lostNames"`
	ExtraNames  int64    `json:"extraNames"`
	Findings    []string `json:"findings,omitempty"`
	// Unfinished are operations that were still waiting at the end.
	Unfinished []string `json:"unfinished,omitempty"`
	// Checked counts the blocks and names that were compared with what they should be.
	Checked int64   `json:"checked"`
	Random  *Random `json:"random,omitempty"`
}

// Timing is what is known of the operations of one kind.
type Timing struct {
	Count int64 `json:"count"`
	// Longest is in seconds.
	Longest float64   `json:"longestSeconds"`
	At      time.Time `json:"at"`
}

// Stall is an operation that took long.
type Stall struct {
	Seconds   float64   `json:"seconds"`
	At        time.Time `json:"at"`
	Operation Operation `json:"operation"`
	Name      string    `json:"name"`
}

// Random is what the random load measured.
type Random struct {
	// From is the start of the first of PerSecond, which has the operations done in each second.
	From      time.Time `json:"from"`
	PerSecond []int     `json:"perSecond"`
	// Effects are those of the events that were marked.
	Effects []Effect `json:"effects,omitempty"`
}

// Median and Least are operations per second, and the second in which they were least. The last second is not a whole one.
func (r *Random) Median() int { return median(r.whole()) }

// Least is the second with the fewest operations.
func (r *Random) Least() (count int, at time.Time) {
	whole := r.whole()
	if len(whole) == 0 {
		return 0, r.From
	}
	least := 0
	for i, n := range whole {
		if n < whole[least] {
			least = i
		}
	}
	return whole[least], r.From.Add(time.Duration(least) * time.Second)
}

func (r *Random) whole() []int { return r.PerSecond[:max(len(r.PerSecond)-1, 0)] }

// ErrorCount counts the errors, ESTALE among them.
func (d Directory) ErrorCount() (count int64) {
	for n := range maps.Values(d.Errors) {
		count += n
	}
	return count + d.Stale
}

// Wrong counts what is wrong with the data.
func (d Directory) Wrong() int64 { return d.BadBlocks + d.StolenLocks + d.LostNames + d.ExtraNames }

// errnoName is the name of an error's number, or "other".
func errnoName(errno syscall.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return "other"
}
