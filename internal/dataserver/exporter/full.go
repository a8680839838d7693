package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/fill"
)

const (
	// usageSoon is how often storage is measured that is nearly full.
	usageSoon = 10 * time.Second
	// soon is how far ahead a forecast makes storage count as nearly full.
	soon = 30 * time.Minute
)

// makeRoom is what the user can do about a full volume.
const makeRoom = "remove files from it, or raise spec.storage.volumes.size of the FileServer"

// isFull tells whether an operation failed because storage has no room. Shares that are served need nothing more of it, so this is no fault
// of theirs.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// storageFault is the fault of a share whose part of the storage can't be prepared.
func (m *Exporter) storageFault(err error) *kubeapi.Fault {
	if isFull(err) {
		return kubeapi.NewFault(internalv1.ReasonVolumeFull, fmt.Errorf("%w: %s", err, makeRoom))
	}
	return kubeapi.NewFault(m.storage.Refusal(), err)
}

// leaveOut gives the exports a fault that a table does not know as another one does: what is not durable is not exported. It returns the others.
func (m *Exporter) leaveOut(exports []*internalv1.ShareExport, durable *exportids.Table, isKnown func(share string) bool, err error) []*internalv1.ShareExport {
	fault := m.storageFault(err)
	return slices.DeleteFunc(slices.Clone(exports), func(export *internalv1.ShareExport) bool {
		share := kubeapi.ShareOf(export)
		if durable != nil && isKnown(share) {
			return false
		}
		m.failing[share] = fault
		return true
	})
}

// hasIDs tells whether a share has an Export_Id on every part.
func hasIDs(table *exportids.Table, share string) bool {
	return !slices.Contains(table.IDs(share), 0)
}

// describeFull says that ganesha has no room for its records, and so does not start; "" if it has.
func (m *Exporter) describeFull(ctx context.Context) string {
	usage, err := m.storage.Measure(ctx, m.dataServer)
	if err != nil {
		return ""
	}
	var full []string
	for part, of := range usage {
		if fill.LevelOf(of.Usage, fill.Roomy) == fill.Full {
			full = append(full, fmt.Sprint(part))
		}
	}
	if len(full) == 0 {
		return ""
	}
	return fmt.Sprintf("; volume %s is full, and ganesha needs room for its records of clients on volume 0: %s", strings.Join(full, ", "), makeRoom)
}

// forecast notes what was measured, and says when each part will be full.
func (m *Exporter) forecast(usage []backend.Usage, now time.Time) {
	if len(m.histories) != len(usage) {
		m.histories = make([]fill.History, len(usage))
	}
	for part := range usage {
		m.histories[part].Add(now, usage[part].Usage)
		usage[part].FullAt = m.histories[part].FullAt()
	}
}

// measureEvery is how often the storage is measured: what is nearly full changes soon.
func (m *Exporter) measureEvery() time.Duration {
	for _, of := range m.usage {
		if fill.LevelOf(of.Usage, fill.Roomy) >= fill.Above90 || !of.FullAt.IsZero() && of.FullAt.Before(m.now().Add(soon)) {
			return usageSoon
		}
	}
	return usageEvery
}
