package namespace

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
	"github.com/howdah/howdah/test/docs"
)

// What docs/operate/sizing.md says of a namespace server's limits are those that it has.
func TestThePageOfSizesHasTheLimitsOfNamespaceServers(t *testing.T) {
	rows, err := docs.Table("../../docs/operate/sizing.md", "memory of `spec.namespaceServers.resources`")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		memory := resource.MustParse(row[0])
		calls, sessions := rpc.Limits{}, session.Limits{}
		limitsFor(memory.Value(), &calls, &sessions)
		if sessions.Clients != sessions.Sessions {
			t.Errorf("%s: %d clients and %d sessions, and the page has one number for both", row[0], sessions.Clients, sessions.Sessions)
		}
		for cell, want := range map[int]int{1: calls.Connections, 2: sessions.Clients, 3: calls.Requests} {
			if row[cell] != strconv.Itoa(want) {
				t.Errorf("%s: the page says %s, it is %d", row[0], row[cell], want)
			}
		}
	}
}
