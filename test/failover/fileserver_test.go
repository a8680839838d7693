package failover

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "k8s.io/api/coordination/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const (
	share   = "kept-up"
	account = "provisioner"
)

var fsidLine = regexp.MustCompile(`(?m)^\s*fsid\s*=\s*(\S+)`)

// makeFileServer makes a FileServer with failover, and a share with a directory on each data server.
func (w *world) makeFileServer() {
	w.t.Helper()
	ceph := needed(w.t, "HOWDAH_CEPH_ETC")
	files := map[string]string{}
	for _, key := range []string{"userID", "userKey"} {
		text, err := os.ReadFile(filepath.Join(ceph, "accounts", "howdah-provisioner", key))
		w.must(err)
		files[key] = string(text)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: account}, StringData: files})
	settings, err := os.ReadFile(filepath.Join(ceph, "ceph.conf"))
	w.must(err)
	fsid := fsidLine.FindSubmatch(settings)
	if fsid == nil {
		w.t.Fatal("ceph.conf has no fsid")
	}
	fs := builders.FileServer(kubeNamespace, fileServer).Replicas(dataServers).Provisioned().Build()
	external := &fs.Spec.Storage.Ceph.External
	external.Monitors, external.FSID, external.ProvisioningSecretRef.Name = []string{needed(w.t, "HOWDAH_CEPH_MONITOR")}, string(fsid[1]), account
	fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage
	w.create(fs)
	object := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: share}}
	object.Spec = v1alpha1.FileShareSpec{
		FileServerRef: v1alpha1.FileServerReference{Name: fileServer}, Path: "/" + share, Depth: 1, Directories: []string{"d{0..8}"}, Mode: "0777",
	}
	w.create(object)
	w.settle()
}

// settle waits until all is Ready, and nothing of a failover is left.
func (w *world) settle() {
	w.t.Helper()
	w.eventually("the FileServer and its share are Ready, and no node is kept empty", comeUp, func(ctx context.Context) string {
		fs, object, steward := &v1alpha1.FileServer{}, &v1alpha1.FileShare{}, &internalv1.Steward{}
		for name, o := range map[string]client.Object{fileServer: fs, share: object} {
			if err := w.api.Get(ctx, client.ObjectKey{Namespace: kubeNamespace, Name: name}, o); err != nil {
				return err.Error()
			}
		}
		for _, all := range [][]metav1.Condition{fs.Status.Conditions, object.Status.Conditions} {
			if !conditions.IsTrue(all, v1alpha1.ConditionReady) {
				var text []string
				for _, c := range all {
					text = append(text, fmt.Sprintf("%s %s: %s", c.Type, c.Status, c.Message))
				}
				return "not Ready: " + strings.Join(text, "; ")
			}
		}
		if err := w.api.Get(ctx, client.ObjectKey{Namespace: kubeNamespace, Name: fileServer}, steward); err != nil {
			return err.Error()
		}
		if len(steward.Spec.Fences) > 0 {
			return "a fence is requested still"
		}
		return w.notReady(ctx)
	})
}

// notReady names a pod or a data server that is not.
func (w *world) notReady(ctx context.Context) string {
	list, servers, sets := &corev1.PodList{}, &internalv1.DataServerList{}, &appsv1.DeploymentList{}
	for _, l := range []client.ObjectList{list, servers, sets} {
		if err := w.api.List(ctx, l, client.InNamespace(kubeNamespace)); err != nil {
			return err.Error()
		}
	}
	for i := range list.Items {
		is := slices.ContainsFunc(list.Items[i].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !is || list.Items[i].DeletionTimestamp != nil {
			return "pod " + list.Items[i].Name + " is not Ready, or ends"
		}
	}
	for i := range servers.Items {
		s := &servers.Items[i]
		if !conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionReady) || !conditions.IsTrue(s.Status.Conditions, internalv1.GraceEnded) || s.Status.Unreachable.SinceTime != nil {
			return "data server " + s.Name + " is not Ready, or in grace"
		}
	}
	for i := range sets.Items {
		if sets.Items[i].Status.ReadyReplicas != ptr.Deref(sets.Items[i].Spec.Replicas, 1) {
			return "Deployment " + sets.Items[i].Name + " is not Ready"
		}
	}
	return ""
}

// owned are the directories of the share by their data servers.
func (w *world) owned() map[string][]string {
	w.t.Helper()
	list := &internalv1.ShareDirectoryList{}
	w.must(w.api.List(w.t.Context(), list, client.InNamespace(kubeNamespace)))
	found := map[string][]string{}
	for i := range list.Items {
		if name := list.Items[i].Spec.DataServerRef.Name; name != "" {
			found[name] = append(found[name], list.Items[i].Spec.Path)
		}
	}
	return found
}

// pathOf is the path of a directory on its data server.
func pathOf(directory string) []string {
	return append(strings.Split(strings.Trim(naming.ExportPseudo(share, 0), "/"), "/"), directory)
}

// besides lists what runs on a node besides a data server: it decides what the loss costs.
func (w *world) besides(node, server string) string {
	w.t.Helper()
	lease, pods := &coordinationv1.Lease{}, &corev1.PodList{}
	w.get(lease, naming.NamespaceServers(fileServer))
	w.must(w.api.List(w.t.Context(), pods, client.InNamespace(kubeNamespace)))
	var names []string
	for i := range pods.Items {
		p := &pods.Items[i]
		switch component := p.Labels[v1alpha1.ComponentLabel]; {
		case p.Spec.NodeName != node || p.Name == server:
		case p.Name == ptr.Deref(lease.Spec.HolderIdentity, ""):
			names = append(names, "the leader of the namespace servers")
		default:
			names = append(names, "a "+component)
		}
	}
	if len(names) == 0 {
		return "nothing else"
	}
	return strings.Join(names, ", ")
}
