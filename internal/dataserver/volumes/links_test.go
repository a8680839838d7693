package volumes

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/dataserver/exportids"
)

// TestNoLinkOnAVolumeLeadsOutOfIt plants symbolic links where an attacker who took ganesha over can, and lets the supervisor do all that it
// does on volumes. Nothing outside may change, and nothing of it may be read.
func TestNoLinkOnAVolumeLeadsOutOfIt(t *testing.T) {
	const hostname = "training-0"
	for name, plant := range map[string]func(t *testing.T, volume, outside string){
		"Howdah's directory": func(t *testing.T, volume, outside string) { link(t, volume, MetaDir, outside) },
		"the marker": func(t *testing.T, volume, outside string) {
			link(t, volume, MetaDir+"/"+markerFile, outside+"/"+markerFile)
		},
		"the Export_Ids": func(t *testing.T, volume, outside string) {
			link(t, volume, MetaDir+"/"+exportIDsFile, outside+"/"+exportIDsFile)
		},
		"the trash": func(t *testing.T, volume, outside string) { link(t, volume, MetaDir+"/"+TrashDir, outside) },
		"what is in the trash": func(t *testing.T, volume, outside string) {
			link(t, volume, MetaDir+"/"+TrashDir+"/data", outside+"/trash")
		},
		"the recovery records": func(t *testing.T, volume, outside string) { link(t, volume, MetaDir+"/"+RecoveryDir, outside) },
		"ganesha's part of them": func(t *testing.T, volume, outside string) {
			link(t, volume, MetaDir+"/"+RecoveryDir+"/v4recov", outside+"/v4recov")
		},
		"the server's part of them": func(t *testing.T, volume, outside string) {
			link(t, volume, MetaDir+"/"+RecoveryDir+"/v4recov/"+hostname, outside+"/v4recov/"+hostname)
		},
		"a share's directory":          func(t *testing.T, volume, outside string) { link(t, volume, "data", outside) },
		"a share's directory, a file":  func(t *testing.T, volume, outside string) { link(t, volume, "data", outside+"/"+markerFile) },
		"a share's directory, dangles": func(t *testing.T, volume, outside string) { link(t, volume, "data", outside+"/nothing") },
	} {
		t.Run(name, func(t *testing.T) {
			where, outside := emptyVolumes(t, 1), t.TempDir()
			server := sampleServer(1)
			mustClaim(t, where, server, 0)
			for _, file := range []string{markerFile, exportIDsFile, "v4recov/" + hostname + "/127.0.0.1-(10:own)", "v4recov/" + hostname + ".AAAAAA/x", "trash/data", "gone.1/x"} {
				mustWork(t, "mkdir", os.MkdirAll(filepath.Join(outside, filepath.Dir(file)), 0o700))
				mustWork(t, "write", os.WriteFile(filepath.Join(outside, file), []byte("of the node"), 0o600))
			}
			plant(t, where.volume(0), outside)
			before := withModes(t, outside)

			backend := New(where.root, quiet)
			_ = backend.Claim(t.Context(), server)
			if table, err := backend.ReadIDs(t.Context(), server); err == nil && table != nil {
				_ = backend.WriteIDs(t.Context(), table)
			}
			wanted := exportids.RootAttributes{Owner: 12, Group: 13, Mode: "0777"}
			_ = backend.PrepareRoot(t.Context(), "data", 0, wanted, nil)
			_ = backend.BeforeStart(t.Context(), hostname)
			_ = backend.Discard(t.Context(), server, "data", time.Unix(1, 0))
			_ = backend.EmptyTrash(t.Context(), server)

			if diff := cmp.Diff(before, withModes(t, outside)); diff != "" {
				t.Errorf("it changed outside of the volume: %s", diff)
			}
		})
	}
}

// withModes is what lies in a folder, with modes and owners.
func withModes(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := tree(t, folder)
	for path := range found {
		var stat syscall.Stat_t
		mustWork(t, "stat", syscall.Stat(path, &stat))
		found[path] += fmt.Sprintf(" %o %d %d", stat.Mode, stat.Uid, stat.Gid)
	}
	return found
}

// link replaces something on a volume by a symbolic link.
func link(t *testing.T, volume, name, target string) {
	t.Helper()
	path := filepath.Join(volume, name)
	mustWork(t, "remove", os.RemoveAll(path))
	mustWork(t, "mkdir", os.MkdirAll(filepath.Dir(path), 0o700))
	mustWork(t, "link", os.Symlink(target, path))
}
