package instance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
)

// fault is why a record is not fully served, with the condition's reason.
type fault struct {
	reason string
	err    error
}

func (f *fault) Error() string { return f.err.Error() }

// apply brings the volumes and ganesha to what the record asks for. The order is what
// keeps data safe: whose volumes they are, then the ids on them, then the
// directories, then the exports, and removals only when nothing exports them any more.
func (m *manager) apply(ctx, supervised context.Context) *fault {
	config, failure := m.prepare()
	if failure != nil {
		return failure
	}
	text, err := ganesha.Render(config)
	if err != nil {
		return &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	m.expected.set(config.ServerOwner, config.ServerScope)
	if err := writeDurably(m.configFile, []byte(text)); err != nil {
		return &fault{v1alpha1.ReasonApplyFailed, err}
	}
	if failure := m.load(ctx, supervised, text); failure != nil {
		return failure
	}
	if failure := m.verify(ctx, config); failure != nil {
		return failure
	}
	if failure := m.refuseForgeries(ctx, config); failure != nil {
		return failure
	}
	return m.remove(supervised)
}

// prepare does everything on the volumes that exports need.
func (m *manager) prepare() (ganesha.Config, *fault) {
	if m.record.Spec.Volumes < 1 {
		return ganesha.Config{}, &fault{v1alpha1.ReasonInvalidSpec, errors.New("spec.volumes is less than 1")}
	}
	if err := m.keys.check(); err != nil {
		return ganesha.Config{}, &fault{internalv1.ReasonHandleKeyMissing, err}
	}
	for index := range m.record.Spec.Volumes {
		if err := claimVolume(m.where, m.record, index, m.log); err != nil {
			return ganesha.Config{}, &fault{internalv1.ReasonVolumeRefused, err}
		}
	}
	if m.memory == nil || len(m.memory.volumes) != int(m.record.Spec.Volumes) {
		memory, err := readLedger(m.where, m.record.Spec.Volumes)
		if err != nil {
			return ganesha.Config{}, &fault{internalv1.ReasonVolumeRefused, err}
		}
		m.memory = memory
	}
	next := m.memory.clone()
	if err := next.allocate(m.record.Spec.Exports); err != nil {
		return ganesha.Config{}, &fault{internalv1.ReasonExportIDsExhausted, err}
	}
	// An id is durable before ganesha, and so any client, sees it.
	if err := next.write(m.where); err != nil {
		return ganesha.Config{}, &fault{internalv1.ReasonVolumeRefused, err}
	}
	m.memory = next
	if err := m.prepareRoots(); err != nil {
		return ganesha.Config{}, &fault{internalv1.ReasonVolumeRefused, err}
	}
	config, err := desiredConfig(m.record, m.memory, m.where)
	if err != nil {
		return ganesha.Config{}, &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	return config, nil
}

func (m *manager) prepareRoots() error {
	next := m.memory.clone()
	for _, export := range m.record.Spec.Exports {
		wanted, err := attributesOf(export)
		if err != nil {
			return fmt.Errorf("share %s: %w", export.ShareName, err)
		}
		for volume, shares := range next.volumes {
			known := shares[export.ShareName]
			if err := prepareRoot(m.where.share(export.ShareName, int32(volume)), wanted, known.Applied); err != nil {
				return fmt.Errorf("share %s on volume %d: %w", export.ShareName, volume, err)
			}
			known.Applied = &wanted
			shares[export.ShareName] = known
		}
	}
	if err := next.write(m.where); err != nil {
		return err
	}
	m.memory = next
	return nil
}

// load makes ganesha have the configuration: by its first start, or by a reload.
func (m *manager) load(ctx, supervised context.Context, text string) *fault {
	if !m.started {
		m.started = true
		m.group.Add(1)
		go func() {
			defer m.group.Done()
			m.ganesha.run(supervised)
		}()
	}
	state := m.ganesha.state()
	if state.Starts != m.starts {
		// A new process has loaded what was in the file at its start, and serves nothing that was looked at.
		m.starts, m.loaded, m.serving = state.Starts, state.Config, map[string]fileSystem{}
		m.leaving = map[string]bool{}
		if m.loaded != text {
			m.leaving = m.remembered()
		}
	}
	switch {
	case state.PID == 0 && state.LastExit != "":
		return &fault{internalv1.ReasonServerDown, fmt.Errorf("ganesha is being started again; it %s", state.LastExit)}
	case !state.Initialized:
		return &fault{internalv1.ReasonStarting, errors.New("ganesha is starting")}
	case m.loaded == text:
		return nil
	}
	for path := range m.serving {
		m.leaving[path] = true
	}
	// What it has afterwards is not known until the reload succeeded.
	m.loaded = ""
	began := m.now()
	if err := m.ganesha.reload(ctx); err != nil {
		return &fault{internalv1.ReasonReloadFailed, err}
	}
	m.metrics.reloaded(m.now().Sub(began))
	m.loaded, m.serving = text, map[string]fileSystem{}
	return nil
}

// verify looks at every export of the configuration through NFS, and at what should
// be gone; it looks again only after a load. If something is not as it
// should be the next pass reloads: ganesha sometimes needs a second SIGHUP
// (measured: a pseudo path that returns is refused as a duplicate once).
func (m *manager) verify(ctx context.Context, config ganesha.Config) *fault {
	owner, scope, err := m.prober.identity(ctx)
	if err != nil {
		return &fault{internalv1.ReasonStarting, fmt.Errorf("ganesha does not answer EXCHANGE_ID: %w", err)}
	}
	if owner != config.ServerOwner || scope != config.ServerScope {
		return &fault{internalv1.ReasonExportsFailing, fmt.Errorf("what answers here is server %q of %q, not %q of %q",
			owner, scope, config.ServerOwner, config.ServerScope)}
	}
	wanted := map[string]fileSystem{}
	for _, export := range config.Exports {
		wanted[export.Pseudo] = fileSystem{ganesha.FilesystemMajor, uint64(export.ID)}
	}
	if maps.Equal(m.serving, wanted) && m.serving != nil {
		return nil
	}
	paths := slices.Sorted(maps.Keys(wanted))
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(m.leaving)), func(path string) bool {
		_, stays := wanted[path]
		return stays
	})
	sights, err := m.prober.look(ctx, append(slices.Clone(paths), gone...))
	if err != nil {
		return &fault{internalv1.ReasonExportsFailing, fmt.Errorf("looking at the exports: %w", err)}
	}
	var wrong []string
	for i, path := range paths {
		switch sight := sights[i]; {
		case sight.err != nil:
			wrong = append(wrong, fmt.Sprintf("%s: %v", path, sight.err))
		case sight.fsid != wanted[path]:
			wrong = append(wrong, fmt.Sprintf("%s: file system %d.%d instead of %d.%d", path,
				sight.fsid.major, sight.fsid.minor, wanted[path].major, wanted[path].minor))
		default:
			m.serving[path] = sight.fsid
		}
	}
	for i, path := range gone {
		if !errors.Is(sights[len(paths)+i].err, errNotThere) {
			wrong = append(wrong, path+": is still exported")
		}
	}
	if len(wrong) > 0 {
		m.loaded = ""
		return &fault{internalv1.ReasonExportsFailing, fmt.Errorf("%d exports are not as they should be: %s", len(wrong), strings.Join(wrong, "; "))}
	}
	m.leaving = map[string]bool{}
	return nil
}

// remembered are the pseudo paths of everything in the ledger.
func (m *manager) remembered() map[string]bool {
	paths := map[string]bool{}
	for volume, shares := range m.memory.volumes {
		for share := range shares {
			paths[naming.ExportPseudo(share, int32(volume))] = true
		}
	}
	return paths
}

func (m *manager) servesShare(share string) bool {
	for volume := range m.memory.volumes {
		if _, served := m.serving[naming.ExportPseudo(share, int32(volume))]; !served {
			return false
		}
	}
	return true
}

// remove discards the data of shares that are to be removed and that nothing exports any more.
func (m *manager) remove(supervised context.Context) *fault {
	removed := map[string]bool{}
	for _, share := range m.record.Spec.Removals {
		if m.exported(share) {
			continue // Made again meanwhile: its data stays.
		}
		for index := range m.record.Spec.Volumes {
			if err := discard(m.where, share, index, m.now()); err != nil {
				return &fault{v1alpha1.ReasonApplyFailed, err}
			}
		}
		if !m.removed[share] {
			m.log.Info("removed the data of a share", "share", share)
		}
		removed[share] = true
	}
	fresh := !maps.Equal(removed, m.removed) || m.removed == nil
	m.removed = removed
	if fresh {
		m.trash.empty(supervised, &m.group, m.where, m.record.Spec.Volumes, m.log)
	}
	return nil
}
