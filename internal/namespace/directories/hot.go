package directories

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
)

// A directory is found to be hot by the namespace server that sends the clients there (hotdirectories.Search). It records that in the ShareDirectory,
// and what the API has counts for all namespace servers. Only the leader takes the record away.

const (
	// recordAgain is the pause between two tries to record that a directory is hot.
	recordAgain = 10 * time.Second
	// recordsAtATime is how many are recorded at a time. Clients ask again, so others follow.
	recordsAtATime = 8
	// coolEvery is how often the leader looks for directories that have cooled down.
	coolEvery = time.Minute
)

// heating has the directories whose heat is being recorded, or was a moment ago, by the UID of the ShareDirectory. The zero value is ready.
type heating struct {
	mu      sync.Mutex
	tried   map[string]time.Time
	running int
}

// begin reports whether to try to record it now.
func (h *heating) begin(uid string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, at := range h.tried {
		if now.Sub(at) >= recordAgain {
			delete(h.tried, other)
		}
	}
	if _, tried := h.tried[uid]; tried || h.running >= recordsAtATime {
		return false
	}
	if h.tried == nil {
		h.tried = map[string]time.Time{}
	}
	h.tried[uid] = now
	h.running++
	return true
}

func (h *heating) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
}

// FoundHot records that a directory has enough clients to be hot, without keeping the caller waiting.
func (s *Service) FoundHot(e tree.Entry) {
	r := e.Directory
	if !s.heating.begin(r.UID, s.Clock.Now()) {
		return
	}
	go func() {
		defer s.heating.end()
		ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
		defer cancel()
		switch err := s.recordHot(ctx, r); {
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			// It is gone, or being changed: the next client is the next try.
		case err != nil:
			s.Log.Warn("a directory was found to be hot, and that could not be recorded; the next client of it is the next try", "path", e.Path, "error", err)
		case r.Hot.IsZero():
			s.Log.Info("a directory is hot: several data servers serve it now", "path", e.Path, "share", r.Share)
		}
	}()
}

// recordHot writes that a directory is hot now. Another change at the same moment, such as that of its times, does not keep it from that.
func (s *Service) recordHot(ctx context.Context, r *tree.Directory) error {
	var err error
	for range finishTries {
		var o *internalv1.ShareDirectory
		if o, err = s.read(ctx, r.Share, r.Path); err != nil {
			return err
		}
		if string(o.UID) != r.UID || o.State() != internalv1.DirectoryReady {
			return errChanged
		}
		if err = s.patchHot(ctx, tree.NewDirectory(o), ptr.To(metav1.NewTime(s.Clock.Now()))); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// hotPatch is a merge patch of when a ShareDirectory was last found to be hot; null takes that away. It is for an object as it was seen: the API
// does not look at the UID in a patch of a status.
type hotPatch struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct {
		HotTime *metav1.Time `json:"hotTime"`
	} `json:"status"`
}

// patchHot writes hotTime of a ShareDirectory, and puts it into the tree. If the object has changed, the error is a conflict.
func (s *Service) patchHot(ctx context.Context, r *tree.Directory, at *metav1.Time) error {
	var patch hotPatch
	patch.Metadata.ResourceVersion, patch.Status.HotTime = strconv.FormatUint(r.Version, 10), at
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a status: %w", err)
	}
	o := &internalv1.ShareDirectory{ObjectMeta: metav1.ObjectMeta{Namespace: s.KubeNamespace, Name: naming.Directory(s.FileServer, r.Share, r.Path)}}
	if err := s.Client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("write the status of the ShareDirectory of %s of share %s: %w", r.Path, r.Share, err)
	}
	s.Tree.SetDirectory(o)
	return nil
}

// coolAll has directories that have cooled down be served by their owners alone again: it takes away their records. One that another namespace server renews at this moment stays.
func (k *Leader) coolAll(ctx context.Context) {
	for _, share := range k.Tree.Shares() {
		for _, r := range k.Tree.Found(share.Name) {
			search := share.Search
			if share.Hot.Servers(r.Path) > 1 {
				search = hotdirectories.Search{} // Its owner has marked it since.
			}
			if !search.HasCooled(r.Hot, k.Clock.Now()) {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, k.Timeout)
			err := k.patchHot(limited, r, nil)
			cancel()
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
				k.Log.Warn("a directory has cooled down, and that could not be recorded; it is tried again", "share", r.Share, "path", r.Path, "error", err)
			}
		}
	}
}
