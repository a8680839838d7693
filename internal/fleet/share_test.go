package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

func TestShareOfAFileShare(t *testing.T) {
	user, group := int64(1000), int64(1001)
	o := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: "data", UID: "u1", Generation: 7, CreationTimestamp: metav1.NewTime(noon),
		Annotations: map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue},
	}}
	o.Spec = v1alpha1.FileShareSpec{
		FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/data", Layout: v1alpha1.LayoutDistributed, Depth: 2, MaxDirectories: 9,
		UID: &user, GID: &group, Mode: "0750", Access: []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/8"}}}, IgnoreDataOn: []string{"fs-1"},
		AcceptedLosses: []string{"0123456789abcdef"}, HotDirectories: []v1alpha1.HotDirectories{{Paths: []string{"train"}, DataServers: 3}},
	}
	want := Share{
		Key: "data", UID: "u1", FileServer: "fs", Created: noon, Paused: true, Generation: 7, Path: "/data", Layout: v1alpha1.LayoutDistributed, Depth: 2,
		MaxDirectories: 9, UserID: &user, GroupID: &group, Mode: "0750", Access: o.Spec.Access, IgnoreDataOn: []string{"fs-1"},
		AcceptedLosses: []string{"0123456789abcdef"}, InventoryGeneration: 1, HotDirectories: o.Spec.HotDirectories,
	}
	if diff := cmp.Diff(want, ShareOf(o)); diff != "" {
		t.Error(diff)
	}
	o.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: "team", Name: "claim"}
	o.Status.InventoryGeneration, o.Status.Conditions = 3, []metav1.Condition{{Type: v1alpha1.FileShareInventoried, Status: metav1.ConditionTrue}}
	o.DeletionTimestamp = &metav1.Time{Time: noon}
	got := ShareOf(o)
	if got.Tenant != "team" || got.InventoryGeneration != 3 || !got.Inventoried || !got.Deleting {
		t.Errorf("%+v", got)
	}
}

func TestShareOfAnAttachment(t *testing.T) {
	user, group := int64(1000), int64(1001)
	o := &internalv1.ShareAttachment{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "team.data", Generation: 2, CreationTimestamp: metav1.NewTime(noon)}}
	o.Spec = internalv1.ShareAttachmentSpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: "team.data"}, FileShareUID: "u1",
		Path: "/team/data", Layout: "Single", Depth: 1, MaxDirectories: 9, UID: &user, GID: &group, Mode: "0750",
		Access: []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/8"}}}, IgnoreDataOn: []string{"fs-1"}, NamespaceUID: "n1",
		AcceptedLosses: []string{"0123456789abcdef"}, InventoryGeneration: 3, Inventory: internalv1.InventoryComplete,
		HotDirectories: []v1alpha1.HotDirectories{{Paths: []string{"train"}, DataServers: 3}},
	}
	want := Share{
		Key: "team.data", UID: "u1", FileServer: "fs", Created: noon, Generation: 2, Tenant: "team", Path: "/team/data", Layout: v1alpha1.LayoutSingle, Depth: 1,
		MaxDirectories: 9, UserID: &user, GroupID: &group, Mode: "0750", Access: o.Spec.Access, IgnoreDataOn: []string{"fs-1"},
		AcceptedLosses: []string{"0123456789abcdef"}, InventoryGeneration: 3, Inventoried: true, HotDirectories: o.Spec.HotDirectories,
	}
	if diff := cmp.Diff(want, ShareOfAttachment(o)); diff != "" {
		t.Error(diff)
	}
}

// A FileShare and its ShareAttachment have one key, though the FileShare's own Tenant and age are not the FileServer's view.
func TestOneKeyForAShareAndItsAttachment(t *testing.T) {
	o := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"}}
	o.Spec.FileServerRef = v1alpha1.FileServerReference{Namespace: "storage", Name: "fs"}
	if got := ShareOf(o); got.Key != "team.data" || got.Tenant != "team" {
		t.Errorf("%+v", got)
	}
}

func TestLiveShares(t *testing.T) {
	share := func(key, path string, hour int) Share {
		return Share{Key: key, Path: path, Created: noon.Add(time.Duration(hour) * time.Hour)}
	}
	deleting := share("a", "/x", 1)
	deleting.Deleting = true
	for name, tc := range map[string]struct {
		shares []Share
		want   []string
	}{
		"no conflict":                 {[]Share{share("b", "/b", 1), share("a", "/a", 2)}, []string{"a", "b"}},
		"equal paths":                 {[]Share{share("a", "/x", 2), share("b", "/x", 1)}, []string{"b"}},
		"the older one is above":      {[]Share{share("a", "/x/y", 2), share("b", "/x", 1)}, []string{"b"}},
		"the older one is below":      {[]Share{share("a", "/x/y", 1), share("b", "/x", 2)}, []string{"a"}},
		"equal ages":                  {[]Share{share("b", "/x", 1), share("a", "/x", 1)}, []string{"a"}},
		"names that begin alike":      {[]Share{share("a", "/x", 1), share("b", "/xy", 2)}, []string{"a", "b"}},
		"an older one is not live":    {[]Share{share("a", "/x/a", 1), share("b", "/x", 2), share("c", "/x/c", 3)}, []string{"a"}},
		"one that is deleted is gone": {[]Share{deleting, share("b", "/x", 2)}, []string{"b"}},
	} {
		for range 2 {
			var live []string
			for _, s := range tc.shares {
				if !s.Deleting && Older(s, Conflicts(s, tc.shares)) == nil {
					live = append(live, s.Key)
				}
			}
			slices.Sort(live)
			if !slices.Equal(live, tc.want) {
				t.Errorf("%s: %v, want %v", name, live, tc.want)
			}
			slices.Reverse(tc.shares) // The order of the input does not count.
		}
	}
}

func TestAnIndexOfPlacesFindsConflicts(t *testing.T) {
	paths := []string{"/a", "/ab", "/a/b", "/a/bc", "/a/b/c", "/b", "/b/a", "/a.b"}
	for _, path := range paths {
		for _, other := range paths {
			places := Places(other)
			found := slices.ContainsFunc(ConflictPlaces(path), func(place string) bool { return slices.Contains(places, place) })
			if found != PathsConflict(path, other) {
				t.Errorf("%s and %s: found %v", path, other, found)
			}
		}
	}
}
