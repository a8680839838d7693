package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/howdah/howdah/test/model"
	"github.com/howdah/howdah/test/verdict"
)

// Sizes in pixels: a panel, and in it what is left and below of the plot, above it and right of it.
const (
	panelWidth, panelHeight   = 440, 300
	left, below, above, right = 52, 44, 30, 10
	plotWidth                 = panelWidth - left - right
	plotHeight                = panelHeight - above - below
	headHeight                = 44
)

// style has colours that are read on a light and on a dark page, and by most who do not tell red from green (Okabe and Ito).
const style = `<style>
svg { color: #1b1f24; background: #ffffff; }
text { font-size: 12px; fill: currentColor; }
.title { font-size: 13px; font-weight: bold; }
.tick { font-size: 11px; }
.grid { stroke: currentColor; stroke-opacity: 0.15; }
.axis { stroke: currentColor; }
.s0 { stroke: #0072b2; fill: #0072b2; } .s1 { stroke: #e69f00; fill: #e69f00; } .s2 { stroke: #009e73; fill: #009e73; } .s3 { stroke: #cc79a7; fill: #cc79a7; }
.fit { stroke-dasharray: 4 3; fill: none; }
@media (prefers-color-scheme: dark) { svg { color: #e6e6e6; background: #16191d; } .s0 { stroke: #56b4e9; fill: #56b4e9; } }
</style>
`

// draw makes the picture of a run.
func draw(run *model.Run) string {
	all := panels(run)
	height := headHeight + (len(all)+1)/2*panelHeight
	var svg strings.Builder
	title := fmt.Sprintf("make bench-model, %s, Linux %s as client, %d CPUs for all (%s)", run.When.UTC().Format(time.DateOnly), run.Kernel, run.CPUs, run.Processor)
	fmt.Fprintf(&svg, "<!-- Made by test/model/picture from the .json beside it. -->\n")
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\""+
		" font-family=\"DejaVu Sans, Helvetica, sans-serif\">\n<title>%s</title>\n%s", 2*panelWidth, height, 2*panelWidth, height, html.EscapeString(title), style)
	fmt.Fprintf(&svg, "<text x=\"10\" y=\"18\">%s</text>\n", html.EscapeString(title))
	fmt.Fprintf(&svg, "<text x=\"10\" y=\"36\">%s</text>\n", html.EscapeString(judged(run)+". Medians; bars are the lowest and the highest round, dashes straight lines"))
	for i, p := range all {
		fmt.Fprintf(&svg, "<g transform=\"translate(%d,%d)\">\n", i%2*panelWidth, headHeight+i/2*panelHeight)
		p.draw(&svg)
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// judged says what the run is worth: a picture of an INVALID run is not to look like one of a good run.
func judged(run *model.Run) string {
	switch _, outcome := run.Report(); outcome {
	case verdict.GoalsMet:
		return "Goals met"
	case verdict.GoalsNotMet:
		return "A goal is not met"
	}
	return "INVALID: something else disturbed the run"
}

func (p *panel) draw(svg *strings.Builder) {
	most, last := 0.0, float64(len(p.ticks))
	for _, s := range p.series {
		for _, at := range s.points {
			most, last = max(most, at.y, at.high), max(last, at.x)
		}
	}
	step := niceStep(most)
	top := step * math.Ceil(most/step)
	x := func(v float64) float64 { return left + (v-0.5)/last*plotWidth }
	y := func(v float64) float64 { return above + plotHeight - v/top*plotHeight }
	fmt.Fprintf(svg, "<text class=\"title\" x=\"%d\" y=\"16\">%s</text>\n", left, html.EscapeString(p.title))
	for v := 0.0; v <= top+step/2; v += step {
		across(svg, "grid", y(v))
		fmt.Fprintf(svg, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", left-5, y(v)+4, math.Round(v*100)/100)
	}
	for n := 1; n <= int(last); n++ {
		label := fmt.Sprint(n)
		if len(p.ticks) > 0 {
			label = p.ticks[n-1]
		}
		fmt.Fprintf(svg, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(float64(n)), above+plotHeight+16, html.EscapeString(label))
	}
	across(svg, "axis", y(0))
	fmt.Fprintf(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left+plotWidth, panelHeight-8, html.EscapeString(p.across))
	fmt.Fprintf(svg, "<text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", above+plotHeight/2, html.EscapeString(p.up))
	for i, s := range p.series {
		p.drawSeries(svg, i, s, x, y)
		fmt.Fprintf(svg, "<rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"8\" height=\"8\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			i, left+8, above+4+15*i, left+20, above+12+15*i, html.EscapeString(s.name))
	}
}

// across is a line from the left to the right.
func across(svg *strings.Builder, class string, y float64) {
	fmt.Fprintf(svg, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", class, left, left+plotWidth, y, y)
}

func (p *panel) drawSeries(svg *strings.Builder, i int, s series, x, y func(float64) float64) {
	const barWidth = 12
	if p.bars {
		for _, at := range s.points {
			from := x(at.x) + float64(i*barWidth) - float64(len(p.series)*barWidth)/2
			fmt.Fprintf(svg, "<rect class=\"s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", i, from, y(at.y), barWidth-1, y(0)-y(at.y))
		}
		return
	}
	if s.line != nil {
		unit := 1.0
		if s.line.Kind.IsBytes() {
			unit = 1e6
		}
		first, last := s.points[0].x, s.points[len(s.points)-1].x
		at := func(n float64) float64 { return y((s.line.Offset + s.line.Slope*n) / unit) }
		fmt.Fprintf(svg, "<line class=\"s%d fit\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", i, x(first), at(first), x(last), at(last))
	}
	for _, at := range s.points {
		fmt.Fprintf(svg, "<line class=\"s%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", i, x(at.x), x(at.x), y(at.low), y(at.high))
		fmt.Fprintf(svg, "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", i, x(at.x), y(at.y))
	}
}

// niceStep is 1, 2 or 5 times a power of ten, so that about five of it are most.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power*5 >= most {
			return factor * power
		}
	}
	return 10 * power
}
