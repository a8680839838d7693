package fileshare

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/naming"
)

// portsDelay is how long the mount options of all other shares take to follow a share of another Kubernetes namespace. A tenant that changes its rule
// all the time makes one pass over them in that time.
const portsDelay = 5 * time.Minute

// observePorts reads whether a share of the FileServer wants reserved ports. All of them are mounted alike: a node has one set of connections
// to each server, and the first mount chooses their ports. A share of another Kubernetes namespace counts once it is allowed.
func (r *Reconciler) observePorts(ctx context.Context, o *observed) error {
	wanting := index.WantingReservedPorts(o.namespace(), o.share.Spec.FileServerRef.Name)
	var shares v1alpha1.FileShareList
	if err := r.Client.List(ctx, &shares, wanting, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing FileShares that want reserved ports: %w", err)
	}
	var attachments internalv1.ShareAttachmentList
	if err := r.Client.List(ctx, &attachments, wanting, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareAttachments that want reserved ports: %w", err)
	}
	o.reservedPorts = len(shares.Items)+len(attachments.Items) > 0
	return nil
}

// wantsReservedPorts reports whether a share decides how all shares of its FileServer are mounted.
func wantsReservedPorts(object client.Object) bool {
	switch object := object.(type) {
	case *v1alpha1.FileShare:
		return !naming.IsForeign(object) && index.HaveReservedPorts(object.Spec.Access)
	case *internalv1.ShareAttachment:
		return index.HaveReservedPorts(object.Spec.Access)
	}
	return false
}

// portsOfAttachments enqueues all shares of a FileServer, some time after one of another Kubernetes namespace has changed how they are mounted.
func (r *Reconciler) portsOfAttachments() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, queue queueOf) {
		if attachment, ok := object.(*internalv1.ShareAttachment); ok {
			for _, request := range r.sharesThat(ctx, index.SharesOf(attachment.Namespace, attachment.Spec.FileServerRef.Name), "") {
				queue.AddAfter(request, portsDelay)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueOf) {
			if !e.IsInInitialList && wantsReservedPorts(e.Object) {
				enqueue(ctx, e.Object, queue)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueOf) {
			if wantsReservedPorts(e.ObjectOld) != wantsReservedPorts(e.ObjectNew) {
				enqueue(ctx, e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queueOf) {
			if wantsReservedPorts(e.Object) {
				enqueue(ctx, e.Object, queue)
			}
		},
	}
}
