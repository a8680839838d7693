package provisioner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

const mark = "team-a/scratch/" + uid

// inShare is a claim of a class whose claims become directories of share home, of depth 2, on fs-0 and fs-1; fs-0 has a directory already.
func inShare(change func(*observed)) *observed {
	return unbound(func(o *observed) {
		o.class = builders.StorageClass("c").Shares("storage", "fs", "fileShare", "home", "uid", "7", "mode", "0700").With(retained).Build()
		o.share = builders.FileShare("storage", "home", "fs").Depth(2).Build()
		o.share.Spec.MaxDirectories = 10
		o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileShareInventoried, Status: metav1.ConditionTrue}}
		o.share.Status.Mount.Address = "10.0.0.1"
		for _, name := range []string{"fs-0", "fs-1"} {
			server := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: internalv1.DataServerSpec{Volumes: 1}}
			server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			o.dataServers = append(o.dataServers, server)
		}
		o.directories = map[string]*internalv1.ShareDirectory{}
		has(o, "b/c", "")
		change(o)
	})
}

func has(o *observed, path, of string) *internalv1.ShareDirectory {
	directory := builders.ShareDirectory("storage", "fs", "home", path, "fs-0")
	if of != "" {
		directory.Annotations = map[string]string{v1alpha1.ClaimAnnotation: of}
	}
	o.directories[path], o.allDirectories = directory, append(o.allDirectories, *directory)
	return directory
}

func TestAClaimBecomesADirectory(t *testing.T) {
	d := decide(inShare(func(*observed) {}))
	if len(d.createDirectories) != 2 || d.createShare != nil {
		t.Fatalf("%+v", d)
	}
	above, directory := d.createDirectories[0], d.createDirectories[1]
	if above.Spec.Path != "team-a" || above.Spec.DataServerRef.Name != "" || len(above.Annotations) > 0 {
		t.Errorf("above it: %+v", above)
	}
	if directory.Spec.Path != "team-a/scratch-3f2a91bc" || directory.Spec.DataServerRef.Name != "fs-1" || *directory.Spec.UID != 7 || directory.Spec.Mode != "0700" {
		t.Errorf("it: %+v", directory.Spec)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.ClaimAnnotation: mark}, directory.Annotations); diff != "" {
		t.Errorf("a directory that a share declares goes when the list has it not; this one must not:\n%s", diff)
	}

	for what, change := range map[string]func(*observed){
		"fs-1 is in maintenance":   func(o *observed) { o.fileServer.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-1"}} },
		"fs-1 is on its way out":   func(o *observed) { o.fileServer.Spec.Replicas = 1 },
		"fs-1 was given up":        func(o *observed) { o.share.Spec.IgnoreDataOn = []string{"fs-1"} },
		"fs-1 is not Ready at all": func(o *observed) { o.dataServers[1].Status.Conditions = nil },
	} {
		if d := decide(inShare(change)); len(d.createDirectories) != 2 || d.createDirectories[1].Spec.DataServerRef.Name != "fs-0" {
			t.Errorf("%s, and the directory goes to %+v", what, d.createDirectories)
		}
	}

	onCeph := decide(inShare(func(o *observed) { o.fileServer.Spec.Storage.Ceph.External.Monitors = []string{"10.0.0.1:3300"} }))
	if onCeph.refusal != "" || len(onCeph.createDirectories) != 2 {
		t.Errorf("on a Ceph whose shares are given: %+v", onCeph)
	}

	d = decide(inShare(func(o *observed) { has(o, "team-a/scratch-3f2a91bc", mark) }))
	volume := d.createVolume
	if volume == nil || volume.Name != volumeName || len(volume.Finalizers) > 0 || volume.Spec.NFS.Path != "/home/team-a/scratch-3f2a91bc" ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("volume: %+v", volume)
	}
	if want := "/home/team-a/scratch-3f2a91bc of FileServer fs is the claim's; nothing keeps pods to 10Gi"; !strings.HasPrefix(d.success, want) {
		t.Errorf("got %q", d.success)
	}
	if _, _, ours := shareOf(volume); ours || !isDirectory(volume) {
		t.Error("a directory's volume is taken for a share's")
	}
}

func TestDirectories(t *testing.T) {
	for what, tc := range map[string]struct {
		o       *observed
		waits   bool
		refusal string
	}{
		"is being made":   {inShare(func(o *observed) { has(o, "team-a/scratch-3f2a91bc", mark).Status.State = internalv1.DirectoryCreating }), true, ""},
		"not inventoried": {inShare(func(o *observed) { o.share.Status.Conditions = nil }), true, ""},
		"no data server": {inShare(func(o *observed) {
			o.dataServers[0].Status.Conditions, o.dataServers[1].Status.Unreachable.SeenBy = nil, "x"
		}), true, ""},
		"no data server that stays": {inShare(func(o *observed) {
			o.fileServer.Spec.Drain, o.dataServers[1].Spec.NewDirectories = &v1alpha1.Drain{Servers: []string{"fs-0"}}, internalv1.NewDirectoriesForbid
		}), true, ""},
		"none that the share has not given up": {inShare(func(o *observed) { o.share.Spec.IgnoreDataOn = []string{"fs-0", "fs-1"} }), true, ""},
		"no share":                             {inShare(func(o *observed) { o.share = nil }), false, `there is no FileShare "home" in namespace "storage"`},
		"a share that goes":                    {inShare(func(o *observed) { now := metav1.Now(); o.share.DeletionTimestamp = &now }), false, "is being deleted"},
		"another FileServer's":                 {inShare(func(o *observed) { o.share.Spec.FileServerRef.Name = "other" }), false, "FileShare home does not belong to FileServer fs"},
		"a Single share":                       {inShare(func(o *observed) { o.share.Spec.Layout = v1alpha1.LayoutSingle }), false, "has layout Single"},
		"another depth":                        {inShare(func(o *observed) { o.class.Parameters["path"] = "{claim}" }), false, "the share has depth 2, so give 2 names, not 1"},
		"another's directory":                  {inShare(func(o *observed) { has(o, "team-a/scratch-3f2a91bc", "") }), false, "exists already and does not belong to this claim"},
		"as many as it may have":               {inShare(func(o *observed) { o.share.Spec.MaxDirectories = 2 }), false, "as its spec.maxDirectories allows, 2"},
		"not allowed":                          {inShare(func(o *observed) { o.fileServer.Spec.AllowedNamespaces = nil }), false, "that allows claims of namespace"},
	} {
		d := decide(tc.o)
		if len(d.createDirectories) > 0 || d.createVolume != nil || tc.waits != (d.refusal == "") || !strings.Contains(d.refusal, tc.refusal) {
			t.Errorf("%s: %+v", what, d)
		}
	}
}

// Claims that are made at once are spread, though the cache does not show yet where the last one went.
func TestDirectoriesAreSpreadBeforeTheCacheShowsThem(t *testing.T) {
	var assumed assumed
	now := time.Unix(1e9, 0)
	shown := inShare(func(*observed) {}).allDirectories
	counts := map[string]int{}
	for i := range 7 {
		d := decide(inShare(func(o *observed) {
			o.claim.Name = strings.Repeat("x", i+1)
			o.allDirectories = assumed.with(shown, "storage", "fs", now)
		}))
		for _, directory := range d.createDirectories {
			assumed.add(directory, now)
			counts[directory.Spec.DataServerRef.Name]++
		}
	}
	if counts["fs-0"] != 3 || counts["fs-1"] != 4 {
		t.Errorf("fs-0 had one already: %v", counts)
	}
	if got := assumed.with(shown, "storage", "other", now); len(got) != len(shown) {
		t.Errorf("another FileServer's are counted: %d", len(got))
	}
	all := assumed.with(shown, "storage", "fs", now)
	if again := assumed.with(all, "storage", "fs", now); len(again) != len(all) {
		t.Errorf("what is shown is counted twice: %d, %d", len(all), len(again))
	}
}

// What is made and removed between two looks at the cache is never seen there. It does not count until a restart.
func TestADirectoryThatTheCacheNeverShowsIsForgotten(t *testing.T) {
	var assumed assumed
	made := time.Unix(1e9, 0)
	assumed.add(builders.ShareDirectory("storage", "fs", "home", "team-a/brief", "fs-0"), made)
	if got := assumed.with(nil, "storage", "fs", made.Add(assumeFor-time.Second)); len(got) != 1 {
		t.Errorf("%d are counted as long as the cache may be late", len(got))
	}
	if got := assumed.with(nil, "storage", "fs", made.Add(assumeFor)); len(got) != 0 || len(assumed.byName) != 0 {
		t.Errorf("%d are counted a minute later, and %d kept", len(got), len(assumed.byName))
	}
}

// What is left of a claim that went before it had a volume goes if it is empty. A directory with a volume is never removed.
func TestDirectoriesOfClaimsThatAreGone(t *testing.T) {
	left := func(change func(*internalv1.ShareDirectory)) *observed {
		directory := builders.ShareDirectory("storage", "fs", "home", "team-a/x", "fs-0")
		change(directory)
		return &observed{leftOver: directory}
	}
	if !decide(left(func(*internalv1.ShareDirectory) {})).removeDirectory {
		t.Error("it stays")
	}
	if decide(left(func(d *internalv1.ShareDirectory) { d.Spec.Removal = internalv1.RemovalWhenEmpty })).removeDirectory {
		t.Error("it is asked for twice")
	}
	d := decide(inShare(func(o *observed) { has(o, "team-a/scratch-3f2a91bc", mark) }))
	o := &observed{volume: d.createVolume}
	o.volume.Status.Phase = corev1.VolumeReleased
	if got := does(decide(o)); got != "wait" {
		t.Errorf("released: %s", got)
	}
}
