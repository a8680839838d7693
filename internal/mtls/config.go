package mtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ServerConfig is that of a server that lets in who has a certificate of the client's name, of the same authority as
// one of the server's own, and nobody else. now is time.Now, unless a test says otherwise.
func ServerConfig(identities []*Identity, client string, now func() time.Time) *tls.Config {
	authorities := pool(identities)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  authorities,
		NextProtos: protocols(identities),
		Time:       now,
		// Each connection proves itself, by the certificate that counts now.
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

// ClientConfig is that of a client that speaks with the server of the name and no other.
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
