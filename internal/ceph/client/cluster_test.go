package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/ceph"
)

// cluster connects to a real cluster, with a file system fs1 and a pool howdah, as a user of it:
//
//	HOWDAH_CEPH_BINARY  howdah-ceph
//	HOWDAH_CEPH_CONFIG  ceph.conf, beside which ceph.client.<user>.keyring are
//	HOWDAH_CEPH_USER    who provisions; unset means admin
func cluster(t *testing.T, user, keyring string) *Client {
	t.Helper()
	binary, config := os.Getenv("HOWDAH_CEPH_BINARY"), os.Getenv("HOWDAH_CEPH_CONFIG")
	if binary == "" || config == "" {
		t.Skip("needs a Ceph cluster: HOWDAH_CEPH_BINARY, HOWDAH_CEPH_CONFIG")
	}
	if user == "" {
		if user = os.Getenv("HOWDAH_CEPH_USER"); user == "" {
			user = "admin"
		}
		keyring = filepath.Join(filepath.Dir(config), "ceph.client."+user+".keyring")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Connect(ctx, Options{Binary: binary, User: user, Config: config, Keyring: keyring})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// timed says how long something took.
func timed(t *testing.T, what string, do func() error) {
	t.Helper()
	began := time.Now()
	err := do()
	t.Logf("%6.0f ms  %s", float64(time.Since(began).Microseconds())/1000, what)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func keyringOf(t *testing.T, user, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), user+".keyring")
	if err := os.WriteFile(path, []byte("[client."+user+"]\n\tkey = "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASharesLifeInARealCluster(t *testing.T) {
	ctx := t.Context()
	c := cluster(t, "", "")
	const uid = "00000000-0000-4000-8000-0000000000aa"
	volume := ceph.Volume{FileSystem: "fs1", Group: ceph.Group(uid)}
	subvolume, user := ceph.Subvolume(uid, "share"), ceph.ShareUser(uid, "share")
	send := func(what string, command ceph.Command) (out string) {
		t.Helper()
		timed(t, what, func() (err error) { out, err = c.Command(ctx, command); return err })
		return out
	}
	for range 2 { // Everything may be done again.
		send("group", volume.CreateGroup())
		send("subvolume", volume.Create(subvolume))
		send("authorize", volume.Authorize(subvolume, user))
	}
	t.Cleanup(func() {
		for _, command := range []ceph.Command{volume.Deauthorize(subvolume, user), volume.Remove(subvolume)} {
			if _, err := c.Command(context.WithoutCancel(ctx), command); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
	})
	key, err := ceph.ParseKey(send("key", ceph.GetUser(user)), user)
	if err != nil {
		t.Fatal(err)
	}
	send("quota", volume.Resize(subvolume, 64<<20))
	info, err := ceph.ParseInfo(send("info", volume.Info(subvolume)), subvolume)
	if err != nil || !info.Ready || info.QuotaBytes != 64<<20 {
		t.Fatalf("%+v, %v", info, err)
	}
	// A manager that has just started tells of no space for some seconds.
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		capacity, err := ceph.ParseCapacity("fs1", send("file systems", ceph.FileSystems()), send("usage", ceph.Usage()))
		if err == nil && capacity.TotalBytes > 0 {
			break
		}
		if err != nil || time.Since(began) > time.Minute {
			t.Errorf("%+v, %v", capacity, err)
			break
		}
	}

	share := cluster(t, user, keyringOf(t, user, key))
	root := Directory{"fs1", info.Path}
	wanted := Attributes{UID: 1000, GID: 2000, Mode: 0o2770}
	timed(t, "mount and attributes", func() error { return share.SetAttributes(ctx, root, wanted) })
	got, err := share.Attributes(ctx, root)
	if got.Mode &= 0o7777; err != nil || got != wanted {
		t.Errorf("%+v, %v", got, err)
	}
	found, err := share.Tree(ctx, root, 2, ".howdah")
	if err != nil || len(found) != 0 {
		t.Errorf("a new share has directories %v, %v", found, err)
	}
	if sizes, err := share.Sizes(ctx, root, 1, ".howdah"); err != nil || len(sizes) != 0 {
		t.Errorf("the directories of a new share have sizes %v, %v", sizes, err)
	}
	if sizes, err := share.Sizes(ctx, root, 0, ".howdah"); err != nil || len(sizes) != 1 || sizes[""] != 0 {
		t.Errorf("a new share has sizes %v, %v", sizes, err)
	}
	if _, err := share.Attributes(ctx, Directory{"fs1", "/"}); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("a share's user mounts the whole file system: %v", err)
	}
	if _, err := share.Command(ctx, volume.Info(subvolume)); err == nil {
		t.Error("a share's user may ask the manager")
	}
	if _, err := share.Objects(ctx, Place{"howdah", ceph.Node(uid, 0)}); err == nil {
		t.Error("a share's user may read recovery records")
	}
}

func TestAServersRecoveryInARealCluster(t *testing.T) {
	ctx := t.Context()
	c := cluster(t, "", "")
	const uid = "00000000-0000-4000-8000-0000000000ab"
	node, user := ceph.Node(uid, 0), ceph.RecoveryUser(uid, 0)
	out, err := c.Command(ctx, ceph.CreateRecoveryUser(user, "howdah", node))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Command(context.WithoutCancel(ctx), ceph.RemoveUser(user)) })
	key, err := ceph.ParseKey(out, user)
	if err != nil {
		t.Fatal(err)
	}
	own, place := cluster(t, user, keyringOf(t, user, key)), Place{"howdah", node}
	_ = own.Remove(ctx, place, ceph.GraceObject) // Of a run that was cut.
	join := func() *ceph.Change {
		t.Helper()
		object, err := own.Read(ctx, place, ceph.GraceObject)
		if err != nil {
			t.Fatal(err)
		}
		change, err := ceph.JoinGrace(object, node)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	timed(t, "joining", func() error { _, err := own.Change(ctx, place, ceph.GraceObject, *join()); return err })
	if again := join(); again != nil {
		t.Errorf("a member joins again: %+v", again)
	}
	if _, err := own.Change(ctx, place, ceph.GraceObject, ceph.Change{Create: true}); !errors.Is(err, syscall.EEXIST) || !IsConflict(err) {
		t.Errorf("made twice: %v", err)
	}
	if _, err := own.Change(ctx, place, ceph.GraceObject, ceph.Change{Version: 1 << 40, Data: []byte{1}}); !IsConflict(err) {
		t.Error("a change of another version was made")
	}
	if names, err := own.Objects(ctx, place); err != nil || !slices.Contains(names, ceph.GraceObject) {
		t.Errorf("%v, %v", names, err)
	}
	var watchers []ceph.Watcher
	timed(t, "watchers", func() (err error) { watchers, err = own.Watchers(ctx, place, ceph.GraceObject); return err })
	if len(watchers) != 0 {
		t.Errorf("%v", watchers)
	}
	if _, err := own.Read(ctx, Place{"howdah", ceph.Node(uid, 1)}, ceph.GraceObject); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("one server reads the records of another: %v", err)
	}
	timed(t, "blocklisting", func() error {
		_, err := c.Command(ctx, ceph.Blocklist("10.99.99.99:0/1", time.Minute))
		return err
	})
	if err := own.Remove(ctx, place, ceph.GraceObject); err != nil {
		t.Error(err)
	}
}

var legacyAddress = regexp.MustCompile(`[0-9.]+:0/[0-9]+`)

// The evidence for the failover of a data server: what Ceph has confirmed to be blocked can't write any more, and others can.
func TestAFencedClientCannotWriteInARealCluster(t *testing.T) {
	ctx := t.Context()
	c := cluster(t, "", "")
	uid := "00000000-0000-4000-8000-0000000000fe"
	user, node := ceph.RecoveryUser(uid, 0), ceph.Node(uid, 0)
	answer, err := c.Command(ctx, ceph.CreateRecoveryUser(user, "howdah", node))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Command(context.Background(), ceph.RemoveUser(user)) })
	key, err := ceph.ParseKey(answer, user)
	if err != nil {
		t.Fatal(err)
	}
	place, object := Place{"howdah", node}, "records"
	lost := cluster(t, user, keyringOf(t, user, key))
	write := func(client *Client, text string) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err := client.Change(ctx, place, object, ceph.Change{Data: []byte(text)})
		return err
	}
	if err := write(lost, "by the lost one"); err != nil {
		t.Fatal(err)
	}
	var addresses string
	if err := lost.request(ctx, map[string]any{"op": "addresses"}, &addresses); err != nil {
		t.Fatal(err)
	}
	address := legacyAddress.FindString(addresses)
	timed(t, "fencing "+addresses, func() error {
		_, err := c.Command(ctx, ceph.Blocklist(address, time.Hour))
		return err
	})
	// An OSD may not know the new map yet. It does once a client asks it that has connected since.
	next := cluster(t, user, keyringOf(t, user, key))
	if err := write(next, "by the next one"); err != nil {
		t.Errorf("another client of the same host and user can't write: %v", err)
	}
	if err := write(lost, "too late"); !errors.Is(err, syscall.ESHUTDOWN) {
		t.Errorf("a fenced client writes after the next one: %v", err)
	}
	if found, err := next.Read(ctx, place, object); err != nil || string(found.Data) != "by the next one" {
		t.Errorf("%+v, %v", found, err)
	}
	listed, err := c.Command(ctx, ceph.Blocklisted())
	if err != nil {
		t.Fatal(err)
	}
	until, err := ceph.ParseBlocklist(listed)
	if left := time.Until(until[address]); err != nil || left < 55*time.Minute || left > 65*time.Minute {
		t.Errorf("%s stays in the blocklist for %s (%v): %s", address, left, err, listed)
	}
	// An entry that exists is not prolonged: internal/steward blocks a client again when its entry has ended.
	if _, err := c.Command(ctx, ceph.Blocklist(address, 2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if listed, err = c.Command(ctx, ceph.Blocklisted()); err != nil {
		t.Fatal(err)
	}
	if until, err = ceph.ParseBlocklist(listed); err != nil || time.Until(until[address]) > 65*time.Minute {
		t.Errorf("blocked again before the end: %s, %v", time.Until(until[address]), err)
	}
	if err := next.Remove(ctx, place, object); err != nil {
		t.Error(err)
	}
}
