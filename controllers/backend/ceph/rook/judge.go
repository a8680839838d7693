package rook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// maxChecks is how many of Ceph's health checks a message quotes.
const maxChecks = 3

// Place is where the Ceph cluster is, and which one it is.
type Place struct {
	Monitors []string
	FSID     string
}

// IsKnown tells whether there is enough for data servers to start with.
func (p Place) IsKnown() bool { return p.FSID != "" && len(p.Monitors) > 0 }

// Verdict is what follows from Rook's objects.
type Verdict struct {
	// Place is the cluster for data servers and the steward. It is unknown until everything that they need exists, and does not change after that.
	Place Place
	// MayAsk: Rook can make the account and the group now.
	MayAsk bool
	// Create: the file system is to be made.
	Create bool
	// Fault is the error and what to do; "" if there is none. It is Transient if Rook is still working.
	Fault     string
	Transient bool
}

// Judge returns what follows for a FileServer from Rook's objects. known is the cluster that its data servers already use.
func Judge(fs *v1alpha1.FileServer, objects Objects, known Place) Verdict {
	j := &judge{fs: fs, spec: fs.Spec.Storage.Ceph.Rook, objects: objects, known: known}
	fault, transient, mayAsk := j.fault()
	v := Verdict{Place: j.place(), Fault: fault, Transient: transient, MayAsk: mayAsk, Create: j.create}
	if !known.IsKnown() && fault != "" {
		// Pods could only wait; and a Secret that comes after its pod is there a minute or two later, when the kubelet looks again.
		v.Place = Place{}
	}
	return v
}

type judge struct {
	fs      *v1alpha1.FileServer
	spec    v1alpha1.RookCeph
	objects Objects
	known   Place
	// create is decided on the way.
	create bool
}

// place follows the monitors of the cluster that it was, and of no other.
func (j *judge) place() Place {
	cluster := j.objects.Cluster
	if cluster == nil || cluster.Status.Ceph.FSID == "" || j.isAnother() {
		return j.known
	}
	monitors, err := parseMonitors(j.objects.Monitors)
	if err != nil {
		monitors = j.known.Monitors
	}
	return Place{monitors, cluster.Status.Ceph.FSID}
}

func (j *judge) isAnother() bool {
	cluster := j.objects.Cluster
	return cluster != nil && j.known.FSID != "" && cluster.Status.Ceph.FSID != "" && cluster.Status.Ceph.FSID != j.known.FSID
}

// fault returns the first error, in the order of dependencies.
func (j *judge) fault() (fault string, transient, mayAsk bool) {
	for _, step := range []func() (string, bool){j.ofRook, j.ofCluster, j.ofHealth, j.ofMonitors, j.ofFileSystem} {
		if fault, transient := step(); fault != "" {
			return fault, transient, false
		}
	}
	if fault, transient := j.ofMade("CephFilesystemSubVolumeGroup", ceph.Group(v1alpha1.StorageIdentity(j.fs)), j.objects.Group,
		"Rook removes it only when there are no subvolumes in it; what is served goes on. Delete the FileServer's shares, or leave it so"); fault != "" {
		return fault, transient, true
	}
	advice := "a steward that restarts has no account until Rook has removed and created it again"
	fault, transient = j.ofMade("CephClient", ceph.Account(v1alpha1.StorageIdentity(j.fs)), j.objects.Client, advice)
	return fault, transient, true
}

// ofRook: its kinds are there, and may be read.
func (j *judge) ofRook() (string, bool) {
	switch {
	case j.objects.NotInstalled != "":
		return fmt.Sprintf("Rook is not installed: the API server knows no %s.ceph.rook.io; install Rook 1.17 or 1.18, or use storage.ceph.external for a Ceph that Rook does not run", j.objects.NotInstalled), false
	case j.objects.Forbidden != "":
		return fmt.Sprintf("the operator may not read %s: install Howdah with rook.enabled=true (kustomize: config/components/rook)", j.objects.Forbidden), false
	}
	return "", false
}

func (j *judge) ofCluster() (string, bool) {
	cluster, name := j.objects.Cluster, j.spec.ClusterRef.Name
	switch {
	case cluster == nil:
		return fmt.Sprintf("there is no CephCluster %s in Kubernetes namespace %s: a FileServer with storage.ceph.rook must be in the namespace of its CephCluster (kubectl get cephclusters --all-namespaces)",
			name, j.fs.Namespace), false
	case cluster.Metadata.isDeleted():
		return fmt.Sprintf("CephCluster %s is being deleted, and with it all that the shares have", name), false
	case j.isAnother():
		return fmt.Sprintf("CephCluster %s is now another Ceph cluster: its fsid is %s, but the shares are in %s; data servers keep using the previous monitors (%s). Bring that cluster back, or delete the FileServer",
			name, cluster.Status.Ceph.FSID, j.known.FSID, strings.Join(j.known.Monitors, ", ")), false
	case cluster.Status.Ceph.Health == "" || cluster.Status.Ceph.FSID == "":
		state := "has no status yet"
		if cluster.Status.Phase != "" {
			state = strings.TrimSuffix(fmt.Sprintf("is %s: %s", cluster.Status.Phase, cluster.Status.Message), ": ")
		}
		return fmt.Sprintf("waiting for Rook to bring up CephCluster %s, which %s (kubectl -n %s describe cephcluster %s)", name, state, j.fs.Namespace, name), cluster.Status.Phase != phaseFailure
	}
	return "", false
}

// ofHealth is the gate that Rook's own controllers have (IsReadyToReconcile): they change nothing in a cluster whose health is worse than a
// warning. Its phase is none: it is Progressing at each start of Rook's operator.
func (j *judge) ofHealth() (string, bool) {
	status := j.objects.Cluster.Status.Ceph
	if status.Health == "HEALTH_OK" || status.Health == "HEALTH_WARN" {
		return "", false
	}
	var checks []string
	for _, code := range slices.Sorted(maps.Keys(status.Details)) {
		if detail := status.Details[code]; detail.Severity != "HEALTH_WARN" && len(checks) < maxChecks {
			checks = append(checks, code+": "+detail.Message)
		}
	}
	why := ""
	if len(checks) > 0 {
		why = " (" + strings.Join(checks, "; ") + ")"
	}
	return fmt.Sprintf("CephCluster %s is %s%s, and Rook changes nothing in it until it is healthy: repair Ceph first (ceph health detail in Rook's toolbox)", j.spec.ClusterRef.Name, status.Health, why), false
}

func (j *judge) ofMonitors() (string, bool) {
	if j.objects.Monitors == nil {
		return fmt.Sprintf("waiting for Rook to write ConfigMap %s, which has the monitors of CephCluster %s", MonitorsConfigMap, j.spec.ClusterRef.Name), true
	}
	if _, err := parseMonitors(j.objects.Monitors); err != nil {
		return err.Error() + "; Rook's operator writes it: look at its log", false
	}
	return "", false
}

// ofFileSystem: where the cluster is external to Rook there is no CephFilesystem, and the steward looks for the file system in Ceph.
func (j *judge) ofFileSystem() (string, bool) {
	fileSystem, name, asked := j.objects.FileSystem, j.spec.FileSystem, j.spec.CreateFileSystem.ReplicatedSize > 0
	switch {
	case j.objects.Cluster.Spec.External.Enable:
		return "", false
	case fileSystem == nil && asked && !j.known.IsKnown():
		j.create = true
		return fmt.Sprintf("waiting for Rook to make CephFilesystem %s", name), true
	case fileSystem == nil && asked:
		return fmt.Sprintf("CephFilesystem %s had the shares' data and is missing in Kubernetes namespace %s. It is not created again, because it would be empty. If its data is still in Ceph (preserveFilesystemOnDelete), create the object again as it was",
			name, j.fs.Namespace), false
	case fileSystem == nil:
		return fmt.Sprintf("there is no CephFilesystem %s in Kubernetes namespace %s: make one (docs/operate/ceph.md#a-ceph-of-rooks has an example), or make the FileServer again with the name of one that there is (kubectl -n %s get cephfilesystems)",
			name, j.fs.Namespace, j.fs.Namespace), false
	case fileSystem.Metadata.isDeleted():
		return fmt.Sprintf("CephFilesystem %s is being deleted; Rook keeps it as long as there are subvolume groups in it", name), false
	case fileSystem.Status.Phase != phaseReady:
		return j.unfinished("CephFilesystem", name, fileSystem)
	}
	return "", false
}

// ofMade is about what Howdah has asked Rook for.
func (j *judge) ofMade(kind, name string, made *Resource, deleted string) (string, bool) {
	switch {
	case made == nil:
		return fmt.Sprintf("waiting for Rook to make %s %s", kind, name), true
	case made.Metadata.isDeleted():
		return fmt.Sprintf("%s %s is being deleted: %s", kind, name, deleted), false
	case made.Status.Phase != phaseReady:
		return j.unfinished(kind, name, made)
	}
	return "", false
}

func (j *judge) unfinished(kind, name string, resource *Resource) (string, bool) {
	look := fmt.Sprintf("kubectl -n %s describe %s %s", j.fs.Namespace, strings.ToLower(kind), name)
	if resource.Status.Phase != phaseFailure {
		return fmt.Sprintf("waiting for Rook to make %s %s (%s)", kind, name, look), true
	}
	why := ""
	if j.objects.Cluster.Spec.External.Enable && kind == "CephClient" {
		why = ". For a cluster that is external to it Rook needs the admin's key to make accounts; without that use storage.ceph.external"
	}
	return fmt.Sprintf("Rook can't make %s %s: %s, and the log of Rook's operator, say why%s", kind, name, look, why), false
}
