package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/durable"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/mountinfo"
)

// Backend has the volumes of a data server.
type Backend struct {
	where layout
	log   *slog.Logger
	// shared says for each volume what else is on its file system; "" if nothing is. fileSystems are the file systems' IDs.
	shared, fileSystems []string
	// ids are the known identities of the volumes, or of the missing volumes that should be in their places.
	ids map[int32]string
}

var _ backend.Backend = (*Backend)(nil)

// New returns the back end of the volumes below a directory.
func New(root string, log *slog.Logger) *Backend {
	return &Backend{where: layout{root: root}, log: log}
}

// CallBefore sets a function that is called before each change of a volume. Tests end the process there.
func (b *Backend) CallBefore(before func(change string)) { b.where.before = before }

// Refusal is the condition reason for faults of a volume.
func (b *Backend) Refusal() string { return internalv1.ReasonVolumeRefused }

// Diagnose finds no reason: it knows nothing that ganesha does not know.
func (b *Backend) Diagnose(context.Context, string) error { return nil }

// LookEvery is 0: exports of a volume don't stop working by themselves.
func (b *Backend) LookEvery() time.Duration { return 0 }

// Parts is the number of volumes.
func (b *Backend) Parts(server *internalv1.DataServer) int32 { return server.Spec.Volumes }

// Judge refuses volumes that share a file system with something else, unless that is allowed.
func (b *Backend) Judge(_ context.Context, server *internalv1.DataServer) error {
	b.shared, b.fileSystems = nil, nil
	shared, fileSystems, err := sharedVolumes(b.where, server.Spec.Volumes)
	if err != nil {
		return err
	}
	b.shared, b.fileSystems = shared, fileSystems
	if server.Spec.SharedFileSystemPolicy == v1alpha1.SharedFileSystemAllow {
		return nil
	}
	claims := make([]string, 0, len(shared))
	for index := range shared {
		claims = append(claims, claimOf(server, int32(index)))
	}
	if refusal := mountinfo.Refusal(claims, shared); refusal != "" {
		return errors.New(refusal)
	}
	return nil
}

// Claim marks every volume as the data server's. It checks all volumes, so that the error names all faults at once.
func (b *Backend) Claim(_ context.Context, server *internalv1.DataServer) error {
	if b.ids == nil {
		b.ids = map[int32]string{}
	}
	var faults []error
	for index := range server.Spec.Volumes {
		id, err := claimVolume(b.where, b.withKnown(server), index, b.log)
		if id != "" {
			b.ids[index] = id
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// withKnown returns the DataServer with the identities that were found in earlier passes: they may not be in its status
// yet.
func (b *Backend) withKnown(server *internalv1.DataServer) *internalv1.DataServer {
	known := server.DeepCopy()
	for index, id := range b.ids {
		has := func(v internalv1.VolumeIdentity) bool { return ptr.Deref(v.Index, -1) == index }
		if !slices.ContainsFunc(known.Status.VolumeIDs, has) {
			known.Status.VolumeIDs = append(known.Status.VolumeIDs, internalv1.VolumeIdentity{Index: &index, ID: id})
		}
	}
	return known
}

// Identities are the identities of the volumes.
func (b *Backend) Identities() map[int32]string { return b.ids }

// ReadIDs joins the parts of the export ID table that are on the volumes.
func (b *Backend) ReadIDs(_ context.Context, server *internalv1.DataServer) (*exportids.Table, error) {
	texts := make([][]byte, server.Spec.Volumes)
	for index := range texts {
		text, err := b.readIDs(int32(index))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the Export_Ids: %w", err)
		}
		texts[index] = text
	}
	return exportids.Join(texts, b.idsFile, b.where.share)
}

func (b *Backend) readIDs(index int32) ([]byte, error) {
	volume, err := b.where.open(index)
	if err != nil {
		return nil, err
	}
	defer func() { _ = volume.Close() }()
	return volume.ReadFile(metaName(exportIDsFile))
}

func (b *Backend) writeIDs(index int32, text []byte) error {
	volume, err := b.where.open(index)
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	return durable.WriteIn(volume, metaName(exportIDsFile), text)
}

// WriteIDs makes the export ID table durable on every volume whose copy differs.
func (b *Backend) WriteIDs(_ context.Context, table *exportids.Table) error {
	for index := range table.Parts {
		text, err := table.Part(int32(index))
		if err != nil {
			return err
		}
		b.where.about("write " + b.idsFile(int32(index)))
		if err := b.writeIDs(int32(index), text); err != nil {
			return fmt.Errorf("writing the Export_Ids of volume %d: %w", index, err)
		}
	}
	return nil
}

func (b *Backend) idsFile(index int32) string { return b.where.meta(index, exportIDsFile) }

// HasRoot reports whether the directory of a share is on a volume.
func (b *Backend) HasRoot(share string, index int32) (bool, error) {
	_, err := os.Lstat(b.where.share(share, index))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RootIDs are nil: the identities are stored with the Export_Ids.
func (b *Backend) RootIDs(string) []string { return nil }

// PrepareRoot makes the directory of a share on a volume.
func (b *Backend) PrepareRoot(_ context.Context, share string, index int32, wanted exportids.RootAttributes, applied *exportids.RootAttributes) error {
	if err := prepareRoot(b.where, share, index, wanted, applied); err != nil {
		return fmt.Errorf("volume %d: %w", index, err)
	}
	return nil
}

// Shares are the directories on the volumes.
func (b *Backend) Shares(_ context.Context, server *internalv1.DataServer) (names []string, known bool, err error) {
	names, err = sharesOnVolumes(b.where, server.Spec.Volumes)
	return names, err == nil, err
}

// WatchHealth does nothing: the pod and the node report the health of a volume.
func (b *Backend) WatchHealth(context.Context, func(backend.Health) error) {}

// Measure returns how full the volumes are.
func (b *Backend) Measure(_ context.Context, server *internalv1.DataServer) ([]backend.Usage, error) {
	usage := make([]backend.Usage, 0, server.Spec.Volumes)
	for index := range server.Spec.Volumes {
		volume, err := readUsage(b.where.volume(index))
		if err != nil {
			return nil, err
		}
		if int(index) < len(b.shared) {
			volume.Shared, volume.FileSystemID = b.shared[index], b.fileSystems[index]
		}
		usage = append(usage, volume)
	}
	return usage, nil
}

// CompleteConfig lets ganesha keep its recovery records on volume 0.
func (b *Backend) CompleteConfig(config *ganesha.Config) { config.RecoveryRoot = b.where.recovery() }

// CompleteExport sets the share's directory on the volume.
func (b *Backend) CompleteExport(export *ganesha.Export, share string, index int32) {
	export.Path = b.where.share(share, index)
}

// Outdated is "": nothing that ganesha reads of the volumes at its start is ever replaced.
func (b *Backend) Outdated(context.Context) string { return "" }

// BeforeStart has ganesha find the recovery records of its last start, and removes those that are not needed any more.
func (b *Backend) BeforeStart(_ context.Context, hostname string) error {
	volume, err := b.where.open(0)
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	records, err := volume.OpenRoot(metaName(RecoveryDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the recovery records: %w", err)
	}
	defer func() { _ = records.Close() }()
	if err := adoptRecovery(records, hostname); err != nil {
		return err
	}
	return errors.Join(forgetOwnClients(records, hostname), pruneRecovery(records, hostname))
}

// HasData reports whether the share has a directory on a volume.
func (b *Backend) HasData(_ context.Context, server *internalv1.DataServer, share string) bool {
	for index := range server.Spec.Volumes {
		if _, err := os.Lstat(b.where.share(share, index)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// Discard moves the share's directories to the trash of their volumes.
func (b *Backend) Discard(_ context.Context, server *internalv1.DataServer, share string, now time.Time) error {
	for index := range server.Spec.Volumes {
		if err := discard(b.where, share, index, now); err != nil {
			return err
		}
	}
	return nil
}

// EmptyTrash deletes what is in the trash of the volumes.
func (b *Backend) EmptyTrash(ctx context.Context, server *internalv1.DataServer) (left bool) {
	return emptyTrash(ctx, b.where, server.Spec.Volumes, b.log)
}
