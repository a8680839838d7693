package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
)

// prepare does everything in the storage that exports need. A fault of one share leaves out only that share.
func (m *Exporter) prepare(ctx context.Context) (ganesha.Config, *kubeapi.Fault) {
	if m.storage.Parts(m.dataServer) < 1 {
		return ganesha.Config{}, kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, errors.New("spec.volumes is less than 1"))
	}
	if err := m.Keys.Check(); err != nil {
		return ganesha.Config{}, kubeapi.NewFault(internalv1.ReasonHandleKeyMissing, err)
	}
	if err := m.storage.Claim(ctx, m.dataServer); err != nil {
		return ganesha.Config{}, kubeapi.NewFault(m.storage.Refusal(), err)
	}
	if m.memory == nil || m.idsChanged || len(m.memory.Parts) != int(m.storage.Parts(m.dataServer)) {
		memory, err := m.storage.ReadIDs(ctx, m.dataServer)
		if err != nil {
			return ganesha.Config{}, kubeapi.NewFault(m.storage.Refusal(), err)
		}
		m.memory, m.idsChanged = memory, false
	}
	m.failing = map[string]*kubeapi.Fault{}
	exports, err := m.allocate(ctx)
	if err != nil {
		return ganesha.Config{}, kubeapi.NewFault(m.storage.Refusal(), err)
	}
	if exports, err = m.prepareRoots(ctx, exports); err != nil {
		return ganesha.Config{}, kubeapi.NewFault(m.storage.Refusal(), err)
	}
	exports = m.withoutLost(exports)
	config, err := desiredConfig(m.dataServer, exports, m.awaited(exports), m.memory, m.storage, m.Own, m.MemoryLimit, m.Nodes.Gateways...)
	if err != nil {
		return ganesha.Config{}, kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
	}
	return m.withPorts(config), nil
}

// awaited are the exports that belong here and are not served, for whatever reason: their clients wait until they are, or are deleted. A share without
// IDs never had clients.
func (m *Exporter) awaited(served []*internalv1.ShareExport) []*internalv1.ShareExport {
	return slices.DeleteFunc(m.active(), func(export *internalv1.ShareExport) bool {
		return slices.Contains(served, export) || !hasIDs(m.memory, kubeapi.ShareOf(export))
	})
}

// withPorts has ganesha listen where the pod may.
func (m *Exporter) withPorts(config ganesha.Config) ganesha.Config {
	ports := naming.DataServerPorts(m.FirstPort)
	config.Port, config.MonitoringPort = uint16(ports.NFS), uint16(ports.Ganesha)
	return config
}

// allocate gives every share its IDs, the oldest first, and returns the exports that have them. If there are too many, the newest are left
// out.
func (m *Exporter) allocate(ctx context.Context) ([]*internalv1.ShareExport, error) {
	next := m.memory.Clone()
	next.Raise(ptr.Deref(m.dataServer.Status.LastExportNumber, 0))
	inUse := map[string]bool{}
	for _, export := range m.exports {
		inUse[kubeapi.ShareOf(export)] = true
		for _, id := range export.Status.ExportIDs {
			next.Raise(int64(id)) // Older versions reported no lastExportNumber.
		}
	}
	for path := range m.serving {
		inUse[naming.ShareOfExport(path)] = true
	}
	for path := range m.leaving {
		inUse[naming.ShareOfExport(path)] = true
	}
	var exports []*internalv1.ShareExport
	for _, export := range m.active() {
		share := kubeapi.ShareOf(export)
		if _, err := clientRules(export.Spec.Access, nodes{known: true}); err != nil {
			m.failing[share] = kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
		} else if err := next.Allocate(share, inUse); err != nil {
			m.failing[share] = kubeapi.NewFault(internalv1.ReasonExportIDsExhausted, err)
		} else {
			exports = append(exports, export)
		}
	}
	// An id is durable before ganesha, and so any client, sees it.
	if err := m.writeIDs(ctx, next); isFull(err) {
		next = m.memory
		exports = m.leaveOut(exports, next, func(share string) bool { return hasIDs(next, share) }, err)
	} else if err != nil {
		return nil, err
	}
	// Nor does it see a reused one before handles of its earlier exports are refused.
	if err := m.Ganesha.SetRounds(next.Rounds()); err != nil {
		return nil, err
	}
	m.memory = next
	return exports, nil
}

// writeIDs makes the table durable. If another process has changed it, the next pass reads it again.
func (m *Exporter) writeIDs(ctx context.Context, table *exportids.Table) error {
	err := m.storage.WriteIDs(ctx, table)
	m.idsChanged = m.idsChanged || errors.Is(err, backend.ErrIDsChanged)
	return err
}

// prepareRoots makes the exports' directories and returns the exports that can be served. One that is served already stays: to remove it from
// its clients would make a small fault a big one.
func (m *Exporter) prepareRoots(ctx context.Context, exports []*internalv1.ShareExport) ([]*internalv1.ShareExport, error) {
	next := m.memory.Clone()
	if m.identifyRoots(exports, next) {
		if err := m.writeIDs(ctx, next); isFull(err) {
			given := next
			next = m.memory.Clone()
			exports = m.leaveOut(exports, next, func(share string) bool { return slices.Equal(given.RootIDs(share), next.RootIDs(share)) }, err)
		} else if err != nil {
			return nil, err
		}
	}
	var ready []*internalv1.ShareExport
	for _, export := range exports {
		failure := m.prepareRootsOf(ctx, export, next)
		if failure != nil {
			m.failing[kubeapi.ShareOf(export)] = failure
		}
		if failure == nil || m.servesShare(kubeapi.ShareOf(export)) {
			ready = append(ready, export)
		}
	}
	// What is lost without room is only that attributes were given: a restart gives them again.
	if err := m.writeIDs(ctx, next); isFull(err) {
		m.Log.Warn("a full volume does not take what was last given to the roots of shares", "err", err)
	} else if err != nil {
		return nil, err
	}
	m.memory = next
	return ready, nil
}

// identifyRoots gives an identity to roots that have none, and returns true if it gave any. A root that exists already gets its volume's
// identity: it is the first that was seen there. A root that is yet to be made gets a new one, also where an earlier root of the same name is
// gone: a new identity shows that this is not the directory with the data.
func (m *Exporter) identifyRoots(exports []*internalv1.ShareExport, next *exportids.Table) (given bool) {
	volumes := m.storage.Identities()
	if volumes == nil {
		return false
	}
	for _, export := range exports {
		share := kubeapi.ShareOf(export)
		for part, shares := range next.Parts {
			there, err := m.storage.HasRoot(share, int32(part))
			known := shares[share]
			switch {
			case err != nil || there && known.RootID != "":
				continue // If reading the root fails, making it fails, too, and reports the error.
			case there:
				known.RootID = volumes[int32(part)]
			default:
				known.RootID = string(uuid.NewUUID())
			}
			shares[share], given = known, true
		}
	}
	return given
}

// rootIDs are the identities of the directories that a share is exported from, by part; nil if they are not known.
func (m *Exporter) rootIDs(share string) []string {
	if ids := m.storage.RootIDs(share); ids != nil {
		return ids
	}
	return m.memory.RootIDs(share)
}

func (m *Exporter) prepareRootsOf(ctx context.Context, export *internalv1.ShareExport, next *exportids.Table) *kubeapi.Fault {
	share := kubeapi.ShareOf(export)
	wanted, err := attributesOf(export.Spec)
	if err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
	}
	for part, shares := range next.Parts {
		known := shares[share]
		if err := m.storage.PrepareRoot(ctx, share, int32(part), wanted, known.Applied); err != nil {
			return m.storageFault(err)
		}
		known.Applied = &wanted
		shares[share] = known
	}
	return nil
}

// attributesOf are what an export's root should have.
func attributesOf(export internalv1.ShareExportSpec) (exportids.RootAttributes, error) {
	mode, err := strconv.ParseUint(export.Mode, 8, 12)
	if err != nil {
		return exportids.RootAttributes{}, fmt.Errorf("mode %q is not octal permission bits: %w", export.Mode, err)
	}
	if export.UID == nil || export.GID == nil {
		return exportids.RootAttributes{}, errors.New("owner and group must be set")
	}
	return exportids.RootAttributes{Owner: *export.UID, Group: *export.GID, Mode: strconv.FormatUint(mode, 8)}, nil
}
