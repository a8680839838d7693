package dataserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/serverpod"
)

// longestAccess is the longest list that the schema allows: 32 rules of 64 clients.
func longestAccess() []v1alpha1.AccessRule {
	rules := make([]v1alpha1.AccessRule, 32)
	for r := range rules {
		for c := range 64 {
			rules[r].Clients = append(rules[r].Clients, fmt.Sprintf("10.%d.%d.0/24", 100+r, c))
		}
	}
	rules[31].Clients[63] = "10.99.0.0/16"
	return rules
}

// reloads is how often ganesha has read its configuration again.
func (s *dataServer) reloads() int {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, serverpod.MetricsPath, nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "howdah_data_server_reload_duration_seconds_count{") {
			_, count, _ := strings.Cut(line, "} ")
			number, err := strconv.Atoi(strings.TrimSpace(count))
			mustWork(s.t, "reading the metrics", err)
			return number
		}
	}
	s.t.Fatal("no metric of reloads")
	return 0
}

// costOfConnections measures how long it takes until a connection is closed, or serves.
func costOfConnections(t *testing.T) {
	const count = 200
	began := time.Now()
	for range count {
		if !isEnded(connectFrom(t, "10.98.0.1"), timeout) {
			t.Fatal("an address that no share lets in is let in")
		}
	}
	closed := time.Since(began) / count
	began = time.Now()
	for range count {
		connection := connectFrom(t, "10.99.0.2")
		_, err := connection.Write(nullCall())
		mustWork(t, "send", err)
		mustAnswerNull(t, "an address that is let in", connection)
	}
	t.Logf("FIGURE with a thousand shares a connection that is not let in is closed after %s, one that is has its first answer after %s", closed, time.Since(began)/count)
}

// thousandShares: what happens to some shares, even to hundreds at once, others do not notice.
func thousandShares(t *testing.T) {
	const many, longest, doomed = 1025, 10, 300
	s := boot(t, "thousand", 1)
	s.apply(func(want *dataservertest.Wanted) {
		for i := range many {
			export := dataservertest.ShareSpec("share-" + strconv.Itoa(i))
			if i < longest {
				export.Access = longestAccess()
			}
			want.Exports = append(want.Exports, export)
		}
	})
	began := time.Now()
	s.settle()
	t.Logf("FIGURE start with %d shares, %d of them with 2,048 clients, to all served: %s", many, longest, time.Since(began).Round(time.Millisecond))
	c := s.from("10.99.0.1")
	_, err := c.Stat(t.Context(), user, "/share-3/0")
	mustWork(t, "a share with the longest access list", err)
	costOfConnections(t)

	before := s.reloads()
	began = time.Now()
	s.apply(func(want *dataservertest.Wanted) {
		want.Exports = want.Exports[:many-doomed]
		for i := many - doomed; i < many; i++ {
			want.Removals = append(want.Removals, "share-"+strconv.Itoa(i))
		}
	})
	status := s.settle()
	t.Logf("FIGURE %d shares deleted at once with their data: %s, %d reloads", doomed, time.Since(began).Round(time.Millisecond), s.reloads()-before)
	if len(status.Removed) != doomed || len(status.Exports) != many-doomed {
		t.Errorf("%d are removed and %d served", len(status.Removed), len(status.Exports))
	}
	if got := s.reloads() - before; got > 3 {
		t.Errorf("%d reloads", got)
	}
	_, err = c.Stat(t.Context(), user, "/share-1000/0")
	mustFailWith(t, "a share that was deleted", err, nfsv4.NFS4ERR_NOENT)

	mustWork(t, "a file where a root should be", os.WriteFile("/volumes/thousand/0/broken", nil, 0o600))
	s.apply(func(want *dataservertest.Wanted) {
		want.Removals = nil
		want.Exports = append(slices.Clone(want.Exports), dataservertest.ShareSpec("broken"), dataservertest.ShareSpec("sound"))
	})
	// The statuses of the exports are written before that of the DataServer.
	reported := s.await("the share beside a broken one to be served", func(status dataservertest.Reported) bool {
		return idsOf(status, "sound") != nil && meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason == internalv1.ReasonExportsFailing
	})
	ready := meta.FindStatusCondition(reported.Conditions, v1alpha1.ConditionReady)
	if ready.Status != "True" || ready.Reason != internalv1.ReasonExportsFailing || !strings.Contains(ready.Message, "share broken") {
		t.Errorf("the server says %+v", ready)
	}
	for _, export := range s.status.List() {
		condition := meta.FindStatusCondition(export.Status.Conditions, internalv1.ExportServing)
		if broken := kubeapi.ShareOf(export) == "broken"; condition == nil || broken != (condition.Status == "False") {
			t.Errorf("export %s says %+v", export.Name, condition)
		}
	}
	if s.status.Downs != 0 {
		t.Errorf("%d shares that served ceased to while others changed", s.status.Downs)
	}
}
