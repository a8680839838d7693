package failover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// retryEvery is how long a client waits after NFS4ERR_DELAY and NFS4ERR_GRACE. Linux begins with 0.1 s for DELAY, and waits 1 s in grace.
const retryEvery = 100 * time.Millisecond

// nfsClient is a client that goes on when its server has started again: it reclaims what it had open and locked.
type nfsClient struct {
	*session
	found bool // There is a session.
	files []*openFile
	lost  []string // What it could not reclaim.
}

// openFile is a file that the client has open.
type openFile struct {
	name   string
	handle []byte
	state  nfsv4.Stateid4
	// lock is the state of a lock of the whole file, if the client holds one.
	lock *nfsv4.Stateid4
}

// newClient is a client on a node, for the server at an address.
func newClient(owner string, node int, address string) *nfsClient {
	c := &nfsClient{session: &session{owner: owner, connect: func(ctx context.Context) (net.Conn, error) { return dialFrom(ctx, node, address) }}}
	_, _ = rand.Read(c.verifier[:]) // It never fails.
	return c
}

// do executes operations, which are made again after a recovery because that changes states, until there is an answer that is final.
func (c *nfsClient) do(ctx context.Context, make func() operations) (nfsv4.Nfsstat4, results, error) {
	for ctx.Err() == nil {
		if !c.found {
			if err := c.recover(ctx); err != nil {
				if !temporary(err) {
					return 0, nil, err
				}
				pause(ctx)
				continue
			}
		}
		status, list, err := c.once(ctx, make())
		switch {
		case err != nil:
			return 0, nil, err
		case status == nfsv4.NFS4ERR_DELAY || status == nfsv4.NFS4ERR_GRACE:
			pause(ctx)
		case status == nfsv4.NFS4ERR_BADSESSION || status == nfsv4.NFS4ERR_DEADSESSION || status == nfsv4.NFS4ERR_STALE_CLIENTID:
			c.found = false
		default:
			return status, list, nil
		}
	}
	return 0, nil, ctx.Err()
}

// once sends a request, over as many connections as it takes.
func (c *nfsClient) once(ctx context.Context, all operations) (nfsv4.Nfsstat4, results, error) {
	c.sequence++
	for ctx.Err() == nil {
		status, list, err := c.exchange(ctx, c.numbered(all))
		if err == nil {
			if status == nfsv4.NFS4_OK || len(list) > 1 {
				return status, list[1:], nil
			}
			// SEQUENCE itself, which does not count.
			c.sequence--
			return status, nil, nil
		}
	}
	return 0, nil, ctx.Err()
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryEvery):
	}
}

// temporary is true for what may be different at the next try.
func temporary(err error) bool {
	var answered *failure
	if !errors.As(err, &answered) {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch answered.status {
	case nfsv4.NFS4ERR_DELAY, nfsv4.NFS4ERR_GRACE, nfsv4.NFS4ERR_STALE_CLIENTID, nfsv4.NFS4ERR_CLID_INUSE, nfsv4.NFS4ERR_BADSESSION, nfsv4.NFS4ERR_SEQ_MISORDERED:
		return true
	}
	return false
}

// recover makes a session, and reclaims all that the client had if the server does not know it.
func (c *nfsClient) recover(ctx context.Context) error {
	known, err := c.establish(ctx)
	if err != nil {
		return err
	}
	if !known {
		for _, file := range c.files {
			if err := c.reclaim(ctx, file); err != nil {
				return err
			}
		}
		status, _, err := c.once(ctx, operations{&nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}})
		if err != nil || status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_COMPLETE_ALREADY {
			return failed("RECLAIM_COMPLETE", status, err)
		}
	}
	c.found = true
	return nil
}

// reclaim takes a file, and its lock, that the client had before the server started.
func (c *nfsClient) reclaim(ctx context.Context, file *openFile) error {
	for _, step := range []struct {
		what string
		all  func() operations
		take func(nfsv4.NfsResop4)
	}{
		{"reclaim the open of " + file.name, func() operations {
			return operations{putFH(file.handle), c.openBy(&nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, &nfsv4.OpenClaim4_CLAIM_PREVIOUS{DelegateType: nfsv4.OPEN_DELEGATE_NONE})}
		}, func(result nfsv4.NfsResop4) { file.state = opened(result) }},
		{"reclaim the lock of " + file.name, func() operations {
			if file.lock == nil {
				return nil
			}
			return operations{putFH(file.handle), c.locking(file, true)}
		}, func(result nfsv4.NfsResop4) { *file.lock = locked(result) }},
	} {
		for done := false; !done; {
			all := step.all()
			if all == nil {
				break
			}
			status, list, err := c.once(ctx, all)
			switch {
			case err != nil:
				return err
			case status == nfsv4.NFS4_OK:
				step.take(list[1])
				done = true
			case status == nfsv4.NFS4ERR_DELAY || status == nfsv4.NFS4ERR_GRACE:
				pause(ctx)
			case status == nfsv4.NFS4ERR_BADSESSION || status == nfsv4.NFS4ERR_STALE_CLIENTID:
				return failed(step.what, status, nil)
			default:
				c.lost = append(c.lost, failed(step.what, status, nil).Error())
				done = true
			}
		}
	}
	return nil
}

func (c *nfsClient) openBy(how nfsv4.Openflag4, claim nfsv4.OpenClaim4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_BOTH, Owner: nfsv4.StateOwner4{Clientid: c.clientID, Owner: []byte("process")}, Openhow: how, Claim: claim,
	}}
}

// locking is LOCK of the whole of a file.
func (c *nfsClient) locking(file *openFile, reclaim bool) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: nfsv4.WRITE_LT, Reclaim: reclaim, Length: 1<<64 - 1, Locker: &nfsv4.Locker4_TRUE{
		OpenOwner: nfsv4.OpenToLockOwner4{OpenStateid: file.state, LockOwner: nfsv4.StateOwner4{Clientid: c.clientID, Owner: []byte("process")}},
	}}}
}

func putFH(handle []byte) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
}

// at goes to a path of the server.
func at(names []string) operations {
	all := operations{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range names {
		all = append(all, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return all
}

func opened(result nfsv4.NfsResop4) nfsv4.Stateid4 {
	return result.(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
}

func locked(result nfsv4.NfsResop4) nfsv4.Stateid4 {
	return result.(*nfsv4.NfsResop4_OP_LOCK).Oplock.(*nfsv4.Lock4res_NFS4_OK).Resok4.LockStateid
}

// open opens a file of a directory by its path, and makes it if there is none.
func (c *nfsClient) open(ctx context.Context, directory []string, name string) (*openFile, error) {
	status, list, err := c.do(ctx, func() operations {
		return append(at(directory), c.openBy(&nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}}, &nfsv4.OpenClaim4_CLAIM_NULL{File: name}), &nfsv4.NfsArgop4_OP_GETFH{})
	})
	if err != nil || status != nfsv4.NFS4_OK {
		return nil, failed("open "+name, status, err)
	}
	return &openFile{
		name: name, state: opened(list[len(list)-2]),
		handle: list[len(list)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object,
	}, nil
}

// keep opens a file that the client has open from then on.
func (c *nfsClient) keep(ctx context.Context, directory []string, name string) (*openFile, error) {
	file, err := c.open(ctx, directory, name)
	if err == nil {
		c.files = append(c.files, file)
	}
	return file, err
}

func (c *nfsClient) close(ctx context.Context, file *openFile) error {
	status, _, err := c.do(ctx, func() operations {
		return operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: file.state}}}
	})
	// A server that has started again does not know what was open for a moment.
	if err != nil || status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_STALE_STATEID && status != nfsv4.NFS4ERR_BAD_STATEID {
		return failed("close "+file.name, status, err)
	}
	return nil
}

// take takes a lock of a whole file. It reports whether another client has it.
func (c *nfsClient) take(ctx context.Context, file *openFile) (taken bool, err error) {
	status, list, err := c.do(ctx, func() operations { return operations{putFH(file.handle), c.locking(file, false)} })
	switch {
	case err == nil && status == nfsv4.NFS4ERR_DENIED:
		return true, nil
	case err != nil || status != nfsv4.NFS4_OK:
		return false, failed("lock "+file.name, status, err)
	}
	state := locked(list[1])
	file.lock = &state
	return false, nil
}

// write writes a block. It returns what tells one start of the server from another.
func (c *nfsClient) write(ctx context.Context, file *openFile, offset uint64, data []byte, how nfsv4.StableHow4) (verifier [8]byte, err error) {
	status, list, err := c.do(ctx, func() operations {
		return operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: file.state, Offset: offset, Stable: how, Data: data}}}
	})
	if err != nil || status != nfsv4.NFS4_OK {
		return verifier, failed("write "+file.name, status, err)
	}
	written := list[1].(*nfsv4.NfsResop4_OP_WRITE).Opwrite.(*nfsv4.Write4res_NFS4_OK).Resok4
	if int(written.Count) != len(data) {
		return verifier, fmt.Errorf("write %s: %d of %d bytes", file.name, written.Count, len(data))
	}
	return written.Writeverf, nil
}

func (c *nfsClient) commit(ctx context.Context, file *openFile) (verifier [8]byte, err error) {
	status, list, err := c.do(ctx, func() operations {
		return operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_COMMIT{}}
	})
	if err != nil || status != nfsv4.NFS4_OK {
		return verifier, failed("commit "+file.name, status, err)
	}
	return list[1].(*nfsv4.NfsResop4_OP_COMMIT).Opcommit.(*nfsv4.Commit4res_NFS4_OK).Resok4.Writeverf, nil
}

func (c *nfsClient) read(ctx context.Context, file *openFile, offset uint64, count uint32) ([]byte, error) {
	status, list, err := c.do(ctx, func() operations {
		return operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: file.state, Offset: offset, Count: count}}}
	})
	if err != nil || status != nfsv4.NFS4_OK {
		return nil, failed("read "+file.name, status, err)
	}
	return list[1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data, nil
}
