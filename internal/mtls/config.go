package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ServerConfig returns the TLS configuration of a server. It accepts clients with a certificate for the client's name, and other servers, whose names
// isPeer knows; both signed by the authority of one of the server's own certificates. isPeer may be nil. now is time.Now except in tests.
func ServerConfig(identities []*Identity, client string, isPeer func(name string) bool, now func() time.Time) *tls.Config {
	authorities := pool(identities)
	config := &tls.Config{
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
		VerifyConnection: func(state tls.ConnectionState) error { return verifyName(state, client) },
	}
	if isPeer == nil {
		return config
	}
	// Certificates of data servers are for servers only, and Go would want one for clients. So they are verified here.
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if peer := isPeer(PeerName(state)); peer {
			return verifyChain(state, authorities, x509.ExtKeyUsageServerAuth, now())
		}
		if err := verifyChain(state, authorities, x509.ExtKeyUsageClientAuth, now()); err != nil {
			return err
		}
		return verifyName(state, client)
	}
	return config
}

func verifyName(state tls.ConnectionState, client string) error {
	if err := state.PeerCertificates[0].VerifyHostname(client); err != nil {
		return fmt.Errorf("the client is not who may come here: %w", err)
	}
	return nil
}

func verifyChain(state tls.ConnectionState, authorities *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) error {
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}

// PeerName is the name in the certificate of the other side.
func PeerName(state tls.ConnectionState) string {
	if len(state.PeerCertificates) == 0 || len(state.PeerCertificates[0].DNSNames) != 1 {
		return ""
	}
	return state.PeerCertificates[0].DNSNames[0]
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
