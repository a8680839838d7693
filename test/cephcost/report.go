package main

import (
	"fmt"
	"strings"

	"github.com/howdah/howdah/test/verdict"
)

// Ways to the same Ceph.
const (
	fuse        = "ceph-fuse, no server between"
	howdahOne   = "Howdah, 1 data server"
	howdahThree = "Howdah, 3 data servers"
	plain       = "one plain ganesha, as Rook's CephNFS"
)

// What is measured of each way.
const (
	writeRate  = "sequential write, MB/s"
	readRate   = "sequential read, MB/s"
	createRate = "files of 4 KiB made and synced, per s"
	openRate   = "files opened and read, per s"
	removeRate = "files removed, per s"
	writeCPU   = "CPU s per GB written, serving processes"
	readCPU    = "CPU s per GB read, serving processes"
	writeAll   = "CPU s per GB written, the whole machine"
	readAll    = "CPU s per GB read, the whole machine"
	memory     = "memory of the serving processes, MB"
)

var (
	ways     = []string{fuse, plain, howdahOne, howdahThree}
	measures = []string{writeRate, readRate, createRate, openRate, removeRate, writeCPU, readCPU, writeAll, readAll, memory}
)

// limit bounds the ratio of one data server of Howdah's to the plain ganesha: both are the same program with the same back end, so what
// Howdah adds (signed handles, a client of Ceph for each share, metrics) is all that differs.
type limit struct {
	least, most float64 // 0: none.
}

var limits = map[string]limit{
	writeRate: {least: 0.9}, readRate: {least: 0.9}, createRate: {least: 0.9}, openRate: {least: 0.9}, removeRate: {least: 0.9},
	writeCPU: {most: 1.15}, readCPU: {most: 1.15}, memory: {most: 1.5},
}

// figures are the values of a run, by way and measure, one for each round.
type figures map[string]map[string][]float64

func (f figures) add(way, measure string, value float64) {
	if f[way] == nil {
		f[way] = map[string][]float64{}
	}
	f[way][measure] = append(f[way][measure], value)
}

func (f figures) median(way, measure string) float64 { return verdict.Median(f[way][measure]) }

// report is what the command prints: every figure with its rounds, then the ratios with their limits, or why none is judged.
func report(f figures, windows []window, rounds int) (string, verdict.Outcome) {
	reasons, result := whyInvalid(windows), verdict.GoalsMet
	var text strings.Builder
	if len(f) > 0 {
		result = f.tell(&text, rounds, len(reasons) == 0)
	}
	least := 1.0
	for _, w := range windows {
		if w.rest {
			least = min(least, w.Use.Idle)
		}
	}
	fmt.Fprintf(&text, "\nCPU of this machine while the lab rested between measurements: %.0f %% idle at the least\n", 100*least)
	if len(reasons) > 0 {
		text.WriteString(verdict.NotJudged("this machine had other things to do", reasons, ""))
		return text.String(), verdict.Invalid
	}
	return text.String(), result
}

// tell writes the figures and the ratios; valid: these are judged.
func (f figures) tell(text *strings.Builder, rounds int, valid bool) verdict.Outcome {
	result := verdict.GoalsMet
	fmt.Fprintf(text, "\nOne client, a process in each of 3 directories; %d rounds, medians (rounds); MB = 10^6 bytes\n", rounds)
	for _, measure := range measures {
		fmt.Fprintf(text, "\n%s\n", measure)
		for _, way := range ways {
			var each []string
			for _, value := range f[way][measure] {
				each = append(each, fmt.Sprintf("%.1f", value))
			}
			fmt.Fprintf(text, "  %-40s %9.1f   (%s)\n", way, f.median(way, measure), strings.Join(each, " "))
		}
	}
	for _, pair := range [][2]string{{howdahOne, plain}, {howdahThree, plain}, {howdahOne, fuse}, {howdahThree, fuse}, {plain, fuse}} {
		fmt.Fprintf(text, "\n%s / %s\n", pair[0], pair[1])
		for _, measure := range measures {
			below := f.median(pair[1], measure)
			if below == 0 {
				fmt.Fprintf(text, "  %-44s      -\n", measure)
				continue
			}
			ratio, judged := f.median(pair[0], measure)/below, ""
			if pair == [2]string{howdahOne, plain} && valid {
				var kept bool
				if judged, kept = judge(ratio, limits[measure]); !kept {
					result = verdict.GoalsNotMet
				}
			}
			fmt.Fprintf(text, "  %-44s %6.2f%s\n", measure, ratio, judged)
		}
	}
	return result
}

func judge(ratio float64, l limit) (words string, kept bool) {
	switch {
	case l.least > 0 && ratio < l.least:
		return fmt.Sprintf("  limit >= %.2f: NOT KEPT", l.least), false
	case l.least > 0:
		return fmt.Sprintf("  limit >= %.2f: kept", l.least), true
	case l.most > 0 && ratio > l.most:
		return fmt.Sprintf("  limit <= %.2f: NOT KEPT", l.most), false
	case l.most > 0:
		return fmt.Sprintf("  limit <= %.2f: kept", l.most), true
	}
	return "", true
}
