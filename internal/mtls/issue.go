package mtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/howdah/howdah/internal/naming"
)

// PEM block types of a bundle.
const (
	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
)

var (
	// Certificates don't expire; a new key generation replaces them. The end is "no well-defined expiration date" of RFC 5280
	// section 4.1.2.5. The start is the time of a node without a clock.
	always    = time.Unix(0, 0).UTC()
	endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Authority signs certificates. Its key is only in memory.
type Authority struct {
	// NotAfter is when certificates that are signed from now on expire; never, unless a test sets it.
	NotAfter time.Time

	fileServerUID string
	certificate   *x509.Certificate
	key           *ecdsa.PrivateKey
}

// NewAuthority makes an authority for the servers of one FileServer.
func NewAuthority(fileServerUID string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial := newSerial()
	template := &x509.Certificate{
		SerialNumber: serial,
		// The name contains the serial number, so that a peer can choose between two generations (RFC 8446 section 4.2.4).
		Subject:   pkix.Name{CommonName: "FileServer " + fileServerUID, SerialNumber: hex.EncodeToString(serial.Bytes())},
		NotBefore: always, NotAfter: endOfTime,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return &Authority{NotAfter: endOfTime, fileServerUID: fileServerUID, certificate: certificate, key: key}, nil
}

// DataServer returns the bundle (PEM: certificate, authority, key) of a data server: a TLS server of this name.
func (a *Authority) DataServer(name string) ([]byte, error) {
	return a.issue(naming.DataServerTLSName(a.fileServerUID, name), x509.ExtKeyUsageServerAuth)
}

// NamespaceServers returns the bundle of all namespace servers of the FileServer: TLS clients.
func (a *Authority) NamespaceServers() ([]byte, error) {
	return a.issue(naming.NamespaceServerTLSName(a.fileServerUID), x509.ExtKeyUsageClientAuth)
}

func (a *Authority) issue(name string, usage x509.ExtKeyUsage) ([]byte, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		DNSNames:     []string{name}, // Clients only check these names (RFC 9525 section 2).
		NotBefore:    always, NotAfter: a.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	var bundle []byte
	for _, block := range []pem.Block{
		{Type: blockCertificate, Bytes: certificate}, {Type: blockCertificate, Bytes: a.certificate.Raw}, {Type: blockKey, Bytes: encoded},
	} {
		bundle = append(bundle, pem.EncodeToMemory(&block)...)
	}
	return bundle, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// newSerial returns a random serial number of at most 20 bytes (RFC 5280 section 4.1.2.2).
func newSerial() *big.Int {
	var number [16]byte
	_, _ = rand.Read(number[:]) // Never fails: it ends the program instead.
	number[0] = number[0]&0x7f | 0x40
	return new(big.Int).SetBytes(number[:])
}
