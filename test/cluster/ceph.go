package cluster

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
)

// CephAccount is the Secret that hack/ceph.sh leaves in the cluster: an account with the least rights, with which a FileServer makes its shares, and
// where the Ceph is.
func (c *Cluster) CephAccount(ctx context.Context) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: "ceph", Name: "howdah-provisioner"}, found)
	return found, err
}

// CephCredential is the Secret that a FileServer needs beside itself for an account.
func CephCredential(account *corev1.Secret, namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"userID": account.Data["userID"], "userKey": account.Data["userKey"]},
	}
}

// CephStorage is the storage of a FileServer that makes its shares with an account, whose Secret is called credential.
func CephStorage(account *corev1.Secret, credential string) v1alpha1.FileServerStorage {
	return v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{External: v1alpha1.ExternalCeph{
		Monitors: strings.Split(string(account.Data["monitors"]), ","), FSID: string(account.Data["fsid"]), FileSystem: string(account.Data["filesystem"]),
		RecoveryPool: "howdah", ProvisioningSecretRef: v1alpha1.SecretReference{Name: credential},
	}}}
}
