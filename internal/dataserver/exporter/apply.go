package exporter

import (
	"context"
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/durable"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha"
)

// apply brings the storage and ganesha to what the DataServer asks for. The order keeps data safe: first whether the storage may be exported
// at all and whose it is, then the IDs in it, the directories and the exports. Data is removed only when nothing exports it any more.
func (m *Exporter) apply(ctx, supervised context.Context) *kubeapi.Fault {
	err := m.storage.Judge(ctx, m.dataServer)
	if m.refused = err != nil; m.refused {
		return m.refuse(ctx, supervised, kubeapi.NewFault(m.storage.Refusal(), err))
	}
	config, failure := m.prepare(ctx)
	if failure != nil {
		return failure
	}
	if err = m.reportShares(ctx); err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonApplyFailed, err)
	}
	text, err := ganesha.Render(config)
	if err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
	}
	m.Expected.SetIdentity(config.ServerOwner, config.ServerScope)
	if err = m.configure(config, text); err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonApplyFailed, err)
	}
	m.endHanging()
	m.renew(ctx)
	if failure := m.load(ctx, supervised, text); failure != nil {
		return failure
	}
	if failure := m.verify(ctx, config); failure != nil {
		return failure
	}
	if failure := m.refuseForgeries(ctx, config); failure != nil {
		return failure
	}
	m.restartPending = ganesha.RestartPending(m.Ganesha.State().Config, text)
	m.remove(ctx, supervised)
	return nil
}

// renew restarts ganesha if the storage says that it uses something that was replaced: once for each start, and not while clients still
// reclaim their state.
func (m *Exporter) renew(ctx context.Context) {
	state := m.Ganesha.State()
	if !state.Initialized || state.InGrace || m.ended == state.Starts {
		return
	}
	if why := m.storage.Outdated(ctx); why != "" {
		m.ended = state.Starts
		m.Log.Info("restarting ganesha; its clients wait for some seconds", "why", why)
		m.Ganesha.Restart()
	}
}

// load makes ganesha have the configuration: by its first start, or by a reload.
func (m *Exporter) load(ctx, supervised context.Context, text string) *kubeapi.Fault {
	if !m.started {
		m.started = true
		m.group.Add(1)
		go func() {
			defer m.group.Done()
			m.Ganesha.Run(supervised)
		}()
	}
	state := m.Ganesha.State()
	if state.Starts != m.starts {
		// A new process has loaded what was in the file at its start. What it serves has not been verified.
		m.starts, m.loaded, m.verified, m.serving = state.Starts, state.Config, "", map[string]server.FileSystem{}
		m.leaving = map[string]bool{}
		if m.loaded != text {
			m.leaving = m.remembered()
		}
	}
	switch {
	case state.PID == 0 && state.LastExit != "":
		full := m.describeFull(ctx)
		if full != "" {
			m.trash.empty(supervised, &m.group, m.storage, m.dataServer)
		}
		return kubeapi.NewFault(internalv1.ReasonServerDown, fmt.Errorf("ganesha %s; restarting it%s", state.LastExit, full))
	case !state.Initialized:
		m.unstickStart(ctx, state)
		return kubeapi.NewFault(internalv1.ReasonStarting, m.describeStart(state))
	case m.loaded == text:
		m.slowStart.unanswered = nil
		return nil
	}
	for path := range m.serving {
		m.leaving[path] = true
	}
	// What ganesha has loaded is unknown until the reload succeeds. It very likely goes on serving what it served.
	m.loaded, m.verified = "", ""
	began := m.now()
	err := m.Ganesha.Reload(ctx)
	m.unstickReload(ctx, err)
	if err != nil {
		m.Metrics.ReloadFailures.Inc()
		return kubeapi.NewFault(internalv1.ReasonReloadFailed, err)
	}
	m.Metrics.Reloaded(m.now().Sub(began))
	m.loaded = text
	return nil
}

// configure writes what ganesha reads when it starts: the configuration, whose text is given, and which of its exports are mounted at the
// same time. If ganesha starts between the two writes, it mounts one export too few or too many, and corrects that itself.
func (m *Exporter) configure(config ganesha.Config, text string) error {
	if err := durable.Write(supervisor.MountsFile(m.ConfigFile), ganesha.Mounts(config)); err != nil {
		return err
	}
	return durable.Write(m.ConfigFile, []byte(text))
}
