package bundle

import (
	"regexp"
	"strings"
)

// Redacted replaces what was removed.
const Redacted = "REDACTED"

// refused are kinds that are never in a bundle.
var refused = map[string]bool{"Secret": true, "ConfigMap": true}

// Object removes private parts of an object: values of environment variables, annotations that are not of Kubernetes or Howdah,
// managedFields, and what Text removes. It returns nil for an object that must not be in a bundle.
func Object(object map[string]any) map[string]any {
	if kind, _ := object["kind"].(string); refused[kind] {
		return nil
	}
	clean, _ := value("", object).(map[string]any)
	return clean
}

// value redacts a value under its key, with everything in it.
func value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			switch {
			case k == "managedFields":
			case k == "annotations":
				out[k] = annotations(inner)
			case key == "env" && k == "value", k == "binaryData", k == "stringData", isText(inner) && private.MatchString(k):
				out[k] = Redacted
			default:
				out[k] = value(k, inner)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, inner := range v {
			if before, is := at(v, i-1).(string); is && isText(inner) && privateOption.MatchString(before) {
				inner = Redacted
			}
			out = append(out, value(key, inner))
		}
		return out
	case string:
		return Text(v)
	}
	return v
}

// words name what is private, at the end of the name of a field, of a StorageClass's parameter or of an option. Secrets have names, which are not private.
const words = `(?:password|passwd|passphrase|token|secret|credential|(?:secret|access|api|private|user|admin)[_-]?key)s?$`

var (
	private = regexp.MustCompile(`(?i)` + words)
	// privateOption is an option of a program whose value is the next argument.
	privateOption = regexp.MustCompile(`(?i)^--?[a-z0-9_.-]*` + words)
)

func isText(v any) bool {
	_, is := v.(string)
	return is
}

// at is an element of a list; nil if there is none.
func at(list []any, i int) any {
	if i < 0 {
		return nil
	}
	return list[i]
}

// known are the domains of annotations whose values are kept, except kubectl's last-applied copy, which repeats the object.
var known = []string{"howdah.io/", "kubernetes.io/", "k8s.io/"}

func annotations(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(all))
	for key, inner := range all {
		domain, _, _ := strings.Cut(key, "/")
		keep := false
		for _, suffix := range known {
			keep = keep || strings.HasSuffix("."+domain+"/", "."+suffix)
		}
		if keep && key != "kubectl.kubernetes.io/last-applied-configuration" {
			out[key] = value(key, inner)
		} else {
			out[key] = Redacted
		}
	}
	return out
}

// secrets match keys and credentials in any text; a named group is kept.
var secrets = []*regexp.Regexp{
	// PEM (RFC 7468): keys and certificates, also without an end.
	regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`),
	// PEM without a beginning.
	regexp.MustCompile(`(?:[^\n]*[A-Za-z0-9+/=]{16,}[ \t]*\r?\n)*[^\n]*-----END [A-Z0-9 ]+-----`),
	// The same in base64, as in a kubeconfig or a Secret: "-----BEGIN" has three forms, by where a group of three bytes begins.
	regexp.MustCompile(`(LS0tLS1CRUdJTi|LS0tLUJFR0lO|S0tLS0tQkVHSU)[A-Za-z0-9+/=_-]+`),
	// JSON Web Tokens (RFC 7519): tokens of ServiceAccounts.
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(?i)(?P<keep>\b[a-z0-9_-]*(?:password|passwd|passphrase|token|secret[_-]?key|access[_-]?key|api[_-]?key|private[_-]?key)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"'}]+)`),
	// User and password in an address (RFC 3986 section 3.2.1).
	regexp.MustCompile(`(?P<keep>[a-z][a-z0-9+.-]*://)[^/\s:@]*:[^/\s]+@`),
	// Ceph's keys: 28 bytes, or 44, that begin with 1 or 2.
	regexp.MustCompile(`\bA[Qg][A-Za-z0-9+/]{36,58}={1,2}`),
	// An option of a mount.
	regexp.MustCompile(`(?P<keep>\bsecret=)[^\s,;&"'}]+`),
}

// Text removes from a text what looks like keys and credentials.
func Text(s string) string {
	for _, secret := range secrets {
		keep := ""
		if secret.SubexpIndex("keep") > 0 {
			keep = "${keep}"
		}
		s = secret.ReplaceAllString(s, keep+Redacted)
	}
	return s
}
