package dataserver

import (
	"context"
	"sync"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
)

// trashRetry is the wait before what could not be deleted is tried again.
const trashRetry = time.Minute

// trashCan empties the trash in the background, one goroutine at a time.
type trashCan struct {
	request chan struct{}
}

// empty asks for a round of EmptyTrash, and returns at once.
func (t *trashCan) empty(ctx context.Context, group *sync.WaitGroup, storage backend.Backend, server *internalv1.DataServer) {
	if t.request == nil {
		t.request = make(chan struct{}, 1)
		group.Add(1)
		go func() {
			defer group.Done()
			t.work(ctx, storage, server)
		}()
	}
	select {
	case t.request <- struct{}{}:
	default: // A round is asked for already.
	}
}

func (t *trashCan) work(ctx context.Context, storage backend.Backend, server *internalv1.DataServer) {
	retry := time.NewTimer(trashRetry)
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.request:
		case <-retry.C:
		}
		if storage.EmptyTrash(ctx, server) {
			retry.Reset(trashRetry)
		}
	}
}
