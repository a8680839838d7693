// Package cache makes, once, everything a lab needs that takes time: programs,
// the nodes' root file system and the base disk with its images.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// DefaultDir is where the cache is unless HOWDAH_CACHE says otherwise.
const DefaultDir = "/var/cache/howdah"

// Cache is a folder of finished products, each with a stamp that says what it
// was made from.
type Cache struct {
	Dir    string
	Source string // hack/lab in the checkout.
	Say    func(format string, args ...any)
	// BaseInUse reports whether a lab needs a base disk.
	BaseInUse func(disk string) bool
	// pace is how far the product is that is being made.
	pace *pace
}

// Part is a part of the cache that one command at a time may fill. There are several,
// because a long build of an image need not keep a lab from coming up.
type Part string

// The parts: what nodes are made of, the project's images, and a machine whose kernel serves NFS.
const (
	Machines   Part = "machines"
	Images     Part = "images"
	NFSServers Part = "nfs-servers"
)

// Open returns the cache of this host and takes the lock of one part.
func Open(source string, part Part, say func(string, ...any)) (*Cache, *sys.Lock, error) {
	dir := os.Getenv("HOWDAH_CACHE")
	if dir == "" {
		dir = DefaultDir
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	lock, err := sys.TakeLock(filepath.Join(dir, string(part)+".lock"), func() {
		say("waiting for another lab command that fills %s (%s)", dir, part)
	})
	if err != nil {
		return nil, nil, err
	}
	return &Cache{Dir: dir, Source: source, Say: say, BaseInUse: func(string) bool { return true }}, lock, nil
}

// Path is a file of the cache.
func (c *Cache) Path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

// Bin is where the programs are.
func (c *Cache) Bin(name string) string {
	return c.Path("bin", name)
}

// product is one thing in the cache.
type product struct {
	name  string
	files []string // What must exist for it to be whole.
	stamp string   // What it is made from.
	make  func() error
}

// ensure makes the product unless its stamp says that it is made already.
func (c *Cache) ensure(p product) error {
	stampFile := c.Path("stamps", p.name)
	old, _ := os.ReadFile(stampFile) // None is as good as a wrong one.
	whole := string(old) == p.stamp
	for _, file := range p.files {
		whole = whole && sys.Exists(file)
	}
	if whole {
		return nil
	}
	started := time.Now()
	c.Say("making %s", p.name)
	if err := os.Remove(stampFile); err != nil && !os.IsNotExist(err) {
		return err
	}
	stop := c.remind(p.name)
	err := p.make()
	stop()
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	c.Say("made %s in %s", p.name, time.Since(started).Round(100*time.Millisecond))
	return sys.WriteFile(stampFile, []byte(p.stamp), 0o644)
}

// hash sums up strings into a stamp.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:24]
}

// hashFiles sums up the contents of files, whatever their order.
func hashFiles(files ...string) (string, error) {
	sort.Strings(files)
	sum := sha256.New()
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s\x00", filepath.Base(file))
		_, err = io.Copy(sum, in)
		in.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:24], nil
}
