package fileserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
)

// The authority that signed a FileServer's certificates is forgotten once they are signed. If their Secret is deleted, the next one has
// another authority: a server that starts with it and those that run don't know each other. So all are replaced, in the order of any other
// update; until that is done mkdir waits where old meets new. The next Secret has the next name, which is in the pods' templates: it is made
// before them, and to do all of this twice, from a cache that is behind or after a crash, does the same.

// lookEvery is how often Secrets with certificates are looked for.
const lookEvery = time.Minute

// exists tells whether a Secret is there, without reading it: what can't be made is there.
func exists(ctx context.Context, c client.Client, key client.ObjectKey) (bool, error) {
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := c.Create(ctx, probe, client.DryRunAll, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for Secret %s: %w", key.Name, err)
	}
	return false, nil
}

func certificatesOf(fs *v1alpha1.FileServer, lost int32) client.ObjectKey {
	return client.ObjectKey{Namespace: fs.Namespace, Name: naming.Certificates(fs.Name, string(fs.UID), desired.KeyGenerations(fs)[0], lost)}
}

// haveLost tells whether the certificates that servers were given are no more. It asks the API server only if something speaks for it: a round of
// keyWatch found it, a pod waits, or this process has just started.
func (k *keys) haveLost(ctx context.Context, c client.Client, o *observed, now time.Time) (bool, error) {
	key := certificatesOf(o.fileServer, o.certificatesLost())
	if !o.mounts(key.Name) {
		return false, nil // They were never given to anybody.
	}
	if _, made := k.made.Load(key); made && !o.waitsSince(now.Add(-lostKeysAfter)) {
		return false, nil
	}
	there, err := exists(ctx, c, key)
	if err != nil {
		return false, err
	}
	if there {
		k.made.Store(key, nil)
	} else {
		k.made.Delete(key)
	}
	return !there, nil
}

// mounts tells whether the data servers are given a Secret.
func (o *observed) mounts(secret string) bool {
	return o.statefulSet != nil && slices.ContainsFunc(o.statefulSet.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == secret
	})
}

func (o *observed) certificatesLost() int32 {
	if o.statefulSet == nil {
		return 0
	}
	count, err := strconv.ParseInt(o.statefulSet.Spec.Template.Annotations[v1alpha1.CertificatesLostAnnotation], 10, 32)
	if err != nil || count < 0 {
		return 0
	}
	return int32(count)
}

// keyWatch looks for the Secrets with certificates, because the operator may not watch Secrets.
type keyWatch struct {
	client client.Client
	keys   *keys
	clock  clock.WithTicker
	// lost gets the FileServers whose certificates are gone.
	lost chan event.GenericEvent
}

// Start looks until the context ends.
func (w *keyWatch) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := w.round(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking for the certificates of servers")
		}
	}
}

// round looks once for each FileServer.
func (w *keyWatch) round(ctx context.Context) error {
	var list v1alpha1.FileServerList
	if err := w.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		fs := &list.Items[i]
		given, ok := w.keys.given.Load(fs.UID)
		if !ok || conditions.IsPaused(fs) {
			continue
		}
		key := given.(client.ObjectKey)
		there, err := exists(ctx, w.client, key)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		w.keys.made.Delete(key)
		select {
		case w.lost <- event.GenericEvent{Object: fs.DeepCopy()}:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
