package operations

import (
	"fmt"
	"slices"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

func readdir(args nfsv4.Readdir4args) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: args}
}

var kernelAttributes = bitmapOf(nfsv4.FATTR4_TYPE, nfsv4.FATTR4_FSID, nfsv4.FATTR4_RDATTR_ERROR, nfsv4.FATTR4_FILEID,
	nfsv4.FATTR4_MODE, nfsv4.FATTR4_MOUNTED_ON_FILEID)

// page reads one page of a directory.
func (w *world) page(t *testing.T, caller rpc.Caller, path string, args nfsv4.Readdir4args) nfsv4.Readdir4resok {
	t.Helper()
	res, status := w.do(caller, at(path, readdir(args))...)
	if status != nfsv4.NFS4_OK {
		t.Fatalf("READDIR of %s: %s", path, nfs.StatusName(status))
	}
	return res[len(res)-1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4
}

func (w *world) fill(n int) {
	for i := range n {
		w.handler.Tree.SetDirectory(directory("open2", fmt.Sprintf("d%05d", i), "fs-0", internalv1.DirectoryReady, 100+i))
	}
}

func TestReaddirStatuses(t *testing.T) { // RFC 8881 section 18.23
	for name, tc := range map[string]struct {
		caller rpc.Caller
		path   string
		args   nfsv4.Readdir4args
		want   nfsv4.Nfsstat4
	}{
		"of a junction is moved":                      {alice, "/open/plain/junction", nfsv4.Readdir4args{Maxcount: 4096}, nfsv4.NFS4ERR_MOVED},
		"needs read permission":                       {alice, "/closed", nfsv4.Readdir4args{Maxcount: 4096}, nfsv4.NFS4ERR_ACCESS},
		"with cookie 1":                               {alice, "/", nfsv4.Readdir4args{Maxcount: 4096, Cookie: 1}, nfsv4.NFS4ERR_BAD_COOKIE},
		"with a cookie that is never given":           {alice, "/", nfsv4.Readdir4args{Maxcount: 4096, Cookie: 1 << 63}, nfsv4.NFS4ERR_BAD_COOKIE},
		"with another server's verifier":              {alice, "/", nfsv4.Readdir4args{Maxcount: 4096, Cookie: 3}, nfsv4.NFS4ERR_NOT_SAME},
		"with no room for anything":                   {alice, "/", nfsv4.Readdir4args{Maxcount: 15}, nfsv4.NFS4ERR_TOOSMALL},
		"with no room for an entry":                   {alice, "/", nfsv4.Readdir4args{Maxcount: 20}, nfsv4.NFS4ERR_TOOSMALL},
		"with no room is fine for nothing":            {alice, "/open2", nfsv4.Readdir4args{Maxcount: 16}, nfsv4.NFS4_OK},
		"for attributes that can only be set":         {alice, "/", nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: bitmapOf(nfsv4.FATTR4_TIME_ACCESS_SET)}, nfsv4.NFS4ERR_INVAL},
		"of junctions for what they don't have":       {alice, "/open/plain", nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: bitmapOf(nfsv4.FATTR4_TYPE)}, nfsv4.NFS4ERR_MOVED},
		"of junctions for what they have (s. 11.4.2)": {alice, "/open/plain", nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: bitmapOf(nfsv4.FATTR4_MOUNTED_ON_FILEID)}, nfsv4.NFS4_OK},
		"of junctions with rdattr_error":              {alice, "/open/plain", nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: kernelAttributes}, nfsv4.NFS4_OK},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := newWorld(t).do(tc.caller, at(tc.path, readdir(tc.args))...); got != tc.want {
				t.Errorf("got %s, want %s", nfs.StatusName(got), nfs.StatusName(tc.want))
			}
		})
	}
}

func TestAShareIsListedToClientsThatSeeIt(t *testing.T) {
	for caller, want := range map[string][]string{
		"10.0.0.1": {"closed", "deep", "open", "open2"},
		"10.1.0.1": {"closed", "deep", "limited", "open", "open2"},
	} {
		c := alice
		if caller == "10.1.0.1" {
			c = reader1
		}
		var got []string
		list := newWorld(t).page(t, c, "/", nfsv4.Readdir4args{Maxcount: 4096})
		for e := list.Reply.Entries; e != nil; e = e.Nextentry {
			got = append(got, e.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || !list.Reply.Eof {
			t.Errorf("%s sees %v, want %v", caller, got, want)
		}
	}
}

func TestReaddirGivesEveryEntryOnceWhileOthersComeAndGo(t *testing.T) {
	const n = 2000
	for _, maxcount := range []uint32{200, 4096, 1 << 20} {
		for _, dircount := range []uint32{0, 100} {
			w := newWorld(t)
			w.fill(n)
			args := nfsv4.Readdir4args{Maxcount: maxcount, Dircount: dircount, AttrRequest: kernelAttributes}
			seen := map[string]int{}
			for pages := 0; ; pages++ {
				list := w.page(t, alice, "/open2", args)
				if size := list.GetEncodedSizeBytes(); size > int(maxcount) {
					t.Fatalf("a page has %d bytes, maxcount is %d", size, maxcount)
				}
				last := args.Cookie
				for e := list.Reply.Entries; e != nil; e = e.Nextentry {
					if e.Cookie <= last {
						t.Fatalf("cookie %d comes after %d", e.Cookie, last)
					}
					last = e.Cookie
					seen[e.Name]++
				}
				if list.Reply.Eof {
					break
				}
				if last == args.Cookie {
					t.Fatal("a page is empty and not the last")
				}
				args.Cookie, args.Cookieverf = last, list.Cookieverf
				w.handler.Tree.SetDirectory(directory("open2", fmt.Sprintf("new%d", pages), "fs-0", internalv1.DirectoryReady, 10000+pages))
				if pages < 500 {
					r := directory("open2", fmt.Sprintf("d%05d", pages), "fs-0", internalv1.DirectoryReady, 100+pages)
					w.handler.Tree.DeleteDirectory("open2", r.Spec.Path, string(r.UID))
				}
			}
			for i := 500; i < n; i++ {
				if name := fmt.Sprintf("d%05d", i); seen[name] != 1 {
					t.Fatalf("maxcount %d, dircount %d: %s was listed %d times", maxcount, dircount, name, seen[name])
				}
			}
		}
	}
}
