package mtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ServerConfig returns the TLS configuration of a server. It only accepts clients with a certificate for the client's name that
// is signed by the authority of one of the server's own certificates. now is time.Now except in tests.
func ServerConfig(identities []*Identity, client string, now func() time.Time) *tls.Config {
	authorities := pool(identities)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  authorities,
		NextProtos: protocols(identities),
		Time:       now,
		// No session resumption: each connection must show a certificate that is valid now.
		SessionTicketsDisabled: true,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			for _, identity := range identities {
				if slices.Contains(hello.SupportedProtos, identity.protocol()) {
					return &identity.certificate, nil
				}
			}
			return nil, errors.New("the client is of another FileServer, or has keys that were replaced")
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			if err := state.PeerCertificates[0].VerifyHostname(client); err != nil {
				return fmt.Errorf("the client is not who may come here: %w", err)
			}
			return nil
		},
	}
}

// ClientConfig returns the TLS configuration of a client that only accepts the server of the given name.
func ClientConfig(identities []*Identity, server string, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool(identities),
		ServerName: server,
		NextProtos: protocols(identities),
		Time:       now,
		GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, identity := range identities {
				if asked.SupportsCertificate(&identity.certificate) == nil {
					return &identity.certificate, nil
				}
			}
			return nil, errors.New("the server believes none of the authorities of this one's certificates")
		},
	}
}
