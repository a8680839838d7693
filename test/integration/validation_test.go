package integration

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// parse reads an object as a user writes it.
func parse(namespace, text string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	return object
}

// fileServerYAML is a valid FileServer with lines of its own below spec.
func fileServerYAML(name, storage string, lines ...string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: " + name + "}\nspec:\n  storage: {volumes: {" + storage + "}}\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

// cephYAML is a valid FileServer with its data in Ceph, with some of its fields exchanged ("name: value").
func cephYAML(name string, exchanged ...string) string {
	fields := []string{
		`monitors: ["10.0.0.1:3300"]`, "fsid: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c", "fileSystem: fs1",
		"recoveryPool: howdah", "recoveryUser: howdah-rec", "sharesSecretRef: {name: ceph-shares}",
	}
	for _, exchange := range exchanged {
		field, _, _ := strings.Cut(exchange, ":")
		fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, field+":") })
		fields = append(fields, exchange)
	}
	return "apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: " + name + "}\nspec:\n  storage:\n    ceph:\n      external:\n        " +
		strings.Join(fields, "\n        ") + "\n"
}

// provisioningYAML is a valid FileServer whose shares Howdah makes in Ceph.
func provisioningYAML(name string) string {
	return without(without(cephYAML(name, "provisioningSecretRef: {name: ceph}"), "sharesSecretRef"), "recoveryUser")
}

// rookYAML is a FileServer with its data in a Ceph of Rook's.
func rookYAML(name string, lines ...string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: " + name + "}\nspec:\n  storage:\n    ceph:\n      rook:\n        " +
		strings.Join(append(lines, "clusterRef: {name: ceph}", "recoveryPool: howdah"), "\n        ") + "\n"
}

// without leaves a field of cephYAML out.
func without(text, field string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), field+":")
	}), "\n")
}

// fileShareYAML is a valid FileShare with lines of its own below spec.
func fileShareYAML(name, path string, lines ...string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: " + name + "}\nspec:\n  fileServerRef: {name: training}\n  path: " + path + "\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

// snapshotYAML is a valid FileShareSnapshot.
func snapshotYAML(name, share string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: FileShareSnapshot\nmetadata: {name: " + name + "}\nspec:\n  fileShareRef: {name: " + share + "}\n"
}

// scheduleYAML is a FileShareSnapshotSchedule of share data with lines of its own below spec.
func scheduleYAML(name, schedule string, lines ...string) string {
	return "apiVersion: howdah.io/v1alpha1\nkind: FileShareSnapshotSchedule\nmetadata: {name: " + name + "}\nspec:\n  fileShareRef: {name: data}\n  schedule: \"" + schedule +
		"\"\n  " + strings.Join(lines, "\n  ") + "\n"
}

// expectInvalid checks that the API server refused an object, naming the field and saying the words.
func expectInvalid(err error, field, words string) {
	GinkgoHelper()
	Expect(err).To(HaveOccurred())
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), err.Error())
	Expect(err.Error()).To(ContainSubstring(field))
	Expect(err.Error()).To(ContainSubstring(words))
}

var _ = Describe("The API server refuses", Ordered, func() {
	var namespace string
	BeforeAll(func() { namespace = newNamespace() })

	DescribeTable("a new object that",
		func(text, field, words string) {
			expectInvalid(admin.Create(ctx, parse(namespace, text), client.DryRunAll), field, words)
		},
		Entry("has zero replicas", fileServerYAML("fs", "size: 1Gi", "replicas: 0"), "spec.replicas", "greater than or equal to 1"),
		Entry("has too many replicas", fileServerYAML("fs", "size: 1Gi", "replicas: 65"), "spec.replicas", "less than or equal to 64"),
		Entry("has no size", fileServerYAML("fs", "perServer: 1"), "spec.storage.volumes.size", "Required"),
		Entry("has volumes that are too small", fileServerYAML("fs", "size: 1Mi"), "spec.storage.volumes", "size must be at least 16Mi"),
		Entry("has too many volumes", fileServerYAML("fs", "size: 1Gi, perServer: 17"), "spec.storage.volumes.perServer", "less than or equal to 16"),
		Entry("gives up a claim that is none", fileServerYAML("fs", "size: 1Gi, lostVolumes: [{claimName: fs-0, volumeID: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c}]"), "claimName", "data-0-training-0"),
		Entry("gives up a volume without saying which", fileServerYAML("fs", "size: 1Gi, lostVolumes: [{claimName: data-0-fs-0}]"), "volumeID", "Required"),
		Entry("gives up a volume by something else", fileServerYAML("fs", "size: 1Gi, lostVolumes: [{claimName: data-0-fs-0, volumeID: pvc-4711}]"), "volumeID", "as the condition StorageAvailable prints it"),
		Entry("accepts a loss that is none", fileShareYAML("s", "/s", "acceptedLosses: [all of them now.]"), "acceptedLosses", "16 hexadecimal digits"),
		Entry("has no storage", "apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: fs}\nspec: {replicas: 1, storage: {}}", "spec.storage", "exactly one"),
		Entry("has a FileServer name that is too long", fileServerYAML(strings.Repeat("a", 41), "size: 1Gi"), "metadata.name must be at most 40", "characters"),
		Entry("has a dot in the FileServer's name", fileServerYAML("a.b", "size: 1Gi"), "metadata.name", "no dots"),
		Entry("has a digit first in the FileServer's name", fileServerYAML("1st", "size: 1Gi"), "metadata.name", "starts with a letter"),
		Entry("has a grace period shorter than the lease", fileServerYAML("fs", "size: 1Gi", "nfs: {leaseSeconds: 60, graceSeconds: 30}"), "spec.nfs", "graceSeconds must be at least leaseSeconds"),
		Entry("has two back ends", strings.Replace(cephYAML("fs"), "storage:", "storage:\n    volumes: {size: 1Gi}", 1), "spec.storage", "exactly one"),
		Entry("has Ceph without a cluster", "apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: fs}\nspec: {storage: {ceph: {}}}", "spec.storage.ceph", "exactly one"),
		Entry("has no monitors", cephYAML("fs", "monitors: []"), "monitors", "at least 1 items"),
		Entry("has a monitor without a port", cephYAML("fs", `monitors: ["10.0.0.1"]`), "monitors", "a monitor is an IP address with a port"),
		Entry("has a monitor by name", cephYAML("fs", `monitors: ["mon.example.org:3300"]`), "monitors", "host names can't be used"),
		Entry("has a monitor of IPv6 without brackets", cephYAML("fs", `monitors: ["fd00::1:3300"]`), "monitors", "[fd00::1]:3300"),
		Entry("has a monitor that is no address", cephYAML("fs", `monitors: ["10.0.0.300:3300"]`), "monitors", "a monitor is an IP address with a port"),
		Entry("has a monitor with a port above 65535", cephYAML("fs", `monitors: ["10.0.0.1:70000"]`), "monitors", "a monitor is an IP address with a port"),
		Entry("hides a line among the monitors", cephYAML("fs", `monitors: ["10.0.0.1:3300\n[osd]"]`), "monitors", "a monitor is an IP address with a port"),
		Entry("has an fsid that is none", cephYAML("fs", "fsid: fs1"), "fsid", "fsid is what ceph fsid prints"),
		Entry("has an fsid in capitals", cephYAML("fs", "fsid: 6F0C2A9E-3B1D-4C55-9A77-0D6F7F0A1B2C"), "fsid", "fsid is what ceph fsid prints"),
		Entry("has no fsid", without(cephYAML("fs"), "fsid"), "fsid", "Required"),
		Entry("has no file system", without(cephYAML("fs"), "fileSystem"), "fileSystem", "Required"),
		Entry("hides a directive in the pool's name", cephYAML("fs", `recoveryPool: 'howdah"; }'`), "recoveryPool", "ceph osd pool ls prints"),
		Entry("names the recovery user as Ceph does", cephYAML("fs", "recoveryUser: client.howdah-rec"), "recoveryUser", `without "client."`),
		Entry("names no Secret", without(cephYAML("fs"), "sharesSecretRef"), "spec.storage.ceph.external", "exactly one of sharesSecretRef"),
		Entry("names both Secrets", cephYAML("fs", "provisioningSecretRef: {name: ceph}"), "spec.storage.ceph.external", "exactly one of sharesSecretRef"),
		Entry("has shares made and names a recovery user", without(cephYAML("fs", "provisioningSecretRef: {name: ceph}"), "sharesSecretRef"), "spec.storage.ceph.external", "recoveryUser goes with sharesSecretRef"),
		Entry("has no recovery user", without(cephYAML("fs"), "recoveryUser"), "spec.storage.ceph.external", "recoveryUser goes with sharesSecretRef"),
		Entry("names a Secret that there can't be", cephYAML("fs", "sharesSecretRef: {name: Ceph}"), "sharesSecretRef.name", "name must be the name of a Secret"),
		Entry("has failover on volumes", fileServerYAML("fs", "size: 1Gi", "failover: {fencing: Storage}"), "spec", "failover.fencing: Storage needs storage.ceph"),
		Entry("has failover in Ceph with accounts of its own", cephYAML("fs")+"  failover: {fencing: Storage}\n", "spec", "failover.fencing: Storage needs storage.ceph"),
		Entry("has an unknown way to fence", fileServerYAML("fs", "size: 1Gi", "failover: {fencing: Hope}"), "spec.failover.fencing", "supported values"),
		Entry("has no namespace server", fileServerYAML("fs", "size: 1Gi", "namespaceServers: {replicas: 0}"), "spec.namespaceServers.replicas", "greater than or equal to 1"),
		Entry("has an empty network", fileServerYAML("fs", "size: 1Gi", "network: {}"), "spec.network", "at least 1 properties"),
		Entry("has ports of nodes among Kubernetes' own", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {firstPort: 29996}}"), "spec.network.hostNetwork.firstPort", "use the default 20490"),
		Entry("has the last of Kubernetes' own ports", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {firstPort: 32767}}"), "spec.network.hostNetwork.firstPort", "use the default 20490"),
		Entry("has ports of nodes above the last port", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {firstPort: 65532}}"), "spec.network.hostNetwork.firstPort", "less than or equal to 65531"),
		Entry("has a host's bits in a network of nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.7/16]}}", "additionalNodeNetworks: [10.20.0.0/16]"), "spec.network.hostNetwork.addressesIn", "without bits of hosts, such as 10.20.0.0/16"),
		Entry("has an address for a network of nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.7]}}", "additionalNodeNetworks: [10.20.0.7]"), "spec.network.hostNetwork.addressesIn", "without bits of hosts, such as 10.20.0.0/16"),
		Entry("has the name of an interface for a network of nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [eth1]}}"), "spec.network.hostNetwork.addressesIn", "without bits of hosts, such as 10.20.0.0/16"),
		Entry("has a link-local network of nodes", fileServerYAML("fs", "size: 1Gi", `network: {hostNetwork: {addressesIn: ["fe80::/64"]}}`, `additionalNodeNetworks: ["fe80::/64"]`), "spec.network.hostNetwork.addressesIn", "name the network that joins the nodes"),
		Entry("has all addresses for a network of nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [0.0.0.0/0]}}", "additionalNodeNetworks: [10.20.0.7]"), "spec.network.hostNetwork.addressesIn", "name the network that joins the nodes"),
		Entry("has no network of nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: []}}"), "spec.network.hostNetwork.addressesIn", "at least 1"),
		Entry("requests more memory than its limit", fileServerYAML("fs", "size: 1Gi", "resources: {requests: {memory: 8Gi}, limits: {memory: 4Gi}}"), "spec.resources", "resources.requests of memory must not exceed resources.limits"),
		Entry("requests more processors than its limit", fileServerYAML("fs", "size: 1Gi", "resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), "spec.resources", "resources.requests of cpu must not exceed resources.limits"),
		Entry("has a limit of memory in bytes", fileServerYAML("fs", "size: 1Gi", "resources: {limits: {memory: 4}}"), "spec.resources", "resources.limits of memory must be at least 64Mi, or \"0\" for no limit"),
		Entry("has a limit of memory below nothing", fileServerYAML("fs", "size: 1Gi", "resources: {limits: {memory: -4Gi}}"), "spec.resources", "must be at least 64Mi"),
		Entry("has resource claims", fileServerYAML("fs", "size: 1Gi", "resources: {claims: [{name: x}]}"), "spec.resources", "resources.claims can't be used"),
		Entry("has namespace servers with a limit of thousandths of a byte", fileServerYAML("fs", "size: 1Gi", "namespaceServers: {resources: {limits: {memory: 512m}}}"), "spec.namespaceServers.resources", "must be at least 64Mi"),
		Entry("has namespace servers that request more than their limit", fileServerYAML("fs", "size: 1Gi", "namespaceServers: {resources: {requests: {memory: 1Gi}, limits: {memory: 512Mi}}}"), "spec.namespaceServers.resources", "must not exceed"),
		Entry("has a toleration with an operator that is none", fileServerYAML("fs", "size: 1Gi", "placement: {tolerations: [{key: a, operator: equals}]}"), "spec.placement.tolerations", "operator must be Exists or Equal"),
		Entry("has a toleration with an effect that is none", fileServerYAML("fs", "size: 1Gi", "placement: {tolerations: [{key: a, operator: Exists, effect: noschedule}]}"), "spec.placement.tolerations", "NoSchedule, PreferNoSchedule or NoExecute"),
		Entry("has a toleration with Exists and a value", fileServerYAML("fs", "size: 1Gi", "namespaceServers: {placement: {tolerations: [{key: a, operator: Exists, value: b}]}}"), "spec.namespaceServers.placement.tolerations", "value goes with the operator Equal"),
		Entry("names no pull secret", fileServerYAML("fs", "size: 1Gi", "pods: {imagePullSecrets: [{}]}"), "spec.pods.imagePullSecrets", "needs the name of a Secret"),
		Entry("names a PriorityClass that there can't be", fileServerYAML("fs", "size: 1Gi", "pods: {priorityClassName: My Class}"), "spec.pods.priorityClassName", "name of a PriorityClass"),
		Entry("names a PriorityClass with two dots", fileServerYAML("fs", "size: 1Gi", "pods: {priorityClassName: a..b}"), "spec.pods.priorityClassName", "name of a PriorityClass"),
		Entry("names a Secret with two dots", cephYAML("fs", "sharesSecretRef: {name: a..b}"), "sharesSecretRef.name", "name must be the name of a Secret"),
		Entry("has a CephFilesystem made with a name that no object can have", rookYAML("fs", "fileSystem: My_FS", "createFileSystem: {replicatedSize: 3}"), "spec.storage.ceph.rook.fileSystem", "use lower-case letters"),
		Entry("names a StorageClass that there can't be", fileServerYAML("fs", "size: 1Gi, storageClassName: My Class"), "spec.storage.volumes.storageClassName", "name of a StorageClass"),
		Entry("lets through a network with bits of a host", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {sourceRanges: [192.0.2.7/24]}}"), "spec.network.loadBalancer.sourceRanges", "without bits of hosts"),
		Entry("drains a data server of another FileServer", fileServerYAML("fs", "size: 1Gi", "drain: {servers: [training-1]}"), "spec.drain.servers", "drain.servers are data servers of this FileServer"),
		Entry("gives up a volume of another FileServer", fileServerYAML("fs", "size: 1Gi, lostVolumes: [{claimName: data-0-training-0, volumeID: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c}]"), "spec.storage.volumes.lostVolumes", "claims of this FileServer"),
		Entry("hands data over to something else than a namespace", fileServerYAML("fs", "size: 1Gi", "dataHandovers: [{namespace: Team A, namespaceUID: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c}]"), "spec.dataHandovers[0].namespace", "name of a Kubernetes namespace"),
		Entry("hands data over to a namespace by its name alone", fileServerYAML("fs", "size: 1Gi", "dataHandovers: [{namespace: team-a, namespaceUID: team-a}]"), "spec.dataHandovers[0].namespaceUID", "kubectl get namespace NAME -o jsonpath={.metadata.uid}"),
		Entry("has a network of nodes whose addresses are no Nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.0/16]}}"), "spec", "list the networks if only nodes are in them, otherwise the addresses of the nodes"),
		Entry("has a network of nodes beside those that are Nodes", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {addressesIn: [10.20.0.0/16, 10.30.0.0/16]}}", `additionalNodeNetworks: [10.20.0.7, 10.40.0.0/16, "fd00::/64"]`), "spec", "additionalNodeNetworks"),
		Entry("has ports of nodes that only root may use", fileServerYAML("fs", "size: 1Gi", "network: {hostNetwork: {firstPort: 1023}}"), "spec.network.hostNetwork.firstPort", "greater than or equal to 1024"),
		Entry("has a load balancer of a class that is none", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {class: the usual}}"), "spec.network.loadBalancer.class", "class must be a name like that of a label"),
		Entry("replaces a label of Howdah's", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {labels: {howdah.io/file-server: other}}}"), "spec.network.loadBalancer.labels", "are Howdah's"),
		Entry("replaces an annotation of Howdah's", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {annotations: {howdah.io/owner: me}}}"), "spec.network.loadBalancer.annotations", "are Howdah's"),
		Entry("lets through an address that is no network", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {sourceRanges: [192.0.2.7]}}"), "spec.network.loadBalancer.sourceRanges", "sourceRanges must be networks"),
		Entry("has an unknown policy of families", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {ipFamilyPolicy: IPv6}}"), "ipFamilyPolicy", "supported values"),
		Entry("has node ports of some other kind", fileServerYAML("fs", "size: 1Gi", "network: {loadBalancer: {nodePorts: \"2049\"}}"), "nodePorts", "supported values"),

		Entry("has a share path without a slash", fileShareYAML("s", "data"), "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("has a share path that ends with a slash", fileShareYAML("s", "/data/"), "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("has .. in a share path", fileShareYAML("s", "/data/../etc"), "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("has a quote in a share path", fileShareYAML("s", `'/da"ta'`), "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("has a newline in a share path", fileShareYAML("s", `"/data\nEXPORT"`), "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("has a share name that is too long", fileShareYAML(strings.Repeat("s", 51), "/s"), "metadata.name must be at most 50", "characters"),
		Entry("takes the name of a data server's claim", fileShareYAML("data-0-training-3", "/s"), "metadata.name", "claims of data servers"),
		Entry("has a dot in the share's name", fileShareYAML("a.b", "/s"), "metadata.name", "no dots"),
		Entry("has a directory twice", fileShareYAML("s", "/s", "directories: [a, a]"), "spec.directories[1]", "Duplicate"),
		Entry("has a directory with a name of Howdah's own", fileShareYAML("s", "/s", "depth: 2", "directories: [a/.howdah-x]"), "spec.directories", "begin with .howdah"),
		Entry("has a hot directory with a name of Howdah's own", fileShareYAML("s", "/s", "depth: 2", "hotDirectories: [{paths: [a/.howdah-x], dataServers: 2}]"), "spec.hotDirectories", "begin with .howdah"),
		Entry("has .. in a directory", fileShareYAML("s", "/s", "depth: 2", "directories: [a/..]"), "spec.directories", "no '.' or '..'"),
		Entry("has an absolute directory", fileShareYAML("s", "/s", "directories: [/a]"), "spec.directories", "a path below the share"),
		Entry("has a quote in a directory", fileShareYAML("s", "/s", `directories: ['a"b']`), "spec.directories", "a path below the share"),
		Entry("has a control character in a directory", fileShareYAML("s", "/s", `directories: ["a\tb"]`), "spec.directories", "a path below the share"),
		Entry("is Single and has a depth", fileShareYAML("s", "/s", "layout: Single", "depth: 2"), "spec", "depth and directories are for layout Distributed"),
		Entry("is Single and has directories", fileShareYAML("s", "/s", "layout: Single", "directories: [a]"), "spec", "a Single share is one directory"),
		Entry("has another layout", fileShareYAML("s", "/s", "layout: Striped"), "spec.layout", "supported values"),
		Entry("has too much depth", fileShareYAML("s", "/s", "depth: 9"), "spec.depth", "less than or equal to 8"),
		Entry("has a mode that is not octal", fileShareYAML("s", "/s", `mode: "0788"`), "spec.mode", "octal permission bits"),
		Entry("has a negative uid", fileShareYAML("s", "/s", "uid: -1"), "spec.uid", "greater than or equal to 0"),
		Entry("lets in a host by name", fileShareYAML("s", "/s", "access: [{clients: [example.org]}]"), "spec.access", "host names can't be used"),
		Entry("lets in a malformed network", fileShareYAML("s", "/s", "access: [{clients: [10.0.0.0/33]}]"), "spec.access", "clients must be addresses (10.0.0.7), networks (10.0.0.0/8) or the word Nodes"),
		Entry("hides a directive among the clients", fileShareYAML("s", "/s", `access: [{clients: ["10.0.0.1; }"]}]`), "spec.access", "host names can't be used"),
		Entry("a rule without clients", fileShareYAML("s", "/s", "access: [{clients: []}]"), "spec.access[0].clients", "at least 1"),
		Entry("has a quota with a space", fileShareYAML("s", "/s", "quota: {size: 10 GB}"), "spec.quota.size", "size must be a Kubernetes quantity"),
		Entry("has a quota that is too small", fileShareYAML("s", "/s", "quota: {size: 4095Ki}"), "spec.quota", "size must be from 4Mi to 1Ei"),
		Entry("has a quota below nothing", fileShareYAML("s", "/s", "quota: {size: -1Gi}"), "spec.quota", "size must be from 4Mi to 1Ei"),
		Entry("has a quota that no storage has", fileShareYAML("s", "/s", "quota: {size: 1025Pi}"), "spec.quota", "size must be from 4Mi to 1Ei"),
		Entry("has a quota without a size", fileShareYAML("s", "/s", "quota: {}"), "spec.quota.size", "Required"),
		Entry("names a FileServer that there can't be", strings.Replace(fileShareYAML("s", "/s"), "training", "Training", 1), "spec.fileServerRef.name", "name of a FileServer"),
		Entry("gives up data on another FileServer", fileShareYAML("s", "/s", "ignoreDataOn: [other-1]"), "spec.ignoreDataOn", "data servers of spec.fileServerRef"),
		Entry("gives up data on a FileServer", fileShareYAML("s", "/s", "ignoreDataOn: [training]"), "spec.ignoreDataOn", "data servers of spec.fileServerRef"),
		Entry("names a snapshot that there can't be", fileShareYAML("s", "/s", "source: {snapshotRef: {name: My Snapshot}}"), "spec.source.snapshotRef.name", "name of a FileShareSnapshot"),
		Entry("is a snapshot of a share that there can't be", snapshotYAML("a", "My Share"), "spec.fileShareRef.name", "name of a FileShare"),
		Entry("is a job with a dot in its name", strings.Replace(jobYAML(twoH100), "{name: unet3d}", "{name: unet3d.v2}", 1), "metadata.name", "no dots"),
		Entry("is a job with a limit of memory in bytes", jobYAML(twoH100, "resources: {limits: {memory: 4}}"), "spec.resources", "must be at least 64Mi"),
		Entry("has an unknown squash", fileShareYAML("s", "/s", "access: [{clients: [10.0.0.1], squash: Some}]"), "spec.access[0].squash", "supported values"),
	)

	DescribeTable("a change that",
		func(before, after, field, words string) {
			object := parse(namespace, before)
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed()) })
			changed := parse(namespace, after)
			// An apply says what a user's file says; the controllers write meanwhile.
			expectInvalid(admin.Patch(ctx, changed, client.Merge, client.DryRunAll), field, words)
		},
		Entry("shrinks the volumes", fileServerYAML("shrink", "size: 2Gi"), fileServerYAML("shrink", "size: 1Gi"), "spec.storage.volumes.size", "size can't shrink"),
		Entry("writes a smaller size as a number", fileServerYAML("number", "size: 2Gi"), fileServerYAML("number", "size: 1073741824"), "spec.storage.volumes.size", "size can't shrink"),
		Entry("exchanges the class", fileServerYAML("class", "size: 1Gi, storageClassName: standard"), fileServerYAML("class", "size: 1Gi, storageClassName: fixed"), "spec.storage.volumes", "storageClassName can't be changed"),
		Entry("names a class that was left open", fileServerYAML("open", "size: 1Gi"), fileServerYAML("open", "size: 1Gi, storageClassName: fixed"), "spec.storage.volumes", "storageClassName can't be changed"),
		Entry("changes the number of volumes", fileServerYAML("volumes", "size: 1Gi"), fileServerYAML("volumes", "size: 1Gi, perServer: 2"), "spec.storage.volumes", "perServer can't be changed"),
		Entry("goes from volumes to Ceph", fileServerYAML("to-ceph", "size: 1Gi"), strings.Replace(cephYAML("to-ceph"), "storage:", "storage:\n    volumes: null", 1), "spec.storage", "storage can't change between volumes and ceph"),
		Entry("goes from Ceph to volumes", cephYAML("to-volumes"), strings.Replace(fileServerYAML("to-volumes", "size: 1Gi"), "{volumes:", "{ceph: null, volumes:", 1), "spec.storage", "storage can't change between volumes and ceph"),
		Entry("goes to another Ceph cluster", cephYAML("fsid"), cephYAML("fsid", "fsid: 00000000-3b1d-4c55-9a77-0d6f7f0a1b2c"), "spec.storage.ceph.external", "fsid can't be changed"),
		Entry("goes to another Ceph file system", cephYAML("filesystem"), cephYAML("filesystem", "fileSystem: fs2"), "spec.storage.ceph.external", "fileSystem can't be changed"),
		Entry("takes another recovery pool", cephYAML("pool"), cephYAML("pool", "recoveryPool: other"), "spec.storage.ceph.external", "recoveryPool can't be changed"),
		Entry("has shares made that were there", cephYAML("made"), provisioningYAML("made"), "spec.storage.ceph.external", "can't change between sharesSecretRef and provisioningSecretRef"),
		Entry("has shares there that were made", provisioningYAML("there"), cephYAML("there", "provisioningSecretRef: null"), "spec.storage.ceph.external", "can't change between sharesSecretRef and provisioningSecretRef"),
		Entry("takes another recovery user", cephYAML("user"), cephYAML("user", "recoveryUser: other"), "spec.storage.ceph.external", "recoveryUser can't be changed"),
		Entry("moves a share", fileShareYAML("moved", "/a"), fileShareYAML("moved", "/b"), "spec", "path can't be changed"),
		Entry("gives a share to another FileServer", fileShareYAML("given", "/c"), strings.Replace(fileShareYAML("given", "/c"), "training", "other", 1), "spec", "fileServerRef can't be changed"),
		Entry("changes a share's layout", fileShareYAML("layout", "/d"), fileShareYAML("layout", "/d", "layout: Single"), "spec", "layout can't be changed"),
		Entry("changes a share's depth", fileShareYAML("depth", "/e"), fileShareYAML("depth", "/e", "depth: 2"), "spec", "depth can't be changed"),
	)

	DescribeTable("nothing of a valid object that",
		func(text string) { Expect(admin.Create(ctx, parse(namespace, text), client.DryRunAll)).To(Succeed()) },
		Entry("says the least", fileServerYAML("fs", "size: 1Gi")),
		Entry("writes the size as a number", fileServerYAML("fs", "size: 1073741824")),
		Entry("has spelled out its defaults", fileServerYAML("fs", "size: 1Gi, perServer: 1", "replicas: 1", "namespaceServers: {replicas: 2}", "nfs: {leaseSeconds: 10, graceSeconds: 20}")),
		Entry("has a lease and leaves the grace period open", fileServerYAML("fs", "size: 1Gi", "nfs: {leaseSeconds: 60}")),
		Entry("has its data in Ceph", cephYAML("fs")),
		Entry("has shares made in Ceph", provisioningYAML("fs")),
		Entry("has Ceph with monitors of both kinds of addresses and both protocols", cephYAML("fs", `monitors: ["10.0.0.1:6789", "[fd00::1]:3300", "10.0.0.3:65535"]`)),
		Entry("has no limit of memory", fileServerYAML("fs", "size: 1Gi", `resources: {requests: {memory: 8Gi}, limits: {memory: "0"}}`, `namespaceServers: {resources: {limits: {memory: "0", cpu: 1}}}`)),
		Entry("has all kinds of resources", fileServerYAML("fs", "size: 1Gi", "resources: {requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi, example.com/device: 1}, limits: {memory: 1Gi, example.com/device: 1, hugepages-2Mi: 4Mi}}")),
		Entry("has a placement with all that there can be", fileServerYAML("fs", "size: 1Gi", `placement: {nodeSelector: {node-role.kubernetes.io/storage: "", zone: a}, tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 5}]}`)),
		Entry("drains data servers and gives up volumes of its own", fileServerYAML("fs", "size: 1Gi, lostVolumes: [{claimName: data-0-fs-10, volumeID: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c}]", "drain: {servers: [fs-0, fs-10]}")),
		Entry("gives up data on a data server", fileShareYAML("s", "/s", "ignoreDataOn: [training-0, training-12]")),
		Entry("is a share", fileShareYAML("s", "/sets_1/v1.0-x", "depth: 2", `directories: ["train/{0..15}", "valid/a+b=c@1:2"]`, `mode: "2775"`)),
		Entry("has a name that only looks like that of a data server's claim", fileShareYAML("data-0-training", "/s")),
		Entry("has a name with a number at its end", fileShareYAML("cifar-10", "/s")),
		Entry("lets in IPv4 and IPv6", fileShareYAML("s", "/s", "access: [{clients: [10.0.0.0/8, 10.1.2.3, 'fd00::/8', '::1'], accessType: ReadOnly, squash: All}]")),
	)
})
