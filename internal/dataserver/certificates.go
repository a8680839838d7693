package dataserver

import (
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// certificates are the files with what namespace servers know this data server by.
type certificates struct {
	current string
	// previous is there while keys are being replaced.
	previous string
}

// identify gives the TLS port the certificates of the DataServer, or takes them away if they are not good.
func (m *manager) identify() {
	m.stranger = nil
	scope := m.dataServer.Spec.ServerScope
	identities, err := mtls.Load(m.certificates.current, m.certificates.previous)
	if err == nil {
		err = mtls.Check(identities, naming.DataServerTLSName(scope, m.dataServer.Name), mtls.AsServer, m.now())
	}
	if err != nil {
		m.stranger = &fault{internalv1.ReasonCertificateInvalid, fmt.Errorf(
			"namespace servers can't make or remove directories here, clients are served: %w; raise spec.keyGeneration of the FileServer for new certificates", err)}
		m.proxy.use(nil)
		return
	}
	m.proxy.use(mtls.ServerConfig(identities, naming.NamespaceServerTLSName(scope), m.now))
}
