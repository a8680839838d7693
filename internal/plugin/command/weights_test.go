package command

import (
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/serverpod"
)

func TestRates(t *testing.T) {
	at := func(start, second int, bytes uint64) serverpod.Served {
		return serverpod.Served{Start: start, Time: time.Unix(int64(second), 0), Bytes: map[string]uint64{"s": bytes}}
	}
	got, err := ratesBetween(at(1, 100, 5000), at(1, 110, 25_000))
	if err != nil || got["s"] != 2000 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ratesBetween(at(1, 100, 5000), at(2, 110, 10)); err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("another start: %v", err)
	}
	if _, err := ratesBetween(at(1, 100, 5000), at(1, 100, 5000)); err == nil || !strings.Contains(err.Error(), "--for") {
		t.Errorf("the same reading twice: %v", err)
	}
}

func TestFlagsForWhatToBalance(t *testing.T) {
	for _, good := range []weighings{{"number", 0}, {"bytes", 0}, {"load", 5 * time.Second}} {
		if err := good.check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]weighings{"number, bytes or load": {"size", 0}, "5s to 10m0s": {"load", time.Second}} {
		if err := bad.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
