package crash

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// dataServers are the data servers' file systems: what is at a path of an address. Contents tell directories apart.
type dataServers struct {
	mu   sync.Mutex
	dirs map[string]map[string]string
	// denied is a path of a share in which only root makes anything.
	denied string
}

// at gives a data server's paths, with contents.
func (d *dataServers) at(address string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.dirs[address])
}

func refused(op, name string, status nfsv4.Nfsstat4) error {
	return &nfs.StatusError{Op: op, Status: status, Path: name}
}

// missing is the error of a walk to a path, if an element is missing. d.mu is held.
func (d *dataServers) missing(address, name string) error {
	for at := 1; at < len(name); at++ {
		if at+1 == len(name) || name[at+1] == '/' {
			if _, ok := d.dirs[address][name[:at+1]]; !ok {
				return refused("LOOKUP", name[:at+1], nfsv4.NFS4ERR_NOENT)
			}
		}
	}
	return nil
}

func (d *dataServers) names(address, dir string) []string {
	var out []string
	for name := range d.dirs[address] {
		if path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	slices.Sort(out)
	return out
}

func (d *dataServers) mkdir(address, name, content string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, path.Dir(name)); err != nil {
		return err
	}
	if _, ok := d.dirs[address][name]; ok {
		return refused("CREATE", name, nfsv4.NFS4ERR_EXIST)
	}
	d.dirs[address][name] = content
	return nil
}

func (d *dataServers) rmdir(address, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, path.Dir(name)); err != nil {
		return err
	}
	if _, ok := d.dirs[address][name]; !ok {
		return refused("REMOVE", name, nfsv4.NFS4ERR_NOENT)
	}
	if len(d.names(address, name)) > 0 {
		return refused("REMOVE", name, nfsv4.NFS4ERR_NOTEMPTY)
	}
	delete(d.dirs[address], name)
	return nil
}

// rename replaces an empty directory, as RFC 8881 section 18.26.3 has it.
func (d *dataServers) rename(address, from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirs := d.dirs[address]
	if err := d.missing(address, path.Dir(to)); err != nil {
		return err
	}
	if err := d.missing(address, from); err != nil {
		return refused("RENAME", from, nfsv4.NFS4ERR_NOENT)
	}
	if _, ok := dirs[to]; ok && len(d.names(address, to)) > 0 {
		return refused("RENAME", to, nfsv4.NFS4ERR_EXIST)
	}
	for name, content := range maps.Clone(dirs) {
		if name == from || strings.HasPrefix(name, from+"/") {
			delete(dirs, name)
			dirs[to+strings.TrimPrefix(name, from)] = content
		}
	}
	return nil
}

func (d *dataServers) stat(address, name string) (nfs.Attributes, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return nfs.Attributes{Type: nfsv4.NF4DIR, Mode: 0o755, Links: 2}, d.missing(address, name)
}

func (d *dataServers) readDir(address, name string) ([]nfs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, name); err != nil {
		return nil, err
	}
	var out []nfs.DirEntry
	for _, entry := range d.names(address, name) {
		out = append(out, nfs.DirEntry{Name: entry, IsDir: true, Mode: 0o755})
	}
	return out, nil
}

// nfsClient is the data servers as a process reaches them. It implements directories.Owners.
type nfsClient struct{ p *process }

func (c *nfsClient) do(ctx context.Context, what, address, name string, call func(d *dataServers) error) error {
	return c.p.step(ctx, "NFS "+what+" "+address+name, func() error { return call(c.p.world.data) })
}

func (c *nfsClient) Mkdir(ctx context.Context, address, name string, creds nfs.Credentials, _ nfs.MkdirOptions) error {
	return c.do(ctx, "mkdir", address, name, func(d *dataServers) error {
		if creds.UID != 0 && path.Dir(name) == "/s/0/"+d.denied {
			return refused("CREATE", name, nfsv4.NFS4ERR_ACCESS)
		}
		return d.mkdir(address, name, "new")
	})
}

func (c *nfsClient) Rmdir(ctx context.Context, address, name string, _ nfs.Credentials) error {
	return c.do(ctx, "rmdir", address, name, func(d *dataServers) error { return d.rmdir(address, name) })
}

func (c *nfsClient) Rename(ctx context.Context, address, from, to string, _ nfs.Credentials) error {
	return c.do(ctx, "rename", address, from+" "+to, func(d *dataServers) error { return d.rename(address, from, to) })
}

func (c *nfsClient) SetAttributes(ctx context.Context, address, name string, _ nfs.Credentials, _ nfs.Settings) error {
	return c.do(ctx, "setattr", address, name, func(d *dataServers) error {
		_, err := d.stat(address, name)
		return err
	})
}

func (c *nfsClient) Stat(ctx context.Context, address, name string, _ nfs.Credentials) (attributes nfs.Attributes, err error) {
	err = c.do(ctx, "stat", address, name, func(d *dataServers) (err error) {
		attributes, err = d.stat(address, name)
		return err
	})
	return attributes, err
}

func (c *nfsClient) Entries(ctx context.Context, address, name string, _ nfs.Credentials, yield func(nfs.DirEntry) bool) error {
	var entries []nfs.DirEntry
	err := c.do(ctx, "readdir", address, name, func(d *dataServers) (err error) {
		entries, err = d.readDir(address, name)
		return err
	})
	for _, entry := range entries {
		if err != nil || !yield(entry) {
			break
		}
	}
	return err
}
