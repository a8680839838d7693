package dataserver

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	// linkRate is what each link carries to clients in bytes a second: little enough that it is the limit on a busy machine, too.
	linkRate = 4 << 20
	// pieceBytes fit in an answer of wire, with all that is around them.
	pieceBytes, pieces = 60_000, 120
	// streams are how many reads each client has under way.
	streams = 4
)

// narrow is a proxy in front of a data server that carries linkRate to its clients, all together.
func narrow(t *testing.T, server string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "10.99.0.1:0")
	mustWork(t, "listen", err)
	var connections []net.Conn
	var mutex sync.Mutex
	free := time.Now() // when the link has carried all so far
	wait := func(n int) {
		mutex.Lock()
		now := time.Now()
		if free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(n) * time.Second / linkRate)
		until := free
		mutex.Unlock()
		time.Sleep(time.Until(until))
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // The test ends.
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				_ = from.Close()
				continue
			}
			mutex.Lock()
			connections = append(connections, from, to)
			mutex.Unlock()
			open.Go(func() { _, _ = io.Copy(to, from) })
			open.Go(func() {
				piece := make([]byte, 16<<10)
				for {
					n, err := to.Read(piece)
					wait(n)
					if _, failed := from.Write(piece[:n]); err != nil || failed != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mutex.Lock()
		for _, connection := range connections {
			_ = connection.Close()
		}
		mutex.Unlock()
		open.Wait()
	})
	return listener.Addr().String()
}

// What a hot directory is for: clients read one flat directory, by one data server and by as many as there are clients, each behind a link that is
// the limit. The machine, Ceph and libcephfs are the same for both, so the figures say whether anything but the links stands in the way.
func TestDataServersOfAHotDirectorySendMoreInARealCephCluster(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n, " data servers"), func(t *testing.T) { readBy(t, n) })
	}
}

func readBy(t *testing.T, n int) {
	_, _, ends := manyEnds(t, n)
	files := make([]string, streams*n)
	sums := map[string][sha256.Size]byte{}
	for i := range files {
		files[i] = fmt.Sprint("large ", i)
		sums[files[i]] = ends[0].fill(files[i], byte(i))
	}
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = narrow(t, endAddress(i))
	}
	rate := func(way string, of ...string) float64 {
		began := time.Now()
		var all sync.WaitGroup
		for i := range ends {
			for j := range streams {
				file := files[i*streams+j]
				reader := enter(t, fmt.Sprint("reader ", way, " ", i, j), of[i%len(of)])
				all.Go(func() {
					if sum := reader.read(file); sum != sums[file] {
						t.Errorf("%s: %s has other bytes", way, file)
					}
				})
			}
		}
		all.Wait()
		return float64(len(files)*pieces*pieceBytes) / time.Since(began).Seconds() / 1e6
	}
	for round := range 2 {
		one := rate(fmt.Sprint("one ", round), addresses[0])
		all := rate(fmt.Sprint("all ", round), addresses...)
		t.Logf("FIGURE %d clients read one directory: by one data server %.1f MB/s, by %d %.1f MB/s, %.2f times as much; each link carries %.1f MB/s",
			n, one, n, all, all/one, float64(linkRate)/1e6)
		// Links are the limit, so two data servers send twice as much on a quiet machine. The same directory by one would be 1.
		if all < 1.2*one {
			t.Errorf("%d data servers send %.2f times as much as one", n, all/one)
		}
	}
}

// fill writes a file of pieces, and gives the sum of its bytes.
func (e *end) fill(name string, seed byte) (sum [sha256.Size]byte) {
	e.t.Helper()
	l := e.lockerOf(name)
	all := sha256.New()
	for i := range pieces {
		data := make([]byte, pieceBytes)
		for j := range data {
			data[j] = seed + byte(i) + byte(j)
		}
		all.Write(data)
		e.results(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{
			Stateid: l.open, Offset: uint64(i) * pieceBytes, Stable: nfsv4.UNSTABLE4, Data: data,
		}})
	}
	e.results(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_COMMIT{})
	l.close()
	copy(sum[:], all.Sum(nil))
	return sum
}

// read gives the sum of a file's bytes.
func (e *end) read(name string) (sum [sha256.Size]byte) {
	l := e.lockerOf(name)
	all := sha256.New()
	for i := range pieces {
		results := e.results(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{
			Stateid: l.open, Offset: uint64(i) * pieceBytes, Count: pieceBytes,
		}})
		all.Write(results[len(results)-1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data)
	}
	l.close()
	copy(sum[:], all.Sum(nil))
	return sum
}
