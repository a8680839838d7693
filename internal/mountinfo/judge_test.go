package mountinfo

import (
	"strings"
	"testing"
)

// pod is the table of mounts of a data server's container, as seen on a node, without the volumes.
const pod = `1086 1006 0:64 / / ro,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d
1087 1086 0:66 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1088 1086 0:67 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1091 1086 98:16 /kubelet/pods/5e/etc-hosts /etc/hosts rw,noatime - ext4 /dev/ubdb rw
1092 1086 98:16 /kubelet/pods/5e/volumes/kubernetes.io~empty-dir/writable-0 /run/howdah rw,noatime master:3 - ext4 /dev/ubdb rw
1093 1086 0:60 / /var/run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw,size=1048576k
`

func TestWhatIsAFileSystemOfItsOwn(t *testing.T) {
	zero, one := Volume{Path: "/volumes/0", MountID: 2000}, Volume{Path: "/volumes/1", MountID: 2001}
	tests := map[string]struct {
		lines   string
		volumes []Volume
		// want is a part of each verdict; "" wants an empty one.
		want []string
	}{
		"a disk for each": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2001 1086 7:1 / /volumes/1 rw - xfs /dev/loop1 rw\n",
			[]Volume{zero, one},
			[]string{"", ""},
		},
		"a directory of the node's disk": {
			"2000 1086 98:16 /volumes/pvc-1 /volumes/0 rw - ext4 /dev/ubdb rw\n",
			[]Volume{zero},
			[]string{"is the directory /volumes/pvc-1 of a larger file system (ext4 on /dev/ubdb)"},
		},
		"a directory with a blank in its name": {
			`2000 1086 98:16 /my\040disk /volumes/0 rw - ext4 /dev/ubdb rw` + "\n",
			[]Volume{zero},
			[]string{"the directory /my disk of"},
		},
		"subPath of a claim": {"2000 1086 7:0 /sub /volumes/0 rw - ext4 /dev/loop0 rw\n", []Volume{zero}, []string{"is the directory /sub of"}},
		"a quota directory of XFS": {
			"2000 1086 8:1 /projects/7 /volumes/0 rw - xfs /dev/sda1 rw,prjquota\n",
			[]Volume{zero},
			[]string{"the directory /projects/7 of a larger file system (xfs on /dev/sda1)"},
		},
		"a subvolume of btrfs": {
			"2000 1086 0:40 /pvc-1 /volumes/0 rw - btrfs /dev/sdb rw,subvol=/pvc-1\n",
			[]Volume{zero},
			[]string{"the directory /pvc-1 of"},
		},
		"all of a btrfs":     {"2000 1086 0:40 / /volumes/0 rw - btrfs /dev/sdb rw,subvol=/\n", []Volume{zero}, []string{""}},
		"a data set of ZFS":  {"2000 1086 0:41 / /volumes/0 rw - zfs pool/pvc-1 rw\n", []Volume{zero}, []string{""}},
		"the node's disk":    {"2000 1086 98:16 / /volumes/0 rw - ext4 /dev/ubdb rw\n", []Volume{zero}, []string{"the node's own files, too: /etc/hosts is of it"}},
		"NFS":                {"2000 1086 0:50 / /volumes/0 rw - nfs4 10.0.0.1:/pvc-1 rw\n", []Volume{zero}, []string{"of type nfs4 (10.0.0.1:/pvc-1)"}},
		"CephFS":             {"2000 1086 0:51 / /volumes/0 rw - ceph 10.0.0.1:/volumes/csi/1 rw\n", []Volume{zero}, []string{"of type ceph"}},
		"FUSE":               {"2000 1086 0:52 / /volumes/0 rw - fuse.s3fs s3fs rw\n", []Volume{zero}, []string{"of type fuse.s3fs"}},
		"an overlay":         {"2000 1086 0:53 / /volumes/0 rw - overlay overlay rw\n", []Volume{zero}, []string{"of type overlay"}},
		"memory, unnamed":    {"2000 1086 0:54 / /volumes/0 rw - tmpfs  rw\n", []Volume{zero}, []string{"of type tmpfs ()"}},
		"nothing is mounted": {"", []Volume{{Path: "/volumes/0", MountID: 1086}}, []string{"is not mounted; /volumes/0 is a directory of the file system (overlay) at /"}},
		"a mount below the volume": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2002 2000 7:0 /x /volumes/0/y rw - ext4 /dev/loop0 rw\n",
			[]Volume{zero},
			[]string{""},
		},
		"one over the other: the upper one counts": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2003 2000 98:16 /x /volumes/0 rw - ext4 /dev/ubdb rw\n",
			[]Volume{{Path: "/volumes/0", MountID: 2003}},
			[]string{"the directory /x of"},
		},
		"two volumes of one disk": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2001 1086 7:0 / /volumes/1 rw - ext4 /dev/loop0 rw\n",
			[]Volume{zero, one},
			[]string{"the same file system (ext4 on /dev/loop0) as /volumes/1", "as /volumes/0"},
		},
		"one of its own, one that is a directory of it": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2001 1086 7:0 /x /volumes/1 rw - ext4 /dev/loop0 rw\n",
			[]Volume{zero, one},
			[]string{"as /volumes/1", "the directory /x of"},
		},
		"ganesha has it in its root, too": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2001 1086 7:0 / /ganesha/volumes/0 rw - ext4 /dev/loop0 rw\n",
			[]Volume{{Path: "/volumes/0", MountID: 2000, Again: "/ganesha/volumes/0"}},
			[]string{""},
		},
		"ganesha has it in its root, and something else has it": {
			"2000 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw\n2001 1086 7:0 / /ganesha/volumes/00 rw - ext4 /dev/loop0 rw\n",
			[]Volume{{Path: "/volumes/0", MountID: 2000, Again: "/ganesha/volumes/0"}},
			[]string{"/ganesha/volumes/00 is of it"},
		},
		"volume 1 is not below volume 1's namesake": {
			"2000 1086 7:0 / /volumes/1 rw - ext4 /dev/loop0 rw\n2001 1086 7:0 / /volumes/10 rw - ext4 /dev/loop0 rw\n",
			[]Volume{{Path: "/volumes/1", MountID: 2000}},
			[]string{"/volumes/10 is of it"},
		},
		"a mount that is not listed": {"", []Volume{{Path: "/volumes/0", MountID: 4711}}, []string{"does not list"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mounts, err := Parse(pod + tc.lines)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range Shared(mounts, tc.volumes) {
				if (got == "") != (tc.want[i] == "") || !strings.Contains(got, tc.want[i]) {
					t.Errorf("%s: %q, want %q", tc.volumes[i].Path, got, tc.want[i])
				}
			}
		})
	}
}

func TestARefusalNamesEachClaimOnce(t *testing.T) {
	if got := Refusal([]string{"a", "b"}, []string{"", ""}); got != "" {
		t.Errorf("nothing is refused, with %q", got)
	}
	got := Refusal([]string{"data-0-fs-0", "data-1-fs-0", "data-2-fs-0"}, []string{"is bad", "", "is worse"})
	if want := "claim data-0-fs-0 is bad; claim data-2-fs-0 is worse. " + whyOwn; got != want {
		t.Errorf("%q", got)
	}
}

func TestATableThatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, line := range []string{
		"", "x", "2000 1086 7:0 / /volumes/0 rw", "2000 1086 7:0 / /volumes/0 rw master:1 ext4 /dev/loop0 rw",
		"a 1086 7:0 / /volumes/0 rw - ext4 /dev/loop0 rw", `2000 1086 7:0 /\04 /volumes/0 rw - ext4 /dev/loop0 rw`,
		`2000 1086 7:0 /\999 /volumes/0 rw - ext4 /dev/loop0 rw`, "2000 1086  / /volumes/0 rw - ext4 /dev/loop0 rw",
		"2000 1086 7:0 / /volumes/0 rw -  /dev/loop0 rw", "2000 1086 7:0  /volumes/0 rw - ext4 /dev/loop0 rw",
	} {
		if mounts, err := Parse(line + "\n"); err == nil {
			t.Errorf("%q gave %+v", line, mounts)
		} else if !strings.Contains(err.Error(), "line 1 ") {
			t.Errorf("%v does not say which line", err)
		}
	}
}

// Whatever the table says, no volume passes unless a line of it says that it is the root of a file system of a type that shows its parts.
func FuzzShared(f *testing.F) {
	f.Add(pod + "2000 1086 7:0 / /volumes/0 rw shared:1 master:2 - ext4 /dev/loop0 rw\n")
	f.Add(pod + `2000 1086 98:16 /my\040disk /volumes/0 rw - tmpfs  rw`)
	f.Add("2000 1 7:0 / /volumes/0 rw - ext4 a\\134b rw\n2001 1 7:0 / /volumes/1 rw - xfs - -\n")
	f.Fuzz(func(t *testing.T, table string) {
		mounts, err := Parse(table)
		if err != nil {
			return
		}
		if lines := strings.Count(table, "\n"); len(mounts) < lines {
			t.Fatalf("%d mounts of %d lines", len(mounts), lines)
		}
		volumes := []Volume{{Path: "/volumes/0", MountID: 2000}, {Path: "/volumes/1", MountID: 2001}}
		for i, verdict := range Shared(mounts, volumes) {
			if verdict != "" {
				continue
			}
			proven := false
			for _, m := range mounts {
				proven = proven || m.ID == volumes[i].MountID && m.Root == "/" && m.Point == volumes[i].Path && strings.Contains(" btrfs ext2 ext3 ext4 f2fs xfs zfs ", " "+m.Type+" ")
			}
			if !proven {
				t.Fatalf("%s passed with %q", volumes[i].Path, table)
			}
		}
	})
}
