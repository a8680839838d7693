package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// TestGanesha runs against a real nfs-ganesha: HOWDAH_TEST_GANESHA is its address:port and
// HOWDAH_TEST_GANESHA_DIRECTORY a pseudo path below which everyone may write.
func TestGanesha(t *testing.T) {
	addr, base := os.Getenv("HOWDAH_TEST_GANESHA"), os.Getenv("HOWDAH_TEST_GANESHA_DIRECTORY")
	if addr == "" {
		t.Skip("HOWDAH_TEST_GANESHA is not set")
	}
	ctx := context.Background()
	if err := client.Null(ctx, addr); err != nil {
		t.Fatal(err)
	}
	identity, err := client.Identify(ctx, addr)
	if err != nil || identity.Owner == "" || identity.Scope == "" {
		t.Fatalf("identity %+v, %v", identity, err)
	}
	c := dial(t, addr, client.Options{Renew: 100 * time.Millisecond})
	top := fmt.Sprintf("%s/test-%d", base, time.Now().UnixNano())
	owner, group := uint32(1000), uint32(2000)
	if err := c.Mkdir(ctx, root, top, client.MkdirOptions{Mode: 0o2777, Owner: &owner, Group: &group}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Stat(ctx, root, top)
	if err != nil || !got.IsDir() || got.Mode != 0o2777 || got.Owner != 1000 || got.Group != 2000 || got.FileID == 0 || time.Since(got.Modify).Abs() > time.Minute {
		t.Errorf("Stat: %+v, %v", got, err)
	}
	if list, err := c.ReadDir(ctx, root, base); err != nil || len(list) == 0 {
		t.Errorf("list %s: %d entries, %v", base, len(list), err)
	}
	user := client.Credentials{UID: 501, GID: 502, GIDs: []uint32{503}}
	var workers sync.WaitGroup
	for i := range 300 {
		workers.Go(func() {
			if err := c.Mkdir(ctx, user, fmt.Sprintf("%s/d%d", top, i), client.MkdirOptions{Mode: 0o750}); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	entries, err := c.ReadDir(ctx, root, top)
	if err != nil || len(entries) != 300 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, entry := range entries {
		if !entry.IsDir || entry.Mode&0o777 != 0o750 || entry.Owner != 501 || (entry.Group != 2000 && entry.Group != 502) {
			t.Fatalf("entry %+v", entry)
		}
	}
	if err := c.Rename(ctx, user, top+"/d1", top+"/e"); err != nil {
		t.Error(err)
	}
	if err := c.Mkdir(ctx, user, top+"/e/sub", client.MkdirOptions{Mode: 0o755}); err != nil {
		t.Error(err)
	}
	if err := c.Rename(ctx, user, top+"/d4", top+"/d3"); err != nil {
		t.Errorf("rename onto an empty directory: %v", err)
	}
	if err := c.Mkdir(ctx, user, top+"/d4", client.MkdirOptions{Mode: 0o755}); err != nil {
		t.Error(err)
	}
	for name, test := range map[string]struct {
		err    error
		status nfsv4.Nfsstat4
	}{
		"a directory that exists": {c.Mkdir(ctx, user, top+"/d2", client.MkdirOptions{}), nfsv4.NFS4ERR_EXIST},
		"no permission":           {c.Mkdir(ctx, client.Credentials{UID: 9, GID: 9}, top+"/d2/x", client.MkdirOptions{}), nfsv4.NFS4ERR_ACCESS},
		"a name that is not free": {c.Rename(ctx, user, top+"/d2", top+"/e"), nfsv4.NFS4ERR_EXIST},
		"not empty":               {c.Rmdir(ctx, user, top+"/e"), nfsv4.NFS4ERR_NOTEMPTY},
		"nothing to remove":       {c.Rmdir(ctx, user, top+"/d1"), nfsv4.NFS4ERR_NOENT},
	} {
		if !client.IsStatus(test.err, test.status) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if err := c.Rmdir(ctx, user, top+"/e/sub"); err != nil {
		t.Error(err)
	}
	for _, entry := range append(entries, client.DirEntry{Name: "e"}) {
		if entry.Name == "d1" {
			continue
		}
		workers.Go(func() {
			if err := c.Rmdir(ctx, user, top+"/"+entry.Name); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if err := c.Rmdir(ctx, root, top); err != nil {
		t.Error(err)
	}
	if file := os.Getenv("HOWDAH_TEST_GANESHA_FILE"); file != "" {
		if err := c.Rmdir(ctx, root, file); !client.IsStatus(err, nfsv4.NFS4ERR_NOTDIR) {
			t.Errorf("rmdir of a file: %v", err)
		}
		if _, err := c.Stat(ctx, root, file); err != nil {
			t.Errorf("the file after an attempt to remove it as a directory: %v", err)
		}
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestGaneshaRestarts makes and removes directories for HOWDAH_TEST_GANESHA_SOAK while
// ganesha is killed and restarted: nothing may fail for good.
func TestGaneshaRestarts(t *testing.T) {
	addr, base := os.Getenv("HOWDAH_TEST_GANESHA"), os.Getenv("HOWDAH_TEST_GANESHA_DIRECTORY")
	length, err := time.ParseDuration(os.Getenv("HOWDAH_TEST_GANESHA_SOAK"))
	if addr == "" || err != nil {
		t.Skip("HOWDAH_TEST_GANESHA and HOWDAH_TEST_GANESHA_SOAK are not set")
	}
	ctx := context.Background()
	c := dial(t, addr, client.Options{CallTimeout: time.Minute})
	top := fmt.Sprintf("%s/soak-%d", base, time.Now().UnixNano())
	if err := c.Mkdir(ctx, root, top, client.MkdirOptions{Mode: 0o777}); err != nil {
		t.Fatal(err)
	}
	// again is true for the answer to an operation that an earlier attempt has done.
	again := func(err error, status nfsv4.Nfsstat4) bool {
		var answer *client.StatusError
		return errors.As(err, &answer) && answer.Retried && answer.Status == status
	}
	var workers sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	rounds, retried := 0, 0
	end := time.Now().Add(length)
	for i := range 8 {
		workers.Go(func() {
			name := fmt.Sprintf("%s/w%d", top, i)
			for time.Now().Before(end) {
				start := time.Now()
				err := c.Mkdir(ctx, root, name, client.MkdirOptions{Mode: 0o755})
				if err != nil && !again(err, nfsv4.NFS4ERR_EXIST) {
					t.Error(err)
				}
				removed := c.Rmdir(ctx, root, name)
				if removed != nil && !again(removed, nfsv4.NFS4ERR_NOENT) {
					t.Error(removed)
				}
				mu.Lock()
				rounds++
				if err != nil || removed != nil {
					retried++
				}
				longest = max(longest, time.Since(start))
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d rounds, %d with a lost reply, the longest took %v", rounds, retried, longest)
	if err := c.Rmdir(ctx, root, top); err != nil {
		t.Error(err)
	}
}
