// Package pki makes the certificates of one lab.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// lifetime of everything: a lab is thrown away long before.
const lifetime = 365 * 24 * time.Hour

// Authority signs the certificates of one folder.
type Authority struct {
	Dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Identity is what a certificate says about its holder.
type Identity struct {
	File  string // The files are File.crt and File.key.
	User  string
	Group string
	Hosts []string // Names and addresses; a certificate with some can be a server's.
}

// Open loads the authority of dir, or makes it.
func Open(dir string) (*Authority, error) {
	a := &Authority{Dir: dir}
	if sys.Exists(filepath.Join(dir, "ca.crt")) {
		return a, a.load()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate("howdah-lab-ca", "")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	// The certificate comes last: it marks the authority as complete.
	if err := writeKey(filepath.Join(dir, "ca.key"), key); err != nil {
		return nil, err
	}
	if err := writeCert(filepath.Join(dir, "ca.crt"), der); err != nil {
		return nil, err
	}
	return a, a.load()
}

func (a *Authority) load() error {
	certDER, err := readPEM(filepath.Join(a.Dir, "ca.crt"))
	if err != nil {
		return err
	}
	keyDER, err := readPEM(filepath.Join(a.Dir, "ca.key"))
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(certDER); err != nil {
		return err
	}
	a.key, err = x509.ParseECPrivateKey(keyDER)
	return err
}

// Issue makes the identity's key and certificate unless they exist.
func (a *Authority) Issue(id Identity) error {
	base := filepath.Join(a.Dir, id.File)
	if sys.Exists(base + ".crt") {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := newTemplate(id.User, id.Group)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, host := range id.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(id.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("certificate for %s: %w", id.User, err)
	}
	if err := writeKey(base+".key", key); err != nil {
		return err
	}
	return writeCert(base+".crt", der)
}

// Key makes a bare key pair, such as the one that signs service account tokens.
func (a *Authority) Key(file string) error {
	path := filepath.Join(a.Dir, file)
	if sys.Exists(path) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

// Kubeconfig writes a kubeconfig in which the identity reaches server.
func (a *Authority) Kubeconfig(path, server string, id Identity) error {
	var parts []any
	for _, file := range []string{"ca.crt", id.File + ".crt", id.File + ".key"} {
		data, err := os.ReadFile(filepath.Join(a.Dir, file))
		if err != nil {
			return err
		}
		parts = append(parts, base64.StdEncoding.EncodeToString(data))
	}
	text := fmt.Sprintf(kubeconfigTemplate, append([]any{server}, parts...)...)
	return sys.WriteFile(path, []byte(text), 0o600)
}

const kubeconfigTemplate = `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: "%s", certificate-authority-data: %s}
users:
- name: lab
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: lab
  context: {cluster: lab, user: lab}
current-context: lab
`

func newTemplate(user, group string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails on Linux.
	}
	name := pkix.Name{CommonName: user}
	if group != "" {
		name.Organization = []string{group}
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    now.Add(-time.Hour), // A node's clock may be a little behind.
		NotAfter:     now.Add(lifetime),
	}
}

func writeCert(path string, der []byte) error {
	return sys.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return sys.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", path)
	}
	return block.Bytes, nil
}
