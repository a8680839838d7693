package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// envEntries is how many entries the largest directory gets: 3000000 takes minutes.
const envEntries = "HOWDAH_HOSTILE_ENTRIES"

// fifo: opening it waits for a process that writes.
func fifo(_ context.Context, w *world, from string) (string, error) {
	answered, last := times(50, func(i int) error {
		s, err := login(from, 2, 1000, fmt.Sprint("fifo ", i))
		if err != nil {
			return err
		}
		defer s.leave()
		for code := uint32(opGetXattr); code <= opRemoveXattr; code++ {
			if _, err := s.run(0, putFH(w.handles["share/dir/fifo"]), raw(extended(code, values{name: "a"}))); err != nil {
				return err
			}
		}
		for _, shape := range generated(uint32(nfsv4.OP_OPEN)) {
			op := encode(uint32(nfsv4.OP_OPEN), shape, values{client: s.clientID, name: "fifo", attributes: modeAttr, bytes: []byte("12345678")})
			if _, err := s.run(0, putFH(w.handles["share/dir/fifo"]), raw(op)); err != nil {
				return err
			}
		}
		return nil
	})
	if answered == 0 {
		return "", fmt.Errorf("calls about a FIFO are not answered: %w", last)
	}
	return fmt.Sprintf("%d of 50 clients had all answers (%v)", answered, last), nil
}

// devices tries to open a device node, and to read and write it without opening it. Its driver must not be reached.
func devices(ctx context.Context, w *world, from string) (string, error) {
	var fault error
	note := again(ctx, func() error {
		s, err := login(from, 2, 0, "devices")
		if err != nil {
			return err
		}
		defer s.leave()
		handle := w.handles["share/dir/device"]
		for _, op := range []operation{
			&nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Count: 4096}}, &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Data: []byte("zeros")}},
			&nfsv4.NfsArgop4_OP_COMMIT{}, &nfsv4.NfsArgop4_OP_SEEK{},
			open("devices", s.clientID, nfsv4.OPEN4_SHARE_ACCESS_READ, &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, &nfsv4.OpenClaim4_CLAIM_FH{}),
		} {
			answer, err := s.run(0, putFH(handle), op)
			if err != nil {
				return err
			}
			if answer.status == nfsv4.NFS4_OK {
				fault = fmt.Errorf("%T of a device node is done", op)
			}
		}
		return nil
	})
	return note, fault
}

// manyEntries has 20 clients walk a large directory, all attributes included, and remove and rename it. Each answer is a part of it, so
// others are served, and what ganesha keeps of it is bounded.
func manyEntries(ctx context.Context, w *world, from string) (string, error) {
	count, err := makeMany(w, from)
	if err != nil {
		return "", fmt.Errorf("making the directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdLasts) // It begins when the directory is there.
	defer cancel()
	var mutex sync.Mutex
	most, slowest, fault := 0, time.Duration(0), error(nil)
	worked, last := times(20, func(i int) error {
		s, err := login(from, 1, 0, fmt.Sprint("many ", i))
		if err != nil {
			return err
		}
		defer s.leave()
		handle, err := s.handle(share, "dir", "many")
		if err != nil {
			return err
		}
		seen := 0
		readdir := nfsv4.Readdir4args{Dircount: 1 << 20, Maxcount: 1 << 20, AttrRequest: []uint32{1<<nfsv4.FATTR4_FILEID | 1<<nfsv4.FATTR4_SIZE | 1<<nfsv4.FATTR4_FILEHANDLE}}
		for done := false; !done && ctx.Err() == nil; {
			began := time.Now()
			answer, err := s.run(0, putFH(handle), &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: readdir})
			if err != nil {
				return err
			}
			if answer.status != nfsv4.NFS4_OK || len(answer.results) < 3 {
				return &statusError{"READDIR", answer.status}
			}
			listed := answer.results[2].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4
			for entry := listed.Reply.Entries; entry != nil; entry = entry.Nextentry {
				readdir.Cookie = entry.Cookie
				seen++
			}
			readdir.Cookieverf, done = listed.Cookieverf, listed.Reply.Eof
			_, err = s.run(0, append(lookUp(share, "dir"), &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "many"}})...)
			if err != nil {
				return err
			}
			mutex.Lock()
			slowest = max(slowest, time.Since(began))
			mutex.Unlock()
			if done && seen != count {
				fault = fmt.Errorf("READDIR listed %d of %d entries", seen, count)
			}
		}
		mutex.Lock()
		most = max(most, seen)
		mutex.Unlock()
		return nil
	})
	note := fmt.Sprintf("%d clients saw at most %d of %d entries, the slowest answer after %s (%v)", worked, most, count, slowest.Round(time.Millisecond), last)
	if fault == nil && (most == 0 || slowest > looseStall) {
		fault = errors.New(note)
	}
	return note, fault
}

// makeMany makes a directory of many entries, and returns their number. In Ceph they are symbolic links that clients of NFS
// make: what another client of Ceph has made, it has to give back to the metadata servers first, entry by entry.
func makeMany(w *world, from string) (int, error) {
	count, _ := strconv.Atoi(os.Getenv(envEntries)) // Unset is 0.
	directory := filepath.Join(w.storage.path(share), "dir", "many")
	if _, isCeph := w.storage.(*inCeph); !isCeph {
		count = cmp.Or(count, 200_000)
		if err := os.Mkdir(directory, 0o777); err != nil {
			return 0, err
		}
		for i := range count {
			if err := syscall.Mknod(filepath.Join(directory, fmt.Sprint("file ", i)), syscall.S_IFREG|0o666, 0); err != nil {
				return 0, err
			}
		}
		return count, nil
	}
	s, err := login(from, 1, 0, "maker")
	if err != nil {
		return 0, err
	}
	defer s.leave()
	parent, err := s.handle(share, "dir")
	if err != nil {
		return 0, err
	}
	create := func(directory []byte, kind nfsv4.Createtype4, name string) error {
		answer, err := s.run(0, putFH(directory), &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: kind, Objname: name}})
		if err == nil && answer.status != nfsv4.NFS4_OK {
			err = &statusError{"CREATE", answer.status}
		}
		return err
	}
	if err := create(parent, &nfsv4.Createtype4_default{Type: nfsv4.NF4DIR}, "many"); err != nil {
		return 0, err
	}
	many, err := s.handle(share, "dir", "many")
	if err != nil {
		return 0, err
	}
	count = cmp.Or(count, 5_000)
	for i := range count {
		if err := create(many, &nfsv4.Createtype4_NF4LNK{Linkdata: nfsv4.Linktext4("nothing")}, fmt.Sprint("file ", i)); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// sparse: walks of holes, and writes at the far end, must not take the time that the length suggests.
func sparse(ctx context.Context, w *world, from string) (string, error) {
	path := filepath.Join(w.storage.path(share), "dir", "sparse")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return "", err
	}
	size, err := longest(path)
	if err != nil {
		return "", err
	}
	s, err := login(from, 2, 0, "sparse")
	if err != nil {
		return "", err
	}
	defer s.leave()
	handle, err := s.handle(share, "dir", "sparse")
	if err != nil {
		return "", err
	}
	opened, err := s.openFile("sparse", handle, nfsv4.OPEN4_SHARE_ACCESS_BOTH)
	if err != nil {
		return "", err
	}
	note := again(ctx, func() error {
		for _, offset := range []uint64{0, 4096, uint64(size) - 1, uint64(size), 1 << 63, 1<<64 - 1} {
			for _, op := range []operation{
				&nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: opened, SaOffset: offset, SaWhat: nfsv4.NFS4_CONTENT_DATA}},
				&nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: opened, SaOffset: offset, SaWhat: nfsv4.NFS4_CONTENT_HOLE}},
				&nfsv4.NfsArgop4_OP_READ_PLUS{OpreadPlus: nfsv4.ReadPlus4args{RpaStateid: opened, RpaOffset: offset, RpaCount: 1 << 20}},
				&nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: opened, Offset: offset, Count: 1<<32 - 1}},
				&nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: opened, Offset: offset, Data: []byte("far")}},
				&nfsv4.NfsArgop4_OP_COMMIT{Opcommit: nfsv4.Commit4args{Offset: offset, Count: 1<<32 - 1}},
				&nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: opened, DaOffset: offset, DaLength: 1<<64 - 1 - offset}},
			} {
				if _, err := s.run(0, putFH(handle), op); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return fmt.Sprintf("%d GiB; %s", size>>30, note), os.Remove(path)
}

// longHoles makes holes in a small file, most of them where it has ended. Each must be answered as soon as any other call.
func longHoles(ctx context.Context, w *world, from string) (string, error) {
	var mutex sync.Mutex
	var slowest time.Duration
	answered, last := times(20, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("holes ", i), 2)
		if err != nil {
			return err
		}
		defer s.leave()
		for _, length := range []uint64{1 << 36, 1 << 40, 1 << 45, 1 << 50, 1<<62 - 1, 1 << 62, 1<<63 - 1 - 4096, 1<<63 - 1} {
			for _, offset := range []uint64{0, 4096, 1 << 40} {
				if ctx.Err() != nil {
					return nil
				}
				began := time.Now()
				_, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: s.opened, DaOffset: offset, DaLength: length}})
				if err != nil {
					return fmt.Errorf("%d bytes from %d: %w", length, offset, err)
				}
				mutex.Lock()
				slowest = max(slowest, time.Since(began))
				mutex.Unlock()
			}
		}
		return nil
	})
	note := fmt.Sprintf("%d of 20 clients were answered, the slowest after %s", answered, slowest.Round(time.Millisecond))
	if errors.Is(last, errSilent) || slowest > looseStall {
		return note, fmt.Errorf("a hole took %s (%w)", slowest, last)
	}
	return note, nil
}

// longFiles asks for room behind the largest size that the file system has.
func longFiles(_ context.Context, w *world, from string) (string, error) {
	path := filepath.Join(w.storage.path(share), "dir", "file")
	s, err := holding(w, from, "long", 2)
	if err != nil {
		return "", err
	}
	defer s.leave()
	refused := 0
	for _, length := range []uint64{1 << 41, 1 << 45, 1 << 50, 1<<62 - 1, 1 << 62, 1<<63 - 1} {
		if os.Truncate(path, int64(length)) == nil {
			if err := os.Truncate(path, 4096); err != nil {
				return "", err
			}
			continue // The file system has such files.
		}
		answer, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_ALLOCATE{Opallocate: nfsv4.Allocate4args{AaStateid: s.opened, AaLength: length}})
		if err != nil {
			return "", err
		}
		if answer.status == nfsv4.NFS4_OK {
			return "", fmt.Errorf("ALLOCATE made %d bytes, which the file system refuses", length)
		}
		refused++
	}
	return fmt.Sprintf("%d were refused", refused), nil
}

// longest makes a file as long as the file system takes.
func longest(path string) (size int64, err error) {
	// The largest file of ext4 has 16 TiB, that of CephFS less than 1 TiB; other file systems take 8 EiB.
	for _, size = range []int64{1<<63 - 1, 1 << 62, 1 << 50, 1 << 43, 1<<40 - 4096} {
		if err = os.Truncate(path, size); err == nil {
			break
		}
	}
	return size, err
}

// wholeHoles makes holes of a whole file that is as long as files can be. Some clients may get NFS4ERR_DELAY; others must be served.
func wholeHoles(_ context.Context, w *world, from string) (string, error) {
	size, err := longest(filepath.Join(w.storage.path(share), "dir", "file"))
	if err != nil {
		return "", err
	}
	var mutex sync.Mutex
	answers := map[string]int{}
	worked, last := times(50, func(i int) error {
		s, err := holding(w, from, fmt.Sprint("whole ", i), 2)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // It may be busy.
		answer, err := s.run(0, putFH(s.file), &nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: s.opened, DaLength: uint64(size)}})
		mutex.Lock()
		defer mutex.Unlock()
		if errors.Is(err, errSilent) {
			answers["none"]++
			return nil
		}
		answers[nfsv4.Nfsstat4_name[answer.status]]++
		return err
	})
	return fmt.Sprintf("%d of 50 clients, %d GiB, answers %v (%v)", worked, size>>30, answers, last), nil
}

// snapshotNames makes everything that an operation can make by the name .snap, which each directory in Ceph has: what is made could not be
// removed. On a volume it is a name as any other.
func snapshotNames(_ context.Context, w *world, from string) (string, error) {
	s, err := holding(w, from, "names", 2)
	if err != nil {
		return "", err
	}
	defer s.leave()
	tried := 0
	for _, code := range []nfsv4.NfsOpnum4{nfsv4.OP_CREATE, nfsv4.OP_OPEN, nfsv4.OP_LINK, nfsv4.OP_RENAME} {
		for _, shape := range generated(uint32(code)) {
			for _, name := range []string{".snap", "link"} { // RENAME has two names.
				op := encode(uint32(code), shape, values{client: s.clientID, name: name, other: ".snap", attributes: modeAttr, bytes: []byte("12345678")})
				for _, saved := range []string{"share/dir/file", "share/dir"} {
					if _, err := s.run(0, putFH(w.handles[saved]), &nfsv4.NfsArgop4_OP_SAVEFH{}, putFH(w.handles["share/dir"]), raw(op)); err != nil {
						return "", err
					}
					tried++
				}
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(w.storage.path(share), "dir"))
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if _, isCeph := w.storage.(*inCeph); isCeph && entry.Name() == ".snap" {
			return "", fmt.Errorf("%s is made: %s", entry.Name(), entry.Type())
		}
	}
	return fmt.Sprintf("%d tried", tried), nil
}
