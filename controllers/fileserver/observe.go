package fileserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/directorymoves"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/watched"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// observed is all that a pass knows. The maps and slices hold what is in the
// cache; nothing in them is changed.
type observed struct {
	now        time.Time
	fileServer *v1alpha1.FileServer
	// shares are those of the FileServer, sorted by key, those being deleted included. A share of another namespace is among them once it is attached.
	shares []fleet.Share
	// watched are the Kubernetes namespaces that the operator watches.
	watched watched.Namespaces
	nodes   []corev1.Node
	// badValues are those of the specification that no pod and no Service can have.
	badValues admissible.Faults
	// lacksFamily: one of them is only bad because Services of this cluster have addresses of one family.
	lacksFamily bool
	// closedNodes are the nodes that take no pod of a data server now.
	closedNodes map[string]bool
	// statefulSet is nil if there is none.
	statefulSet *appsv1.StatefulSet
	services    map[string]corev1.Service
	dataServers map[string]internalv1.DataServer
	// pods are those of the data servers; inTheWay has the nodes of an earlier FileServer's pods, by the data servers whose names they have.
	pods          map[string]corev1.Pod
	inTheWay      map[string]string
	namespacePods []corev1.Pod
	// stewardPods are those of the steward: one, or two while it moves. lostNodePods keep others off lost nodes.
	stewardPods, lostNodePods []corev1.Pod
	// images is what is known of the image that data servers get next.
	images images
	// renewed is when the kubelets of the nodes in question renewed their Leases. It is read only while a data server does not answer.
	renewed map[string]time.Time
	// clocksAhead is how far the clocks of these nodes are ahead of the API server's.
	clocksAhead map[string]time.Duration
	// leader is who reports that data servers do not answer; nil while all answer, or if it is not known.
	leader *leader
	// networkFences are what csi-addons knows while a data server is lost.
	networkFences failover.StorageFences
	// mayFailOver: the operator was installed with the failover allowed that the FileServer asks for.
	mayFailOver bool
	// refused are the data servers without a pod, with the API server's message if it refuses their pods, else "".
	refused map[string]string
	// namespaceRefusal is why pods of namespace servers are refused, stewardRefusal why the steward's is; "" if they are not.
	namespaceRefusal, stewardRefusal string
	// connections are those of the namespace servers; nil if they are not known yet.
	connections *connectionUse
	// steward is the FileServer's Steward, nil if there is none; stewardImage is that of its Deployment, "" if there is none.
	steward      *internalv1.Steward
	stewardImage string
	// holder is another FileServer with this one's storage identity, which has it first; "" if none has.
	holder string
	// rolloutHeldBy is another FileServer whose change by the operator must be done before this one's may begin; "" if there is none.
	rolloutHeldBy string
	// turnIsOver means that nothing is left to do for which this FileServer needs its turn.
	turnIsOver bool
	// storage is what the back end knows.
	storage backendapi.Storage
	// undone are the directories of deleted shares that data servers have still to remove from their volumes, sorted, by data server:
	// of those that do not serve, and of those that are no more and left claims.
	undone map[string][]string
	// directories is how many each data server owns; moves has the directories themselves, and who can take them.
	directories map[string]int32
	moves       *directorymoves.View
}

// maxPaths bounds how many paths of directories are kept for messages, for each server.
const maxPaths = 5

func (r *Reconciler) observe(ctx context.Context, fs *v1alpha1.FileServer) (*observed, error) {
	o := &observed{now: r.Clock.Now(), fileServer: fs, badValues: admissible.FileServer(&fs.Spec), watched: r.WatchNamespaces, mayFailOver: r.Failover}
	if failsOverByPower(fs) {
		o.mayFailOver = r.FailoverVolumes
	}
	in := client.InNamespace(fs.Namespace)
	steps := []struct {
		what string
		read func() error
	}{
		{"FileShares", func() error { return o.readShares(ctx, r.Client, in) }},
		{"the StatefulSet", func() error { return o.readStatefulSet(ctx, r.Client) }},
		{"Nodes", func() error {
			var list corev1.NodeList
			err := r.List(ctx, &list, client.UnsafeDisableDeepCopy)
			o.nodes, o.closedNodes = list.Items, closedNodes(list.Items, o.placement())
			return err
		}},
		{"StatefulSets of other FileServers", func() error { return o.readRollouts(ctx, r.Client, &r.turns) }},
		{"Services", func() error { return o.readServices(ctx, r.Client, in) }},
		{"the families of Services", func() error { return o.readFamilies(ctx, r.Client, &r.families) }},
		{"DataServers", func() error { return o.readDataServers(ctx, r.Client, in) }},
		{"Pods", func() error { return o.readPods(ctx, r.Client, in) }},
		{"pods that pull an image", func() error { return o.readImages(ctx, r.Client, in) }},
		{"Deployments", func() error { return o.readDeployments(ctx, r.Client) }},
		{"Events", func() error { return o.readRefusals(ctx, r.Live) }},
		{"the Steward", func() error { return o.readSteward(ctx, r.Client, r.Live) }},
		{"what the storage identity follows from", func() error { return o.readIdentity(ctx, r.Client, r.Live) }},
		{"what does not answer", func() error { return o.readLost(ctx, r.Live) }},
		{"Leases of nodes", func() error { return o.readLeases(ctx, r.Live) }},
		{"what csi-addons knows of fences", func() error { return o.readNetworkFences(ctx, r.Live) }},
		{"the storage", func() (err error) {
			o.storage, err = backend.Of(fs).Observe(ctx, backendapi.Readers{Cached: r.Client, Live: r.Live, Foreign: r.foreign},
				backendapi.Observation{
					FileServer: o.fileServer, StatefulSet: o.statefulSet, DataServers: o.dataServers, Steward: o.steward, StewardRefusal: o.stewardRefusal,
					Nodes: o.nodes, ClosedNodes: o.closedNodes, Lost: o.lostServers(),
				})
			return err
		}},
		{"ShareExports", func() error { return o.readUndone(ctx, r.Client, in) }},
		{"ShareDirectories", func() error { return o.readDirectories(ctx, r.Client, in) }},
		{"ShareExports", func() error { return o.moves.ReadExporters(ctx, r.Client, in) }},
	}
	for _, step := range steps {
		if err := step.read(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", step.what, err)
		}
	}
	if use, known := r.namespaceServers.of(o.namespacePods); known {
		o.connections = &use
	}
	return o, nil
}

func (o *observed) readShares(ctx context.Context, c client.Client, in client.InNamespace) error {
	var list v1alpha1.FileShareList
	if err := c.List(ctx, &list, in, index.SharesOf(o.fileServer.Namespace, o.fileServer.Name), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		o.shares = append(o.shares, fleet.ShareOf(&list.Items[i]))
	}
	var attachments internalv1.ShareAttachmentList
	if err := c.List(ctx, &attachments, in, index.OfFileServer(o.fileServer.Name), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range attachments.Items {
		o.shares = append(o.shares, fleet.ShareOfAttachment(&attachments.Items[i]))
	}
	slices.SortFunc(o.shares, func(a, b fleet.Share) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

func (o *observed) readStatefulSet(ctx context.Context, c client.Client) error {
	var set appsv1.StatefulSet
	err := c.Get(ctx, client.ObjectKey{Namespace: o.fileServer.Namespace, Name: naming.DataServers(o.fileServer.Name)}, &set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	// A StatefulSet of that name that is not ours is no source of facts; the applier reports it.
	if err == nil && set.Labels[v1alpha1.FileServerLabel] == o.fileServer.Name && !isLeftover(&set, o.fileServer) {
		o.statefulSet = &set
	}
	return err
}

func (o *observed) readServices(ctx context.Context, c client.Client, in client.InNamespace) error {
	var list corev1.ServiceList
	err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name))
	o.services = byName(withoutLeftovers(list.Items, o.fileServer), func(s *corev1.Service) string { return s.Name })
	return err
}

func (o *observed) readDataServers(ctx context.Context, c client.Client, in client.InNamespace) error {
	var list internalv1.DataServerList
	err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name))
	o.dataServers = byName(withoutLeftovers(list.Items, o.fileServer), func(s *internalv1.DataServer) string { return s.Name })
	return err
}

func (o *observed) readSteward(ctx context.Context, c client.Client, live client.Reader) error {
	var steward internalv1.Steward
	err := c.Get(ctx, client.ObjectKeyFromObject(o.fileServer), &steward)
	if apierrors.IsNotFound(err) && o.fileServer.Spec.Failover.Fencing == v1alpha1.FailoverFencingStorage {
		err = live.Get(ctx, client.ObjectKeyFromObject(o.fileServer), &steward) // One that the cache does not have yet may have requests to fence.
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !metav1.IsControlledBy(&steward, o.fileServer) { // Not one that an earlier FileServer of the name has left.
		return err
	}
	o.steward = &steward
	var deployment appsv1.Deployment
	err = c.Get(ctx, client.ObjectKey{Namespace: steward.Namespace, Name: naming.Steward(steward.Name)}, &deployment)
	if err == nil && !isLeftover(&deployment, o.fileServer) {
		o.stewardImage = imageOf(&deployment.Spec.Template.Spec)
	}
	return client.IgnoreNotFound(err)
}

func (o *observed) readPods(ctx context.Context, c client.Client, in client.InNamespace) error {
	var list corev1.PodList
	if err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name), client.MatchingLabels(naming.SelectDataServers(o.fileServer.Name))); err != nil {
		return err
	}
	o.takePods(list.Items)
	list = corev1.PodList{}
	if err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name), client.MatchingLabels(naming.SelectNamespaceServers(o.fileServer.Name))); err != nil {
		return err
	}
	o.namespacePods = o.ofThis(list.Items)
	slices.SortFunc(o.namespacePods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, other := range []struct {
		selector map[string]string
		pods     *[]corev1.Pod
	}{{naming.SelectSteward(o.fileServer.Name), &o.stewardPods}, {naming.SelectLostNodes(o.fileServer.Name), &o.lostNodePods}} {
		list = corev1.PodList{}
		if err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name), client.MatchingLabels(other.selector)); err != nil {
			return err
		}
		*other.pods = list.Items
	}
	return nil
}

// readDirectories counts the directories of each data server. There can be tens
// of thousands, so they are not copied out of the cache.
func (o *observed) readDirectories(ctx context.Context, c client.Client, in client.InNamespace) error {
	var list internalv1.ShareDirectoryList
	err := c.List(ctx, &list, in, index.OfFileServer(o.fileServer.Name), client.UnsafeDisableDeepCopy)
	o.knowDirectories(list.Items)
	return err
}

func (o *observed) knowDirectories(directories []internalv1.ShareDirectory) {
	o.directories = map[string]int32{}
	for i := range directories {
		if owner := directories[i].Spec.DataServerRef.Name; owner != "" {
			o.directories[owner]++
		}
	}
	states := make(map[string]fleet.State, len(o.dataServers))
	for name := range o.dataServers {
		states[name] = o.stateOf(name)
	}
	o.moves = &directorymoves.View{Now: o.now, FileServer: o.fileServer, Shares: o.shares, DataServers: o.dataServers, States: states, Directories: directories}
}

// isLeftover reports whether an object is of an earlier FileServer of the name, and Kubernetes has not removed it yet. An object that no controller owns may
// be of a backup, and is taken over (apply.Applier).
func isLeftover(object client.Object, fs *v1alpha1.FileServer) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && controller.Kind == "FileServer" && controller.Name == fs.Name && controller.UID != fs.UID
}

// withoutLeftovers leaves out what is an earlier FileServer's. Its addresses go with it, and a share that had one in its volume could not be mounted.
func withoutLeftovers[T any, P interface {
	*T
	client.Object
}](items []T, fs *v1alpha1.FileServer,
) []T {
	return slices.DeleteFunc(items, func(item T) bool { return isLeftover(P(&item), fs) })
}

func byName[T any](items []T, name func(*T) string) map[string]T {
	named := make(map[string]T, len(items))
	for i := range items {
		named[name(&items[i])] = items[i]
	}
	return named
}
