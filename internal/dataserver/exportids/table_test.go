package exportids

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Exports that came and went don't use up the ids: they go round, past those that are in use.
func TestExportIDsGoRound(t *testing.T) {
	table := &Table{HighWater: MaxID - 1, Parts: []map[string]Entry{
		{"old": {ExportID: 1}, "used": {ExportID: 2}, "forgotten": {ExportID: 3}},
	}}
	inUse := map[string]bool{"used": true}
	allocate := func(share string) Number {
		t.Helper()
		mustWork(t, "allocate", table.Allocate(share, inUse))
		inUse[share] = true
		return table.Parts[0][share].ExportID
	}
	if last := allocate("last"); last != MaxID || last.Round() != 0 {
		t.Errorf("the last of the first round is %d", last)
	}
	if n := allocate("next"); n.ID() != 1 || n.Round() != 1 {
		t.Errorf("after the last id comes %d in round %d", n.ID(), n.Round())
	}
	if _, known := table.Parts[0]["old"]; known {
		t.Error("two shares have id 1")
	}
	if n := allocate("more"); n.ID() != 3 || n.Round() != 1 {
		t.Errorf("id 2 is in use, and the next one is %d in round %d", n.ID(), n.Round())
	}
	rounds := table.Rounds()
	for id, want := range map[int]uint16{1: 1, 2: 0, 3: 1, MaxID: 0} {
		if got := binary.NativeEndian.Uint16(rounds[2*id:]); got != want {
			t.Errorf("id %d is of round %d, not %d", id, got, want)
		}
	}
	text, err := table.Part(0)
	mustWork(t, "write", err)
	again, err := Join([][]byte{text}, func(int32) string { return "table" }, func(share string, _ int32) string { return share })
	mustWork(t, "read", err)
	if diff := cmp.Diff(table.Parts, again.Parts); diff != "" || again.HighWater != table.HighWater {
		t.Errorf("what was written is not what is read: %s, %d", diff, again.HighWater)
	}
}

// A data server in its third round gives no number, and no pair of id and round, a second time, whatever comes and goes.
func TestNoExportNumberComesBack(t *testing.T) {
	table := &Table{Parts: []map[string]Entry{{}, {}}}
	given, inUse := map[Number]bool{}, map[string]bool{}
	for i := range 3000 {
		if i%1000 == 999 {
			table.HighWater = table.HighWater - Number(table.HighWater.ID()) + MaxID - 100 // Near the end of the round.
		}
		share := fmt.Sprintf("share-%d", i)
		if i%100 == 0 {
			inUse[share] = true // It is never removed.
		}
		mustWork(t, "allocate", table.Allocate(share, inUse))
		for volume := range table.Parts {
			number := table.Parts[volume][share].ExportID
			if given[number] || number.ID() == 0 {
				t.Fatalf("number %d (id %d, round %d) was given before", number, number.ID(), number.Round())
			}
			given[number] = true
		}
	}
	ids := map[uint16]string{}
	for volume, shares := range table.Parts {
		for share, entry := range shares {
			if other, taken := ids[entry.ExportID.ID()]; taken {
				t.Fatalf("id %d is that of %s and of %s", entry.ExportID.ID(), other, share)
			}
			ids[entry.ExportID.ID()] = fmt.Sprintf("%s on %d", share, volume)
		}
	}
	if round := table.HighWater.Round(); round < 2 {
		t.Errorf("only %d rounds", round)
	}
}

func TestIDsEnd(t *testing.T) {
	full, inUse := map[string]Entry{}, map[string]bool{}
	for id := range Number(MaxID - 1) {
		share := fmt.Sprintf("share-%d", id)
		full[share], inUse[share] = Entry{ExportID: id + 1}, true
	}
	table := &Table{HighWater: MaxID - 1, Parts: []map[string]Entry{full, {}}}
	// A share of two volumes for which there is one id takes none.
	if err := table.Allocate("pair", inUse); !errors.Is(err, ErrExhausted) || table.HighWater != MaxID-1 {
		t.Errorf("%v, high water %d", err, table.HighWater)
	}
	delete(inUse, "share-0")
	mustWork(t, "with one share less", table.Allocate("pair", inUse))
	if got := table.IDs("pair"); !slices.Equal(got, []int32{MaxID, 1}) {
		t.Errorf("ids %v", got)
	}
}

func TestReportedIDsCountAsUsed(t *testing.T) {
	memory := &Table{HighWater: 3, Parts: []map[string]Entry{{}}}
	for _, number := range []int64{7, 2, 0, -1, 1 << 40} {
		memory.Raise(number)
	}
	mustWork(t, "allocate", memory.Allocate("a", nil))
	if id := memory.IDs("a")[0]; id != 8 {
		t.Errorf("id %d", id)
	}
}

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
