package load

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	b.steps(50)
	b.end()
	read, err := ReadLedger(bytes.NewReader(b.ledger.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read.Entries(), b.place.Ledger.Entries(); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%v\nwant\n%v", got, want)
	}
	short := &buffer{}
	for _, e := range read.Entries() {
		if err := short.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if short.Len() >= b.ledger.Len() {
		t.Errorf("the short form has %d bytes, the long one %d", short.Len(), b.ledger.Len())
	}
	again, err := ReadLedger(&short.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Entries(), read.Entries(); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%v\nwant\n%v", got, want)
	}
}

// A load that is killed leaves a ledger without an end, perhaps in the middle of a line, and the file system one write ahead.
func TestALedgerThatIsCutAllowsOneWriteUnderWay(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	b.steps(20)
	whole := b.ledger.Bytes()
	for cut := range whole {
		if cut < len(whole)-300 {
			continue
		}
		ledger, err := ReadLedger(bytes.NewReader(whole[:cut]))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if ledger.Ended {
			t.Fatal("it has ended")
		}
	}
	b.place.stamp(randomFile, 0, b.lanes[5].(*RandomBlocks).generations[0]+1).Fill(b.content["run/random"][:BlockSize])
	expect(t, "the audit", b.audit(t), Directory{})
	b.place.stamp(randomFile, 0, b.lanes[5].(*RandomBlocks).generations[0]+2).Fill(b.content["run/random"][:BlockSize])
	expect(t, "the audit", b.audit(t), Directory{BadBlocks: 1})
}

func TestWhatIsNoLedgerIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "{}", "hello", `{"is":"file","name":"x"}`, `{"is":"run","name":"x"}{"is":"file","dir":-1}`, `{"is":"run","name":"x"}{"is":"block","dir":0,"block":99999999999}`,
		`{"is":"run","name":"x"}{"is":"file","name":"../../etc/passwd"}`, `{"is":"run","name":"x"}{"is":"directory","name":"/etc"}`,
	} {
		if l, err := ReadLedger(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a ledger: %+v", text, l)
		}
	}
}

func FuzzReadLedger(f *testing.F) {
	f.Add([]byte(`{"is":"run","name":"x","seed":1}{"dir":1,"is":"file","name":"x/a","generations":[1,2]}{"dir":1,"is":"block","name":"x/a","block":4,"generation":2}{"is":"end"}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		ledger, err := ReadLedger(bytes.NewReader(text))
		if err == nil {
			ledger.Entries()
		}
	})
}

func TestRemovedNamesAreForgottenInTheEnd(t *testing.T) {
	l := NewLedger("run", 1, 1, nil)
	for i := range maxGone + 100 {
		l.note(Entry{Is: IsGone, Name: fmt.Sprintf("run/file-%d", i)})
	}
	if got := len(l.names[0]); got != maxGone {
		t.Errorf("%d names are kept, want %d", got, maxGone)
	}
}

func TestNamesAreCompared(t *testing.T) {
	known := map[string]State{"a": IsFile, "b": IsGone, "c": IsUnknown, "d": IsFolder, "e": IsLost}
	for _, test := range []struct{ names, lost, extra string }{
		{"a d e", "", ""},
		{"a c d e .nfs000123", "", ""},
		{"a b d", "e", "b"},
		{"z", "a d e", "z"},
	} {
		lost, extra, _ := Compare(known, strings.Fields(test.names))
		if strings.Join(lost, " ") != test.lost || strings.Join(extra, " ") != test.extra {
			t.Errorf("%s: lost %v, extra %v", test.names, lost, extra)
		}
	}
}
