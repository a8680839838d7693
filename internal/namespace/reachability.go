package namespace

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/owners"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/sameobject"
)

const (
	// reportEvery and reportAfter: the API knows of a dead data server some 6 s after its last answer (two probes
	// missed, and this), and of one that was only started again it need not know.
	reportEvery = time.Second
	reportAfter = 5 * time.Second
	// reportTimeout bounds a write; it is tried again with the next round.
	reportTimeout = 5 * time.Second
)

// reachability reports to the API which data servers do not answer, and since when. The leader alone does it: a second
// writer that reaches a server would undo what the first says.
type reachability struct {
	servers       func() []*tree.Server
	answer        func(server string) (owners.Answer, time.Time)
	client        client.Client
	kubeNamespace string
	replica       string
	clock         clock.WithTicker
	log           *slog.Logger
	gauge         *prometheus.GaugeVec
}

// run reports until the context ends.
func (r *reachability) run(ctx context.Context) {
	ticker := r.clock.NewTicker(reportEvery)
	defer ticker.Stop()
	defer r.gauge.Reset()
	for {
		for _, server := range r.servers() {
			r.report(ctx, server)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (r *reachability) report(ctx context.Context, server *tree.Server) {
	if !server.Started {
		return // It and its pod report what it waits for.
	}
	answer, since := r.answer(server.Name)
	if answer != owners.NotKnown {
		r.gauge.WithLabelValues(server.Name).Set(map[owners.Answer]float64{owners.Answers: 1}[answer])
	}
	change, due := news(server.SilentFor, answer, since, r.clock.Now(), r.replica)
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	object := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Namespace: r.kubeNamespace, Name: server.Name}}
	err := sameobject.PatchStatus(ctx, r.client, object, server.UID, fieldsOf(change))
	// On a conflict the watch brings what is so now.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		r.log.Warn("could not report whether a data server answers", "server", server.Name, "error", err)
	}
}

// fieldsOf is what is written of news. The rest of the status is the data server's own to write.
func fieldsOf(change *internalv1.Unreachable) map[string]any {
	switch {
	case change == nil:
		return map[string]any{"unreachable": nil}
	case change.SinceTime == nil:
		return map[string]any{"unreachable/seenBy": change.SeenBy}
	}
	return map[string]any{"unreachable": change}
}

// news is what the API gets of a data server, nil that it answers; false if it knows already or need not know yet. silentFor is who reports now
// that it does not answer, "" if none does.
// A namespace server that has just started does not know: it must not take back what the leader before it wrote. Once it knows, it confirms
// that in its own name: what no namespace server stands for any more is no reason for a failover. Since when is what the first one has found.
func news(silentFor string, answer owners.Answer, since, now time.Time, replica string) (*internalv1.Unreachable, bool) {
	switch {
	case answer == owners.NotKnown:
		return nil, false
	case answer == owners.Answers:
		return nil, silentFor != ""
	case silentFor == replica || now.Sub(since) < reportAfter:
		return nil, false
	case silentFor != "":
		return &internalv1.Unreachable{SeenBy: replica}, true
	}
	return &internalv1.Unreachable{SinceTime: &metav1.Time{Time: since}, SeenBy: replica}, true
}
