package spare

import (
	"testing"
	"time"
)

func TestUseIsTheDifferenceOfTwoMoments(t *testing.T) {
	before, err := parse("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parse("cpu  140 5 120 715 105 3 2 10 90 0\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := after.Since(before), (Use{Idle: 0.2, Stolen: 0.1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := after.Since(after); got != (Use{}) {
		t.Errorf("in no time: %+v", got)
	}
}

func TestWhatIsNoStatIsRefused(t *testing.T) {
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 five 6 7 8"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q gives %+v", text, got)
		}
	}
}

func TestTheMachineAnswers(t *testing.T) {
	before, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	share, err := Share(50 * time.Millisecond)
	if err != nil || share <= 0 || share > 1 {
		t.Errorf("share %v, %v", share, err)
	}
	after, err := Now()
	if use := after.Since(before); err != nil || use.Idle < 0 || use.Idle+use.Stolen > 1 {
		t.Errorf("%+v, %v", use, err)
	}
}
