package ceph

import (
	"testing"
	"time"
)

func TestTheBlocklistIsReadWithoutRanges(t *testing.T) {
	until, err := ParseBlocklist(`[{"addr":"10.1.0.7:0/3049171925","until":"2026-11-25T16:00:00.123456+0000"},{"addr": "[fd00::7]:0/5", "until": "2026-11-25T16:00:00+0000"}]
[{"range":"cidr:10.1.0.9:0/32","until":"2031-11-25T16:00:00.000000+0000"}]`)
	if err != nil || len(until) != 2 || !until["10.1.0.7:0/3049171925"].Equal(time.Date(2026, 11, 25, 16, 0, 0, 123456000, time.UTC)) ||
		!until["[fd00::7]:0/5"].Equal(time.Date(2026, 11, 25, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", until, err)
	}
	if until, err := ParseBlocklist("[]\n[]"); err != nil || len(until) != 0 {
		t.Errorf("%v, %v", until, err)
	}
	if _, err := ParseBlocklist(`[{"addr":"10.1.0.7:0/1","until":"soon"}]`); err == nil {
		t.Error("a time that can't be read is no error")
	}
}

func TestClientsOfAPodHaveOneHost(t *testing.T) {
	for address, want := range map[string]string{"10.1.0.7:0/3049171925": "10.1.0.7", "[fd00::7]:0/5": "[fd00::7]", "v1:10.1.0.7:0/5": "v1:10.1.0.7"} {
		if got := Host(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	for address, want := range map[string]bool{"10.1.0.7:0/5": true, "10.1.0.7:0/0": false, "10.1.0.7": false} {
		if got := IsOneClient(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
