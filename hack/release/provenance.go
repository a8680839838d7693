package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// payloadType is that of in-toto statements in a DSSE envelope.
const payloadType = "application/vnd.in-toto+json"

type (
	// resource is in-toto's ResourceDescriptor, as far as it is used.
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	// statement is in-toto's, version 1, with SLSA's provenance, version 1.
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     struct {
			BuildDefinition struct {
				BuildType            string            `json:"buildType"`
				ExternalParameters   map[string]string `json:"externalParameters"`
				InternalParameters   map[string]string `json:"internalParameters"`
				ResolvedDependencies []resource        `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
			RunDetails struct {
				Builder  map[string]string `json:"builder"`
				Metadata map[string]string `json:"metadata"`
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	signature struct {
		KeyID string `json:"keyid"`
		Sig   string `json:"sig"`
	}
	envelope struct {
		PayloadType string      `json:"payloadType"`
		Payload     string      `json:"payload"`
		Signatures  []signature `json:"signatures"`
	}
)

// writeProvenance says of which commit files were made, and how: the bare statement, or with a key a signed envelope of it.
func writeProvenance(out io.Writer, version, commit, key string, files []string, at time.Time) error {
	var s statement
	s.Type, s.PredicateType = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
	sort.Strings(files)
	for _, file := range files {
		sum, err := digest(file)
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, resource{Name: filepath.Base(file), Digest: map[string]string{"sha256": sum}})
	}
	if len(s.Subject) == 0 {
		return errors.New("provenance: of which files?")
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = "https://github.com/howdah/howdah/hack/release.sh@v1"
	definition.ExternalParameters = map[string]string{"version": version}
	definition.InternalParameters = map[string]string{"go": goVersion(), "SOURCE_DATE_EPOCH": fmt.Sprint(at.Unix())}
	definition.ResolvedDependencies = []resource{{URI: "git+https://github.com/howdah/howdah", Digest: map[string]string{"gitCommit": commit}}}
	// The builder is whoever runs the script, on a machine without attestation. So this claims no SLSA level above 1.
	s.Predicate.RunDetails.Builder = map[string]string{"id": "https://github.com/howdah/howdah/hack/release.sh"}
	s.Predicate.RunDetails.Metadata = map[string]string{"startedOn": at.Format(time.RFC3339)}
	payload, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if key != "" {
		if payload, err = sign(payload, key); err != nil {
			return err
		}
	}
	_, err = out.Write(append(payload, '\n'))
	return err
}

// sign puts a statement into a DSSE envelope.
func sign(payload []byte, file string) ([]byte, error) {
	text, err := os.ReadFile(file) //nolint:gosec // who runs this names it
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: want an Ed25519 key: openssl genpkey -algorithm ed25519", file)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	return json.MarshalIndent(envelope{
		PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []signature{{hex.EncodeToString(id[:]), base64.StdEncoding.EncodeToString(ed25519.Sign(key, encoded(payload)))}},
	}, "", " ")
}

// encoded is DSSE's pre-authentication encoding.
func encoded(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
