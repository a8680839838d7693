package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"

	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
)

// verify checks through NFS that every export of the configuration serves, and that removed ones are gone. It checks again only after a
// load. If it finds a difference, the next pass reloads: ganesha sometimes needs a second SIGHUP (measured: a pseudo path that returns is
// refused as a duplicate once).
func (m *Exporter) verify(ctx context.Context, config ganesha.Config) *kubeapi.Fault {
	owner, scope, err := m.Prober.Identity(ctx)
	if err != nil {
		return kubeapi.NewFault(internalv1.ReasonStarting, fmt.Errorf("ganesha does not answer EXCHANGE_ID: %w", err))
	}
	if owner != config.ServerOwner || scope != config.ServerScope {
		return kubeapi.NewFault(internalv1.ReasonExportsFailing, fmt.Errorf("server %q of %q answers here instead of %q of %q",
			owner, scope, config.ServerOwner, config.ServerScope))
	}
	if m.verified == m.loaded {
		m.lookForLost(ctx)
		m.bringBackLost(ctx, func(pseudo string) bool {
			return slices.ContainsFunc(config.Served(), func(export ganesha.Export) bool { return export.Pseudo == pseudo })
		})
		return nil
	}
	wanted := map[string]server.FileSystem{}
	for _, export := range config.Served() {
		wanted[export.Pseudo] = server.FileSystem{Major: ganesha.FilesystemMajor, Minor: uint64(export.ID)}
	}
	gone := m.toBeGone(wanted)
	paths := slices.Sorted(maps.Keys(wanted))
	sights, err := m.Prober.Look(ctx, append(slices.Clone(paths), gone...))
	if err != nil {
		return kubeapi.NewFault(internalv1.ReasonExportsFailing, fmt.Errorf("checking the exports: %w", err))
	}
	m.serving, m.leaving, m.lookedAt = map[string]server.FileSystem{}, map[string]bool{}, m.now()
	diagnosed := 0
	for i, path := range paths {
		switch sight := sights[i]; {
		case sight.Err != nil:
			m.noteLost(path, sight.Err)
			if diagnosed++; diagnosed <= maxDiagnosed {
				sight.Err = m.diagnosed(ctx, path, sight.Err)
			}
			m.fail(path, sight.Err)
		case sight.Fsid != wanted[path]:
			m.fail(path, fmt.Errorf("file system %d.%d instead of %d.%d",
				sight.Fsid.Major, sight.Fsid.Minor, wanted[path].Major, wanted[path].Minor))
		default:
			m.serving[path] = sight.Fsid
		}
	}
	again := len(m.serving) < len(wanted)
	for i, path := range gone {
		if !errors.Is(sights[len(paths)+i].Err, server.ErrNotThere) {
			m.leaving[path], again = true, true
			m.fail(path, errors.New("is still exported"))
		}
	}
	m.bringBackLost(ctx, func(pseudo string) bool {
		_, exported := wanted[pseudo]
		return exported
	})
	if again {
		m.loaded = "" // The next pass reloads.
	} else {
		m.verified = m.loaded
	}
	return nil
}

// toBeGone are the pseudo paths that must not be there: what ganesha may still serve and shares that are being deleted.
func (m *Exporter) toBeGone(wanted map[string]server.FileSystem) []string {
	paths := maps.Clone(m.leaving)
	for _, export := range m.exports {
		for volume := range m.memory.Parts {
			paths[naming.ExportPseudo(kubeapi.ShareOf(export), int32(volume))] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(path string) bool {
		_, stays := wanted[path]
		return stays
	})
}

// maxDiagnosed bounds the exports that are diagnosed after a load: each can take half a minute when the storage is away, and then it is away for
// all.
const maxDiagnosed = 3

// diagnosed is why an export does not serve: the storage's diagnosis if it has one, otherwise the error that was seen.
func (m *Exporter) diagnosed(ctx context.Context, pseudo string, seen error) error {
	if why := m.storage.Diagnose(ctx, naming.ShareOfExport(pseudo)); why != nil {
		return why
	}
	return seen
}

// fail notes a fault of a share's export, unless the share has one already.
func (m *Exporter) fail(pseudo string, err error) {
	share := naming.ShareOfExport(pseudo)
	if m.failing[share] == nil {
		m.failing[share] = kubeapi.NewFault(internalv1.ReasonExportsFailing, fmt.Errorf("%s: %w", pseudo, err))
	}
}

// remembered are the pseudo paths of everything in the export ID table.
func (m *Exporter) remembered() map[string]bool {
	paths := map[string]bool{}
	for volume, shares := range m.memory.Parts {
		for share := range shares {
			paths[naming.ExportPseudo(share, int32(volume))] = true
		}
	}
	return paths
}

func (m *Exporter) servesShare(share string) bool {
	if m.memory == nil {
		return false
	}
	for volume := range m.memory.Parts {
		if _, served := m.serving[naming.ExportPseudo(share, int32(volume))]; !served {
			return false
		}
	}
	return true
}
