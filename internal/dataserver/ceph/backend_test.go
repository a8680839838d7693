package ceph

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/listing"
)

const (
	fsid  = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	helps = "CEPH_STORAGE_TEST_ANSWERS"
)

// cluster has howdah-ceph's answers by request: "connect" with the user, or an operation, with the names of commands.
type cluster map[string]string

// whole is a cluster that has everything.
func whole() cluster {
	return cluster{
		"fsid":      `{"code":0,"result":"` + fsid + `"}`,
		"mon fs ls": `{"code":0,"result":{"out":"[{\"name\":\"fs1\",\"data_pools\":[\"d\"]}]"}}`,
		"mon df":    `{"code":0,"result":{"out":"{\"pools\":[{\"name\":\"d\"},{\"name\":\"howdah\"}]}"}}`,
		"read":      `{"code":2,"words":"reading grace: No such file or directory"}`,
		"write":     `{"code":0,"result":{"version":1}}`,
	}
}

// but replaces one answer.
func (c cluster) but(asked, answer string) cluster {
	c[asked] = answer
	return c
}

// TestMain lets the test binary act as howdah-ceph.
func TestMain(m *testing.M) {
	script, helper := os.LookupEnv(helps)
	if !helper {
		os.Exit(m.Run())
	}
	var answers cluster
	if err := json.Unmarshal([]byte(script), &answers); err != nil {
		os.Exit(3)
	}
	say := func(asked string) {
		if answer, known := answers[asked]; known {
			fmt.Println(answer)
		} else {
			fmt.Println(`{"code":0}`)
		}
	}
	say("connect " + os.Args[2])
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var request struct {
			Op      string         `json:"op"`
			Command map[string]any `json:"command"`
		}
		if err := json.Unmarshal(input.Bytes(), &request); err != nil {
			os.Exit(3)
		}
		if request.Command != nil {
			request.Op += fmt.Sprint(" ", request.Command["prefix"])
		}
		say(request.Op)
	}
}

// stored returns a back end on a cluster, whose Secret has these entries and the recovery user's key.
func stored(t *testing.T, c cluster, entries map[string]string) *Backend {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(helps, string(text))
	files := map[string]string{"client.rec.keyring": "[client.rec]\n\tkey = AQ==\n"}
	for name, entry := range entries {
		files[name] = entry
	}
	return New(Options{
		Monitors: []string{"10.0.0.1:3300"}, FSID: fsid, FileSystem: "fs1", RecoveryPool: "howdah", RecoveryUser: "rec", Node: "7c2e-3f-12",
		ConfigFile: filepath.Join(t.TempDir(), "ceph.conf"), Secrets: secretOf(t, files).directory, SecretName: "ceph-shares", Helper: os.Args[0], Log: slog.New(slog.DiscardHandler),
	})
}

func TestMessageForAnUnusableCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster cluster
		change  func(*Options)
		want    string
	}{
		"a good one":                    {whole(), nil, ""},
		"monitors that don't answer":    {whole().but("connect rec", `{"code":110,"words":"connecting to Ceph as client.rec: Connection timed out"}`), nil, "no monitor answers at 10.0.0.1:3300"},
		"a key that is not the user's":  {whole().but("connect rec", `{"code":13,"words":"connecting to Ceph as client.rec: Permission denied"}`), nil, "entry client.rec.keyring of Secret ceph-shares must be what ceph auth get client.rec prints"},
		"a key that is cut":             {whole().but("connect rec", `{"code":5,"words":"connecting to Ceph as client.rec: Input/output error"}`), nil, "entry client.rec.keyring of Secret ceph-shares must be"},
		"no key":                        {whole(), func(o *Options) { o.RecoveryUser = "other" }, "no entry client.other.keyring is in Secret ceph-shares"},
		"another cluster":               {whole(), func(o *Options) { o.FSID = "0" }, "has the fsid " + fsid + ", not 0"},
		"no such file system":           {whole(), func(o *Options) { o.FileSystem = "fs2" }, "no file system fs2; it has: fs1"},
		"no such pool":                  {whole(), func(o *Options) { o.RecoveryPool = "other" }, "ceph osd pool create other"},
		"a user that may not read":      {whole().but("read", `{"code":1,"words":"reading grace: Operation not permitted"}`), nil, "ceph auth caps client.rec mon 'allow r' osd 'allow rwx pool=howdah namespace=7c2e-3f-*'"},
		"a user that may not write":     {whole().but("write", `{"code":1,"words":"writing grace: Operation not permitted"}`), nil, "ceph auth caps client.rec mon 'allow r' osd 'allow rwx pool=howdah namespace=7c2e-3f-*'"},
		"a user without rights":         {whole().but("mon fs ls", `{"code":13,"words":"access denied"}`), nil, "ceph auth caps client.rec mon 'allow r'"},
		"a monitor that is no address":  {whole(), func(o *Options) { o.Monitors = []string{"mon.example.org"} }, "is not an IP address with a port"},
		"an OSD that does not answer":   {whole().but("read", `{"code":110,"words":"reading grace: Connection timed out"}`), nil, "reading the grace object in pool howdah: reading grace: Connection timed out"},
		"another server's grace object": {whole().but("read", `{"code":0,"result":{"data":"01000000000000000000000000000000","keys":{"other":"02"},"version":1}}`), nil, "has server other in it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := stored(t, tc.cluster, nil)
			if tc.change != nil {
				tc.change(&b.options)
			}
			server := &internalv1.DataServer{}
			err := b.Judge(t.Context(), server)
			if err == nil {
				err = b.Claim(t.Context(), server)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got: %v\nwant: %s", err, tc.want)
			}
		})
	}
}

func TestNewRightsAreUsedAtTheNextTry(t *testing.T) {
	b := stored(t, whole().but("read", `{"code":1,"words":"reading grace: Operation not permitted"}`), nil)
	server := &internalv1.DataServer{}
	try := func() error {
		if err := b.Judge(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		return b.Claim(t.Context(), server)
	}
	if err := try(); err == nil {
		t.Fatal("Claim succeeds without the right to read")
	}
	text, err := json.Marshal(whole())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(helps, string(text)) // Only a new connection has the new rights.
	if err := try(); err != nil {
		t.Errorf("after it got the rights: %v", err)
	}
}

var wanted = exportids.RootAttributes{Owner: 1000, Group: 1000, Mode: "0755"}

func TestPrepareRoot(t *testing.T) {
	entries := map[string]string{
		"one.json": `{"path": "/v/one", "user": "a"}`, "two.json": `{"path": "/v/two", "user": "a"}`, "three.json": `{"path": "/v/three", "user": "c"}`,
		"client.a.keyring": keyOfA, "client.c.keyring": "[client.c]\nkey = AQ==\n",
	}
	for name, tc := range map[string]struct {
		cluster cluster
		shares  []string
		want    string
	}{
		"two shares":                     {whole(), []string{"one", "three"}, ""},
		"a second share of one user":     {whole(), []string{"one", "two"}, "client.a is also used by share one"},
		"a directory that is not there":  {whole().but("fs.attributes", `{"code":1,"words":"mounting /v/one: Operation not permitted"}`), []string{"one"}, "either the directory does not exist, or the user has no rights to it"},
		"a user that was removed":        {whole().but("connect a", `{"code":13,"words":"Permission denied"}`), []string{"one"}, "the cluster refuses the key of client.a"},
		"metadata servers that are down": {whole().but("fs.attributes", `{"code":110,"words":"mounting /v/one: Connection timed out"}`), []string{"one"}, "check its metadata servers"},
		"a share missing in the Secret":  {whole(), []string{"four"}, "no entry four.json is in Secret ceph-shares"},
	} {
		t.Run(name, func(t *testing.T) {
			b := stored(t, tc.cluster, entries)
			if err := b.Judge(t.Context(), &internalv1.DataServer{}); err != nil {
				t.Fatal(err)
			}
			var err error
			for _, share := range tc.shares {
				err = b.PrepareRoot(t.Context(), share, 0, wanted, nil)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got: %v\nwant: %s", err, tc.want)
			}
		})
	}
}

// A share whose user has no rights at the metadata servers gets no answer. At a start of the pod the clients of all other shares wait for its pass.
func TestAPassWaitsForOneShareWithoutAnswerAtMost(t *testing.T) {
	const key = "key = AQ==\n"
	b := stored(t, whole().but("fs.attributes", `{"code":110,"words":"Connection timed out"}`), map[string]string{
		"a.json": `{"path": "/v/a", "user": "a"}`, "b.json": `{"path": "/v/b", "user": "b"}`, "c.json": `{"path": "/v/c", "user": "c"}`,
		"client.a.keyring": "[client.a]\n" + key, "client.b.keyring": "[client.b]\n" + key, "client.c.keyring": "[client.c]\n" + key,
	})
	now := time.Now()
	b.now = func() time.Time { return now }
	pass := func(want ...string) {
		t.Helper()
		if err := b.Judge(t.Context(), &internalv1.DataServer{}); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "b", "c"} {
			err := b.PrepareRoot(t.Context(), name, 0, wanted, nil)
			if want[i] == "" && err != nil || want[i] != "" && (err == nil || !strings.Contains(err.Error(), want[i])) {
				t.Errorf("share %s: %v; want: %s", name, err, want[i])
			}
		}
		b.CompleteConfig(&ganesha.Config{})
	}
	answer := func(c cluster) {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(helps, string(text))
	}
	const silent = "Ceph did not answer in time"
	pass(silent, "about share a in time; this share is next", "about share a in time")
	// One that has no answer does not keep the next one from being tried.
	now = now.Add(time.Second)
	pass(silent, silent, "about share b in time")
	answer(whole())
	pass(silent, silent, "")
	now = now.Add(attributesAgain)
	pass("", "", "")
}

func TestAServedShareKeepsItsDirectoryAndUser(t *testing.T) {
	b := stored(t, whole(), map[string]string{"s.json": `{"path": "/v/one", "user": "a"}`, "client.a.keyring": keyOfA, "client.c.keyring": "[client.c]\nkey = AQ==\n"})
	pass := func(shares ...string) (ganesha.Export, error) {
		t.Helper()
		if err := b.Judge(t.Context(), &internalv1.DataServer{}); err != nil {
			t.Fatal(err)
		}
		var err error
		for _, share := range shares {
			err = b.PrepareRoot(t.Context(), share, 0, wanted, &wanted)
		}
		var config ganesha.Config
		b.CompleteConfig(&config)
		var export ganesha.Export
		b.CompleteExport(&export, "s", 0)
		return export, err
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.options.Secrets, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if export, err := pass("s"); err != nil || export.Path != "/v/one" || export.CephFS.User != "a" {
		t.Fatalf("%+v, %v", export, err)
	}
	write("s.json", `{"path": "/v/two", "user": "c"}`)
	if export, err := pass("s"); err == nil || !strings.Contains(err.Error(), "still served as client.a from /v/one") || export.Path != "/v/one" || export.CephFS.User != "a" {
		t.Errorf("its entry was changed: %+v, %v", export, err)
	}
	if err := os.Remove(filepath.Join(b.options.Secrets, "s.json")); err != nil {
		t.Fatal(err)
	}
	if export, err := pass("s"); err == nil || export.Path != "/v/one" {
		t.Errorf("its entry is gone: %+v, %v", export, err)
	}
	write("s.json", `{"path": "/v/two", "user": "c"}`)
	if _, err := pass(); err != nil {
		t.Errorf("the share was removed: %v", err)
	}
	if export, err := pass("s"); err != nil || export.Path != "/v/two" || export.CephFS.User != "c" {
		t.Errorf("a new share of the name: %+v, %v", export, err)
	}
}

func TestNewMonitorsAreWrittenInTheNextPass(t *testing.T) {
	b := stored(t, whole(), nil)
	server := &internalv1.DataServer{}
	for _, monitors := range [][]string{{"10.0.0.1:3300"}, {"10.0.0.7:3300", "10.0.0.8:6789"}} {
		server.Spec.Ceph.Monitors = monitors
		if err := b.Judge(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		if err := b.Claim(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(b.options.ConfigFile)
		if err != nil {
			t.Fatal(err)
		}
		for _, monitor := range monitors {
			if !strings.Contains(string(text), monitor) {
				t.Errorf("%s is not in:\n%s", monitor, text)
			}
		}
	}
}

// librados can wait without end for an OSD that all other clients reach again, while its monitors answer.
func TestAConnectionThatTimesOutIsReplaced(t *testing.T) {
	b := stored(t, whole().but("write", `{"code":110,"words":"writing exports: Connection timed out"}`), nil)
	if err := b.configure(nil); err != nil {
		t.Fatal(err)
	}
	table, err := b.ReadIDs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteIDs(t.Context(), table); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Fatalf("the cluster does not answer, and the error is %v", err)
	}
	text, err := json.Marshal(whole())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(helps, string(text)) // New connections get answers.
	if err := b.WriteIDs(t.Context(), table); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// A new key is tried, and then ganesha is restarted, one data server after the other. A key that Ceph refuses causes no
// restart.
func TestANewKeyIsTriedBeforeGaneshaIsRestarted(t *testing.T) {
	entries := map[string]string{"s.json": `{"path": "/v/one", "user": "a"}`, "client.a.keyring": keyOfA}
	b, now := stored(t, whole(), entries), time.Unix(1e9, 0)
	b.now = func() time.Time { return now } // It is data server 12.
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.options.Secrets, "client.a.keyring"), []byte("[client.a]\n\tkey = "+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() (string, error) {
		t.Helper()
		if err := b.Judge(t.Context(), &internalv1.DataServer{}); err != nil {
			t.Fatal(err)
		}
		err := b.PrepareRoot(t.Context(), "s", 0, wanted, &wanted)
		var config ganesha.Config
		b.CompleteConfig(&config)
		b.CompleteExport(&ganesha.Export{}, "s", 0)
		now = now.Add(lookEvery)
		return b.Outdated(t.Context()), err
	}
	if err := b.BeforeStart(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if why, err := pass(); why != "" || err != nil {
			t.Errorf("nothing is new: %q, %v", why, err)
		}
	}
	answer := func(c cluster) {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(helps, string(text))
	}
	answer(whole().but("connect a", `{"code":13,"words":"Permission denied"}`))
	write("WRONG==")
	for range 30 {
		if why, err := pass(); why != "" || err == nil || !strings.Contains(err.Error(), "ganesha still uses the old key of client.a") {
			t.Fatalf("a wrong key: %q, %v", why, err)
		}
	}
	answer(whole().but("fs.stat", `{"code":0,"result":{"uid":0,"gid":0,"mode":493}}`))
	write("NEW==")
	passes := 0
	for why := ""; why == ""; passes++ {
		var err error
		if why, err = pass(); err != nil || passes > 30 {
			t.Fatalf("a new key: %v after %d passes", err, passes)
		}
	}
	if passes != 13 {
		t.Errorf("data server 12 restarts ganesha in pass %d", passes)
	}
	if err := b.BeforeStart(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if why, err := pass(); why != "" || err != nil {
		t.Errorf("ganesha has the new key: %q, %v", why, err)
	}
}

// An export that is removed and added again has a new Ceph client, with the current key.
func TestAnExportThatIsMadeAgainReadsItsKeyAgain(t *testing.T) {
	b := stored(t, whole(), map[string]string{"client.a.keyring": keyOfA})
	pass := func(exported bool) {
		var config ganesha.Config
		b.CompleteConfig(&config)
		if exported {
			b.shares["s"] = share{"/v/one", "a"}
			b.asked = map[string]bool{"s": true}
			b.CompleteExport(&ganesha.Export{}, "s", 0)
		}
	}
	pass(true)
	if err := os.WriteFile(filepath.Join(b.options.Secrets, "client.a.keyring"), []byte("[client.a]\nkey = NEW==\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pass(true)
	if _, is := b.renewed("a"); !is {
		t.Error("its key was replaced")
	}
	pass(false)
	pass(true)
	if _, is := b.renewed("a"); is {
		t.Error("it has the new key")
	}
}

// The watchers that were seen while ganesha ran are dead after its end. Ceph is asked only if none were seen.
func TestSeenWatchersAreBlocklistedWithoutAskingCeph(t *testing.T) {
	const listed = `{"code":0,"result":[{"address":"10.244.1.9:0/1"}]}`
	b, fenced := stored(t, whole().but("watchers", listed), nil), make(chan []string, 1)
	b.options.Fence = func(_ context.Context, addresses []string) error {
		fenced <- addresses
		return nil
	}
	starts := func(what, want string) {
		t.Helper()
		if err := b.BeforeStart(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if got := <-fenced; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v is blocklisted, not %s", what, got, want)
		}
	}
	starts("no watcher was seen", "10.244.1.9:0/1")
	ceph := &sick{watch: []string{"10.244.1.9:0/2"}}
	watch := &healthWatch{connect: ceph.connect, watching: &b.watching}
	watch.updateWatchers(t.Context()) // There is no connection yet.
	starts("there was no connection", "10.244.1.9:0/1")
	watch.connection = ceph
	watch.updateWatchers(t.Context())
	starts("a watcher was seen", "10.244.1.9:0/2")
	starts("a watcher was seen before the last start", "10.244.1.9:0/1")
	watch.updateWatchers(t.Context())
	ceph.watch, ceph.err = nil, errors.New("away")
	watch.updateWatchers(t.Context())
	starts("Ceph has not answered since", "10.244.1.9:0/2")
}

// Claim has a connection when it reads the watchers. There is one if the last pod was killed.
func TestTheFirstStartBlocklistsTheWatchersThatClaimSaw(t *testing.T) {
	for name, tc := range map[string]struct{ watchers, want string }{
		"the last pod was killed":     {`[{"address":"10.244.1.9:0/1"}]`, "10.244.1.9:0/1"},
		"the last pod ended normally": {`[]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, fenced := stored(t, whole().but("watchers", `{"code":0,"result":`+tc.watchers+`}`), nil), make(chan []string, 1)
			b.options.Fence = func(_ context.Context, addresses []string) error {
				fenced <- addresses
				return nil
			}
			if err := b.Claim(t.Context(), &internalv1.DataServer{}); err != nil {
				t.Fatal(err)
			}
			answer, err := json.Marshal(whole().but("connect rec", `{"code":110,"words":"no connection more"}`))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(helps, string(answer))
			if err := b.BeforeStart(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			got := ""
			if tc.want != "" {
				got = strings.Join(<-fenced, " ")
			}
			if got != tc.want {
				t.Errorf("%q is blocklisted, not %q", got, tc.want)
			}
			if err := b.BeforeStart(t.Context(), ""); err == nil {
				t.Error("Ceph was not asked for the watchers after the first start")
			}
		})
	}
}

// If it listed another directory than the exported one, everything would seem to be missing.
func TestOnlyExportedSharesAreListed(t *testing.T) {
	answers := whole().but("fs.tree", `{"code":0,"result":[{"path":"train","uid":1,"gid":2,"mode":493}]}`).but("fs.sizes", `{"code":0,"result":{"train":8796093022208}}`)
	b := stored(t, answers, map[string]string{
		"client.a.keyring": keyOfA, "s.json": `{"path": "/v/two", "user": "a"}`,
	})
	if found, err := b.Directories(t.Context(), "s", 1); err == nil {
		t.Errorf("before anything is exported: %v", found)
	}
	b.shares["s"] = share{"/v/one", "a"}
	b.asked = map[string]bool{"s": true}
	b.CompleteConfig(&ganesha.Config{})
	found, err := b.Directories(t.Context(), "s", 1)
	if want := []listing.Directory{{Path: "train", UID: 1, GID: 2, Mode: 0o755}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v", found, err)
	}
	if sizes, err := b.Sizes(t.Context(), "s", 1); err != nil || len(sizes) != 1 || sizes["train"] != 8<<40 {
		t.Errorf("%v, %v", sizes, err)
	}
	if found, err := b.Directories(t.Context(), "other", 1); err == nil {
		t.Errorf("a share that is not exported: %v", found)
	}
	b.asked = map[string]bool{}
	b.CompleteConfig(&ganesha.Config{})
	if found, err := b.Directories(t.Context(), "s", 1); err == nil {
		t.Errorf("a share that is not exported any more: %v", found)
	}
	if sizes, err := b.Sizes(t.Context(), "s", 1); err == nil {
		t.Errorf("a share that is not exported any more: %v", sizes)
	}
}

// A subvolume that is made again has another path, so the share's root has another identity.
func TestTheIdentityOfARootDependsOnItsPath(t *testing.T) {
	of := func(path string) []string {
		b := New(Options{FSID: "f", FileSystem: "fs"})
		b.shares = map[string]share{"s": {Path: path}}
		return b.RootIDs("s")
	}
	one := of("/volumes/g/s/11111111")
	if len(one) != 1 || len(one[0]) != 32 || !slices.Equal(one, of("/volumes/g/s/11111111")) || slices.Equal(one, of("/volumes/g/s/22222222")) {
		t.Errorf("the identity is %q", one)
	}
	if ids := New(Options{}).RootIDs("s"); ids != nil {
		t.Errorf("a share without a directory has %q", ids)
	}
}
