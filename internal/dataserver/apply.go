package dataserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
)

// fault is why a DataServer is not fully served, with the condition's reason.
type fault struct {
	reason string
	err    error
}

func (f *fault) Error() string { return f.err.Error() }

// apply brings the storage and ganesha to what the DataServer asks for. The order is what
// keeps data safe: whether the storage may be exported at all, whose it is, then the ids in it, then the
// directories, then the exports, and removals only when nothing exports them any more.
func (m *manager) apply(ctx, supervised context.Context) *fault {
	err := m.storage.Judge(ctx, m.dataServer)
	if m.refused = err != nil; m.refused {
		return m.refuse(ctx, supervised, &fault{m.storage.Refusal(), err})
	}
	config, failure := m.prepare(ctx)
	if failure != nil {
		return failure
	}
	if err = m.tellShares(ctx); err != nil {
		return &fault{v1alpha1.ReasonApplyFailed, err}
	}
	text, err := ganesha.Render(config)
	if err != nil {
		return &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	m.expected.set(config.ServerOwner, config.ServerScope)
	if err = m.configure(config, text); err != nil {
		return &fault{v1alpha1.ReasonApplyFailed, err}
	}
	m.endHanging()
	m.renew(ctx)
	if failure := m.load(ctx, supervised, text); failure != nil {
		return failure
	}
	if failure := m.verify(ctx, config); failure != nil {
		return failure
	}
	if failure := m.refuseForgeries(ctx, config); failure != nil {
		return failure
	}
	m.remove(ctx, supervised)
	return nil
}

// prepare does everything in the storage that exports need. What is wrong with one share keeps out that share alone.
func (m *manager) prepare(ctx context.Context) (ganesha.Config, *fault) {
	if m.storage.Parts(m.dataServer) < 1 {
		return ganesha.Config{}, &fault{v1alpha1.ReasonInvalidSpec, errors.New("spec.volumes is less than 1")}
	}
	if err := m.keys.check(); err != nil {
		return ganesha.Config{}, &fault{internalv1.ReasonHandleKeyMissing, err}
	}
	if err := m.storage.Claim(ctx, m.dataServer); err != nil {
		return ganesha.Config{}, &fault{m.storage.Refusal(), err}
	}
	if m.memory == nil || len(m.memory.Parts) != int(m.storage.Parts(m.dataServer)) {
		memory, err := m.storage.ReadIDs(ctx, m.dataServer)
		if err != nil {
			return ganesha.Config{}, &fault{m.storage.Refusal(), err}
		}
		m.memory = memory
	}
	m.failing = map[string]*fault{}
	exports, err := m.allocate(ctx)
	if err != nil {
		return ganesha.Config{}, &fault{m.storage.Refusal(), err}
	}
	if exports, err = m.prepareRoots(ctx, exports); err != nil {
		return ganesha.Config{}, &fault{m.storage.Refusal(), err}
	}
	config, err := desiredConfig(m.dataServer, m.withoutLost(exports), m.memory, m.storage, m.own, m.memoryLimit, m.gateways...)
	if err != nil {
		return ganesha.Config{}, &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	return config, nil
}

// allocate gives every share its ids, the oldest first, and returns the exports that have them. Of more than fit, the newest
// are left out.
func (m *manager) allocate(ctx context.Context) ([]*internalv1.ShareExport, error) {
	next := m.memory.Clone()
	next.Raise(ptr.Deref(m.dataServer.Status.LastExportNumber, 0))
	inUse := map[string]bool{}
	for _, export := range m.exports {
		inUse[shareOf(export)] = true
		for _, id := range export.Status.ExportIDs {
			next.Raise(int64(id)) // All that there was before DataServers told.
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
		share := shareOf(export)
		if _, err := clientRules(export.Spec.Access, nodes{known: true}); err != nil {
			m.failing[share] = &fault{v1alpha1.ReasonInvalidSpec, err}
		} else if err := next.Allocate(share, inUse); err != nil {
			m.failing[share] = &fault{internalv1.ReasonExportIDsExhausted, err}
		} else {
			exports = append(exports, export)
		}
	}
	// An id is durable before ganesha, and so any client, sees it.
	if err := m.storage.WriteIDs(ctx, next); err != nil {
		return nil, err
	}
	// Nor does it see a reused one before handles of its earlier exports are refused.
	if err := m.ganesha.setRounds(next.Rounds()); err != nil {
		return nil, err
	}
	m.memory = next
	return exports, nil
}

// prepareRoots makes the exports' directories and returns the exports that can be served. One that is served
// already stays: taking it away from its clients would make a small fault a big one.
func (m *manager) prepareRoots(ctx context.Context, exports []*internalv1.ShareExport) ([]*internalv1.ShareExport, error) {
	next := m.memory.Clone()
	if m.identifyRoots(exports, next) {
		if err := m.storage.WriteIDs(ctx, next); err != nil {
			return nil, err
		}
	}
	var ready []*internalv1.ShareExport
	for _, export := range exports {
		failure := m.prepareRootsOf(ctx, export, next)
		if failure != nil {
			m.failing[shareOf(export)] = failure
		}
		if failure == nil || m.servesShare(shareOf(export)) {
			ready = append(ready, export)
		}
	}
	if err := m.storage.WriteIDs(ctx, next); err != nil {
		return nil, err
	}
	m.memory = next
	return ready, nil
}

// identifyRoots gives an identity to roots that have none, and tells whether it gave any. One that is there already has its volume's: it is the
// first that was seen there. One that is yet to be made has another, also where an earlier one of the name is gone: who knew that sees by it
// that this is not the directory with the data.
func (m *manager) identifyRoots(exports []*internalv1.ShareExport, next *exportids.Table) (given bool) {
	volumes := m.storage.Identities()
	if volumes == nil {
		return false
	}
	for _, export := range exports {
		share := shareOf(export)
		for part, shares := range next.Parts {
			there, err := m.storage.HasRoot(share, int32(part))
			known := shares[share]
			switch {
			case err != nil || there && known.RootID != "":
				continue // What can't be looked at can't be made either, which is said then.
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
func (m *manager) rootIDs(share string) []string {
	if ids := m.storage.RootIDs(share); ids != nil {
		return ids
	}
	return m.memory.RootIDs(share)
}

func (m *manager) prepareRootsOf(ctx context.Context, export *internalv1.ShareExport, next *exportids.Table) *fault {
	share := shareOf(export)
	wanted, err := attributesOf(export.Spec)
	if err != nil {
		return &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	for part, shares := range next.Parts {
		known := shares[share]
		if err := m.storage.PrepareRoot(ctx, share, int32(part), wanted, known.Applied); err != nil {
			return &fault{m.storage.Refusal(), err}
		}
		known.Applied = &wanted
		shares[share] = known
	}
	return nil
}

// renew has ganesha started anew if the storage says that it goes by something that was replaced: once for each start, and not while
// clients still reclaim what they had before it.
func (m *manager) renew(ctx context.Context) {
	state := m.ganesha.state()
	if !state.Initialized || state.InGrace || m.ended == state.Starts {
		return
	}
	if why := m.storage.Outdated(ctx); why != "" {
		m.ended = state.Starts
		m.log.Info("starting ganesha anew; its clients wait for some seconds", "why", why)
		m.ganesha.restart()
	}
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
		m.starts, m.loaded, m.verified, m.serving = state.Starts, state.Config, "", map[string]fileSystem{}
		m.leaving = map[string]bool{}
		if m.loaded != text {
			m.leaving = m.remembered()
		}
	}
	switch {
	case state.PID == 0 && state.LastExit != "":
		return &fault{internalv1.ReasonServerDown, fmt.Errorf("ganesha is being started again; it %s", state.LastExit)}
	case !state.Initialized:
		m.unstickStart(ctx, state)
		return &fault{internalv1.ReasonStarting, errors.New("ganesha is starting")}
	case m.loaded == text:
		return nil
	}
	for path := range m.serving {
		m.leaving[path] = true
	}
	// What it has afterwards is not known until the reload succeeded; what it served it very likely goes on serving.
	m.loaded, m.verified = "", ""
	began := m.now()
	err := m.ganesha.reload(ctx)
	m.unstickReload(ctx, err)
	if err != nil {
		m.metrics.reloadFailures.Inc()
		return &fault{internalv1.ReasonReloadFailed, err}
	}
	m.metrics.reloaded(m.now().Sub(began))
	m.loaded = text
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
	if m.verified == m.loaded {
		m.lookForLost(ctx)
		m.bringBackLost(ctx, func(pseudo string) bool {
			return slices.ContainsFunc(config.Exports, func(export ganesha.Export) bool { return export.Pseudo == pseudo })
		})
		return nil
	}
	wanted := map[string]fileSystem{}
	for _, export := range config.Exports {
		wanted[export.Pseudo] = fileSystem{ganesha.FilesystemMajor, uint64(export.ID)}
	}
	gone := m.toBeGone(wanted)
	paths := slices.Sorted(maps.Keys(wanted))
	sights, err := m.prober.look(ctx, append(slices.Clone(paths), gone...))
	if err != nil {
		return &fault{internalv1.ReasonExportsFailing, fmt.Errorf("looking at the exports: %w", err)}
	}
	m.serving, m.leaving, m.lookedAt = map[string]fileSystem{}, map[string]bool{}, m.now()
	diagnosed := 0
	for i, path := range paths {
		switch sight := sights[i]; {
		case sight.err != nil:
			m.noteLost(path, sight.err)
			if diagnosed++; diagnosed <= maxDiagnosed {
				sight.err = m.diagnosed(ctx, path, sight.err)
			}
			m.fail(path, sight.err)
		case sight.fsid != wanted[path]:
			m.fail(path, fmt.Errorf("file system %d.%d instead of %d.%d",
				sight.fsid.major, sight.fsid.minor, wanted[path].major, wanted[path].minor))
		default:
			m.serving[path] = sight.fsid
		}
	}
	again := len(m.serving) < len(wanted)
	for i, path := range gone {
		if !errors.Is(sights[len(paths)+i].err, errNotThere) {
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
func (m *manager) toBeGone(wanted map[string]fileSystem) []string {
	paths := maps.Clone(m.leaving)
	for _, export := range m.exports {
		for volume := range m.memory.Parts {
			paths[naming.ExportPseudo(shareOf(export), int32(volume))] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(path string) bool {
		_, stays := wanted[path]
		return stays
	})
}

// maxDiagnosed bounds the exports that are looked into after a load: each can take half a minute when the storage is away, and then
// it is away for all.
const maxDiagnosed = 3

// diagnosed is why an export is not shown, in words of the storage if that knows them.
func (m *manager) diagnosed(ctx context.Context, pseudo string, seen error) error {
	if why := m.storage.Diagnose(ctx, naming.ShareOfExport(pseudo)); why != nil {
		return why
	}
	return seen
}

// fail notes what is wrong with a share's export, unless something is already.
func (m *manager) fail(pseudo string, err error) {
	share := naming.ShareOfExport(pseudo)
	if m.failing[share] == nil {
		m.failing[share] = &fault{internalv1.ReasonExportsFailing, fmt.Errorf("%s: %w", pseudo, err)}
	}
}

// remembered are the pseudo paths of everything in the export ID table.
func (m *manager) remembered() map[string]bool {
	paths := map[string]bool{}
	for volume, shares := range m.memory.Parts {
		for share := range shares {
			paths[naming.ExportPseudo(share, int32(volume))] = true
		}
	}
	return paths
}

func (m *manager) servesShare(share string) bool {
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
