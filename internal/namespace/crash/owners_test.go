package crash

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/utils/ptr"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// dataServers are the data servers' file systems: what is at a path of an address. Contents tell directories apart.
type dataServers struct {
	mu   sync.Mutex
	dirs map[string]map[string]string
	// attributes are owner, group and mode of a path of an address. Without, they are those of put.
	attributes map[string]nfs.Attributes
	// silent are the addresses that don't answer.
	silent map[string]bool
	// denied is a path of a share in which only root makes anything.
	denied string
	// stays is a directory of the share that only root renames.
	stays string
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

func (d *dataServers) mkdir(address, name, content string, attributes nfs.Attributes) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, path.Dir(name)); err != nil {
		return err
	}
	if _, ok := d.dirs[address][name]; ok {
		return refused("CREATE", name, nfsv4.NFS4ERR_EXIST)
	}
	d.dirs[address][name] = content
	d.attributes[address+name] = attributes
	return nil
}

// drop loses a directory.
func (d *dataServers) drop(address, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dirs[address], name)
}

// attributesOf are those of a path. d.mu is held.
func (d *dataServers) attributesOf(address, name string) nfs.Attributes {
	if known, ok := d.attributes[address+name]; ok {
		return known
	}
	return nfs.Attributes{Type: nfsv4.NF4DIR, Mode: 0o755, Owner: 1000, Group: 1000, Links: 2}
}

func (d *dataServers) set(address, name string, settings nfs.Settings) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, name); err != nil {
		return err
	}
	now := d.attributesOf(address, name)
	now.Mode, now.Owner, now.Group = ptr.Deref(settings.Mode, now.Mode), ptr.Deref(settings.Owner, now.Owner), ptr.Deref(settings.Group, now.Group)
	d.attributes[address+name] = now
	return nil
}

// writable reports whether a user may make something in a directory. Groups don't count.
func (d *dataServers) writable(address, dir string, uid uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attributesOf(address, dir)
	if a.Owner == uid {
		return a.Mode>>6&3 == 3
	}
	return a.Mode&3 == 3
}

// silence has a data server answer no more, or again.
func (d *dataServers) silence(address string, silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent[address] = silent
}

func (d *dataServers) isSilent(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.silent[address]
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
	delete(d.attributes, address+name)
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
			attributes := d.attributesOf(address, name)
			delete(dirs, name)
			delete(d.attributes, address+name)
			dirs[to+strings.TrimPrefix(name, from)] = content
			d.attributes[address+to+strings.TrimPrefix(name, from)] = attributes
		}
	}
	return nil
}

func (d *dataServers) stat(address, name string) (nfs.Attributes, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attributesOf(address, name), d.missing(address, name)
}

func (d *dataServers) readDir(address, name string) ([]nfs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.missing(address, name); err != nil {
		return nil, err
	}
	var out []nfs.DirEntry
	for _, entry := range d.names(address, name) {
		a := d.attributesOf(address, path.Join(name, entry))
		out = append(out, nfs.DirEntry{Name: entry, IsDir: true, Mode: a.Mode, Owner: a.Owner, Group: a.Group})
	}
	return out, nil
}

// nfsClient is the data servers as a process reaches them. It implements directories.Owners.
type nfsClient struct{ p *process }

// callTimeout is that of the real client.
const callTimeout = 8 * time.Second

func (c *nfsClient) do(ctx context.Context, what, address, name string, call func(d *dataServers) error) error {
	if c.p.world.data.isSilent(address) {
		pause(ctx, callTimeout)
		return errLost
	}
	return c.p.step(ctx, "NFS "+what+" "+address+name, func() error { return call(c.p.world.data) })
}

func (c *nfsClient) Mkdir(ctx context.Context, address, name string, creds nfs.Credentials, opts nfs.MkdirOptions) error {
	return c.do(ctx, "mkdir", address, name, func(d *dataServers) error {
		if creds.UID != 0 && (path.Dir(name) == "/s/0/"+d.denied || !d.writable(address, path.Dir(name), creds.UID)) {
			return refused("CREATE", name, nfsv4.NFS4ERR_ACCESS)
		}
		attributes := nfs.Attributes{Type: nfsv4.NF4DIR, Mode: opts.Mode, Owner: ptr.Deref(opts.Owner, creds.UID), Group: ptr.Deref(opts.Group, creds.GID), Links: 2}
		return d.mkdir(address, name, "new", attributes)
	})
}

func (c *nfsClient) Rmdir(ctx context.Context, address, name string, _ nfs.Credentials) error {
	return c.do(ctx, "rmdir", address, name, func(d *dataServers) error { return d.rmdir(address, name) })
}

func (c *nfsClient) Rename(ctx context.Context, address, from, to string, creds nfs.Credentials) error {
	return c.do(ctx, "rename", address, from+" "+to, func(d *dataServers) error {
		if creds.UID != 0 && d.stays != "" && from == "/s/0/"+d.stays {
			return refused("RENAME", from, nfsv4.NFS4ERR_ACCESS)
		}
		return d.rename(address, from, to)
	})
}

func (c *nfsClient) SetAttributes(ctx context.Context, address, name string, _ nfs.Credentials, settings nfs.Settings) error {
	return c.do(ctx, "setattr", address, name, func(d *dataServers) error { return d.set(address, name, settings) })
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
