package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const (
	kubeNamespace = "load"
	storageClass  = "standard"
	// serveAllowance is how long it may take until everything is Ready.
	serveAllowance = 10 * time.Minute
	// writers is how many objects are written at a time.
	writers = 16
)

// world is everything around the operator.
type world struct {
	client.Client
	watching cache.Cache
	size     size
	server   *apiServer
}

func fileServerName(i int) string   { return fmt.Sprintf("fs%d", i) }
func shareName(i, share int) string { return fmt.Sprintf("fs%d-s%d", i, share) }

// each runs something for 0 to n-1, some at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// retryWhileBusy does something again while the API server says that it had no time for it: the machine does other things, too. What
// it did all the same is not to be done twice.
func retryWhileBusy(ctx context.Context, do func() error) error {
	for again := false; ; again = true {
		err := do()
		switch {
		case again && apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
			err != nil && strings.Contains(err.Error(), "etcdserver: request timed out"):
		default:
			return err
		}
		if waiting := wait(ctx, time.Second); waiting != nil {
			return errors.Join(err, waiting)
		}
	}
}

// prepare makes what a cluster has before Howdah.
func (w *world) prepare(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubeNamespace}},
		builders.StorageClass(storageClass).Default().Expandable().Build(),
	} {
		if err := w.Create(ctx, object); err != nil {
			return err
		}
	}
	for i := range w.size.replicas {
		node := builders.Node(fmt.Sprintf("node-%d", i)).Build()
		if err := w.Create(ctx, node); err != nil {
			return err
		}
		// The API server's admission taints every new node as not ready.
		before := node.DeepCopy()
		node.Spec.Taints = nil
		if err := w.Patch(ctx, node, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// maxAccessNetworks is the most that spec.limits allows. The default would admit 64 shares with the longest access lists.
const maxAccessNetworks = 8388608

// makeFileServers makes the FileServers and their shares.
func (w *world) makeFileServers(ctx context.Context) error {
	return each(ctx, w.size.fileServers, func(ctx context.Context, i int) error {
		server := builders.FileServer(kubeNamespace, fileServerName(i)).Replicas(int32(w.size.replicas)).Build()
		server.Spec.Limits.Total.AccessNetworks = maxAccessNetworks
		server.Spec.Limits.Total.Shares = w.size.maxShares
		if err := w.Create(ctx, server); err != nil {
			return err
		}
		for share := range w.size.shares {
			if err := w.Create(ctx, builders.FileShare(kubeNamespace, shareName(i, share), fileServerName(i)).Build()); err != nil {
				return err
			}
		}
		return nil
	})
}

// makeDirectories makes the ShareDirectories, as namespace servers would have for clients.
func (w *world) makeDirectories(ctx context.Context) error {
	return each(ctx, w.size.fileServers*w.size.shares, func(ctx context.Context, n int) error {
		i, share := n/w.size.shares, n%w.size.shares
		for d := range w.size.directories {
			server := naming.DataServer(fileServerName(i), int32(d%w.size.replicas))
			directory := builders.ShareDirectory(kubeNamespace, fileServerName(i), shareName(i, share), fmt.Sprintf("d%d", d), server)
			if err := errors.Join(w.Create(ctx, directory), w.makeReady(ctx, directory)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) makeReady(ctx context.Context, directory *internalv1.ShareDirectory) error {
	before := directory.DeepCopy()
	directory.Status.State = internalv1.DirectoryReady
	return w.Status().Patch(ctx, directory, client.MergeFrom(before))
}

// mkdir is a client's: the ShareDirectory is made, and a moment later the directory is.
func (w *world) mkdir(ctx context.Context, i int, name string) error {
	directory := builders.ShareDirectory(kubeNamespace, fileServerName(i), shareName(i, 0), name, naming.DataServer(fileServerName(i), 0))
	if err := w.Create(ctx, directory); err != nil {
		return err
	}
	if err := wait(ctx, 30*time.Millisecond); err != nil {
		return err
	}
	return w.makeReady(ctx, directory)
}

// serve plays the kubelet and the servers until every FileServer and every share is Ready.
func (w *world) serve(ctx context.Context) error {
	for began := time.Now(); ; {
		if err := each(ctx, w.size.fileServers, w.serveOne); err != nil {
			return err
		}
		if err := w.offerVolumes(ctx); err != nil {
			return err
		}
		ready, all, err := w.countReady(ctx)
		if err != nil || ready == all {
			return err
		}
		if time.Since(began) > serveAllowance {
			return fmt.Errorf("%d of %d FileServers and shares are Ready after %s", ready, all, serveAllowance)
		}
		fmt.Printf("  %d of %d FileServers and shares are Ready\n", ready, all)
		if err := wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

func (w *world) countReady(ctx context.Context) (ready, all int, err error) {
	var servers v1alpha1.FileServerList
	var shares v1alpha1.FileShareList
	if err := w.List(ctx, &servers); err != nil {
		return 0, 0, err
	}
	if err := w.List(ctx, &shares); err != nil {
		return 0, 0, err
	}
	for _, s := range servers.Items {
		if conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionReady) {
			ready++
		}
	}
	for _, s := range shares.Items {
		if conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionReady) {
			ready++
		}
	}
	return ready, len(servers.Items) + len(shares.Items), nil
}

func (w *world) serveOne(ctx context.Context, i int) error {
	fileServer := fileServerName(i)
	for n := range 2 {
		name := fmt.Sprintf("%s-%d", naming.NamespaceServers(fileServer), n)
		if err := w.runPod(ctx, name, naming.SelectNamespaceServers(fileServer), fmt.Sprintf("10.2.%d.%d", i, n+1)); err != nil {
			return err
		}
	}
	for n := range w.size.replicas {
		name := naming.DataServer(fileServer, int32(n))
		if err := w.bindClaim(ctx, fileServer, int32(n)); err != nil {
			return err
		}
		if err := w.runPod(ctx, name, naming.SelectDataServers(fileServer), fmt.Sprintf("10.1.%d.%d", i, n+1)); err != nil {
			return err
		}
	}
	var servers internalv1.DataServerList
	if err := w.List(ctx, &servers, client.InNamespace(kubeNamespace), client.MatchingLabels(naming.SelectDataServers(fileServer))); err != nil {
		return err
	}
	for i := range servers.Items {
		if err := w.load(ctx, &servers.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// load plays a supervisor.
func (w *world) load(ctx context.Context, server *internalv1.DataServer) error {
	before := server.DeepCopy()
	generation, index, total, used := server.Generation, int32(0), int64(1<<30), int64(1<<20)
	server.Status.ObservedGeneration = &generation
	server.Status.Shares = new(string) // Its volumes were fresh.
	server.Status.Volumes = []internalv1.VolumeUsage{{Index: &index, TotalBytes: &total, UsedBytes: &used}}
	conditions.Set(&server.Status.Conditions, generation, time.Now(), conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "ganesha answers"))
	if err := w.Status().Patch(ctx, server, client.MergeFrom(before)); err != nil {
		return err
	}
	var exports internalv1.ShareExportList
	if err := w.List(ctx, &exports, client.InNamespace(kubeNamespace), client.MatchingLabels{v1alpha1.DataServerLabel: server.Name}); err != nil {
		return err
	}
	for i := range exports.Items {
		export := &exports.Items[i]
		if conditions.IsTrue(export.Status.Conditions, internalv1.ExportServing) {
			continue
		}
		before := export.DeepCopy()
		export.Status = internalv1.ShareExportStatus{
			Conditions: builders.ServingConditions(), ObservedGeneration: &export.Generation, ExportIDs: []int32{int32(i + 1)},
		}
		if err := w.Status().Patch(ctx, export, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// bindClaim plays the StatefulSet controller and the provisioner.
func (w *world) bindClaim(ctx context.Context, fileServer string, ordinal int32) error {
	class, size := storageClass, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kubeNamespace, Name: naming.VolumeClaim(fileServer, ordinal, 0),
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	maps.Copy(claim.Labels, naming.SelectDataServers(fileServer))
	if err := w.Create(ctx, claim); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	before := claim.DeepCopy()
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, size
	return w.Status().Patch(ctx, claim, client.MergeFrom(before))
}

// offerVolumes plays Kubernetes' controller of volumes.
func (w *world) offerVolumes(ctx context.Context) error {
	var volumes corev1.PersistentVolumeList
	if err := w.List(ctx, &volumes); err != nil {
		return err
	}
	return each(ctx, len(volumes.Items), func(ctx context.Context, i int) error { return w.offerVolume(ctx, &volumes.Items[i]) })
}

func (w *world) offerVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	before := volume.DeepCopy()
	volume.Status.Phase = corev1.VolumeAvailable
	return w.Status().Patch(ctx, volume, client.MergeFrom(before))
}

// runPod makes a pod that is ready.
func (w *world) runPod(ctx context.Context, name string, selector map[string]string, address string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "server", Image: "registry.invalid/server:load"}}},
	}
	maps.Copy(pod.Labels, selector)
	if err := w.Create(ctx, pod); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	if err := w.setPod(ctx, pod, corev1.PodPending, ""); err != nil {
		return err
	}
	return w.setPod(ctx, pod, corev1.PodRunning, address)
}

// setPod is a step of the kubelet's; a pod with an address is ready.
func (w *world) setPod(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, address string) error {
	before := pod.DeepCopy()
	pod.Status.Phase = phase
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	if address != "" {
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	return w.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// restart takes a pod away and brings another of its name.
func (w *world) restart(ctx context.Context, name string, selector map[string]string, address string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: name}}
	if err := w.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if err := wait(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	return w.runPod(ctx, name, selector, address)
}

// restartDataServer restarts a data server: the supervisor says goodbye, and hello when ganesha serves.
func (w *world) restartDataServer(ctx context.Context, i int) error {
	name := naming.DataServer(fileServerName(i), 0)
	server := &internalv1.DataServer{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: kubeNamespace, Name: name}, server); err != nil {
		return err
	}
	before := server.DeepCopy()
	conditions.Set(&server.Status.Conditions, server.Generation, time.Now(),
		conditions.False(v1alpha1.ConditionReady, internalv1.ReasonStopping, "the pod is being stopped"))
	if err := w.Status().Patch(ctx, server, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := w.restart(ctx, name, naming.SelectDataServers(fileServerName(i)), fmt.Sprintf("10.3.%d.1", i)); err != nil {
		return err
	}
	if err := wait(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	return w.load(ctx, server)
}

// restartNamespaceServer restarts a namespace server. Supervisors would take on what the operator made of it, which is nothing.
func (w *world) restartNamespaceServer(ctx context.Context, i int) error {
	fileServer := fileServerName(i)
	name := fmt.Sprintf("%s-0", naming.NamespaceServers(fileServer))
	if err := w.restart(ctx, name, naming.SelectNamespaceServers(fileServer), fmt.Sprintf("10.4.%d.1", i)); err != nil {
		return err
	}
	if err := wait(ctx, time.Second); err != nil {
		return err
	}
	return w.serveOne(ctx, i)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
