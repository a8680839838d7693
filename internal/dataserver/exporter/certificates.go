package exporter

import (
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// Certificates are the files that identify this data server to namespace servers.
type Certificates struct {
	Current string
	// Previous exists while keys are being replaced.
	Previous string
}

// identify gives the certificates of the DataServer to the TLS port, or removes them if they are not valid.
func (m *Exporter) identify() {
	m.uncertified = nil
	scope := m.dataServer.Spec.ServerScope
	identities, err := mtls.Load(m.Certificates.Current, m.Certificates.Previous)
	if err == nil {
		err = mtls.Check(identities, naming.DataServerTLSName(scope, m.dataServer.Name), mtls.AsServer, m.now())
	}
	if err != nil {
		m.uncertified = kubeapi.NewFault(internalv1.ReasonCertificateInvalid, fmt.Errorf(
			"namespace servers can't make or remove directories here, clients are served: %w; raise spec.keyGeneration of the FileServer for new certificates", err))
		m.Proxy.Use(nil)
		m.identifyMoves(nil)
		return
	}
	isPeer := func(name string) bool { return naming.DataServerOfTLSName(scope, name) != "" }
	m.Proxy.Use(mtls.ServerConfig(identities, naming.NamespaceServerTLSName(scope), isPeer, m.now))
	m.identifyMoves(identities)
}

// identifyMoves gives the mover what it shows to other data servers.
func (m *Exporter) identifyMoves(identities []*mtls.Identity) {
	if m.Moves != nil {
		m.Moves.Identify(identities, m.dataServer.Spec.ServerScope)
	}
}
