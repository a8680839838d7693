package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/howdah/howdah/test/model"
)

func sample() *model.Run {
	run := &model.Run{Servers: 3, Link: 400e6, Processor: "A <processor>", CPUs: 2, MachineCPUs: 2}
	for servers := 1; servers <= 3; servers++ {
		run.Add(model.Way{Kind: model.Reads, Servers: servers, Connections: 16, ReadAhead: 4096}, float64(servers)*47e6)
		run.Add(model.Way{Kind: model.Creates, Servers: servers, Connections: 16, Percent: 5}, float64(servers)*100)
		run.Add(model.Way{Kind: model.ShortReads, Servers: 2, Connections: servers * servers, ReadAhead: 4096}, 94e6)
	}
	run.Add(model.Way{Kind: model.Reads, By: model.PlainGanesha, Servers: 1, Connections: 16, ReadAhead: 4096}, 47e6)
	return run
}

func TestAPictureIsWellFormedAndHasAllPanels(t *testing.T) {
	picture := draw(sample())
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
	if got := strings.Count(picture, `class="title"`); got != 4 {
		t.Errorf("%d panels, want 4:\n%s", got, picture)
	}
	if strings.Contains(picture, "%!") {
		t.Errorf("a value without its place:\n%s", picture)
	}
	for _, want := range []string{"A &lt;processor&gt;", "fit\"", "one plain ganesha", "Goals met"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is not in\n%s", want, picture)
		}
	}
}

func TestWhatWasNotMeasuredHasNoPanel(t *testing.T) {
	run := sample()
	run.Figures = run.Figures[:1]
	if got := strings.Count(draw(run), `class="title"`); got != 1 {
		t.Errorf("%d panels, want 1", got)
	}
}

func TestAPictureOfAnInvalidRunSaysSo(t *testing.T) {
	run := sample()
	run.CPUs = 1
	if picture := draw(run); !strings.Contains(picture, "INVALID") {
		t.Errorf("not in\n%s", picture)
	}
}

// TestKeptPicturesAreThoseOfTheirResults fails if a result was kept and make pictures was not run.
func TestKeptPicturesAreThoseOfTheirResults(t *testing.T) {
	results, err := filepath.Glob("../../../docs/pictures/*.json")
	if err != nil || len(results) == 0 {
		t.Fatalf("no results in docs/pictures: %v", err)
	}
	for _, result := range results {
		want, err := of(result)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(strings.TrimSuffix(result, ".json") + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("the picture beside %s is another one: make pictures", result)
		}
	}
}

func TestStepsOfAnAxis(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1.2: 0.5, 240: 50, 1000: 200, 4.9: 1} {
		if got := niceStep(most); got != want {
			t.Errorf("up to %g: steps of %g, want %g", most, got, want)
		}
	}
}
