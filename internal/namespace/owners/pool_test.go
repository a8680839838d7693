package owners

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

func TestNoEntryIsAnAnswerOnlyAboutWhatIsInAnExportThatIsShown(t *testing.T) {
	owner := ownertest.Start(t, "uid-0", "fs-0")
	owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	identity := "uid-0"
	dial := MutualTLS(ownertest.Identities(t), func(string) string { return naming.DataServerTLSName(ownertest.FileServerUID, "fs-0") })
	pool := NewPool("test", func(string) string { return identity }, dial, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { pool.Close(t.Context()) })
	creds := nfs.Credentials{}
	// Every operation, on a path whose export is there or not.
	operations := map[string]func(path string) error{
		"rmdir": func(path string) error { return pool.Rmdir(t.Context(), owner.Address, path+"/p/gone", creds) },
		"rename": func(path string) error {
			return pool.Rename(t.Context(), owner.Address, path+"/p/gone", path+"/p/new", creds)
		},
		"mkdir": func(path string) error {
			return pool.Mkdir(t.Context(), owner.Address, path+"/none/new", creds, nfs.MkdirOptions{})
		},
		"set attributes": func(path string) error {
			return pool.SetAttributes(t.Context(), owner.Address, path+"/p/gone", creds, nfs.Settings{})
		},
		"stat": func(path string) error {
			_, err := pool.Stat(t.Context(), owner.Address, path+"/p/gone", creds)
			return err
		},
		"list": func(path string) error {
			err := pool.Entries(t.Context(), owner.Address, path+"/p/gone", creds, func(nfs.DirEntry) bool { return true })
			return err
		},
	}
	for name, operation := range operations {
		if err := operation("/s/0"); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
			t.Errorf("%s in an export that is shown: %v", name, err)
		}
		for _, hidden := range []string{"/s/1", "/other/0"} {
			if err := operation(hidden); err == nil || nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
				t.Errorf("%s in %s, which is not shown: %v", name, hidden, err)
			}
		}
	}
	// Another server took the address: a server of the same shares, without their data.
	identity = "uid-1"
	other := NewPool("test", func(string) string { return identity }, dial, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { other.Close(t.Context()) })
	err := other.Rmdir(t.Context(), owner.Address, "/s/0/p/gone", creds)
	if err == nil || nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) || !strings.Contains(err.Error(), `server "uid-0" answers`) {
		t.Errorf("another server's answer: %v", err)
	}
	identity = "uid-0"
	if err := other.Rmdir(t.Context(), owner.Address, "/s/0/p/gone", creds); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("once it is the right one: %v", err)
	}
}

func TestOperationsGoToTheDataServerOfTheAddressAndNoOther(t *testing.T) {
	owner := ownertest.Start(t, "uid-0", "fs-0")
	owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	for name, tc := range map[string]struct{ expected, want string }{
		"the right one": {naming.DataServerTLSName(ownertest.FileServerUID, "fs-0"), ""},
		"another one":   {naming.DataServerTLSName(ownertest.FileServerUID, "fs-1"), "certificate is valid for fs-0.uid."},
		"it is unknown": {"", "no DataServer has this address"},
	} {
		dial := MutualTLS(ownertest.Identities(t), func(string) string { return tc.expected })
		// Whatever it calls itself.
		pool := NewPool("test", func(string) string { return "" }, dial, slog.New(slog.DiscardHandler))
		err := pool.Mkdir(t.Context(), owner.Address, "/s/0/p/"+strings.ReplaceAll(name, " ", "-"), nfs.Credentials{}, nfs.MkdirOptions{})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, not %q", name, err, tc.want)
		}
		pool.Close(t.Context())
	}
	if made := owner.Names("/s/0/p"); len(made) != 1 {
		t.Errorf("made: %v", made)
	}
}

// A data server's node is gone, and nothing answers. Who asks for it while another one does waits no longer than for one attempt to reach it: a hundred
// requests waited for a hundred attempts, one after the other.
func TestNoRequestWaitsForTheAttemptsOfOthersToReachADataServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		pool := NewPool("test", func(string) string { return "" }, silent, slog.New(slog.DiscardHandler))
		began := time.Now()
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				if _, err := pool.Stat(t.Context(), "10.9.0.1", "/s/0", nfs.Credentials{}); err == nil {
					t.Error("a data server that does not answer is looked at")
				}
			})
		}
		ending, stop := context.WithCancel(t.Context())
		calls.Go(func() {
			if _, err := pool.Stat(ending, "10.9.0.1", "/s/0", nfs.Credentials{}); !errors.Is(err, context.Canceled) {
				t.Errorf("who waits no longer got %v", err)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("who waits no longer than a second waited %s", took)
			}
		})
		time.Sleep(time.Second)
		stop()
		calls.Wait()
		if took := time.Since(began); took > dialTimeout {
			t.Errorf("they waited %s", took)
		}
		pool.Close(t.Context())
	})
}
