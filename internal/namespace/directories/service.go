package directories

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Owners calls the data servers' NFS service, by address. An error is a *nfs.StatusError if the server answered about
// something inside the export, so NFS4ERR_NOENT proves that it does not exist. Any other error means that the server
// did not answer, or does not show the export.
type Owners interface {
	Mkdir(ctx context.Context, address, path string, creds nfs.Credentials, opts nfs.MkdirOptions) error
	Rmdir(ctx context.Context, address, path string, creds nfs.Credentials) error
	Rename(ctx context.Context, address, from, to string, creds nfs.Credentials) error
	SetAttributes(ctx context.Context, address, path string, creds nfs.Credentials, settings nfs.Settings) error
	Stat(ctx context.Context, address, path string, creds nfs.Credentials) (nfs.Attributes, error)
	// Entries calls yield for each entry of a directory until yield returns false.
	Entries(ctx context.Context, address, path string, creds nfs.Credentials, yield func(nfs.DirEntry) bool) error
}

// Config is what a Service works with.
type Config struct {
	Tree   *tree.Tree
	Client client.Client
	Owners Owners
	// KubeNamespace and FileServer say where ShareDirectories are made and for which FileServer.
	KubeNamespace, FileServer string
	// Replica is the name of this namespace server.
	Replica string
	Clock   clock.WithTicker
	Log     *slog.Logger
	// Concurrent is the maximum number of changes at a time; clients must repeat others (NFS4ERR_DELAY).
	Concurrent int
	// Reachable reports whether a data server answers; only these get new directories. nil: all answer.
	Reachable func(server string) bool
	// Answers reports whether a data server has answered its last probe; while there are such, only these get new directories. nil: all have.
	Answers func(server string) bool
	// List lists the directories of a share down to a depth, on shared storage. If it is nil or returns
	// listing.ErrNotOffered, they are listed through NFS.
	List func(ctx context.Context, address, share string, depth int32) ([]listing.Directory, error)
	// Timeout bounds one change. A change continues if its client disconnects.
	Timeout time.Duration
	// Observe gets how long each mkdir took; may be nil.
	Observe func(status nfsv4.Nfsstat4, took time.Duration)
}

// Service changes directories. It implements operations.Mutator.
type Service struct {
	Config
	running chan struct{}

	mu sync.Mutex
	// inflight are placements that the tree's counts do not have yet, by share.
	inflight map[string]map[tree.Slot]int
	// lost has directories whose ShareDirectories were deleted without a removal.
	lost map[lostPath]lostDirectory
	// looking bounds the looks for them.
	looking chan struct{}

	// loggedFull is when a reached limit of a share was last logged.
	loggedFull time.Time

	unconfirmed unconfirmed
	attempts    attempts
	behind      behind
	heating     heating
}

// NewService makes a Service.
func NewService(config Config) *Service {
	return &Service{
		Config:   config,
		running:  make(chan struct{}, config.Concurrent),
		inflight: map[string]map[tree.Slot]int{},
		lost:     map[lostPath]lostDirectory{},
		looking:  make(chan struct{}, maxLooking),
	}
}

// root has the credentials with which directories are prepared. Exports let namespace servers do everything (Squash
// None).
var root = nfs.Credentials{}

func credentials(c tree.Credentials) nfs.Credentials {
	return nfs.Credentials{UID: c.UID, GID: c.GID, GIDs: c.Groups}
}

// queueFor is how long a change waits for others before its client gets NFS4ERR_DELAY. A short wait here is better,
// because Linux doubles its pause each time.
const queueFor = 3 * time.Second

// begin starts a change. false: there are too many changes, or the service stops. The context outlives the client's
// connection, so that the change is finished.
func (s *Service) begin(ctx context.Context) (context.Context, func(), bool) {
	select {
	case s.running <- struct{}{}:
	default:
		timer := s.Clock.NewTimer(queueFor)
		defer timer.Stop()
		select {
		case s.running <- struct{}{}:
		case <-timer.C():
			return nil, nil, false
		case <-ctx.Done():
			return nil, nil, false
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
	return ctx, func() { cancel(); <-s.running }, true
}

// address is the current address of a data server.
func (s *Service) address(server string) (string, error) {
	if srv, ok := s.Tree.Server(server); ok && srv.Address != "" {
		return srv.Address, nil
	}
	return "", fmt.Errorf("data server %s has no address yet: wait for its DataServer", server)
}

// status maps an error to the client's status. An owner's answer about the request is passed on. Everything else is
// temporary, and the client must try again.
func (s *Service) status(what string, err error) nfsv4.Nfsstat4 {
	var answered *nfs.StatusError
	if errors.As(err, &answered) {
		switch answered.Status {
		case nfsv4.NFS4ERR_ACCESS, nfsv4.NFS4ERR_PERM, nfsv4.NFS4ERR_DQUOT, nfsv4.NFS4ERR_NOSPC, nfsv4.NFS4ERR_ROFS,
			nfsv4.NFS4ERR_EXIST, nfsv4.NFS4ERR_NOTEMPTY, nfsv4.NFS4ERR_NAMETOOLONG, nfsv4.NFS4ERR_BADCHAR,
			nfsv4.NFS4ERR_BADNAME, nfsv4.NFS4ERR_INVAL, nfsv4.NFS4ERR_BADOWNER, nfsv4.NFS4ERR_MLINK:
			return answered.Status
		}
	}
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return nfsv4.NFS4ERR_INVAL
	case isOverQuota(err):
		s.Log.Warn("a client is refused (disk quota exceeded), because a ResourceQuota of the FileServer's Kubernetes namespace allows no more ShareDirectories: raise it",
			"what", what, "error", err)
		return nfsv4.NFS4ERR_DQUOT
	}
	s.Log.Warn("a directory could not be changed; the client tries again", "what", what, "error", err)
	return nfsv4.NFS4ERR_DELAY
}

// newDirectory is a new ShareDirectory. The mark distinguishes it from others with its name.
func (s *Service) newDirectory(share *tree.Share, rel, mark string, spec internalv1.ShareDirectorySpec) *internalv1.ShareDirectory {
	spec.FileServerRef.Name, spec.FileShareRef.Name, spec.Path = s.FileServer, share.Name, rel
	labels := naming.ShareLabels(s.KubeNamespace, s.FileServer, share.Name)
	annotations := map[string]string{
		tree.MadeByAnnotation: s.Replica, tree.AttemptAnnotation: mark, tree.MadeTimeAnnotation: tree.FormatTime(s.Clock.Now()),
	}
	if spec.DataServerRef.Name != "" {
		labels[v1alpha1.DataServerLabel] = spec.DataServerRef.Name
		if root := s.rootOn(spec.DataServerRef.Name, share.Name, ptr.Deref(spec.Volume, 0)); root != "" {
			annotations[tree.MadeOnAnnotation] = root
		}
	}
	return &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.KubeNamespace, Name: naming.Directory(s.FileServer, share.Name, rel), Labels: labels, Annotations: annotations,
		},
		Spec: spec,
	}
}

// get reads a ShareDirectory from the API, past all caches, and puts it into the tree. It waits for what this server is about to write to it.
func (s *Service) get(ctx context.Context, share, rel string) (*internalv1.ShareDirectory, error) {
	s.awaitWritten(ctx, naming.Directory(s.FileServer, share, rel))
	return s.read(ctx, share, rel)
}

// read is get without waiting.
func (s *Service) read(ctx context.Context, share, rel string) (*internalv1.ShareDirectory, error) {
	o := &internalv1.ShareDirectory{}
	key := client.ObjectKey{Namespace: s.KubeNamespace, Name: naming.Directory(s.FileServer, share, rel)}
	if err := s.Client.Get(ctx, key, o); err != nil {
		return nil, fmt.Errorf("read the ShareDirectory of %s of share %s: %w", rel, share, err)
	}
	s.Tree.SetDirectory(o)
	return o, nil
}

// setState writes a directory's state, and puts it into the tree. If another server changed the ShareDirectory, the
// error is a conflict.
func (s *Service) setState(ctx context.Context, o *internalv1.ShareDirectory, state internalv1.DirectoryState) error {
	next := o.DeepCopy()
	next.Status.State = state
	if o.IsReplaced() { // That was the other directory's.
		next.Status.HotTime, next.Status.RemovalRefusedTime = nil, nil
	}
	if state != internalv1.DirectoryRemoving {
		next.Status.Replaces, next.Status.ReplacedBy = "", internalv1.DirectoryReplacement{}
	}
	if state == internalv1.DirectoryReady || state == internalv1.DirectoryCreating {
		next.Status.MissingTime, next.Status.LossID = nil, ""
	}
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("set %s of share %s to %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, state, err)
	}
	*o = *next
	s.Tree.SetDirectory(o)
	return nil
}

// drop deletes a ShareDirectory, and removes it from the tree. It is no error if it does not exist. It tries a few
// times, because the change is already done.
func (s *Service) drop(ctx context.Context, o *internalv1.ShareDirectory) error {
	var err error
	for range finishTries {
		err = s.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID})
		if err == nil || apierrors.IsConflict(err) || refusedByAPI(err) || !s.pause(ctx, finishPause) {
			break
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the ShareDirectory of %s of share %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, err)
	}
	s.Tree.DeleteDirectory(o.Spec.FileShareRef.Name, o.Spec.Path, string(o.UID))
	return nil
}

// undo is drop for an object that did not change since it was read; otherwise the error is a conflict.
func (s *Service) undo(ctx context.Context, o *internalv1.ShareDirectory) error {
	err := s.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take back the ShareDirectory of %s of share %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, err)
	}
	s.Tree.DeleteDirectory(o.Spec.FileShareRef.Name, o.Spec.Path, string(o.UID))
	return nil
}

// hold keeps the Leader from undoing a change that this server continues: the Leader waits after each change of an
// object. The error is a conflict if another server has changed the object.
func (s *Service) hold(ctx context.Context, o *internalv1.ShareDirectory) error {
	return s.mark(ctx, o, tree.AttemptAnnotation)
}

// mark writes an annotation that says nothing but that the object was changed. The error is a conflict if another server has changed it.
func (s *Service) mark(ctx context.Context, o *internalv1.ShareDirectory, annotation string) error {
	next := o.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[annotation] = newMark()
	if err := s.Client.Update(ctx, next); err != nil {
		return fmt.Errorf("go on with a change of %s of share %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, err)
	}
	*o = *next
	s.Tree.SetDirectory(o)
	return nil
}

// pause waits; false: the context ended first.
func (s *Service) pause(ctx context.Context, d time.Duration) bool {
	timer := s.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
