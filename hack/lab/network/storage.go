package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

// storage has the volumes, each a sparse file, and knows which node may use which. It outlives a restart of its process.
type storage struct {
	dir string

	mu sync.Mutex
	// published is the node of each volume that is attached. A volume has one at most.
	published map[string]string
	// connections are those of each volume.
	connections map[string]map[net.Conn]bool
}

const publishedFile = "published.json"

// volumeName is what names of volumes look like; they are parts of paths.
var volumeName = regexp.MustCompile(`^pvc-[0-9a-f-]{36}$`)

var errNotPublished = errors.New("the volume is not attached to this node")

func openStorage(dir string) (*storage, error) {
	s := &storage{dir: dir, published: map[string]string{}, connections: map[string]map[net.Conn]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, publishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, &s.published)
}

func (s *storage) file(volume string) string { return filepath.Join(s.dir, volume+".img") }

// create makes a volume of a size in bytes. An existing one is not changed.
func (s *storage) create(volume string, size int64) error {
	if !volumeName.MatchString(volume) {
		return fmt.Errorf("volume %q: not a name of a volume", volume)
	}
	if _, err := os.Stat(s.file(volume)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := s.file(volume) + ".tmp"
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(temp, size); err != nil {
		return err
	}
	return os.Rename(temp, s.file(volume))
}

// remove takes a volume away with its data; one that is attached stays.
func (s *storage) remove(volume string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node := s.published[volume]; node != "" {
		return fmt.Errorf("volume %s is attached to %s", volume, node)
	}
	if err := os.Remove(s.file(volume)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// publish lets a node use a volume that no other node may use.
func (s *storage) publish(volume, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stat(s.file(volume)); err != nil || !volumeName.MatchString(volume) {
		return fmt.Errorf("volume %q: %w", volume, fs.ErrNotExist)
	}
	if holder := s.published[volume]; holder != "" && holder != node {
		return fmt.Errorf("volume %s is attached to %s: %w", volume, holder, fs.ErrExist)
	}
	s.published[volume] = node
	return s.save()
}

// unpublish cuts a node off from a volume: what it sends from now on changes nothing, and it can't connect again. An empty node
// stands for whichever has it.
func (s *storage) unpublish(volume, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder := s.published[volume]; holder == "" || node != "" && holder != node {
		return nil
	}
	delete(s.published, volume)
	for connection := range s.connections[volume] {
		_ = connection.Close() // Its goroutine ends with it.
	}
	return s.save()
}

// save writes beside the file first, so that it is whole after a power cut.
func (s *storage) save() error {
	text, err := json.Marshal(s.published)
	if err != nil {
		return err
	}
	temp := filepath.Join(s.dir, publishedFile+".tmp")
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.dir, publishedFile))
}

// open gives a node's connection a volume that is attached to the node.
func (s *storage) open(volume, node string, connection net.Conn) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node == "" || s.published[volume] != node {
		return nil, errNotPublished
	}
	file, err := os.OpenFile(s.file(volume), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if s.connections[volume] == nil {
		s.connections[volume] = map[net.Conn]bool{}
	}
	s.connections[volume][connection] = true
	return file, nil
}

func (s *storage) forget(connection net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for volume, connections := range s.connections {
		delete(connections, connection)
		if len(connections) == 0 {
			delete(s.connections, volume)
		}
	}
}

// change does one write of a connection, unless the volume was taken from it: a request that was read before the cut must not be
// carried out after unpublish has answered.
func (s *storage) change(volume, node string, write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published[volume] != node {
		return errNotPublished
	}
	return write()
}
