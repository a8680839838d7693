package namespace

import (
	"sync/atomic"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/operations"
)

// ownAddresses are those at which clients reach the namespace servers, as the operator reports them. The zero value has none.
type ownAddresses struct {
	current atomic.Pointer[v1alpha1.FileServerStatus]
}

func (a *ownAddresses) set(o *v1alpha1.FileServer) { a.current.Store(&o.Status) }

func (a *ownAddresses) forget(*v1alpha1.FileServer) { a.current.Store(nil) }

// of are the addresses for clients that come by a door.
func (a *ownAddresses) of(door string) []string {
	status := a.current.Load()
	switch {
	case status == nil:
		return nil
	case door == operations.DoorOutside:
		return status.OutsideAddresses
	case status.Address == "":
		return nil
	}
	return []string{status.Address}
}
