package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

const (
	// Where hack/ceph.sh puts the Ceph.
	cephNamespace = "ceph"
	nodeLabel     = "howdah.io/cost"
	one, three    = "one", "three"
	clientPod     = "client"
	plainPod      = "plain-ganesha"
	plainClaim    = "plain"
	// ours is the folder of the ways that are not Howdah's, and of the whole file system on the client, as its administrator.
	ours, everything = "/howdah-cost", "/everything"
	workers          = 3
)

// bench is a run.
type bench struct {
	*cluster.Cluster
	nodes                []string
	clientNode           string
	plainImage           string
	seconds, mib, rounds int
	began                time.Time
	// ceph is what the Ceph's own Secret says, fileSystem the name of its file system.
	ceph       map[string]string
	fileSystem string
}

// way is one way to the Ceph.
type way struct {
	name string
	// mounted is where the client has it, root its directory in the file system.
	mounted, root string
	// pods have the processes that serve it, all of one name.
	pods    []string
	process string
}

func (b *bench) secret(ctx context.Context, name string) (map[string]string, error) {
	found := &corev1.Secret{}
	if err := b.Client.Get(ctx, client.ObjectKey{Namespace: cephNamespace, Name: name}, found); err != nil {
		return nil, fmt.Errorf("the Ceph of hack/ceph.sh: %w", err)
	}
	values := map[string]string{}
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values, nil
}

// prepare makes the four ways, and a client that has all of them.
func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.ceph, err = b.secret(ctx, "ceph-cluster"); err != nil {
		return err
	}
	account, err := b.secret(ctx, "howdah-provisioner")
	if err != nil {
		return err
	}
	b.fileSystem = account["filesystem"]
	for i, name := range b.nodes {
		node := &corev1.Node{}
		if err := b.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		labelled := node.DeepCopy()
		labelled.Labels[nodeLabel] = map[bool]string{true: "first", false: "other"}[i == 0]
		if err := b.Patch(ctx, labelled, client.MergeFrom(node)); err != nil {
			return err
		}
	}
	b.say("a plain ganesha, and FileServers of one and of three data servers")
	if err := b.startPlain(ctx); err != nil {
		return err
	}
	if err := b.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "account", Namespace: b.Namespace},
		StringData: map[string]string{"userID": account["userID"], "userKey": account["userKey"]},
	}); err != nil {
		return err
	}
	for name, servers := range map[string]int32{one: 1, three: 3} {
		if err := b.createShare(ctx, name, servers, account); err != nil {
			return err
		}
	}
	for _, name := range []string{one, three} {
		if err := cluster.WaitFor(ctx, "share "+name, func(ctx context.Context) error { return b.ShareReady(ctx, name) }); err != nil {
			return err
		}
	}
	return b.startClient(ctx)
}

func (b *bench) createShare(ctx context.Context, name string, servers int32, account map[string]string) error {
	placement := &v1alpha1.Placement{NodeSelector: map[string]string{nodeLabel: "first"}}
	if servers > 1 {
		placement = nil // The client's node is cordoned while they are placed.
	}
	if err := b.Create(ctx, &v1alpha1.FileServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace},
		Spec: v1alpha1.FileServerSpec{
			Replicas: servers, Placement: placement,
			Storage: v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{External: v1alpha1.ExternalCeph{
				Monitors: []string{account["monitors"]}, FSID: account["fsid"], FileSystem: b.fileSystem, RecoveryPool: "howdah",
				ProvisioningSecretRef: v1alpha1.SecretReference{Name: "account"},
			}}},
		},
	}); err != nil {
		return err
	}
	return b.Create(ctx, &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + name, Mode: "0777",
			Directories: []string{fmt.Sprintf("d{0..%d}", workers-1)}, ReclaimPolicy: v1alpha1.ReclaimDelete,
		},
	})
}

// plainConfig has the settings of Rook's CephNFS (its pkg/operator/ceph/nfs/config.go, 1.18), but for where clients are remembered, which
// does not matter here.
const plainConfig = `NFS_CORE_PARAM { Enable_NLM = false; Enable_RQUOTA = false; Protocols = 4; mount_path_pseudo = true; Allow_Set_Io_Flusher_Fail = true; }
MDCACHE { Dir_Chunk = 0; }
EXPORT_DEFAULTS { Attr_Expiration_Time = 0; }
NFSv4 { Delegations = false; RecoveryBackend = fs_ng; RecoveryRoot = "/tmp"; Minor_Versions = 1, 2; Only_Numeric_Owners = true; Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
CEPH { Ceph_Conf = "/etc/ceph/ceph.conf"; }
EXPORT { Export_Id = 1; Path = "%s/plain"; Pseudo = "/plain"; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 4; Transports = TCP;
  FSAL { Name = CEPH; Filesystem = "%s"; User_Id = "admin"; } }
`

// startPlain makes the directories of the ways that are not Howdah's, and a ganesha on one of them, on the first node. Both have the
// administrator's account, as Rook's has one for all exports.
func (b *bench) startPlain(ctx context.Context) error {
	if err := b.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "admin", Namespace: b.Namespace},
		StringData: map[string]string{
			"ceph.conf": fmt.Sprintf("[global]\nfsid = %s\nmon_host = %s\nlog_file =\nadmin_socket =\n[client]\nclient_mount_timeout = 30\n",
				b.ceph["fsid"], b.ceph["mon_host"]),
			"ceph.client.admin.keyring": fmt.Sprintf("[client.admin]\n\tkey = %s\n", b.ceph["admin-key"]),
			"ganesha.conf":              fmt.Sprintf(plainConfig, ours, b.fileSystem),
		},
	}); err != nil {
		return err
	}
	maker := b.pod("maker", b.cephImage(), b.nodes[0], "sleep", "infinity")
	maker.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	if err := b.start(ctx, maker); err != nil {
		return err
	}
	var directories []string
	for i := range workers {
		directories = append(directories, fmt.Sprintf("%s%s/plain/d%d %s%s/fuse/d%d", everything, ours, i, everything, ours, i))
	}
	if _, err := b.Shell(ctx, maker.Name, fmt.Sprintf("mkdir -p %s && ceph-fuse --id admin --client_fs %s %s >/dev/null 2>&1 && mkdir -p %s && umount %s",
		everything, b.fileSystem, everything, strings.Join(directories, " "), everything)); err != nil {
		return err
	}
	if err := b.Delete(ctx, maker); err != nil {
		return err
	}
	server := b.pod(plainPod, b.plainImage, b.nodes[0], "sh", "-c", "exec ganesha.nfsd -F -L STDERR -f /etc/ceph/ganesha.conf")
	// What data servers have: ganesha acts as its clients' users.
	server.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	server.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "grep -q ':0801 ' /proc/net/tcp6 /proc/net/tcp"}}}, PeriodSeconds: 2,
	}
	if err := b.start(ctx, server); err != nil {
		return err
	}
	if err := b.Get(ctx, plainPod, server); err != nil {
		return err
	}
	return b.NFSClaim(ctx, plainClaim, server.Status.PodIP, "/plain", "vers=4.1", "nconnect=16", "hard", "noatime")
}

// startClient runs the one client.
func (b *bench) startClient(ctx context.Context) error {
	if _, err := b.Kubectl(ctx, "uncordon", b.clientNode); err != nil {
		return err
	}
	pod := b.pod(clientPod, b.cephImage(), b.clientNode, "sleep", "infinity")
	container := &pod.Spec.Containers[0]
	container.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	for _, claim := range []string{one, three, plainClaim} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: claim, MountPath: "/" + claim})
	}
	b.say("one client on %s", b.clientNode)
	if err := b.start(ctx, pod); err != nil {
		return err
	}
	_, err := b.Shell(ctx, clientPod, fmt.Sprintf("mkdir -p /fuse && ceph-fuse --id admin --client_fs %s -r %s/fuse /fuse >/dev/null 2>&1", b.fileSystem, ours))
	return err
}

// theWays are the ways in the order in which they take turns.
func (b *bench) theWays(ctx context.Context) ([]way, error) {
	found := []way{
		{fuse, "/fuse", ours + "/fuse", []string{clientPod}, "ceph-fuse"},
		{plain, "/plain", ours + "/plain", []string{plainPod}, "ganesha.nfsd"},
	}
	for _, served := range [][2]string{{one, howdahOne}, {three, howdahThree}} {
		name, what := served[0], served[1]
		storages := &internalv1.ShareStorageList{}
		if err := b.List(ctx, storages, client.InNamespace(b.Namespace), client.MatchingLabels{v1alpha1.FileServerLabel: name}); err != nil {
			return nil, err
		}
		if len(storages.Items) != 1 || storages.Items[0].Status.Path == "" {
			return nil, fmt.Errorf("share %s has no place", name)
		}
		w := way{what, "/" + name, storages.Items[0].Status.Path, []string{name + "-0"}, "ganesha.nfsd"}
		if name == three {
			w.pods = []string{name + "-0", name + "-1", name + "-2"}
		}
		found = append(found, w)
	}
	return found, nil
}

func (b *bench) cephImage() string { return "howdah/ceph:dev" }

// pod is one on a node with the administrator's files of Ceph.
func (b *bench) pod(name, image, node string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace, Labels: map[string]string{cluster.ClientLabel: "true"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(1)), AutomountServiceAccountToken: ptr.To(false),
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{
				Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
				VolumeMounts: []corev1.VolumeMount{{Name: "admin", MountPath: "/etc/ceph"}},
			}},
			Volumes: []corev1.Volume{{Name: "admin", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "admin"}}}},
		},
	}
}

func (b *bench) start(ctx context.Context, pod *corev1.Pod) error {
	if err := b.Create(ctx, pod); err != nil {
		return err
	}
	return b.WaitPodReady(ctx, pod.Name)
}

// removeAll takes away what was made, also after an interrupt.
func (b *bench) removeAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	b.say("removing what was made")
	complain := func(err error) {
		if client.IgnoreNotFound(err) != nil {
			fmt.Fprintln(os.Stderr, "cephcost:", err)
		}
	}
	if b.fileSystem != "" {
		_, err := b.Shell(ctx, clientPod, fmt.Sprintf("umount -l %[1]s 2>/dev/null; mkdir -p %[1]s && ceph-fuse --id admin --client_fs %[2]s %[1]s >/dev/null 2>&1 && rm -rf %[1]s%[3]s",
			everything, b.fileSystem, ours))
		complain(err)
	}
	for _, args := range [][]string{
		// Before its servers: a node waits for minutes when it unmounts a file system whose server is gone.
		{"delete", "pod", clientPod, "--grace-period=1"},
		{"delete", "pods", "--selector", cluster.ClientLabel, "--grace-period=1"},
		{"delete", "fileshares", "--all", "--timeout=60s"},
		{"delete", "fileservers", "--all", "--timeout=60s"},
		{"delete", "namespace", b.Namespace, "--wait=false"},
		{"label", "nodes", "--all", nodeLabel + "-"},
	} {
		_, err := b.Kubectl(ctx, args...)
		complain(err)
	}
	complain(b.DeleteNFSClaim(ctx, plainClaim))
}
