package steward

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

const (
	uid     = "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c"
	fsid    = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	answers = "CEPH_STEWARD_TEST_ANSWERS"
)

// TestMain makes the test binary a fake howdah-ceph. A file has its answers by command and object; "dies" ends it.
func TestMain(m *testing.M) {
	file, helper := os.LookupEnv(answers)
	if !helper {
		os.Exit(m.Run())
	}
	fmt.Println(`{"code":0}`)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var request struct {
			Op      string         `json:"op"`
			Command map[string]any `json:"command"`
		}
		var known map[string]string
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &known) != nil || json.Unmarshal(input.Bytes(), &request) != nil {
			os.Exit(3)
		}
		words := []string{request.Op}
		for _, name := range []string{"prefix", "sub_name", "entity", "clone_name"} {
			if value, ok := request.Command[name].(string); ok {
				words = append(words, value)
			}
		}
		answer, there := known[strings.Join(words, " ")]
		switch {
		case answer == "dies":
			os.Exit(134)
		case there:
			fmt.Println(answer)
		default:
			fmt.Println(`{"code":0,"result":{"out":""}}`)
		}
	}
}

// world is an API and a fake Ceph for one steward.
type world struct {
	*testing.T
	answers map[string]string
	file    string
	api     client.Client
	steward *steward
}

// out returns an answer with this output.
func out(text string) string {
	encoded, _ := json.Marshal(map[string]any{"code": 0, "result": map[string]any{"out": text}}) // Strings can always be encoded.
	return string(encoded)
}

// refusing returns the answer of a Ceph that refuses a command.
func refusing(code int, words string) string {
	return fmt.Sprintf(`{"code":%d,"words":%q}`, code, words)
}

// newWorld returns a world with shares whose subvolumes exist in Ceph. The key of a share is key-SHARE.
func newWorld(t *testing.T, shares ...string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{internalv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	credentials := t.TempDir()
	for entry, text := range map[string]string{"userID": "howdah-provisioner", "userKey": "AQ=="} {
		if err := os.WriteFile(filepath.Join(credentials, entry), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "shares"}},
		&internalv1.Steward{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "training"},
			Spec: internalv1.StewardSpec{
				FileServerRef: internalv1.FileServerReference{Name: "training"}, FileServerUID: uid,
				Ceph: internalv1.StewardCeph{
					Monitors: []string{"10.0.0.1:3300"}, FSID: fsid, FileSystem: "fs1", RecoveryPool: "howdah",
					ProvisioningSecretName: "ceph", SharesSecretName: "shares",
				},
			},
		},
	}
	w := &world{T: t, file: filepath.Join(t.TempDir(), "answers"), answers: map[string]string{
		"fsid":      `{"code":0,"result":"` + fsid + `"}`,
		"mon fs ls": out(`[{"name":"fs1","data_pools":["d"]}]`),
		"mon df":    out(`{"pools":[{"name":"d"},{"name":"howdah"}]}`),
	}}
	for _, share := range shares {
		storage := &internalv1.ShareStorage{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: share, UID: types.UID("uid-of-" + share), Generation: 1},
			Spec: internalv1.ShareStorageSpec{
				FileServerRef: internalv1.FileServerReference{Name: "training"}, FileShareRef: internalv1.FileShareReference{Name: share},
				DataPolicy: internalv1.DataRetain,
			},
		}
		objects = append(objects, storage)
		w.answers["mgr fs subvolume info "+ceph.Subvolume(uid, share)] = out(fmt.Sprintf(`{"path":%q,"bytes_quota":"infinite","state":"complete"}`, pathOf(share)))
		w.answers[w.user(share)] = out(fmt.Sprintf(`[{"entity":"client.%s","key":"key-%s"}]`, ceph.ShareUser(uid, share), share))
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&internalv1.ShareStorage{}, &internalv1.Steward{}).Build()
	t.Setenv(answers, w.file)
	w.restart(credentials)
	return w
}

// pathOf is where Ceph has the data of a share.
func pathOf(share string) string { return "/volumes/g/" + ceph.Subvolume(uid, share) + "/1" }

// user returns the command that asks for a share's key.
func (w *world) user(share string) string { return "mon auth get client." + ceph.ShareUser(uid, share) }

// restart replaces the steward by one that has just started.
func (w *world) restart(credentials string) {
	w.Helper()
	if w.steward != nil {
		credentials = w.steward.connector.credential
		w.steward.connector.close()
	}
	to := &connector{helper: os.Args[0], credential: credentials, directory: w.TempDir()}
	w.steward = &steward{
		api: &api{namespace: "ml", name: "training", client: w.api}, connector: to, log: slog.New(slog.DiscardHandler), now: time.Now,
		room: roomForShares, places: map[string]known{}, lost: map[string]bool{}, stuck: map[string]bool{},
	}
	w.Cleanup(to.close)
}

// pass runs one pass of the steward.
func (w *world) pass() (done bool) {
	w.Helper()
	text, err := json.Marshal(w.answers)
	if err == nil {
		err = os.WriteFile(w.file, text, 0o600)
	}
	object, storages := &internalv1.Steward{}, &internalv1.ShareStorageList{}
	if err == nil {
		err = w.api.Get(w.Context(), client.ObjectKey{Namespace: "ml", Name: "training"}, object)
	}
	if err == nil {
		err = w.api.List(w.Context(), storages)
	}
	if err != nil {
		w.Fatal(err)
	}
	asked := request{steward: object}
	for i := range storages.Items {
		asked.storages = append(asked.storages, &storages.Items[i])
	}
	asked.sort()
	return w.steward.carryOut(w.Context(), asked)
}

// secret returns the content of the Secret for data servers: SHARE:KEY of each share.
func (w *world) secret() string {
	w.Helper()
	found := &corev1.Secret{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "ml", Name: "shares"}, found); err != nil {
		w.Fatal(err)
	}
	var shares []string
	for entry := range found.Data {
		if share, ok := strings.CutSuffix(entry, ".json"); ok {
			_, key, _ := strings.Cut(string(found.Data[keyringName(ceph.ShareUser(uid, share))]), "key = ")
			shares = append(shares, share+":"+strings.TrimSpace(key))
		}
	}
	slices.Sort(shares)
	return strings.Join(shares, " ")
}

// ready returns the condition Ready of a share's ShareStorage.
func (w *world) ready(share string) string {
	w.Helper()
	storage := &internalv1.ShareStorage{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "ml", Name: share}, storage); err != nil {
		w.Fatal(err)
	}
	if c := meta.FindStatusCondition(storage.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

// isNew clears the status of a share's ShareStorage, as if its subvolume was never made.
func (w *world) isNew(share string) {
	w.Helper()
	storage := &internalv1.ShareStorage{}
	err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "ml", Name: share}, storage)
	if err == nil {
		storage.Status = internalv1.ShareStorageStatus{}
		err = w.api.Status().Update(w.Context(), storage)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// A Secret has 1 MiB, and the shares of a FileServer can need more. One that has no room for one more share must go on to change for the others.
func TestASecretWithoutRoomForAShareIsKeptForTheOthers(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.steward.room = 2 * sizeOf(must(entriesOf("a", place{pathOf("a"), ceph.ShareUser(uid, "a"), "key-a"})))
	expect := func(when, secret string, left ...string) {
		t.Helper()
		if got := w.secret(); got != secret {
			t.Errorf("%s: the Secret has %q, want %q", when, got, secret)
		}
		for _, share := range []string{"a", "b", "c"} {
			want := "True Ready: "
			if slices.Contains(left, share) {
				want = "False TooManyShares: Secret shares, by which data servers get the keys of shares, has no room for another one: delete a share of FileServer training"
			}
			if got := w.ready(share); !strings.HasPrefix(got, want) {
				t.Errorf("%s: share %s says %q", when, share, got)
			}
		}
	}
	w.pass()
	expect("at first", "a:key-a b:key-b", "c")
	room := w.steward.room
	w.restart("")
	w.steward.room = room
	w.pass()
	expect("after a restart", "a:key-a b:key-b", "c")
	w.answers[w.user("b")] = out(fmt.Sprintf(`[{"entity":"client.%s","key":"new-b"}]`, ceph.ShareUser(uid, "b")))
	w.restart("")
	w.steward.room = room
	w.pass()
	expect("after another share got another key", "a:key-a b:new-b", "c")
	w.steward.room = 2 * room
	w.pass()
	expect("once there is room", "a:key-a b:new-b c:key-c")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// The steward can't read its Secret. A share for which Ceph returns an error must keep its key, and must not delay others.
func TestAfterARestartAFailingShareDoesNotDelayOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		ill   map[string]string
		ready string
		// secret is what data servers have then.
		secret string
	}{
		"its subvolume is refused": {
			map[string]string{"mgr fs subvolume info " + ceph.Subvolume(uid, "ill"): refusing(22, "no good")},
			"False CephUnusable: looking at subvolume", "fresh:key-fresh ill:key-ill old:key-old",
		},
		"looking at it hangs, or ends the connection": {
			map[string]string{"mgr fs subvolume info " + ceph.Subvolume(uid, "ill"): "dies"},
			"False CephUnusable: looking at subvolume", "fresh:key-fresh ill:key-ill old:key-old",
		},
		"it is being cloned": {
			map[string]string{"mgr fs subvolume info " + ceph.Subvolume(uid, "ill"): out(`{"bytes_quota":"infinite","state":"in-progress"}`)},
			"False Progressing: busy", "fresh:key-fresh ill:key-ill old:key-old",
		},
		"its user is gone, so its key is worth nothing": {
			map[string]string{
				"mgr fs subvolume info " + ceph.Subvolume(uid, "ill"): refusing(22, "no good"),
				"mon auth get client." + ceph.ShareUser(uid, "ill"):   refusing(2, "no such user"),
			},
			"False CephUnusable: looking at subvolume", "fresh:key-fresh old:key-old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "fresh", "ill", "old")
			if !w.pass() || w.secret() != "fresh:key-fresh ill:key-ill old:key-old" {
				t.Fatalf("%s; %s", w.secret(), w.ready("ill"))
			}
			w.isNew("fresh")
			if err := w.api.Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "shares"}}); err != nil {
				t.Fatal(err)
			}
			w.restart("")
			for asked, answer := range tc.ill {
				w.answers[asked] = answer
			}
			if w.pass() {
				t.Error("nothing is left to do")
			}
			if got := w.secret(); got != tc.secret {
				t.Errorf("data servers have %q, want %q", got, tc.secret)
			}
			if got := w.ready("fresh"); !strings.HasPrefix(got, "True Ready") {
				t.Errorf("the new share says %s", got)
			}
			if got := w.ready("ill"); !strings.HasPrefix(got, tc.ready) {
				t.Errorf("the share that is refused says %s", got)
			}
		})
	}
}

// Its entry in the Secret is not known. Only this delays other shares, and they name the share that is the cause.
func TestAKeyThatCanNotBeReadDelaysNewSharesAndIsNamed(t *testing.T) {
	w := newWorld(t, "fresh", "ill", "old")
	w.pass()
	w.isNew("fresh")
	w.restart("")
	w.answers[w.user("ill")] = refusing(22, "no good")
	before := &corev1.Secret{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "shares"}, before); err != nil {
		t.Fatal(err)
	}
	w.pass()
	after := &corev1.Secret{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "shares"}, after); err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Secret was written without it: %v", err)
	}
	if got := w.ready("fresh"); !strings.HasPrefix(got, "False CephUnusable: ") || !strings.Contains(got, "share ill") {
		t.Errorf("the new share says %s", got)
	}
	if got := w.ready("ill"); !strings.Contains(got, "asking for the key of client."+ceph.ShareUser(uid, "ill")) {
		t.Errorf("the share itself says %s", got)
	}
	w.answers[w.user("ill")] = out(fmt.Sprintf(`[{"entity":"client.%s","key":"key-ill"}]`, ceph.ShareUser(uid, "ill")))
	if !w.pass() || w.secret() != "fresh:key-fresh ill:key-ill old:key-old" {
		t.Errorf("it does not recover by itself: %s; %s", w.secret(), w.ready("fresh"))
	}
}

// With ceph auth get-or-create-pending a user has two keys. Data servers get the new one; the old one ends at its first use.
func TestDataServersGetAPendingKey(t *testing.T) {
	w := newWorld(t, "data")
	w.pass()
	w.answers[w.user("data")] = out(fmt.Sprintf(`[{"entity":"client.%s","key":"key-data","pending_key":"new"}]`, ceph.ShareUser(uid, "data")))
	before := w.steward.now
	w.steward.now = func() time.Time { return before().Add(lookEvery) }
	if !w.pass() || w.secret() != "data:new" {
		t.Errorf("%s; %s", w.secret(), w.ready("data"))
	}
	w.restart("")
	if !w.pass() || w.secret() != "data:new" {
		t.Errorf("after a restart: %s; %s", w.secret(), w.ready("data"))
	}
}

// A key that was replaced in the Secret is tried before a share needs it, and a refused key is reported once.
func TestAnotherAccountInTheSecretIsNoticed(t *testing.T) {
	w := newWorld(t, "data")
	if w.steward.connector.hasNewCredential() {
		t.Error("before the first connection there is nothing to compare")
	}
	if !w.pass() || w.steward.connector.hasNewCredential() {
		t.Error("nothing is new")
	}
	key := filepath.Join(w.steward.connector.credential, "userKey")
	if err := os.Remove(key); err != nil || !w.steward.connector.hasNewCredential() {
		t.Errorf("the key is gone, and that is not noticed (%v)", err)
	}
	if err := os.WriteFile(key, []byte("BQ=="), 0o600); err != nil || !w.steward.connector.hasNewCredential() {
		t.Errorf("the key is another, and that is not noticed (%v)", err)
	}
	if !w.pass() || w.steward.connector.hasNewCredential() {
		t.Error("the new key is the one in use")
	}
}

// If Ceph does not answer, the steward gives up after two timeouts and does not wait for each share.
func TestAnOutageIsNotTriedForEachShare(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	for _, share := range []string{"a", "b", "c", "d"} {
		w.answers["mgr fs subvolume info "+ceph.Subvolume(uid, share)] = "dies"
	}
	if w.pass() || len(w.steward.sights) != 2 {
		t.Errorf("%d shares were tried", len(w.steward.sights))
	}
	if got := w.ready("d"); !strings.HasPrefix(got, "False CephUnusable") {
		t.Errorf("one that waits says %s", got)
	}
}

// A share from a snapshot is recorded before its copy starts, gets its user and its entry when the copy is complete, and
// delays no other share meanwhile.
func TestAShareFromASnapshotIsServedOnceItIsWhole(t *testing.T) {
	w := newWorld(t, "copy", "other")
	storage := &internalv1.ShareStorage{}
	read := func() *internalv1.ShareStorage {
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "copy"}, storage); err != nil {
			t.Fatal(err)
		}
		return storage
	}
	read().Spec.Source = internalv1.StorageSource{FileShareRef: internalv1.FileShareReference{Name: "other"}, SnapshotName: "now"}
	if err := w.api.Update(t.Context(), storage); err != nil {
		t.Fatal(err)
	}
	status, begin := "mgr fs clone status "+ceph.Subvolume(uid, "copy"), "mgr fs subvolume snapshot clone "+ceph.Subvolume(uid, "other")
	w.answers[status], w.answers[begin] = refusing(2, "no such subvolume"), refusing(22, "it was not written down")
	if w.pass() || read().Status.CloneBeginTime == nil || !strings.HasPrefix(w.ready("copy"), "False Cloning: Ceph is about to copy snapshot now of share other") || w.secret() != "other:key-other" {
		t.Fatalf("%s; %s", w.ready("copy"), w.secret())
	}
	w.answers[begin] = out("")
	began := storage.Status.CloneBeginTime.Time
	for _, state := range []string{"pending", "in-progress"} {
		if w.pass() || !strings.HasSuffix(w.ready("copy"), ": pending") && !strings.HasSuffix(w.ready("copy"), ": "+state) || !read().Status.CloneBeginTime.Time.Equal(began) {
			t.Fatalf("%s: %s", state, w.ready("copy"))
		}
		w.answers[status] = out(`{"status":{"state":"` + state + `"}}`)
	}
	if w.pass() || !strings.HasSuffix(w.ready("copy"), ": in-progress") || storage.Status.Path != "" || w.secret() != "other:key-other" {
		t.Fatalf("%s; %s", w.ready("copy"), w.secret())
	}
	w.answers[status] = out(`{"status":{"state":"complete"}}`)
	if !w.pass() || read().Status.Path != pathOf("copy") || !strings.HasPrefix(w.ready("copy"), "True Ready") || w.secret() != "copy:key-copy other:key-other" {
		t.Errorf("%s; %s", w.ready("copy"), w.secret())
	}
}
