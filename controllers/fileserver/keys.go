package fileserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// lostKeysAfter is how long a server's pod is pending before a Secret may be what it lacks. Tried again at
// this interval: no event would bring another pass.
const lostKeysAfter = 30 * time.Second

// keys remembers which Secrets with keys and certificates of servers exist, because the operator can't look: it
// may make Secrets and never read one.
type keys struct {
	made sync.Map // By namespace, name.
	// given has the names of the Secrets with the certificates that servers are given now, by the UID of the FileServer.
	given sync.Map
}

// ensure makes the Secrets with the servers' keys, each once. One that was deleted is made again when a
// pod waits for it; its keys are others: clients must mount again. lost is how often certificates were lost.
func (k *keys) ensure(ctx context.Context, c client.Client, o *observed, lost int32, now time.Time) error {
	waits := o.waitsSince(now.Add(-lostKeysAfter))
	fs := o.fileServer
	for _, generation := range desired.KeyGenerations(fs) {
		for _, secret := range []struct {
			name string
			make func() (*corev1.Secret, error)
		}{
			{naming.HandleKeys(fs.Name, string(fs.UID), generation), func() (*corev1.Secret, error) { return newHandleKeys(fs, generation) }},
			{naming.Certificates(fs.Name, string(fs.UID), generation, lost), func() (*corev1.Secret, error) { return newCertificates(fs, generation, lost) }},
		} {
			key := client.ObjectKey{Namespace: fs.Namespace, Name: secret.name}
			if _, made := k.made.Load(key); made && !waits {
				continue
			}
			object, err := secret.make()
			if err != nil {
				return fmt.Errorf("making Secret %s: %w", secret.name, err)
			}
			if err := c.Create(ctx, object, client.FieldOwner(FieldManager)); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("making Secret %s: %w", secret.name, err)
			}
			k.made.Store(key, nil)
		}
	}
	k.given.Store(fs.UID, certificatesOf(fs, lost))
	return nil
}

// forget drops what is remembered of a FileServer that is gone. Secrets of another whose name begins like theirs may be forgotten with them: then the
// next pass of that one tries to make them, and finds them.
func (k *keys) forget(fileServer types.NamespacedName) {
	isTheirs := func(key client.ObjectKey) bool {
		rest, ok := strings.CutPrefix(key.Name, fileServer.Name+"-")
		return ok && key.Namespace == fileServer.Namespace &&
			(strings.HasPrefix(rest, "handle-keys-") || strings.HasPrefix(rest, "certificates-") || strings.HasPrefix(rest, "ceph-shares-"))
	}
	k.made.Range(func(key, _ any) bool {
		if isTheirs(key.(client.ObjectKey)) {
			k.made.Delete(key)
		}
		return true
	})
	k.given.Range(func(uid, key any) bool {
		if isTheirs(key.(client.ObjectKey)) {
			k.given.Delete(uid)
		}
		return true
	})
}

func newHandleKeys(fs *v1alpha1.FileServer, generation int32) (*corev1.Secret, error) {
	var random [desired.HandleKeysBytes]byte
	_, _ = rand.Read(random[:]) // Never fails: it ends the program instead.
	return desired.HandleKeys(fs, generation, random), nil
}

// newCertificates discards the key that signed the certificates, so that no other certificate of this generation can be
// made.
func newCertificates(fs *v1alpha1.FileServer, generation, lost int32) (*corev1.Secret, error) {
	authority, err := mtls.NewAuthority(string(fs.UID))
	if err != nil {
		return nil, err
	}
	namespaceServers, err := authority.NamespaceServers()
	if err != nil {
		return nil, err
	}
	dataServers := map[string][]byte{}
	for _, name := range desired.AllDataServers(fs) {
		if dataServers[name], err = authority.DataServer(name); err != nil {
			return nil, err
		}
	}
	return desired.Certificates(fs, generation, lost, dataServers, namespaceServers), nil
}

// waitsSince tells whether a server's pod has been pending since then or longer.
func (o *observed) waitsSince(then time.Time) bool {
	return slices.ContainsFunc(o.allPods(), func(pod corev1.Pod) bool {
		return isWaiting(&pod) && pod.CreationTimestamp.Time.Before(then)
	})
}

// hasWaiting tells whether a server's pod was given a node and does not run there yet.
func (o *observed) hasWaiting() bool {
	return slices.ContainsFunc(o.allPods(), func(pod corev1.Pod) bool { return isWaiting(&pod) })
}

func (o *observed) allPods() []corev1.Pod {
	all := slices.Clone(o.namespacePods)
	for name := range o.pods {
		all = append(all, o.pods[name])
	}
	return all
}

func isWaiting(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
}
