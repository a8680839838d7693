package dataserver

import (
	"os"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// Hack/ceph-processes/inside.sh loses what this process and ganesha send to Ceph while the second file is there. The first says that it can.
const (
	canCut = "/run/network-can-be-cut"
	isCut  = "/run/network-is-cut"
)

// While a network is cut, the kernel repeats what is not acknowledged less and less often. After a cut of a minute that takes most of another
// minute, which clients waited, too (patch 0412).
func TestACutFromCephDelaysNoLongerThanItLastsInARealCephCluster(t *testing.T) {
	const (
		cut  = time.Minute
		goal = 20 * time.Second // Libcephfs tries to connect every 15 s at the least (ms_max_backoff).
	)
	c := newInCeph(t)
	if _, err := os.Stat(canCut); err != nil {
		t.Skip("iptables can't cut the network here: ", err)
	}
	_, w := c.writer()
	made := w.results(user, append(lookUp("alpha", "0"), openNew("cut", "a writer"), writeSynced(), &nfsv4.NfsArgop4_OP_GETFH{})...)
	file := made[len(made)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object

	t.Cleanup(func() { _ = os.Remove(isCut) })
	mustWork(t, "cut the network", os.WriteFile(isCut, nil, 0o600))
	began := time.Now()
	joined := make(chan error, 1)
	go func() {
		time.Sleep(cut)
		joined <- os.Remove(isCut)
	}()
	time.Sleep(time.Second) // inside.sh looks every 0.2 s.
	took, status := w.waits(user, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: file}}, &nfsv4.NfsArgop4_OP_WRITE{
		Opwrite: nfsv4.Write4args{Stable: nfsv4.FILE_SYNC4, Data: []byte("written while the network is cut\n")}, // Of no open.
	})
	after := time.Since(began) - cut
	mustWork(t, "join the network", <-joined)
	t.Logf("FIGURE a synced write while the network to Ceph is cut for %s: done %.1f s after the network is back", cut, after.Seconds())
	switch {
	case status != nfsv4.NFS4_OK:
		t.Errorf("the write: %s", client.StatusName(status))
	case after < -time.Second:
		t.Errorf("the write took %s: the network was not cut", took)
	case after > goal:
		t.Errorf("the write was done %s after the network was back, goal %s", after, goal)
	}
}

// waits is Run for an operation that may wait longer than others.
func (w *wire) waits(cred client.Credentials, operations ...operation) (time.Duration, nfsv4.Nfsstat4) {
	w.t.Helper()
	record := w.encode(cred, w.inOrder(operations)...)
	began := time.Now()
	mustWork(w.t, "set a deadline", w.connection.SetDeadline(began.Add(5*time.Minute)))
	_, err := w.connection.Write(record)
	mustWork(w.t, "send", err)
	answer, err := rpc.ReadRecord(w.connection, 1<<20)
	mustWork(w.t, "receive", err)
	status, _ := w.decode(answer)
	return time.Since(began), status
}
