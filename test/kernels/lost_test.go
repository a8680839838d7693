package kernels

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/controllers/desired"
)

// recommended are the mount options of ready-made volumes, without those that tests choose.
var recommended = strings.Join(slices.DeleteFunc(desired.MountOptions(false), func(option string) bool {
	return strings.HasPrefix(option, "nconnect=") || strings.HasPrefix(option, "vers=")
}), ",")

const (
	// evictedAfter is when Kubernetes leads new connections elsewhere: the operator evicts a namespace server 6 to 9 s after its last answer.
	evictedAfter = 8 * time.Second
	// lostLimit is how long a client may wait that had its connections with a namespace server that is gone without a word.
	lostLimit = 30 * time.Second
)

// lookUps looks up names that no client has in its cache, enough for each connection to be used, and prints how many milliseconds the first and all of them took.
const lookUps = `s=$(date +%%s%%N); n() { echo $((($(date +%%s%%N) - s) / 1000000)); }
for i in $(seq 40); do stat /mnt/share/%[1]s-$i > /dev/null 2> /tmp/stat; grep -q 'No such file' /tmp/stat || { cat /tmp/stat; exit 1; }; if [ $i = 1 ]; then first=$(n); fi; done
echo "$first $(n)"`

// testLostNamespaceServer takes the namespace server away that clients are connected to, as a node does that loses its power:
// nothing answers, not even to refuse.
func (w *world) testLostNamespaceServer(t *testing.T) {
	w.share("lost", 1, nil)
	connections := make([]int, len(w.clients))
	for i, c := range w.clients {
		connections[i] = 16
		if i%2 == 1 {
			connections[i] = 1
		}
		c.mount(t, "/lost", fmt.Sprintf("%s,nconnect=%d", recommended, connections[i]))
		c.must(t, fmt.Sprintf(lookUps, "before"))
	}
	cut(t, addresses.all, namespaceAddress(0))
	cut(t, namespaceAddress(0), addresses.all)
	defer func() {
		heal(t)
		lead(t, 0)
	}()
	evicted := time.AfterFunc(evictedAfter, func() { lead(t, 1) })
	defer evicted.Stop()
	for i, r := range w.together(t, fmt.Sprintf(lookUps, "after"))(t.Context()) {
		c := w.clients[i]
		var first, all int
		if n, _ := fmt.Sscan(r.output, &first, &all); r.code != 0 || n != 2 {
			t.Errorf("Linux %s: %s", c.kernel, r.output)
			continue
		}
		t.Logf("Linux %s, nconnect=%d: the first look-up took %.1f s, 40 of them %.1f s", c.kernel, connections[i], float64(first)/1000, float64(all)/1000)
		if took := time.Duration(all) * time.Millisecond; took > lostLimit {
			t.Errorf("Linux %s, nconnect=%d: look-ups took %v after the loss of the namespace server, want %v at most", c.kernel, connections[i], took, lostLimit)
		}
	}
}
