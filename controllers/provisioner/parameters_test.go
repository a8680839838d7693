package provisioner

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/test/builders"
)

func TestWhatAClassMeans(t *testing.T) {
	recommended := []string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "noresvport"}
	for what, tc := range map[string]struct {
		class *storagev1.StorageClass
		want  parameters
	}{
		"a FileServer alone": {
			builders.StorageClass("c").Shares("storage", "fs").Build(),
			parameters{fileServer: "fs", fileServerNamespace: "storage", layout: v1alpha1.LayoutSingle, path: defaultPath, mode: "0777", mountOptions: recommended},
		},
		"everything": {
			builders.StorageClass("c").Shares("storage", "fs", "layout", "Distributed", "depth", "2", "maxDirectories", "100", "path", "/claims/{claim}",
				"uid", "1000", "gid", "4294967294", "mode", "2770", "size", "Required").With(func(c *storagev1.StorageClass) {
				c.MountOptions = []string{"nconnect=4", "soft", "ro", "timeo=100", "resvport"}
			}).Build(),
			parameters{
				fileServer: "fs", fileServerNamespace: "storage", layout: v1alpha1.LayoutDistributed, depth: 2, maxDirectories: 100, path: "/claims/{claim}",
				uid: 1000, gid: 4294967294, mode: "2770", sizeEnforced: true,
				mountOptions: []string{"vers=4.1", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "nconnect=4", "soft", "ro", "timeo=100", "resvport"},
			},
		},
		"directories of a share": {
			builders.StorageClass("c").Shares("storage", "fs", "fileShare", "home").With(retained).Build(),
			parameters{fileServer: "fs", fileServerNamespace: "storage", fileShare: "home", layout: v1alpha1.LayoutSingle, mode: "0777", mountOptions: recommended},
		},
	} {
		got, problems := parametersOf(tc.class)
		if len(problems) > 0 {
			t.Errorf("%s: %q", what, problems)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(parameters{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Each sentence names the parameter, what it is and what would be good; all come at once.
func TestWhatIsWrongWithAClass(t *testing.T) {
	for what, tc := range map[string]struct {
		class *storagev1.StorageClass
		want  []string
	}{
		"nothing at all": {builders.StorageClass("c").Build(), []string{
			"parameter fileServer is missing: name the FileServer that serves the claims, by its name",
			"parameter fileServerNamespace is missing: name the FileServer that serves the claims, by its Kubernetes namespace",
		}},
		"names that can't be": {builders.StorageClass("c").Shares("Storage", strings.Repeat("f", 41)).Build(), []string{
			`parameter fileServer is "fffffffffffffffffffffffffffffffffffffffff": give the name of a FileServer`,
			`parameter fileServerNamespace is "Storage": give the Kubernetes namespace of the FileServer`,
		}},
		"one that another provisioner knows": {builders.StorageClass("c").Shares("s", "f", "onDelete", "retain").Build(), []string{
			"parameter onDelete is not known; there are depth, fileServer, fileServerNamespace, fileShare, gid, layout, maxDirectories, mode, path, size, uid",
		}},
		"numbers": {builders.StorageClass("c").Shares("s", "f", "layout", "Distributed", "depth", "9", "maxDirectories", "many", "uid", "-1", "gid", "4294967295").Build(), []string{
			`parameter depth is "9": give a number from 1 to 8, in quotes`,
			`parameter gid is "4294967295": give a number from 0 to 4294967294, in quotes`,
			`parameter maxDirectories is "many": give a number from 1 to 100000, in quotes`,
			`parameter uid is "-1": give a number from 0 to 4294967294, in quotes`,
		}},
		"a mode in words": {builders.StorageClass("c").Shares("s", "f", "mode", "rwxrwx---").Build(), []string{
			`parameter mode is "rwxrwx---": give octal permission bits in quotes, for example "0777" or "2770"`,
		}},
		"a depth of one directory": {builders.StorageClass("c").Shares("s", "f", "depth", "1").Build(), []string{
			"parameter depth is for layout Distributed: a Single share is one directory on one server; add layout: Distributed, or leave depth out",
		}},
		"words": {builders.StorageClass("c").Shares("s", "f", "layout", "single", "size", "yes").Build(), []string{
			`parameter layout is "single": give Single or Distributed`,
			`parameter size is "yes": give BestEffort (the size that claims ask for is kept where the storage can) or Required (claims are refused where it can't)`,
		}},
		"directories that are to be removed": {builders.StorageClass("c").Shares("s", "f", "fileShare", "home", "layout", "Distributed", "depth", "2").Build(), []string{
			"parameter depth is for shares: with fileShare, claims are directories of one that there is; leave it out",
			"parameter layout is for shares: with fileShare, claims are directories of one that there is; leave it out",
			"reclaimPolicy is Delete (or unset, which means it): a directory of a share is not removed with what is in it; set reclaimPolicy: Retain, or leave parameter fileShare out, for shares of their own",
		}},
		"a path of a directory": {builders.StorageClass("c").Shares("s", "f", "fileShare", "home", "path", "/{claim}").With(retained).Build(), []string{
			`parameter path is "/{claim}": give as many names as the share has depth, NAME or NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', for example {namespace}/{claim}-{id}`,
		}},
		"topology": {builders.StorageClass("c").Shares("s", "f").With(func(c *storagev1.StorageClass) {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
		}).Build(), []string{"allowedTopologies are given: every node reaches every share; leave them out"}},
		"mount options": {builders.StorageClass("c").Shares("s", "f").With(func(c *storagev1.StorageClass) {
			c.MountOptions = []string{"vers=3", "nfsvers=4.2", "proto=rdma", "port=111", "sec=krb5", "hard,intr", "", "noatime"}
		}).Build(), []string{
			`mount option "": it is empty; leave it out`,
			`mount option "hard,intr": one option is one item of mountOptions`,
			`mount option "nfsvers=4.2": shares speak NFS 4.1: give vers=4.1, or leave it out`,
			`mount option "port=111": servers answer at port 2049: leave it out`,
			`mount option "proto=rdma": shares speak NFS over TCP: leave it out`,
			`mount option "sec=krb5": shares speak AUTH_SYS: leave it out`,
			`mount option "vers=3": shares speak NFS 4.1: give vers=4.1, or leave it out`,
		}},
	} {
		if _, got := parametersOf(tc.class); !slices.Equal(got, tc.want) {
			t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(tc.want, got))
		}
	}
}

func retained(c *storagev1.StorageClass) {
	c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
}

func TestAClaimIsMountedFromThePortsThatItsFileServerAccepts(t *testing.T) {
	for name, tc := range map[string]struct{ share, class, want string }{
		"any port":                             {"hard,noresvport", "", "vers=4.1,hard,noresvport"},
		"a share wants reserved ports":         {"hard", "", "vers=4.1,hard"},
		"a share wants them, the class others": {"hard", "noresvport", "vers=4.1,hard,noresvport"},
		"the class wants them":                 {"hard,noresvport", "resvport", "vers=4.1,hard,resvport"},
	} {
		class := builders.StorageClass("c").Build()
		if tc.class != "" {
			class.MountOptions = []string{tc.class}
		}
		p := parameters{mountOptions: mergeOptions([]string{"vers=4.1", "hard", desired.OptionAnyPort}, class.MountOptions)}
		share := &v1alpha1.FileShare{Status: v1alpha1.FileShareStatus{Mount: v1alpha1.ShareMount{Options: strings.Split(tc.share, ",")}}}
		if got := strings.Join(mountOptionsFor(&corev1.PersistentVolumeClaim{}, class, p, share), ","); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
