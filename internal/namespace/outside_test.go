package namespace

import (
	"bytes"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/session"
)

func TestClientsThatComeFromOutsideAreLedToOutsideAddresses(t *testing.T) {
	w := newWorld(t, 1)
	w.declare(w.share("data", 1), "d", 0)
	server := w.serve("a")
	inside, outside := boot(t, server.address), boot(t, server.outside)
	own, given := []byte(w.owners[0].Address), []byte("192.0.2.7")
	w.eventually("a client inside is led to the data server", func() bool { return bytes.Contains(inside.referral("/data/d"), own) })
	res := outside.do(user, walk("/data/d")...)
	if status := session.StatusOf(res[len(res)-1]); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("outside, without an address there: %v, want NFS4ERR_DELAY", status)
	}
	o := &internalv1.DataServer{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}, o); err != nil {
		t.Fatal(err)
	}
	o.Spec.OutsideAddresses = []string{string(given)}
	if err := w.api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.eventually("a client outside is led to the outside address", func() bool { return bytes.Contains(outside.referral("/data/d"), given) })
	if got := outside.referral("/data/d"); bytes.Contains(got, own) {
		t.Errorf("the address inside is among what a client outside gets: %q", got)
	}
	if got := inside.referral("/data/d"); !bytes.Contains(got, own) || bytes.Contains(got, given) {
		t.Errorf("inside: %q", got)
	}
	// What clients outside make is made by the namespace server, at the address inside.
	if status := outside.mkdir(user, "/data/new"); status != nfsv4.NFS4_OK {
		t.Errorf("mkdir from outside: %v", status)
	}
}
