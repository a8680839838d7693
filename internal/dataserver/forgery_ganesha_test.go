package dataserver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// inodeOf are the bytes by which the kernel names the file: what ganesha puts into its handles, and
// what anybody can guess (inode and generation).
func inodeOf(t *testing.T, path string) []byte {
	t.Helper()
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	mustWork(t, "asking for a handle", err)
	return handle.Bytes()
}

// forger has a client's own handle and makes others of it.
type forger struct {
	t      *testing.T
	client *client.Client
	// own is the handle of a file that the client may read, inode the kernel's part of it.
	own, inode []byte
	tried      int
}

// mustRefuse fails if the server takes the handle, for the user or for root.
func (f *forger) mustRefuse(what string, handle []byte) {
	f.t.Helper()
	for _, cred := range []client.Credentials{user, root} {
		f.tried++
		seen, err := f.client.StatHandle(f.t.Context(), cred, handle)
		if err == nil {
			f.t.Errorf("%s: uid %d got at file %d of owner %d with %x", what, cred.UID, seen.FileID, seen.Owner, handle)
		} else if !client.IsStatus(err, nfsv4.NFS4ERR_BADHANDLE, nfsv4.NFS4ERR_STALE) {
			f.t.Errorf("%s: %v for %x", what, err, handle)
		}
	}
}

// of is the own handle with another file in it.
func (f *forger) of(inode []byte) []byte {
	at := bytes.Index(f.own, f.inode)
	if at < 0 || len(inode) != len(f.inode) {
		f.t.Fatalf("%x is not in %x, or is unlike %x", f.inode, f.own, inode)
	}
	return slices.Replace(slices.Clone(f.own), at, at+len(inode), inode...)
}

// signaturesAreAsWritten compares ganesha's signature with that of other code, and tries the key of another data server, which
// has the same exports' ids.
func signaturesAreAsWritten(f *forger) {
	key, err := os.ReadFile(keysOf("forged").Current)
	mustWork(f.t, "read the key", err)
	bare := ganeshatest.BareHandle(f.own)
	if signed := ganeshatest.SignHandle([16]byte(key), bare, 0); !bytes.Equal(signed, f.own) {
		f.t.Errorf("ganesha made %x, and it should be %x", f.own, signed)
	}
	f.mustRefuse("another data server's key", ganeshatest.SignHandle([16]byte([]byte("another one's key")[:16]), bare, 0))
	f.mustRefuse("signed for a later export of the id", ganeshatest.SignHandle([16]byte(key), bare, 1))
}

// unsigned is a handle as ganesha makes it by itself: nothing behind the inode.
func (f *forger) unsigned(handle []byte) []byte {
	end := bytes.Index(f.own, f.inode) + len(f.inode)
	bare := slices.Clone(handle[:end])
	bare[1], bare[4] = 0, byte(end-5)
	return bare
}

const macBytes = 8

// forgedHandlesAreRefused plays a client that may use one share and wants everything else that is in the file
// system: another share, Howdah's own directory, and with a volume that is a directory the node's files.
func forgedHandlesAreRefused(t *testing.T) {
	s := boot(t, "forged", 2)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("mine"), dataservertest.ShareSpec("theirs", v1alpha1.AccessRule{Clients: []string{"10.98.0.1"}})}
	})
	status := s.settle()
	for _, path := range []string{"mine/file", "mine/other", "theirs/secret"} {
		mustWork(t, "write", os.WriteFile("/volumes/forged/0/"+path, []byte(path), 0o600))
		mustWork(t, "chown", os.Chown("/volumes/forged/0/"+path, 1000, 1000))
	}
	c := s.from("10.99.0.1")
	f := &forger{t: t, client: c, inode: inodeOf(t, "/volumes/forged/0/mine/file")}
	var err error
	f.own, err = c.Handle(t.Context(), user, "/mine/0/file")
	mustWork(t, "GETFH", err)
	_, err = c.StatHandle(t.Context(), user, f.own)
	mustWork(t, "a handle that the server made", err)
	signaturesAreAsWritten(f)
	_, err = c.Stat(t.Context(), user, "/theirs/0/secret")
	mustFailWith(t, "a share that the client is not let in to", err, nfsv4.NFS4ERR_NOENT)

	for _, path := range []string{
		"/volumes/forged/0/theirs/secret", "/volumes/forged/0/theirs", "/volumes/forged/0/.howdah", "/volumes/forged/0", "/volumes",
	} {
		forged := f.of(inodeOf(t, path))
		f.mustRefuse("the inode of "+path, forged)
		f.mustRefuse("the inode of "+path+", unsigned", f.unsigned(forged))
	}
	// Whatever file system it is: the kernel's root of ext4, inode 2 of generation 0.
	f.mustRefuse("inode 2", f.unsigned(f.of(append([]byte{2, 0, 0, 0}, make([]byte, len(f.inode)-4)...))))
	f.mustRefuse("its own file, unsigned", f.unsigned(f.own))

	for _, id := range append(idsOf(status, "theirs"), idsOf(status, "mine")[1], 0, 9999) {
		other := slices.Clone(f.own)
		other[2], other[3] = byte(id>>8), byte(id)
		f.mustRefuse(fmt.Sprintf("export %d", id), other)
		f.mustRefuse(fmt.Sprintf("export %d, unsigned", id), f.unsigned(other))
	}
	for bit := range 8 * len(f.own) {
		flipped := slices.Clone(f.own)
		flipped[bit/8] ^= 1 << (bit % 8)
		f.mustRefuse(fmt.Sprintf("bit %d flipped", bit), flipped)
	}
	for length := range len(f.own) {
		cut := slices.Clone(f.own[:length])
		f.mustRefuse(fmt.Sprintf("cut to %d bytes", length), cut)
		if length > 5 {
			cut[4] = byte(length - 5)
			f.mustRefuse(fmt.Sprintf("cut to %d bytes, length put right", length), cut)
		}
	}
	for _, more := range []int{1, macBytes, 128 - len(f.own)} {
		padded := append(slices.Clone(f.own), make([]byte, more)...)
		f.mustRefuse(fmt.Sprintf("%d bytes longer", more), padded)
		padded[4] += byte(more)
		f.mustRefuse(fmt.Sprintf("%d bytes longer, length put right", more), padded)
	}
	neighbour, err := c.Handle(t.Context(), user, "/mine/0/other")
	mustWork(t, "GETFH", err)
	end := len(f.own) - macBytes
	f.mustRefuse("a neighbour's signature", slices.Concat(f.own[:end], neighbour[end:]))
	guess := rand.New(rand.NewPCG(1, 2)) // The same guesses each time.
	for range 500 {
		guessed := slices.Clone(f.of(inodeOf(t, "/volumes/forged/0/theirs/secret")))
		for i := end; i < len(guessed); i++ {
			guessed[i] = byte(guess.Uint32())
		}
		f.mustRefuse("a guessed signature", guessed)
	}
	pseudoRootIsHarmless(t, c)
	t.Logf("FIGURE forged handles tried: %d", f.tried)
}

// pseudoRootIsHarmless: the handles of the tree above the exports are not signed. A changed one is refused or names that tree.
func pseudoRootIsHarmless(t *testing.T, c *client.Client) {
	top, err := c.Handle(t.Context(), user, "/")
	mustWork(t, "GETFH of the root", err)
	is, err := c.Stat(t.Context(), user, "/")
	mustWork(t, "stat of the root", err)
	for bit := range 8 * len(top) {
		flipped := slices.Clone(top)
		flipped[bit/8] ^= 1 << (bit % 8)
		seen, err := c.StatHandle(t.Context(), user, flipped)
		if err == nil && seen != is {
			t.Errorf("bit %d of the root's handle leads to %+v", bit, seen)
		} else if err != nil && !client.IsStatus(err, nfsv4.NFS4ERR_BADHANDLE, nfsv4.NFS4ERR_STALE) {
			t.Errorf("bit %d of the root's handle: %v", bit, err)
		}
	}
}

// referralsCantBePlanted: a client makes what ganesha takes for a referral, in both ways that there are.
func referralsCantBePlanted(t *testing.T) {
	s := boot(t, "referrals", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	c, w := s.from("10.99.0.1"), dialWire(t, "10.99.0.2:2049", 2)
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/plain", client.MkdirOptions{Mode: 0o755}))
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/planted", client.MkdirOptions{Mode: 0o777}))
	planted := lookUp("alpha", "0", "planted")
	if status := w.Run(user, append(planted, setXattr("fs_location", "10.66.6.6:/evil"))...); status != nfsv4.NFS4_OK {
		t.Fatalf("SETXATTR: %s: this way of planting was not tried", client.StatusName(status))
	}
	if status := w.Run(user, append(planted, setMode(0o1666))...); status != nfsv4.NFS4_OK {
		t.Fatalf("SETATTR: %s", client.StatusName(status))
	}
	// No xattr at all: just the mode.
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/hidden", client.MkdirOptions{Mode: 0o1000}))
	for _, path := range []string{"/alpha/0/planted", "/alpha/0/hidden"} {
		// What the kernel asks at its first look: a referral answers GETFH with NFS4ERR_MOVED.
		if _, err := c.Handle(t.Context(), root, path); err != nil {
			t.Error(err)
		}
		if _, err := c.ReadDir(t.Context(), root, path); err != nil {
			t.Errorf("listing %s: %v", path, err)
		}
	}
	entries, err := c.ReadDir(t.Context(), root, "/alpha/0")
	mustWork(t, "listing the directory around them", err)
	if len(entries) != 3 {
		t.Errorf("listed %+v", entries)
	}
	// Without rdattr_error, one referral makes the whole READDIR fail.
	list := &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 4096, Maxcount: 16384, AttrRequest: nfsv4.Bitmap4{1 << nfsv4.FATTR4_FILEID},
	}}
	if status := w.Run(root, append(lookUp("alpha", "0"), list)...); status != nfsv4.NFS4_OK {
		t.Errorf("listing without rdattr_error: %s", client.StatusName(status))
	}
}
