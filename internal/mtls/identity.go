package mtls

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Identity is a server's certificate with its key, and the authority that it trusts.
type Identity struct {
	certificate tls.Certificate
	authority   *x509.Certificate
}

// Parse reads a bundle as an Authority writes it.
func Parse(bundle []byte) (*Identity, error) {
	var certificates []*x509.Certificate
	var key *ecdsa.PrivateKey
	for rest := bundle; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("it is not PEM")
		}
		switch block.Type {
		case blockCertificate:
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
			}
			certificates = append(certificates, certificate)
		case blockKey:
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its key can't be read") // The original error could contain the key.
			}
			key, _ = parsed.(*ecdsa.PrivateKey)
		}
	}
	if len(certificates) != 2 || key == nil {
		return nil, fmt.Errorf("it has %d certificates instead of a server's and its authority's, or no ECDSA key", len(certificates))
	}
	own, authority := certificates[0], certificates[1]
	if !key.PublicKey.Equal(own.PublicKey) {
		return nil, errors.New("its key is not that of its certificate")
	}
	return &Identity{
		certificate: tls.Certificate{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own},
		authority:   authority,
	}, nil
}

// Load reads the current bundle and, if the file exists, the bundle of the previous generation, whose peers are trusted, too.
func Load(current, previous string) ([]*Identity, error) {
	var identities []*Identity
	for i, path := range []string{current, previous} {
		text, err := os.ReadFile(path)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the certificate by which servers know each other: %w", err)
		}
		identity, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s is no certificate by which servers know each other: %w", path, err)
		}
		identities = append(identities, identity)
	}
	return identities, nil
}

// Usage is the purpose of a certificate.
type Usage x509.ExtKeyUsage

// Usages of certificates.
const (
	AsServer = Usage(x509.ExtKeyUsageServerAuth)
	AsClient = Usage(x509.ExtKeyUsageClientAuth)
)

// Check returns an error if peers would not accept the first identity for the name.
func Check(identities []*Identity, name string, usage Usage, now time.Time) error {
	leaf := identities[0].certificate.Leaf
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(identities[:1]), DNSName: name, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsage(usage)},
	})
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		// The library's error contains the time of day and would differ each time.
		err = fmt.Errorf("it is valid from %s to %s", leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		return fmt.Errorf("this server's certificate is not good: %w", err)
	}
	return nil
}

// protocol returns the ALPN protocol name (RFC 7301) of an authority. By this name a server knows which of its certificates the
// client can verify, while servers get the certificates of a new generation one after the other.
func (i *Identity) protocol() string {
	sum := sha256.Sum256(i.authority.Raw)
	return "howdah-nfs/" + hex.EncodeToString(sum[:8])
}

func protocols(identities []*Identity) []string {
	names := make([]string, 0, len(identities))
	for _, identity := range identities {
		names = append(names, identity.protocol())
	}
	return names
}

func pool(identities []*Identity) *x509.CertPool {
	authorities := x509.NewCertPool()
	for _, identity := range identities {
		authorities.AddCert(identity.authority)
	}
	return authorities
}
