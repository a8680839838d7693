package load

import (
	"slices"
	"strings"
	"syscall"
	"time"
)

// memory is a file system in memory that breaks its promises when it is asked to. Its clock goes on by a millisecond with each call.
type memory struct {
	clock   time.Time
	content map[string][]byte
	folders map[string]bool
	holders map[string]*memoryFile

	// fails is called before each operation; its error is that of the operation.
	fails func(operation, name string) error
	// written may change what a write leaves in the file; nil drops the write.
	written func(name string, block int, p []byte) []byte
	// freeLocks gives locks to all who ask.
	freeLocks bool
}

func newMemory() *memory {
	return &memory{
		clock: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), content: map[string][]byte{}, folders: map[string]bool{"": true}, holders: map[string]*memoryFile{},
		fails:   func(string, string) error { return nil },
		written: func(_ string, _ int, p []byte) []byte { return p },
	}
}

func (m *memory) now() time.Time { return m.clock }

func (m *memory) call(operation, name string) error {
	m.clock = m.clock.Add(time.Millisecond)
	return m.fails(operation, name)
}

func (m *memory) Create(name string, exclusive bool) (File, error) {
	if err := m.call("create", name); err != nil {
		return nil, err
	}
	if _, there := m.content[name]; there && exclusive {
		return nil, syscall.EEXIST
	} else if !there {
		m.content[name] = nil
	}
	return &memoryFile{memory: m, name: name}, nil
}

func (m *memory) Open(name string) (File, error) {
	if err := m.call("open", name); err != nil {
		return nil, err
	}
	if _, there := m.content[name]; !there {
		return nil, syscall.ENOENT
	}
	return &memoryFile{memory: m, name: name}, nil
}

func (m *memory) Mkdir(name string) error {
	if err := m.call("mkdir", name); err != nil {
		return err
	}
	if m.folders[name] {
		return syscall.EEXIST
	}
	m.folders[name] = true
	return nil
}

func (m *memory) Remove(name string) error {
	if err := m.call("remove", name); err != nil {
		return err
	}
	if _, there := m.content[name]; !there {
		return syscall.ENOENT
	}
	delete(m.content, name)
	return nil
}

func (m *memory) RemoveDirectory(name string) error {
	if err := m.call("remove", name); err != nil {
		return err
	}
	if !m.folders[name] {
		return syscall.ENOENT
	}
	delete(m.folders, name)
	return nil
}

func (m *memory) Rename(from, to string) error {
	if err := m.call("rename", from); err != nil {
		return err
	}
	content, there := m.content[from]
	switch {
	case there:
		delete(m.content, from)
		m.content[to] = content
	case m.folders[from]:
		delete(m.folders, from)
		m.folders[to] = true
	default:
		return syscall.ENOENT
	}
	return nil
}

func (m *memory) Names(folder string) (names []string, err error) {
	if err := m.call("list", folder); err != nil {
		return nil, err
	}
	if !m.folders[folder] {
		return nil, syscall.ENOENT
	}
	add := func(name string) {
		if parent, base := split(name); parent == folder && base != "" {
			names = append(names, base)
		}
	}
	for name := range m.content {
		add(name)
	}
	for name := range m.folders {
		add(name)
	}
	slices.Sort(names)
	return names, nil
}

func (m *memory) Exists(name string) (bool, error) {
	_, there := m.content[name]
	return there || m.folders[name], m.call("exists", name)
}

type memoryFile struct {
	*memory
	name string
}

func (f *memoryFile) WriteBlock(block int, p []byte) error {
	if err := f.call("write", f.name); err != nil {
		return err
	}
	p = f.written(f.name, block, slices.Clone(p))
	if p == nil {
		return nil
	}
	content := f.content[f.name]
	if missing := (block+1)*BlockSize - len(content); missing > 0 {
		content = append(content, make([]byte, missing)...)
	}
	copy(content[block*BlockSize:], p)
	f.content[f.name] = content
	return nil
}

func (f *memoryFile) ReadBlock(block int, p []byte) (int, error) {
	if err := f.call("read", f.name); err != nil {
		return 0, err
	}
	content := f.content[f.name]
	return copy(p, content[min(block*BlockSize, len(content)):]), nil
}

func (f *memoryFile) Sync() error { return f.call("sync", f.name) }

func (f *memoryFile) TryLock() error {
	if err := f.call("lock", f.name); err != nil {
		return err
	}
	if f.holders[f.name] != nil && !f.freeLocks {
		return syscall.EAGAIN
	}
	f.holders[f.name] = f
	return nil
}

func (f *memoryFile) Close() error {
	if f.holders[f.name] == f {
		delete(f.holders, f.name)
	}
	return f.call("close", f.name)
}

// files are the files whose names have this part, in order.
func (m *memory) files(part string) (names []string) {
	for name := range m.content {
		if strings.Contains(name, part) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
