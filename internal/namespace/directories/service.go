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
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Owners reaches the data servers' NFS service, by address. Errors are *nfs.StatusError for what the server
// answered about what is in the export, so that NFS4ERR_NOENT proves that it is not there; any other means that
// the server could not be asked, or does not show the export.
type Owners interface {
	Mkdir(ctx context.Context, address, path string, creds nfs.Credentials, opts nfs.MkdirOptions) error
	Rmdir(ctx context.Context, address, path string, creds nfs.Credentials) error
	Rename(ctx context.Context, address, from, to string, creds nfs.Credentials) error
	SetAttributes(ctx context.Context, address, path string, creds nfs.Credentials, settings nfs.Settings) error
	Stat(ctx context.Context, address, path string, creds nfs.Credentials) (nfs.Attributes, error)
	// Entries gives the entries of a directory one by one until yield returns false: a directory has any number of them.
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
	// Concurrent is the greatest number of changes at a time; more are put off (NFS4ERR_DELAY).
	Concurrent int
	// Reachable tells whether a data server answers; new directories go to those that do. nil: all do.
	Reachable func(server string) bool
	// List tells the directories of a share, down to a depth, on storage that all data servers share; listing.ErrNotOffered, or nil: they are
	// asked for by NFS.
	List func(ctx context.Context, address, share string, depth int32) ([]listing.Directory, error)
	// Timeout bounds one change. It goes on when the client that asked is gone.
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
	// lost are directories whose ShareDirectories went without a removal.
	lost map[lostPath]lostDirectory

	// loggedFull is when it was written last that a share has no room for directories.
	loggedFull time.Time

	unconfirmed unconfirmed
	attempts    attempts
}

// NewService makes a Service.
func NewService(config Config) *Service {
	return &Service{
		Config:   config,
		running:  make(chan struct{}, config.Concurrent),
		inflight: map[string]map[tree.Slot]int{},
		lost:     map[lostPath]lostDirectory{},
	}
}

// root are the credentials that directories are made ready with; the exports let namespace
// servers do everything (Squash None).
var root = nfs.Credentials{}

func credentials(c tree.Credentials) nfs.Credentials {
	return nfs.Credentials{UID: c.UID, GID: c.GID, GIDs: c.Groups}
}

// queueFor is how long a change waits for others to end before the client is put off. A
// short wait here is better than one there: Linux doubles its pause each time.
const queueFor = 3 * time.Second

// begin bounds a change: false means that there are too many, or the service ends. The
// context outlives the client's connection, so that what was begun is finished.
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

// address is where a data server is reached now.
func (s *Service) address(server string) (string, error) {
	if srv, ok := s.Tree.Server(server); ok && srv.Address != "" {
		return srv.Address, nil
	}
	return "", fmt.Errorf("data server %s has no address yet: wait for its DataServer", server)
}

// status maps an error to what the client gets: what an owner answered is passed on where it says something about
// the request; all else is trouble that passes, and the client is to try again.
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
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return nfsv4.NFS4ERR_INVAL
	}
	s.Log.Warn("a directory could not be changed; the client tries again", "what", what, "error", err)
	return nfsv4.NFS4ERR_DELAY
}

// newDirectory is a new ShareDirectory. The mark tells it from others of the name.
func (s *Service) newDirectory(share *tree.Share, rel, mark string, spec internalv1.ShareDirectorySpec) *internalv1.ShareDirectory {
	spec.FileServerRef.Name, spec.FileShareRef.Name, spec.Path = s.FileServer, share.Name, rel
	labels := naming.ShareLabels(s.KubeNamespace, s.FileServer, share.Name)
	if spec.DataServerRef.Name != "" {
		labels[v1alpha1.DataServerLabel] = spec.DataServerRef.Name
	}
	return &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.KubeNamespace, Name: naming.Directory(s.FileServer, share.Name, rel), Labels: labels,
			Annotations: map[string]string{
				tree.MadeByAnnotation: s.Replica, tree.AttemptAnnotation: mark, tree.MadeTimeAnnotation: tree.FormatTime(s.Clock.Now()),
			},
		},
		Spec: spec,
	}
}

// get reads a ShareDirectory from the API, past all caches, and shows what it says in the tree.
func (s *Service) get(ctx context.Context, share, rel string) (*internalv1.ShareDirectory, error) {
	o := &internalv1.ShareDirectory{}
	key := client.ObjectKey{Namespace: s.KubeNamespace, Name: naming.Directory(s.FileServer, share, rel)}
	if err := s.Client.Get(ctx, key, o); err != nil {
		return nil, fmt.Errorf("read the ShareDirectory of %s of share %s: %w", rel, share, err)
	}
	s.Tree.SetDirectory(o)
	return o, nil
}

// setState writes a directory's state, and shows it in the tree. A ShareDirectory that another server
// changed meanwhile is not written: the error is a conflict.
func (s *Service) setState(ctx context.Context, o *internalv1.ShareDirectory, state internalv1.DirectoryState) error {
	next := o.DeepCopy()
	next.Status.State = state
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

// drop deletes a ShareDirectory, and takes it out of the tree. It is no error if it is gone already. What it stood for is
// settled, so it is tried a few times.
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

// undo is drop of what was not changed since it was read: the error is a conflict.
func (s *Service) undo(ctx context.Context, o *internalv1.ShareDirectory) error {
	err := s.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take back the ShareDirectory of %s of share %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, err)
	}
	s.Tree.DeleteDirectory(o.Spec.FileShareRef.Name, o.Spec.Path, string(o.UID))
	return nil
}

// hold keeps the Leader from undoing a rename that this server goes on with: it leaves alone for some time what has changed.
func (s *Service) hold(ctx context.Context, o *internalv1.ShareDirectory) error {
	next := o.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[tree.AttemptAnnotation] = newMark()
	if err := s.Client.Update(ctx, next); err != nil {
		return fmt.Errorf("go on with a rename at %s of share %s: %w", o.Spec.Path, o.Spec.FileShareRef.Name, err)
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
