package kernels

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unread is how many bytes each connection has that its program did not read, by its two addresses.
type unread map[string]int

// parseUnread reads the output of ss -tnH.
func parseUnread(text string) unread {
	out := unread{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if bytes, err := strconv.Atoi(fields[1]); err == nil {
			out[fields[3]+" "+fields[4]] = bytes
		}
	}
	return out
}

// stuck finds the connection that has the same unread bytes in most looks in a row.
func stuck(looks []unread) (connection string, bytes, longest int) {
	rows := map[string]int{}
	for i, look := range looks {
		for _, c := range slices.Sorted(maps.Keys(look)) {
			if i == 0 || look[c] == 0 || looks[i-1][c] != look[c] {
				rows[c] = 1
			} else {
				rows[c]++
			}
			if look[c] > 0 && rows[c] > longest {
				connection, bytes, longest = c, look[c], rows[c]
			}
		}
	}
	return connection, bytes, longest
}

func TestAConnectionThatSticksIsFound(t *testing.T) {
	look := func(a, b int) unread {
		return parseUnread(fmt.Sprintf("ESTAB %d 0 10.0.0.1:700 10.0.0.2:2049\nESTAB %d 12 10.0.0.1:701 10.0.0.2:2049\n", a, b))
	}
	if _, _, longest := stuck([]unread{look(0, 0), look(0, 0), look(0, 0)}); longest != 0 {
		t.Errorf("connections without unread data stick %d looks", longest)
	}
	if _, _, longest := stuck([]unread{look(5, 0), look(6, 7), look(5, 0), look(6, 7)}); longest != 1 {
		t.Errorf("connections that are read stick %d looks", longest)
	}
	connection, bytes, longest := stuck([]unread{look(5, 0), look(6, 7), look(9, 7), look(1, 7), look(2, 8)})
	if connection != "10.0.0.1:701 10.0.0.2:2049" || bytes != 7 || longest != 3 {
		t.Errorf("%q sticks with %d bytes for %d looks", connection, bytes, longest)
	}
}

const (
	unreadFor = 3 * time.Minute
	// sticks is how many looks in a row, of one a second, a connection may have the same unread bytes.
	sticks = 15
)

// testUnreadData keeps 16 connections to each data server busy with large and small operations, and looks at the sockets of both sides each second.
func (w *world) testUnreadData(t *testing.T) {
	length := duration(t, "HOWDAH_KERNELS_UNREAD", unreadFor)
	looks := map[string][]unread{}
	var ended []func(context.Context) result
	for _, c := range w.clients {
		busy := fmt.Sprintf(loadCommand, "busy-"+c.name, "--do files,records,opens,random --threads 16 --bytes 32Mi", length, "/mnt/busy/a0 /mnt/busy/a1")
		ended = append(ended, c.start(t, fmt.Sprintf(`rm -f /tmp/enough; mkdir -p /mnt/busy
mount -t nfs4 -o vers=4.1,nosharecache,%s,nconnect=16 %s:/networks /mnt/busy && ls /mnt/busy/a0 /mnt/busy/a1 > /dev/null
for i in 0 1; do (while ! test -e /tmp/enough; do
  dd if=/dev/zero of=/mnt/busy/a$i/big-%[3]s bs=1M count=64 conv=fsync; dd if=/mnt/busy/a$i/big-%[3]s of=/dev/null bs=1M iflag=direct
done) 2> /tmp/dd.$i & done
%[4]s; code=$?
touch /tmp/enough; wait; grep -h error /tmp/dd.* && code=1; umount -i -l /mnt/busy; exit $code`, recommended, source(namespaceServers), c.name, busy)))
	}
	deadline := time.Now().Add(length)
	seconds := int(length.Seconds())
	watch := w.together(t, fmt.Sprintf("for i in $(seq %d); do ss -tnH; echo; sleep 1; done", seconds))
	for time.Now().Before(deadline) {
		for i := range w.owners {
			text, err := exec.Command("ip", "netns", "exec", ownerNetwork(i), "ss", "-tnH").Output()
			if err != nil {
				t.Fatal(err)
			}
			looks[ownerNetwork(i)] = append(looks[ownerNetwork(i)], parseUnread(string(text)))
		}
		time.Sleep(time.Second)
	}
	for i, r := range watch(t.Context()) {
		for text := range strings.SplitSeq(r.output, "\n\n") {
			looks[w.clients[i].name] = append(looks[w.clients[i].name], parseUnread(text))
		}
	}
	for i, c := range w.clients {
		r := ended[i](t.Context())
		found := loadResult(t, c, r)
		// How long operations take under all that work is the machine's matter.
		if err := found.Verdict(0); err != nil || r.code != 0 {
			t.Errorf("%s: ended with %d: %v\n%s", c.name, r.code, err, found.Text())
		}
	}
	for _, side := range slices.Sorted(maps.Keys(looks)) {
		connection, bytes, longest := stuck(looks[side])
		t.Logf("%s: %d looks, the longest that a connection had the same unread data: %d looks, %d bytes (%s)", side, len(looks[side]), longest, bytes, connection)
		if longest > sticks {
			t.Errorf("%s: the connection %s had %d unread bytes for %d looks in a row", side, connection, bytes, longest)
		}
	}
}
