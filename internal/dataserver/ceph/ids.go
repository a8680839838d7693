package ceph

import (
	"context"
	"fmt"
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

// idsName is the object that has the export ID table.
const idsName = "exports"

// idsObject is what is known of that object. A pod of this data server that was lost and comes back, after its successor has given IDs, must
// not write its older table: the next start would give clients' file handles to other shares. So each write names the version that it replaces.
type idsObject struct {
	// data is its content, nil if there is no object; version is its version then.
	data    []byte
	version uint64
	// tried is set if a write got no answer, which has written it or not.
	tried []byte
}

func (b *Backend) nameIDs(int32) string {
	return "object " + idsName + " of RADOS namespace " + b.options.Node + " in pool " + b.options.RecoveryPool
}

// ReadIDs reads the table from its object.
func (b *Backend) ReadIDs(ctx context.Context, _ *internalv1.DataServer) (*exportids.Table, error) {
	own, err := b.connected(ctx)
	if err != nil {
		return nil, err
	}
	if b.ids, err = b.readIDs(ctx, own); err != nil {
		return nil, err
	}
	return exportids.Join([][]byte{b.ids.data}, b.nameIDs, func(name string, _ int32) string { return name })
}

func (b *Backend) readIDs(ctx context.Context, own *client.Client) (idsObject, error) {
	object, err := own.Read(ctx, b.place(), idsName)
	switch {
	case err != nil:
		return idsObject{}, fmt.Errorf("reading the Export_Ids: %w", b.renewing(err))
	case object == nil:
		return idsObject{}, nil
	default:
		return idsObject{data: object.Data, version: object.Version}, nil
	}
}

// WriteIDs writes the table if it has changed. It fails with backend.ErrIDsChanged if another process has written it.
func (b *Backend) WriteIDs(ctx context.Context, table *exportids.Table) error {
	text, err := table.Part(0)
	if err != nil || b.ids.tried == nil && slices.Equal(text, b.ids.data) {
		return err
	}
	own, err := b.connected(ctx)
	if err != nil {
		return err
	}
	if b.ids.tried != nil {
		now, err := b.readIDs(ctx, own)
		if err != nil {
			return err
		}
		if !slices.Equal(now.data, b.ids.data) && !slices.Equal(now.data, b.ids.tried) {
			return b.changedIDs()
		}
		b.ids = now
	}
	version, err := own.Change(ctx, b.place(), idsName, ceph.Change{Create: b.ids.version == 0, Version: b.ids.version, Data: text})
	switch {
	case client.IsConflict(err):
		return b.changedIDs()
	case err != nil:
		b.ids.tried = text
		return fmt.Errorf("writing the Export_Ids: %w", b.renewing(err))
	}
	b.ids = idsObject{data: text, version: version}
	return nil
}

func (b *Backend) changedIDs() error {
	return fmt.Errorf("%s: %w", b.nameIDs(0), backend.ErrIDsChanged)
}
