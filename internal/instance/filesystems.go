package instance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/mountinfo"
	"github.com/howdah/howdah/internal/naming"
)

// judgeVolumes looks whether the volumes are file systems of their own, and is a fault if one is not and that isn't
// allowed. It writes nothing.
func (m *manager) judgeVolumes() *fault {
	m.shared = nil
	shared, err := sharedVolumes(m.where, m.dataServer.Spec.Volumes)
	if err != nil {
		return &fault{internalv1.ReasonVolumeRefused, err}
	}
	m.shared = shared
	if m.dataServer.Spec.SharedFileSystemPolicy == v1alpha1.SharedFileSystemAllow {
		return nil
	}
	claims := make([]string, 0, len(shared))
	for index := range shared {
		claims = append(claims, claimOf(m.dataServer, int32(index)))
	}
	if refusal := mountinfo.Refusal(claims, shared); refusal != "" {
		return &fault{internalv1.ReasonVolumeRefused, errors.New(refusal)}
	}
	return nil
}

// claimOf is the name of a volume's claim.
func claimOf(server *internalv1.DataServer, index int32) string {
	ordinal, ours := naming.DataServerOrdinal(server.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return fmt.Sprintf("of volume %d", index) // The name is wrong, which is refused elsewhere.
	}
	return naming.VolumeClaim(server.Spec.FileServerRef.Name, ordinal, index)
}

// sharedVolumes tells of each volume what else is on its file system, "" for nothing.
func sharedVolumes(where layout, count int32) ([]string, error) {
	volumes := make([]mountinfo.Volume, 0, count)
	for index := range count {
		path := where.volume(index)
		id, err := mountID(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("volume %d is not mounted: %w", index, err)
		}
		if err != nil {
			return nil, fmt.Errorf("asking where volume %d is mounted: %w", index, err)
		}
		volumes = append(volumes, mountinfo.Volume{Path: path, MountID: id})
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("asking what file systems the volumes are: %w", err)
	}
	mounts, err := mountinfo.Parse(string(table))
	if err != nil {
		return nil, fmt.Errorf("asking what file systems the volumes are: %w", err)
	}
	return mountinfo.Shared(mounts, volumes), nil
}

// mountID is the ID of the mount that the path leads to. The table of mounts alone doesn't tell it where one is over another.
func mountID(path string) (int, error) {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(descriptor) }()
	info, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", descriptor))
	if err != nil {
		return 0, err
	}
	defer func() { _ = info.Close() }()
	lines := bufio.NewScanner(info)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "mnt_id:"); found {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("the kernel tells no mnt_id"))
}

// refuse makes sure that nothing is exported, and says of every export why. A ganesha that runs, because all was allowed before,
// gets a configuration without exports.
func (m *manager) refuse(ctx, supervised context.Context, failure *fault) *fault {
	m.expected.generation.Store(0) // Not ready, whatever was served before.
	m.failing, m.removed = map[string]*fault{}, map[types.UID]bool{}
	if m.started {
		if unfinished := m.withdraw(ctx, supervised); unfinished != nil {
			failure = &fault{failure.reason, fmt.Errorf("its exports are being taken back: %w. %w", unfinished.err, failure.err)}
		}
	}
	for _, export := range m.exports {
		share := shareOf(export)
		if export.DeletionTimestamp != nil && !m.exportsAnything() && !m.mustDiscard(export) {
			m.removed[export.UID] = true
			continue
		}
		m.failing[share] = failure
	}
	return failure
}

// withdraw makes ganesha serve nothing.
func (m *manager) withdraw(ctx, supervised context.Context) *fault {
	config, err := desiredConfig(m.dataServer, nil, m.memory, m.where, m.own)
	if err != nil {
		return &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	text, err := ganesha.Render(config)
	if err != nil {
		return &fault{v1alpha1.ReasonInvalidSpec, err}
	}
	if err := writeDurably(m.configFile, []byte(text)); err != nil {
		return &fault{v1alpha1.ReasonApplyFailed, err}
	}
	if failure := m.load(ctx, supervised, text); failure != nil {
		return failure
	}
	return m.verify(ctx, config)
}

// exportsAnything tells whether ganesha serves anything, or may.
func (m *manager) exportsAnything() bool {
	return m.started && (len(m.serving) > 0 || len(m.leaving) > 0)
}

// mustDiscard tells whether an export that is being deleted has data that is to go with it. A refused volume is not written to.
func (m *manager) mustDiscard(export *internalv1.ShareExport) bool {
	if export.Spec.DataPolicy != internalv1.DataDelete {
		return false
	}
	for index := range m.dataServer.Spec.Volumes {
		if _, err := os.Lstat(m.where.share(shareOf(export), index)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
