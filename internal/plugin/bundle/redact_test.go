package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// unpacked is all that is in an archive, by name.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestNoKeyMaterialIsInABundle(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	body := strings.Split(block, "\n")[1]
	const token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLWNhbmFyeQ"
	encoded := base64.StdEncoding.EncodeToString([]byte("kind: x\n" + block))
	canaries := []string{body, encoded[40:80], "c2lnbmF0dXJlLWNhbmFyeQ", "canary"}

	list := func(items ...map[string]any) []byte {
		text, err := json.Marshal(map[string]any{"kind": "PodList", "items": items})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var out bytes.Buffer
	a := New(&out, "b", time.Unix(0, 0))
	if n, err := a.AddList("pods.json", list(map[string]any{
		"metadata": map[string]any{
			"name": "p", "managedFields": []any{"canary"},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": "canary", "vault.example.com/token": "canary", "evil-kubernetes.io/x": "canary",
				"howdah.io/owner": "FileServer/a/b", "note": "canary",
			},
		},
		"spec": map[string]any{"containers": []any{map[string]any{
			"env":  []any{map[string]any{"name": "HOWDAH_BENCHMARK_TOKEN", "value": "canary"}},
			"args": []any{"--address=10.0.0.1", "--token=canary", "https://me:canary@example.com/x"}, "command": []any{block, encoded},
		}}},
	})); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := a.AddList("mixed.json", list(
		map[string]any{"kind": "Secret", "data": map[string]any{"k": "canary"}}, map[string]any{"kind": "ConfigMap", "data": map[string]any{"k": "canary"}},
	)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	_, cut, _ := strings.Cut(block, body[:10]) // As the end of a log is, where it begins within a key.
	canaries = append(canaries, body[20:])
	log := cut + "starting\n" + block + "Authorization: Bearer " + token + "\npassword: \"canary two\" x\nAWS_SECRET_ACCESS_KEY=canary\n" + `{"api_key":"canary"}` + "\nend\n" +
		token + "\n-----BEGIN PRIVATE KEY-----\ncanary cut off"
	if err := a.AddText("logs/p.log", log); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, out.Bytes())
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
	for name, content := range files {
		for _, canary := range canaries {
			if strings.Contains(content, canary) {
				t.Errorf("%s has %q:\n%s", name, canary, content)
			}
		}
	}
	for name, wanted := range map[string][]string{
		"b/pods.json":  {"FileServer/a/b", "HOWDAH_BENCHMARK_TOKEN", "--address=10.0.0.1", "vault.example.com/token"},
		"b/logs/p.log": {"starting\n", "\nend\n"},
	} {
		for _, w := range wanted {
			if !strings.Contains(files[name], w) {
				t.Errorf("%s has lost %q:\n%s", name, w, files[name])
			}
		}
	}
}

// StorageClasses of other programs are in a bundle, too, and some have credentials in their parameters.
func TestValuesWithPrivateNamesAreRemoved(t *testing.T) {
	const cephKey = "AQBSdFhcGPDBOBAAqCBDm0Q8x7GHsPSKHxrWbg=="
	object := Object(map[string]any{
		"kind":         "StorageClass",
		"parameters":   map[string]any{"restuserkey": "canary", "adminPassword": "canary", "clientSecret": "canary", "accessKey": "canary", "pool": "fast"},
		"mountOptions": []any{"name=share,secret=canary,noatime", "redis://:canary@host", "redis://me:can@ary@host"},
		"args":         []any{"--token", "canary", "--pool", "fast", "--db-password", "canary"},
		"secretName":   "kept", "csi.storage.k8s.io/provisioner-secret-name": "kept", "topologyKey": "kept",
		"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "kept", "key": "kept"}},
		"message":   "key = " + cephKey,
	})
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range []string{"canary", "ary@", cephKey[:20]} {
		if strings.Contains(string(text), canary) {
			t.Errorf("it has %q: %s", canary, text)
		}
	}
	if strings.Count(string(text), "kept") != 5 || strings.Count(string(text), "fast") != 2 || !strings.Contains(string(text), "noatime") {
		t.Errorf("it has lost what is not private: %s", text)
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	for _, s := range []string{
		"secretName: training-handle-keys-1-0123abcd", "the secret is not there", "no certificate by which namespace servers could know this data server",
		"https://example.com:8443/path", "key generation 2", "tokens.authentication.k8s.io", "PASSED  AU 98.30 %", "10.96.0.12:/unet3d",
	} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("-----BEGIN X-----\nabc\n-----END X-----", "x")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, "0123456789abcdef") {
			t.Skip()
		}
		block := "-----BEGIN PRIVATE KEY-----\n0123456789abcdef\n-----END PRIVATE KEY-----"
		if got := Text(before + "\n" + block + "\n" + after); strings.Contains(got, "0123456789abcdef") {
			t.Errorf("%q", got)
		}
	})
}
