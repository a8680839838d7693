package exporter

import (
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// Certificates are the files with what namespace servers know this data server by.
type Certificates struct {
	Current string
	// Previous is there while keys are being replaced.
	Previous string
}

// identify gives the TLS port the certificates of the DataServer, or takes them away if they are not good.
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
		return
	}
	m.Proxy.Use(mtls.ServerConfig(identities, naming.NamespaceServerTLSName(scope), m.now))
}
