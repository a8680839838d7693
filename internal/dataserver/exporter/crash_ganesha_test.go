package exporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// modelGanesha does with real directories what ganesha does: an export is the directory that was at its path when it was made,
// wherever that is moved.
type modelGanesha struct {
	p          *modelProcess
	configFile string
	changed    func()

	mu      sync.Mutex
	now     supervisor.State
	config  ganesha.Config
	exports map[string]*modelExport // By pseudo path.
	// odd are pseudo paths that it refuses to take or to let go with the first reload (measured).
	odd    map[string]bool
	killed chan struct{}
}

type modelExport struct {
	ganesha.Export
	root *os.Root
}

func (g *modelGanesha) Restart() {}

func (g *modelGanesha) SetRounds([]byte) error {
	g.p.before("tell how often Export_Ids were used")
	return nil
}

func (g *modelGanesha) State() supervisor.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

func (g *modelGanesha) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop()
	if g.killed != nil {
		close(g.killed)
		g.killed = nil
	}
}

// drop ends all exports. g.mu is held.
func (g *modelGanesha) drop() {
	g.now.PID, g.now.Initialized = 0, false
	for _, export := range g.exports {
		_ = export.root.Close()
	}
	g.exports = map[string]*modelExport{}
}

func (g *modelGanesha) Hold() {}

func (g *modelGanesha) Run(ctx context.Context) {
	for ctx.Err() == nil && !g.p.isDead() {
		g.once(ctx)
		g.changed()
		pauseFor(ctx, supervisor.FirstBackoff)
	}
}

func (g *modelGanesha) once(ctx context.Context) {
	text, err := os.ReadFile(g.configFile)
	if err != nil {
		return
	}
	killed := make(chan struct{})
	g.mu.Lock()
	g.killed = killed
	g.now = supervisor.State{Starts: g.now.Starts + 1, PID: 1, Config: string(text), Since: time.Now(), LastExit: g.now.LastExit}
	g.mu.Unlock()
	g.changed()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop()
		g.now.LastExit = "was killed"
	}()
	if !pauseFor(ctx, g.p.model.latency()) {
		return
	}
	select {
	case <-killed:
		return
	default:
	}
	if err := g.load(false); err != nil {
		g.p.model.fault("ganesha can't read its configuration: %v", err)
	}
	g.mu.Lock()
	g.now.Initialized = true
	g.mu.Unlock()
	g.changed()
	select {
	case <-ctx.Done():
	case <-killed:
	}
}

func (g *modelGanesha) Reload(ctx context.Context) error {
	return g.p.step(ctx, "reload ganesha", func() error {
		if g.State().PID == 0 || !g.State().Initialized {
			return errors.New("ganesha is not up")
		}
		return g.load(true)
	})
}

// load takes the configuration file as it is now. Exports that stay are not touched.
func (g *modelGanesha) load(again bool) error {
	text, err := os.ReadFile(g.configFile)
	if err != nil {
		return err
	}
	config, err := ganeshatest.Parse(string(text))
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config = config
	wanted := map[string]ganesha.Export{}
	for _, export := range config.Served() {
		wanted[export.Pseudo] = export
	}
	for pseudo, export := range g.exports {
		if want, stays := wanted[pseudo]; stays && want.ID == export.ID && want.Path == export.Path {
			continue
		}
		if again && g.isOdd(pseudo+" goes") {
			continue
		}
		_ = export.root.Close()
		delete(g.exports, pseudo)
	}
	for pseudo, export := range wanted {
		if g.exports[pseudo] != nil || again && g.isOdd(pseudo+" comes") {
			continue
		}
		root, err := os.OpenRoot(export.Path)
		if err != nil {
			g.p.model.note("%s: ganesha leaves out %s: %v", g.p.name, pseudo, err)
			continue
		}
		g.exports[pseudo] = &modelExport{export, root}
	}
	return nil
}

// isOdd: now and then it takes a second reload. g.mu is held.
func (g *modelGanesha) isOdd(what string) bool {
	if g.odd[what] {
		delete(g.odd, what)
		return false
	}
	if g.p.model.oneIn(6) {
		g.odd[what] = true
		return true
	}
	return false
}

// The prober's part: it looks at ganesha through NFS.

func (g *modelGanesha) Null(context.Context) error { return nil }

func (g *modelGanesha) Identity(context.Context) (owner, scope string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now.PID == 0 {
		return "", "", errors.New("connection refused")
	}
	return g.config.ServerOwner, g.config.ServerScope, nil
}

func (g *modelGanesha) Look(ctx context.Context, paths []string) (sights []server.Sight, err error) {
	err = g.p.step(ctx, "look at "+strings.Join(paths, " "), func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.now.PID == 0 {
			return errors.New("connection refused")
		}
		sights = nil
		for _, name := range paths {
			seen := server.Sight{Err: server.ErrNotThere}
			if export := g.exports[name]; export != nil {
				seen = server.Sight{Fsid: server.FileSystem{Major: ganesha.FilesystemMajor, Minor: uint64(export.ID)}}
			}
			sights = append(sights, seen)
		}
		return nil
	})
	return sights, err
}

func (g *modelGanesha) Forge(context.Context, string) error { return nil }

// in calls with the root of the export that has the path, and the path in it. What no export has can't be asked for (owners.Pool).
func (g *modelGanesha) in(name string, call func(root *os.Root, rel string) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for pseudo, export := range g.exports {
		if name == pseudo || strings.HasPrefix(name, pseudo+"/") {
			rel := strings.TrimPrefix(strings.TrimPrefix(name, pseudo), "/")
			if rel == "" {
				rel = "."
			}
			return call(export.root, rel)
		}
	}
	return fmt.Errorf("%s is in no export that data server %s shows", name, g.p.name)
}

// modelNFS is the data servers as a namespace server reaches them. It implements directories.Owners.
type modelNFS struct{ p *modelProcess }

func (c *modelNFS) do(ctx context.Context, op, address, name string, call func(root *os.Root, rel string) error) error {
	return c.p.step(ctx, "NFS "+op+" "+address+name, func() error {
		g := c.p.model.ganeshaAt(address)
		if g == nil {
			return errors.New("connection refused")
		}
		return g.in(name, func(root *os.Root, rel string) error { return asNFS(op, name, call(root, rel)) })
	})
}

// asNFS is the status that ganesha answers for an error.
func asNFS(op, name string, err error) error {
	status := nfsv4.NFS4ERR_IO
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		status = nfsv4.NFS4ERR_NOENT
	case strings.Contains(err.Error(), "not empty"):
		status = nfsv4.NFS4ERR_NOTEMPTY
	case errors.Is(err, os.ErrExist):
		status = nfsv4.NFS4ERR_EXIST
	}
	return &nfs.StatusError{Op: strings.ToUpper(op), Status: status, Path: name}
}

func (c *modelNFS) Mkdir(ctx context.Context, address, name string, _ nfs.Credentials, _ nfs.MkdirOptions) error {
	return c.do(ctx, "mkdir", address, name, func(root *os.Root, rel string) error { return root.Mkdir(rel, 0o755) })
}

func (c *modelNFS) Rmdir(ctx context.Context, address, name string, _ nfs.Credentials) error {
	return c.do(ctx, "rmdir", address, name, func(root *os.Root, rel string) error { return root.Remove(rel) })
}

func (c *modelNFS) Rename(ctx context.Context, address, from, to string, _ nfs.Credentials) error {
	return c.do(ctx, "rename", address, from, func(root *os.Root, rel string) error {
		return root.Rename(rel, path.Join(strings.TrimSuffix(rel, path.Base(from)), path.Base(to)))
	})
}

func (c *modelNFS) SetAttributes(ctx context.Context, address, name string, _ nfs.Credentials, _ nfs.Settings) error {
	return c.do(ctx, "setattr", address, name, func(root *os.Root, rel string) error {
		_, err := root.Stat(rel)
		return err
	})
}

func (c *modelNFS) Stat(ctx context.Context, address, name string, _ nfs.Credentials) (attributes nfs.Attributes, err error) {
	attributes = nfs.Attributes{Type: nfsv4.NF4DIR, Mode: 0o755, Links: 2}
	err = c.do(ctx, "stat", address, name, func(root *os.Root, rel string) error {
		_, err := root.Stat(rel)
		return err
	})
	return attributes, err
}

func (c *modelNFS) Entries(ctx context.Context, address, name string, _ nfs.Credentials, yield func(nfs.DirEntry) bool) error {
	var entries []nfs.DirEntry
	err := c.do(ctx, "readdir", address, name, func(root *os.Root, rel string) error {
		directory, err := root.Open(rel)
		if err != nil {
			return err
		}
		defer func() { _ = directory.Close() }()
		found, err := directory.ReadDir(-1)
		entries = nil
		for _, entry := range found {
			entries = append(entries, nfs.DirEntry{Name: entry.Name(), IsDir: entry.IsDir(), Mode: 0o755})
		}
		slices.SortFunc(entries, func(a, b nfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
		return err
	})
	for _, entry := range entries {
		if err != nil || !yield(entry) {
			break
		}
	}
	return err
}
