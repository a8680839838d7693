package dataserver

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
)

// reusedIDsHaveOtherHandles: all Export_Ids were spent, and a new share gets the first again. What clients hold of the share that had
// it, whose data is still there, must not lead anywhere.
func reusedIDsHaveOtherHandles(t *testing.T) {
	s := boot(t, "round", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("old"), dataservertest.ShareSpec("stays")}
	})
	s.settle()
	for _, path := range []string{"old/file", "stays/file"} {
		mustWork(t, "write", os.WriteFile("/volumes/round/0/"+path, []byte(path), 0o666))
	}
	held, err := s.from("10.99.0.1").Handle(t.Context(), user, "/old/0/file")
	mustWork(t, "GETFH", err)
	stays, err := s.from("10.99.0.1").Handle(t.Context(), user, "/stays/0/file")
	mustWork(t, "GETFH", err)
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = spec.Exports[1:] })
	s.settle()
	s.stop()

	// As if 65,535 shares had come and gone.
	path := filepath.Join(s.options.VolumesRoot, "0", volumes.MetaDir, "exports.json")
	text, err := os.ReadFile(path)
	mustWork(t, "read the table", err)
	var table map[string]any
	mustWork(t, "read the table", json.Unmarshal(text, &table))
	table["highWater"] = exportids.MaxID
	text, err = json.Marshal(table)
	mustWork(t, "write the table", err)
	mustWork(t, "write the table", os.WriteFile(path, text, 0o600))

	s = boot(t, "round", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("stays")}
	})
	s.settle()
	pid := s.pid()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("new"))
	})
	status := s.settle()
	if ids := idsOf(status, "new"); !slices.Equal(ids, []int32{1}) {
		t.Fatalf("the first share of the second round has ids %v, so this shows nothing", ids)
	}
	if s.pid() != pid {
		t.Error("ganesha was started again for it")
	}
	c := s.from("10.99.0.2")
	for _, cred := range []struct {
		who string
		uid uint32
	}{{"the user", user.UID}, {"root", root.UID}} {
		creds := user
		creds.UID = cred.uid
		_, err = c.StatHandle(t.Context(), creds, held)
		mustFailWith(t, "a handle of the share that had the id, as "+cred.who, err, nfsv4.NFS4ERR_BADHANDLE)
	}
	_, err = c.StatHandle(t.Context(), user, stays)
	mustWork(t, "a handle of a share that keeps its id", err)
	own, err := c.Handle(t.Context(), user, "/new/0")
	mustWork(t, "GETFH in the new share", err)
	_, err = c.StatHandle(t.Context(), user, own)
	mustWork(t, "a handle of the new share", err)
	key, err := os.ReadFile(keysOf("round").Current)
	mustWork(t, "read the key", err)
	if signed := ganeshatest.SignHandle([16]byte(key), ganeshatest.BareHandle(own), 1); !bytes.Equal(signed, own) {
		t.Errorf("ganesha made %x, and it should be %x", own, signed)
	}
	// Back from another pod, which has none of the files of the first.
	s.stop()
	mustWork(t, "lose the rounds", os.Remove(s.options.roundsFile()))
	s = boot(t, "round", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("new"), dataservertest.ShareSpec("stays")}
	})
	s.settle()
	c = s.from("10.99.0.1")
	_, err = c.StatHandle(t.Context(), user, own)
	mustWork(t, "a handle of the new share, after a restart", err)
	_, err = c.StatHandle(t.Context(), user, held)
	mustFailWith(t, "a handle of the share that had the id, after a restart", err, nfsv4.NFS4ERR_BADHANDLE)
}
