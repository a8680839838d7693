package control

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const (
	// stopGrace is for etcd, which writes its database when it is stopped.
	stopGrace = 20 * time.Second
	// revisionBump makes versions of objects after a restore higher than all that were given out since the backup, as etcd's documentation
	// asks for: programs that watch would take new objects for old ones.
	revisionBump = 1_000_000_000
)

// Stop ends the control plane, in the reverse order of its start.
func (p *Plane) Stop(grace time.Duration) error {
	names := p.Programs()
	slices.Reverse(names)
	for _, name := range names {
		if err := p.Table.Stop(name, grace); err != nil {
			return err
		}
	}
	return nil
}

// Backup copies all objects into a file. The control plane is away meanwhile.
func (p *Plane) Backup(file string, port int) error {
	if err := p.Stop(stopGrace); err != nil {
		return err
	}
	if err := sys.Run("cp", filepath.Join(p.etcdDir(), "member", "snap", "db"), file); err != nil {
		return err
	}
	return p.Start(port)
}

// Restore takes the objects of a backup in place of those that are there.
func (p *Plane) Restore(file string, port int) error {
	restored := p.etcdDir() + ".restored"
	if err := os.RemoveAll(restored); err != nil {
		return err
	}
	// Before anything is stopped: a file that is no backup changes nothing.
	if err := sys.Run(filepath.Join(p.Bin, "etcdutl"), "snapshot", "restore", file, "--skip-hash-check", "--data-dir="+restored,
		"--bump-revision="+strconv.Itoa(revisionBump), "--mark-compacted",
		"--name="+etcdName, "--initial-cluster="+etcdName+"="+etcdPeerURL, "--initial-advertise-peer-urls="+etcdPeerURL); err != nil {
		return err
	}
	if err := p.Stop(0); err != nil {
		return err
	}
	if err := os.RemoveAll(p.etcdDir()); err != nil {
		return err
	}
	if err := os.Rename(restored, p.etcdDir()); err != nil {
		return err
	}
	return p.Start(port)
}

func (p *Plane) etcdDir() string { return filepath.Join(p.Dir, "etcd") }
