package main

import (
	"strings"
	"testing"
)

func TestReportNamesWhatMissesItsGoal(t *testing.T) {
	figures := []figure{
		{rawTCP, []float64{19e6, 18e6, 20e6}},
		{oneServer, []float64{19e6}},
		{allServers, []float64{57e6}},
		{directMount, []float64{60e6}},
		{narrowMount, []float64{57e6}},
	}
	text := report(figures, 3, 20e6, 10, 3)
	for _, want := range []string{
		"one mount over 3 servers / (3 x cap)                               0.950  goal >= 0.95: met",
		"namespace mount / direct mounts                                    0.950  goal >= 0.98: NOT MET",
		"raw TCP from one capped node                     19.0 MB/s   (19.0 18.0 20.0)",
		"nconnect=16 / nconnect=1                                           1.000\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}

func TestMedianOfAnEvenNumberIsTheMiddle(t *testing.T) {
	if got := (figure{rounds: []float64{4, 1, 3, 2}}).median(); got != 2.5 {
		t.Errorf("got %v", got)
	}
}

func TestOtherOptionsStayWhenConnectionsChange(t *testing.T) {
	got := strings.Join(withNconnect([]string{"vers=4.1", "nconnect=16", "hard"}, 1), ",")
	if got != "vers=4.1,nconnect=1,hard" {
		t.Errorf("got %s", got)
	}
}
