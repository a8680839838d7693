package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/howdah/howdah/test/model"
	"github.com/howdah/howdah/test/verdict"
)

// point is a median with the lowest and the highest round.
type point struct{ x, y, low, high float64 }

// series is a row of points, and the straight line that was fitted to them, if there is one.
type series struct {
	name   string
	points []point
	line   *model.Line
}

// panel is one plot.
type panel struct {
	title, across, up string
	series            []series
	// ticks are the labels of the axis across, at 1, 2, …; none: the numbers of the points.
	ticks []string
	// bars are drawn from the axis, and not points.
	bars bool
}

// panels are the plots of what a run has measured.
func panels(run *model.Run) (all []panel) {
	lines := run.Lines()
	line := func(kind model.Kind, percent int) *model.Line {
		i := slices.IndexFunc(lines, func(l model.Line) bool { return l.Kind == kind && l.Percent == percent })
		if i < 0 {
			return nil
		}
		return &lines[i]
	}
	bytes := panel{title: fmt.Sprintf("Through one mount, links of %.0f Mbit/s", run.Link/1e6), across: "data servers", up: "MB/s"}
	for name, kind := range inOrder("plain TCP", model.RawTCP, "reads", model.Reads, "writes, with fsync", model.Writes) {
		bytes.add(series{name: name, line: line(kind, 0), points: points(run, func(w model.Way) (float64, bool) {
			return float64(w.Servers), w.Kind == kind && w.By == "" && w.Clients == 0
		})})
	}
	small := panel{title: "Small files, each server with a part of a CPU", across: "data servers", up: "files a second"}
	for name, kind := range inOrder("made", model.Creates, "looked up", model.Stats, "opened and read", model.OpenReads, "removed", model.Unlinks) {
		percent := 0
		found := points(run, func(w model.Way) (float64, bool) {
			is := w.Kind == kind && w.By == "" && w.Percent > 0
			if is {
				percent = w.Percent
			}
			return float64(w.Servers), is
		})
		small.add(series{name: name, line: line(kind, percent), points: found})
	}
	delays := panel{title: "Two servers: connections and delay", across: "nconnect", up: "MB/s", ticks: []string{"1", "2", "4", "8", "16"}}
	for _, delay := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond} {
		delays.add(series{name: fmt.Sprintf("%s of delay", delay), points: points(run, func(w model.Way) (float64, bool) {
			at := slices.Index([]int{1, 2, 4, 8, 16}, w.Connections)
			return float64(at + 1), w.Kind == model.ShortReads && w.Servers == 2 && w.Delay == delay && w.Clients == 0 && w.ReadAhead == model.UsualReadAhead
		})})
	}
	for _, p := range []panel{bytes, small, delays, beside(run)} {
		if len(p.series) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// beside is one of Howdah's servers as a part of one plain ganesha, and of the kernel's own server.
func beside(run *model.Run) panel {
	p := panel{title: "One of Howdah's servers / another", up: "1 is as fast", bars: true}
	kinds := map[model.Kind]string{
		model.Reads: "read", model.Writes: "write", model.RandomDirect: "8K r", model.RandomDirectWrites: "8K w",
		model.Creates: "make", model.Stats: "look up", model.OpenReads: "open", model.Unlinks: "remove",
	}
	order := []model.Kind{model.Reads, model.Writes, model.RandomDirect, model.RandomDirectWrites, model.Creates, model.Stats, model.OpenReads, model.Unlinks}
	for _, by := range []model.Server{model.PlainGanesha, model.KernelServer} {
		s := series{name: string(by)}
		for _, kind := range order {
			at := slices.Index(p.ticks, kinds[kind])
			own, other := median(run, "", kind), median(run, by, kind)
			if own == 0 || other == 0 {
				continue
			}
			if at < 0 {
				p.ticks = append(p.ticks, kinds[kind])
				at = len(p.ticks) - 1
			}
			s.points = append(s.points, point{x: float64(at + 1), y: own / other})
		}
		p.add(s)
	}
	return p
}

func median(run *model.Run, by model.Server, kind model.Kind) float64 {
	for _, f := range run.Figures {
		if f.By == by && f.Kind == kind && f.Servers == 1 && f.Percent == 0 && f.Clients == 0 && f.Delay == 0 {
			return f.Median()
		}
	}
	return 0
}

func (p *panel) add(s series) {
	if len(s.points) > 0 {
		p.series = append(p.series, s)
	}
}

// points are the figures that belong to a row, by their place in it.
func points(run *model.Run, place func(model.Way) (x float64, is bool)) (found []point) {
	for _, f := range run.Figures {
		x, is := place(f.Way)
		if !is || len(f.Rounds) == 0 {
			continue
		}
		unit := 1.0
		if f.Kind.IsBytes() {
			unit = 1e6
		}
		found = append(found, point{x, verdict.Median(f.Rounds) / unit, slices.Min(f.Rounds) / unit, slices.Max(f.Rounds) / unit})
	}
	slices.SortFunc(found, func(a, b point) int { return int(a.x - b.x) })
	return found
}

// inOrder goes through names and kinds that stand in turns.
func inOrder(pairs ...any) func(yield func(string, model.Kind) bool) {
	return func(yield func(string, model.Kind) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(pairs[i].(string), pairs[i+1].(model.Kind)) {
				return
			}
		}
	}
}
