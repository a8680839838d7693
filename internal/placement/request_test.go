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
