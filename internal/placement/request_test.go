package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsAreReadAsTheyAreWritten(t *testing.T) {
	for _, requests := range [][]Request{
		nil,
		{{Share: "unet3d", Path: "train/7", To: "training-2", Clients: Follow}},
		{{Share: "tenant.data", Path: ".", To: "fs-0"}, {Share: "data", Path: `odd "name" <&>`, To: "fs-1"}},
	} {
		got, err := ParseRequests(FormatRequests(requests))
		if diff := cmp.Diff(requests, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestWhatIsNoListOfRequestsIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"training-2":                                                  "no list of {share, path, to}",
		`{"share": "s", "path": "p", "to": "t"}`:                      "no list of {share, path, to}",
		`[{"share": "s", "directory": "p", "to": "t"}]`:               `unknown field "directory"`,
		`[{"share": "s", "to": "t"}]`:                                 "an entry has no share, path or to",
		`[{"share": "s", "path": "p", "to": "t", "clients": "Stay"}]`: `clients of an entry is "Stay"`,
		`[] []`: "more behind the list",
		FormatRequests(make([]Request, MaxRequests+1)) + "": "it asks for 501 moves",
	} {
		if got, err := ParseRequests(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, %v", text, got, err)
		}
	}
}

// An object whose annotations are longer than 256 KiB is refused by the API server.
func TestAListOfMovesFitsIntoAnAnnotation(t *testing.T) {
	of := func(number int, path string) (requests []Request) {
		for range number {
			requests = append(requests, Request{Share: "unet3d", Path: path, To: "training-0", Clients: Follow})
		}
		return requests
	}
	for name, tc := range map[string]struct {
		requests []Request
		fewer    bool
	}{
		"none":                   {nil, false},
		"short names":            {of(MaxRequests, "train/7"), false},
		"too many":               {of(MaxRequests+1, "a"), true},
		"the longest names":      {of(MaxRequests, strings.Repeat("\U0001f600", 1024)), true},
		"names that are escaped": {of(MaxRequests, strings.Repeat("\x01", 1024)), true},
		"one":                    {of(1, strings.Repeat("\x01", 1024)), false},
	} {
		fit := Fitting(tc.requests)
		if (fit < len(tc.requests)) != tc.fewer || fit == 0 && len(tc.requests) > 0 {
			t.Errorf("%s: %d of %d fit", name, fit, len(tc.requests))
		}
		text := FormatRequests(tc.requests[:fit])
		if len(text) > 200<<10 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		if again, err := ParseRequests(text); err != nil || len(again) != fit {
			t.Errorf("%s: read back: %d, %v", name, len(again), err)
		}
	}
}
