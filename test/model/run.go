package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/howdah/howdah/test/verdict"
)

// Kind is what a measurement measured.
type Kind string

// Kinds. Rates are bytes of files per second, but for those that counted names.
const (
	RawTCP Kind = "plain TCP"
	Reads  Kind = "reads of 4 MiB through the namespace mount"
	// ShortReads are of half the size, for many ways at once.
	ShortReads  Kind = "reads of 4 MiB, 96 MiB of each server"
	DirectReads Kind = "reads of 4 MiB through direct mounts of the exports"
	// HotReads are of one directory whose files each client reads all; Servers is how many data servers serve it.
	HotReads           Kind = "reads of all files of one flat directory"
	Writes             Kind = "writes of 4 MiB, with fsync"
	RandomDirect       Kind = "random reads of 8 KiB, O_DIRECT"
	RandomCached       Kind = "random reads of 8 KiB, buffered"
	RandomDirectWrites Kind = "random writes of 8 KiB, O_DIRECT"
	RandomCachedWrites Kind = "random writes of 8 KiB, buffered, with fsync"
	Creates            Kind = "files of 4 KiB made"
	Stats              Kind = "files looked up"
	OpenReads          Kind = "files opened and read"
	Unlinks            Kind = "files removed"
	Mkdir              Kind = "mkdir of distributed directories, one process"
	MkdirMany          Kind = "mkdir of distributed directories, four processes"
	Entries            Kind = "first entries into distributed directories"
)

// SmallFiles are the kinds of a measurement of small files, in their order.
var SmallFiles = []Kind{Creates, Stats, OpenReads, Unlinks}

// counted are the kinds whose rates are pieces per second.
var counted = append([]Kind{Mkdir, MkdirMany, Entries}, SmallFiles...)

// IsBytes tells whether it is bytes that were counted.
func (k Kind) IsBytes() bool { return !slices.Contains(counted, k) }

// Server is what served; "" is Howdah.
type Server string

// Servers that Howdah is measured beside, each with a link of the same speed.
const (
	// PlainGanesha is Debian's nfs-ganesha with one export and no other part of Howdah.
	PlainGanesha Server = "one plain ganesha"
	// KernelServer is in a machine of User-mode Linux, as the client is.
	KernelServer Server = "the kernel's server, emulated"
)

// Way is how clients reached servers in a measurement.
type Way struct {
	Kind Kind
	By   Server `json:",omitempty"`
	// Servers is how many data servers had something to do.
	Servers int
	// Clients is how many client machines there were, each with a mount of its own; 0 is one.
	Clients int `json:",omitempty"`
	// Connections is nconnect.
	Connections int
	// Delay is what the link adds to a round trip.
	Delay time.Duration `json:",omitempty"`
	// ReadAhead of the client's mounts in KiB.
	ReadAhead int
	// Percent of a CPU is what each server may use; 0 is all that there is.
	Percent int `json:",omitempty"`
}

// IsJudged tells whether a ratio with a goal has this way in it. Others may take all of the CPU.
func (w Way) IsJudged() bool {
	return w.usual() && (w.Kind == Reads || w.Kind == DirectReads) || w.Kind == RawTCP || w.Kind == HotReads
}

// HotServers are the numbers of data servers that a hot directory is measured with, up to most: 2, 3, and the most.
func HotServers(most int) []int {
	return slices.Compact([]int{2, min(3, most), most})
}

// Figure is what was measured of a way: one value of each round.
type Figure struct {
	Way
	Rounds []float64
	// CPU is how many CPU seconds the serving processes took for each GB, where that was measured.
	CPU []float64 `json:",omitempty"`
}

// Median is the middle of the rounds.
func (f Figure) Median() float64 { return verdict.Median(f.Rounds) }

// Run is all that one run has measured.
type Run struct {
	When   time.Time
	Kernel string
	// Processor is this machine's. It has MachineCPUs; servers and clients may use CPUs of them.
	Processor         string
	CPUs, MachineCPUs int
	// Servers is the largest number of data servers.
	Servers int
	// Link is the cap of each server's link in bits per second, with all headers.
	Link    float64
	Figures []Figure
	Windows []verdict.Window
	// Missing says what was to be measured and was not, and why.
	Missing []string `json:",omitempty"`
	// Settings are those that were compared.
	Settings []Comparison `json:",omitempty"`
}

// Add puts a measured value to the others of its way.
func (r *Run) Add(way Way, value float64) {
	figure := r.figure(way)
	figure.Rounds = append(figure.Rounds, value)
}

// AddCPU puts CPU seconds per GB to a way.
func (r *Run) AddCPU(way Way, seconds float64) {
	figure := r.figure(way)
	figure.CPU = append(figure.CPU, seconds)
}

func (r *Run) figure(way Way) *Figure {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Way == way })
	if i < 0 {
		r.Figures = append(r.Figures, Figure{Way: way})
		i = len(r.Figures) - 1
	}
	return &r.Figures[i]
}

// Miss notes once that something was not measured.
func (r *Run) Miss(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Missing, text) {
		r.Missing = append(r.Missing, text)
	}
}

// of is the figure of a kind with a number of Howdah's servers and the usual mount; it has no rounds if there is none.
func (r *Run) of(kind Kind, servers int) Figure { return r.by("", kind, servers) }

// by is that of a server.
func (r *Run) by(server Server, kind Kind, servers int) Figure {
	return r.find(func(w Way) bool { return w.By == server && w.Kind == kind && w.Servers == servers && w.usualMount() })
}

func (r *Run) find(is func(Way) bool) Figure {
	for _, f := range r.Figures {
		if is(f.Way) {
			return f
		}
	}
	return Figure{}
}

// Connections and read-ahead of the mount that Howdah recommends.
const (
	UsualConnections = 16
	UsualReadAhead   = 4096 // KiB
)

// usual tells whether a way is that of Howdah and of the mount that it recommends, by one client, and nothing held back but by links.
func (w Way) usual() bool { return w.By == "" && w.usualMount() }

func (w Way) usualMount() bool {
	return w.Delay == 0 && w.Clients <= 1 && w.Percent == 0 &&
		(w.Connections == 0 || w.Connections == UsualConnections) && (w.ReadAhead == 0 || w.ReadAhead == UsualReadAhead)
}
