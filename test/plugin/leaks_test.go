package plugin

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// leastKey is the length in bytes from which a value of a Secret counts as a key; shorter ones could occur by chance.
const leastKey = 12

// leaks names the values of Secrets that occur in a text, as they are or in base64, and private keys.
func leaks(text string, secrets []corev1.Secret) (found []string) {
	for i := range secrets {
		for key, value := range secrets[i].Data {
			if len(value) < leastKey {
				continue
			}
			if strings.Contains(text, string(value)) || strings.Contains(text, base64.StdEncoding.EncodeToString(value)) {
				found = append(found, secrets[i].Name+"/"+key)
			}
		}
	}
	if strings.Contains(text, "PRIVATE KEY-----") {
		found = append(found, "a private key")
	}
	return found
}

func TestLeaksFindsKeysInEveryForm(t *testing.T) {
	secret := corev1.Secret{Data: map[string][]byte{"key": []byte("0123456789abcdef"), "short": []byte("yes")}}
	secret.Name = "keys"
	for text, want := range map[string]int{
		"nothing, yes":                    0,
		"raw 0123456789abcdef":            1,
		"base64 MDEyMzQ1Njc4OWFiY2RlZg==": 1,
		"-----BEGIN EC PRIVATE KEY-----":  1,
	} {
		if got := leaks(text, []corev1.Secret{secret}); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}
