package integration

import (
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	rookFSID    = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	healthOK    = "HEALTH_OK"
	healthWarn  = "HEALTH_WARN"
	healthError = "HEALTH_ERR"
)

// rookObject is an object of Rook's.
func rookObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ceph.rook.io/v1", "kind": kind, "spec": spec}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// installRook installs the CRDs, as an installation of Rook does.
func installRook() {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "rook")}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
}

// setStatus writes fields of an object's status, as Rook's operator does.
func setStatus(kind, namespace, name string, status map[string]any) {
	GinkgoHelper()
	object := exists(rookObject(kind, namespace, name, nil), namespace, name)
	before := object.DeepCopy()
	for field, value := range status {
		Expect(unstructured.SetNestedField(object.Object, value, "status", field)).To(Succeed())
	}
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// cephIs is what Rook's operator writes of a cluster's health each minute.
func cephIs(namespace, health, fsid string) {
	GinkgoHelper()
	ceph := map[string]any{"health": health, "fsid": fsid, "lastChecked": metav1.Now().UTC().String()}
	if health == healthError {
		ceph["details"] = map[string]any{"OSD_FULL": map[string]any{"severity": healthError, "message": "1 full osd(s)"}}
	}
	setStatus("CephCluster", namespace, "rook-ceph", map[string]any{"phase": "Ready", "state": "Created", "message": "Cluster created successfully", "ceph": ceph})
}

// monitorsAre is what it writes of the monitors (persistExpectedMonDaemonsInConfigMap).
func monitorsAre(namespace, endpoints string) {
	GinkgoHelper()
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rook-ceph-mon-endpoints"}}
	_, err := controllerutil.CreateOrUpdate(ctx, admin, wanted, func() error {
		wanted.Data = map[string]string{"data": endpoints, "mapping": `{"node":{}}`, "maxMonId": "2", "outOfQuorum": ""}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

// rookCluster is a cluster with a file system, both as Rook's operator leaves them.
func rookCluster(namespace string) {
	GinkgoHelper()
	create(rookObject("CephCluster", namespace, "rook-ceph", map[string]any{"dataDirHostPath": "/var/lib/rook", "mon": map[string]any{"count": int64(3)}}))
	cephIs(namespace, healthOK, rookFSID)
	monitorsAre(namespace, "a=10.0.0.1:6789,b=10.0.0.2:6789")
	rookFileSystem(namespace)
}

func rookFileSystem(namespace string) {
	GinkgoHelper()
	create(rookObject("CephFilesystem", namespace, "fs1", map[string]any{
		"metadataPool": map[string]any{"replicated": map[string]any{"size": int64(3)}}, "dataPools": []any{map[string]any{"name": "replicated"}},
		"metadataServer": map[string]any{"activeCount": int64(1), "activeStandby": true},
	}))
	setStatus("CephFilesystem", namespace, "fs1", map[string]any{"phase": "Ready"})
}

// rookWorks is a pass of Rook's operator over what was asked of it in a namespace, as pkg/operator/ceph/client and
// pkg/operator/ceph/file/subvolumegroup of 1.18.9 do it. occupied groups have subvolumes in them.
func rookWorks(namespace string, occupied bool) {
	GinkgoHelper()
	health, _, _ := unstructured.NestedString(exists(rookObject("CephCluster", namespace, "", nil), namespace, "rook-ceph").Object, "status", "ceph", "health")
	if health != healthOK && health != healthWarn {
		return // IsReadyToReconcile
	}
	for _, kind := range []string{"CephClient", "CephFilesystemSubVolumeGroup"} {
		finalizer := strings.ToLower(kind) + ".ceph.rook.io"
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(rookObject(kind+"List", "", "", nil).GroupVersionKind())
		Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			object := &list.Items[i]
			before := object.DeepCopy()
			switch {
			case object.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(object, finalizer):
				Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
			case object.GetDeletionTimestamp() != nil:
				if (kind == "CephClient" || !occupied) && controllerutil.RemoveFinalizer(object, finalizer) {
					Expect(client.IgnoreNotFound(admin.Patch(ctx, object, client.MergeFrom(before)))).To(Succeed())
				}
				continue
			}
			status := map[string]any{"phase": "Ready", "observedGeneration": object.GetGeneration()}
			if kind == "CephClient" {
				status["info"] = map[string]any{"secretName": rookSecret(object)}
			}
			setStatus(kind, namespace, object.GetName(), status)
		}
	}
}

// rookSecret makes the Secret of a CephClient.
func rookSecret(account *unstructured.Unstructured) string {
	GinkgoHelper()
	name := "rook-ceph-client-" + account.GetName()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.GetNamespace(), Name: name},
		Type:       "kubernetes.io/rook",
		StringData: map[string]string{account.GetName(): "AQ==", "userID": account.GetName(), "userKey": "AQ=="},
	}
	Expect(controllerutil.SetControllerReference(account, secret, admin.Scheme())).To(Succeed())
	if err := admin.Create(ctx, secret); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	return name
}

// storageSays is the condition StorageAvailable of FileServer training in one line.
func storageSays(namespace string) func() string {
	return func() string {
		c := fileServerCondition(namespace, "training", "StorageAvailable")
		return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
}
