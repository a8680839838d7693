package failover

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

const (
	// thawed is how long a lost node's processes go on: libcephfs writes what is in its cache after 5 s (client_oc_max_dirty_age).
	thawed    = 10 * time.Second
	enemyFile = "enemy"
)

// enemy is a client on the lost node. It goes to the pod there and by no Service, so it is there when the pod's processes go on.
type enemy struct {
	w      *world
	server *load
	// next is a client of the data server, wherever that is.
	next *nfsClient
	// own and file are unset in a round without an enemy.
	own  *nfsClient
	file *openFile
}

// come has the enemy write what all others may know.
func (e *enemy) come(pod *corev1.Pod, lost *node) {
	e.w.t.Helper()
	ctx := e.w.t.Context()
	e.own = newClient("enemy", lost.index, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(v1alpha1.NFSPort))))
	var err error
	e.file, err = e.own.keep(ctx, e.server.directory, enemyFile)
	e.w.must(err)
	_, err = e.own.write(ctx, e.file, 0, content("before", 0), nfsv4.FILE_SYNC4)
	e.w.must(err)
}

// writeLate writes what the pod has in its cache when it is lost.
func (e *enemy) writeLate() {
	if e.own != nil {
		_, err := e.own.write(e.w.t.Context(), e.file, 0, content("late", 0), nfsv4.UNSTABLE4)
		e.w.must(err)
	}
}

// writeGhost writes through the lost pod that goes on.
func (e *enemy) writeGhost(ctx context.Context) {
	e.w.t.Helper()
	if e.own == nil {
		return
	}
	defer e.own.drop()
	striking, stop := context.WithTimeout(ctx, thawed)
	defer stop()
	status, _, err := e.own.once(striking, operations{putFH(e.file.handle), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{
		Stateid: e.file.state, Stable: nfsv4.FILE_SYNC4, Data: content("ghost", 0),
	}}})
	if err == nil && status == nfsv4.NFS4_OK {
		e.w.t.Error("the lost pod reports a write as done when it goes on")
	}
	e.w.t.Logf("the lost pod goes on; its client's write: %v", failed("it answers", status, err))
}

// strike has the lost pod go on, and checks that nothing of it reaches a file that the next one serves.
func (e *enemy) strike(lost *node) {
	e.w.t.Helper()
	ctx, cancel := context.WithTimeout(e.w.t.Context(), time.Minute)
	defer cancel()
	file, err := e.next.keep(ctx, e.server.directory, enemyFile)
	e.w.must(err)
	defer e.next.goodbye()
	want := content("after", 0)
	_, err = e.next.write(ctx, file, 0, want, nfsv4.FILE_SYNC4)
	e.w.must(err)
	e.w.must(lost.thaw())
	went := time.Now()
	e.writeGhost(ctx)
	time.Sleep(time.Until(went.Add(thawed)))
	found, err := e.next.read(ctx, file, 0, blockSize)
	if err != nil || !slices.Equal(found, want) {
		e.w.t.Errorf("after the lost pod went on, the file has %.40q, want %.40q: %v", found, want, err)
	}
	if direct, err := withoutGanesha(e.server.directory, enemyFile); err != nil || !slices.Equal(direct, want) {
		e.w.t.Errorf("after the lost pod went on, Ceph has %.40q, want %.40q: %v", direct, want, err)
	}
}
