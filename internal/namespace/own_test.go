package namespace

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/test/builders"
)

// The namespace servers learn their addresses from the FileServer, by the rights that the operator gives them.
func TestClientsOfADataServerThatIsNotReadyWaitAtTheAddressOfTheFileServer(t *testing.T) {
	w := newWorld(t, 1)
	w.declare(w.share("data", 1), "d", 0)
	server := w.serve("a")
	inside := boot(t, server.address)
	own := []byte("10.96.0.77")
	w.eventually("a client is led to the data server", func() bool { return len(inside.referral("/data/d")) > 0 })
	fs := builders.FileServer(w.namespace, fileServer).Build()
	w.create(fs)
	fs.Status.Address = string(own)
	if err := w.api.Status().Update(t.Context(), fs); err != nil {
		t.Fatal(err)
	}
	w.setReady(0, metav1.ConditionFalse)
	w.eventually("a client waits at the FileServer's address", func() bool { return bytes.Contains(inside.referral("/data/d"), own) })
	w.setReady(0, metav1.ConditionTrue)
	w.eventually("a client does not wait", func() bool {
		got := inside.referral("/data/d")
		return len(got) > 0 && !bytes.Contains(got, own)
	})
}
