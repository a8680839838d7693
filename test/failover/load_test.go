package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	blocks, blockSize = 16, 4096
	betweenWork       = 50 * time.Millisecond
	dataFile          = "data"
)

// content is a block's, by who wrote it and when.
func content(who string, n int) []byte {
	text := fmt.Sprintf("%s %d. ", who, n)
	return bytes.Repeat([]byte(text), blockSize/len(text)+1)[:blockSize]
}

// load is what clients do in one directory: one writes, commits and reads back, in a file that it has locked; another one opens files by their
// paths, and tries to take that lock.
type load struct {
	directory []string // Its path on its data server.
	writer    *nfsClient
	opener    *nfsClient
	ending    chan struct{}
	done      sync.WaitGroup

	mu      sync.Mutex
	faults  []string
	longest map[string]time.Duration
	last    map[string]time.Time // When the last of a kind began that was done.
	count   int
	// committed has what was committed last to each block.
	committed map[int]int
}

// What is done, and timed, again and again: a block is written, committed and read back; a file is opened by its path and closed, sometimes with a try to
// take the lock.
const writes, opens = "write", "open"

func startLoad(name string, node int, address string, directory []string) *load {
	l := &load{
		directory: directory, ending: make(chan struct{}), longest: map[string]time.Duration{}, last: map[string]time.Time{}, committed: map[int]int{},
		writer: newClient("writer "+name, node, address), opener: newClient("opener "+name, node, address),
	}
	ctx, ready := context.Background(), make(chan struct{})
	l.done.Go(func() { l.note(l.write(ctx, ready)) })
	l.done.Go(func() {
		select {
		case <-ready:
			l.note(l.open(ctx))
		case <-l.ending:
		}
	})
	return l
}

// note notes a fault.
func (l *load) note(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults = append(l.faults, time.Now().Format(time.TimeOnly)+" "+err.Error())
	}
}

// did notes an operation that was done.
func (l *load) did(kind string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.last[kind] = began
	l.longest[kind] = max(l.longest[kind], time.Since(began))
}

// worked reports whether operations of both kinds have begun after a time and are done.
func (l *load) worked(after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults) > 0 || l.last[writes].After(after) && l.last[opens].After(after)
}

func (l *load) write(ctx context.Context, ready chan<- struct{}) error {
	file, err := l.writer.keep(ctx, l.directory, dataFile)
	if err != nil {
		return err
	}
	taken, err := l.writer.take(ctx, file)
	if err != nil || taken {
		return fmt.Errorf("the first lock: %w, taken: %v", err, taken)
	}
	close(ready)
	for n := 0; ; n++ {
		began := time.Now()
		if err := l.record(ctx, file, n); err != nil {
			return err
		}
		l.did(writes, began)
		if !l.wait() {
			return nil
		}
	}
}

// record writes a block, commits it and reads it back. What a server lost that has started again before it was committed is written again.
func (l *load) record(ctx context.Context, file *openFile, n int) error {
	block, data := n%blocks, content("writer", n)
	offset := uint64(block * blockSize)
	for {
		written, err := l.writer.write(ctx, file, offset, data, nfsv4.UNSTABLE4)
		if err != nil {
			return err
		}
		committed, err := l.writer.commit(ctx, file)
		if err != nil {
			return err
		}
		if written == committed {
			break
		}
	}
	l.mu.Lock()
	l.committed[block] = n
	l.mu.Unlock()
	read, err := l.writer.read(ctx, file, offset, blockSize)
	if err == nil && !bytes.Equal(read, data) {
		err = fmt.Errorf("block %d has %.40q after %.40q was committed", block, read, data)
	}
	return err
}

func (l *load) open(ctx context.Context) error {
	rival, err := l.opener.keep(ctx, l.directory, dataFile)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		began := time.Now()
		file, err := l.opener.open(ctx, l.directory, fmt.Sprintf("opened-%d", n%20))
		if err != nil {
			return err
		}
		if err := l.opener.close(ctx, file); err != nil {
			return err
		}
		if n%10 == 0 {
			taken, err := l.opener.take(ctx, rival)
			if err != nil {
				return err
			}
			if !taken {
				return errors.New("another client could take the lock")
			}
		}
		l.did(opens, began)
		if !l.wait() {
			return nil
		}
	}
}

// wait waits for a moment. It returns false once the load ends.
func (l *load) wait() bool {
	select {
	case <-l.ending:
		return false
	case <-time.After(betweenWork):
		return true
	}
}

// end ends the load after what is on its way, and gives all its faults. Its clients say goodbye, so that no data server waits for them later.
func (l *load) end() []string {
	close(l.ending)
	l.done.Wait()
	for _, c := range []*nfsClient{l.writer, l.opener} {
		l.faults = append(l.faults, c.lost...)
		if c.refused > 0 {
			// Linux would not come back for 3 s; a Service always leads somewhere (docs/design/2026-11-22-waiting-room.md).
			l.faults = append(l.faults, fmt.Sprintf("%d connections were refused", c.refused))
		}
		c.goodbye()
	}
	return l.faults
}

// goodbye ends the session and the client ID.
func (c *nfsClient) goodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	for _, file := range c.files {
		if file.lock != nil {
			_, _, _ = c.once(ctx, operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{
				Locktype: nfsv4.WRITE_LT, LockStateid: *file.lock, Length: 1<<64 - 1,
			}}})
		}
		_, _, _ = c.once(ctx, operations{putFH(file.handle), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: file.state}}})
	}
	_, _, _ = c.exchange(ctx, operations{&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: c.id}}})
	_, _, _ = c.exchange(ctx, operations{&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: c.clientID}}})
	c.drop()
}

// check compares what was committed with what other clients see: one of the data server, and one of Ceph's own. The load has ended.
func (l *load) check(ctx context.Context, node int, address string) (faults []string) {
	c := newClient("auditor", node, address)
	defer c.goodbye()
	file, err := c.keep(ctx, l.directory, dataFile)
	if err != nil {
		return []string{err.Error()}
	}
	direct, err := withoutGanesha(l.directory, dataFile)
	if err != nil {
		faults = append(faults, err.Error())
	}
	for block, n := range l.committed {
		// One that was on its way at the end may be there or not.
		good := [][]byte{content("writer", n), content("writer", n+blocks)}
		is := func(found []byte) bool {
			return slices.ContainsFunc(good, func(g []byte) bool { return bytes.Equal(g, found) })
		}
		through, err := c.read(ctx, file, uint64(block*blockSize), blockSize)
		if err != nil || !is(through) {
			faults = append(faults, fmt.Sprintf("block %d: another client reads %.40q, want %.40q (%v)", block, through, good[0], err))
		}
		if beside := direct[min(block*blockSize, len(direct)):min((block+1)*blockSize, len(direct))]; !is(beside) {
			faults = append(faults, fmt.Sprintf("block %d: Ceph has %.40q, want %.40q", block, beside, good[0]))
		}
	}
	return faults
}

// withoutGanesha reads a file by ceph-fuse.
func withoutGanesha(directory []string, name string) ([]byte, error) {
	// A share's subvolume is a directory in one of the FileServer's group.
	path := filepath.Join(append(append([]string{os.Getenv("HOWDAH_CEPH_MOUNTED"), "volumes", "howdah*", "*", "*"}, directory[2:]...), name)...)
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s leads to %d files", path, len(found))
	}
	return os.ReadFile(found[0])
}
