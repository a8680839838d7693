package model

import (
	"slices"
	"time"

	"github.com/howdah/howdah/test/verdict"
)

// Kind is what a measurement measured.
type Kind string

// Kinds. Rates are bytes of files per second but for Names and Entries.
const (
	RawTCP       Kind = "plain TCP"
	Reads        Kind = "reads of 4 MiB through the namespace mount"
	DirectReads  Kind = "reads of 4 MiB through direct mounts of the exports"
	Writes       Kind = "writes of 4 MiB, with fsync"
	RandomDirect Kind = "random reads of 8 KiB, O_DIRECT"
	RandomCached Kind = "random reads of 8 KiB, buffered"
	Mkdir        Kind = "mkdir of distributed directories, one process"
	MkdirMany    Kind = "mkdir of distributed directories, four processes"
	Entries      Kind = "first entries into distributed directories"
)

// Way is how a client reached the servers in a measurement.
type Way struct {
	Kind Kind
	// Servers is how many data servers had something to do.
	Servers int
	// Connections is nconnect.
	Connections int
	// Delay is what the link adds to a round trip.
	Delay time.Duration
	// ReadAhead of the client's mounts in KiB.
	ReadAhead int
}

// IsJudged tells whether a ratio with a goal has this way in it. Others may take all of the CPU.
func (w Way) IsJudged() bool {
	return w.usual() && (w.Kind == RawTCP || w.Kind == Reads || w.Kind == DirectReads)
}

// Figure is what was measured of a way: one value of each round.
type Figure struct {
	Way
	Rounds []float64
}

// Median is the middle of the rounds.
func (f Figure) Median() float64 { return verdict.Median(f.Rounds) }

// Run is all that one run has measured.
type Run struct {
	When   time.Time
	Kernel string
	// CPUs of this machine, which runs servers and client.
	CPUs int
	// Servers is the largest number of data servers.
	Servers int
	// Link is the cap of each server's link in bits per second, with all headers.
	Link    float64
	Figures []Figure
	Windows []verdict.Window
}

// Add puts a measured value to the others of its way.
func (r *Run) Add(way Way, value float64) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Way == way })
	if i < 0 {
		r.Figures = append(r.Figures, Figure{Way: way})
		i = len(r.Figures) - 1
	}
	r.Figures[i].Rounds = append(r.Figures[i].Rounds, value)
}

// of is the figure of a kind with a number of servers and the usual mount; it has no rounds if there is none.
func (r *Run) of(kind Kind, servers int) Figure {
	for _, f := range r.Figures {
		if f.Kind == kind && f.Servers == servers && f.usual() {
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

// usual tells whether a way is that of the mount that Howdah recommends, without delay.
func (w Way) usual() bool {
	return w.Delay == 0 && (w.Connections == 0 || w.Connections == UsualConnections) && (w.ReadAhead == 0 || w.ReadAhead == UsualReadAhead)
}
