package steward

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

func TestTheSecretHasWhatDataServersRead(t *testing.T) {
	entries, err := contents(map[string]place{"unet3d": {"/volumes/g/s/1", "howdah-share-a", "AQ=="}, "tenant.data": {"/volumes/g/t/1", "howdah-share-b", "AR=="}},
		map[string]string{"howdah-rec-u-0": "AS=="})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"unet3d.json":                   `{"path":"/volumes/g/s/1","user":"howdah-share-a"}`,
		"tenant.data.json":              `{"path":"/volumes/g/t/1","user":"howdah-share-b"}`,
		"client.howdah-share-a.keyring": "[client.howdah-share-a]\n\tkey = AQ==\n",
		"client.howdah-share-b.keyring": "[client.howdah-share-b]\n\tkey = AR==\n",
		"client.howdah-rec-u-0.keyring": "[client.howdah-rec-u-0]\n\tkey = AS==\n",
	} {
		if string(entries[name]) != want {
			t.Errorf("%s is %q, want %q", name, entries[name], want)
		}
	}
	if len(entries) != 5 {
		t.Errorf("%d entries", len(entries))
	}
}

func TestASecretThatWouldBeTooLargeIsRefused(t *testing.T) {
	places := map[string]place{}
	for i := range 4096 {
		share := strings.Repeat("x", 40) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		places[share] = place{"/volumes/" + strings.Repeat("p", 120), ceph.ShareUser("u", share), strings.Repeat("k", 40)}
	}
	if _, err := contents(places, nil); err == nil || !strings.Contains(err.Error(), "use another FileServer") {
		t.Errorf("%v", err)
	}
}

func TestSharesGetTheRoomInTheSecretInTheOrderInWhichTheyWereMade(t *testing.T) {
	at := func(path string) place { return place{path: path, user: "u", key: "k"} }
	size := sizeOf(must(entriesOf("a", at("/"))))
	storage := func(share string, second int64, reported string) *internalv1.ShareStorage {
		s := &internalv1.ShareStorage{Spec: internalv1.ShareStorageSpec{FileShareRef: internalv1.FileShareReference{Name: share}}}
		s.Name, s.CreationTimestamp = share, metav1.Unix(second, 0)
		if reported != "" {
			s.Status.Path = "/"
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reported}}
		}
		return s
	}
	in := func(shares ...string) map[string][]byte {
		written := map[string][]byte{}
		for _, share := range shares {
			written[share+".json"] = nil
		}
		return written
	}
	for name, tc := range map[string]struct {
		storages []*internalv1.ShareStorage
		long     string
		written  map[string][]byte
		room     int
		want     string
	}{
		"room for all":                         {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "")}, "", in(), 2 * size, "a b"},
		"the older one first":                  {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "")}, "", in(), size, "b"},
		"who is in it stays":                   {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "")}, "", in("a"), size, "a"},
		"also if it is too full":               {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "")}, "", in("a", "b"), 0, "a b"},
		"none overtakes an older one":          {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "")}, "b", in(), size, ""},
		"a steward that starts":                {[]*internalv1.ShareStorage{storage("b", 1, v1alpha1.ReasonTooManyShares), storage("a", 2, v1alpha1.ReasonReady)}, "", nil, size, "a"},
		"a steward that starts, and a new one": {[]*internalv1.ShareStorage{storage("b", 1, ""), storage("a", 2, "CephUnusable")}, "", nil, size, "a"},
	} {
		places := map[string]place{"a": at("/"), "b": at("/")}
		if tc.long != "" {
			places[tc.long] = at("/" + strings.Repeat("x", 100))
		}
		fit, err := fitting(tc.storages, places, tc.written, tc.room)
		if got := strings.Join(slices.Sorted(maps.Keys(fit)), " "); got != tc.want || err != nil {
			t.Errorf("%s: %q, want %q (%v)", name, got, tc.want, err)
		}
	}
}

func TestTheSecretIsNotWrittenBeforeItsOldContentIsKnown(t *testing.T) {
	storage := func(share, path string, deleting bool) *internalv1.ShareStorage {
		s := &internalv1.ShareStorage{Spec: internalv1.ShareStorageSpec{FileShareRef: internalv1.FileShareReference{Name: share}}}
		s.Status.Path = path
		if deleting {
			s.DeletionTimestamp = &metav1.Time{}
		}
		return s
	}
	a := map[string]place{"a": {}}
	for name, tc := range map[string]struct {
		storages []*internalv1.ShareStorage
		places   map[string]place
		lost     map[string]bool
		want     bool
	}{
		"no shares":                  {nil, nil, nil, true},
		"a share that is known":      {[]*internalv1.ShareStorage{storage("a", "/a", false)}, a, nil, true},
		"one that is not known":      {[]*internalv1.ShareStorage{storage("a", "/a", false), storage("b", "/b", false)}, a, nil, false},
		"one that was never made":    {[]*internalv1.ShareStorage{storage("a", "/a", false), storage("b", "", false)}, a, nil, true},
		"one that is being deleted":  {[]*internalv1.ShareStorage{storage("b", "/b", true)}, nil, nil, true},
		"one that is known for lost": {[]*internalv1.ShareStorage{storage("b", "/b", false)}, nil, map[string]bool{"b": true}, true},
	} {
		if got := len(unrecalled(tc.storages, tc.places, tc.lost)) == 0; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
