package naming

import (
	"crypto/sha256"
	"encoding/base64"
	"path"
	"slices"
)

const (
	// digestBytes of a name's hash are kept. Two names with the same cost a needless look at a data server, nothing else.
	digestBytes = 4
	// maxDigested is how many names a digest can have.
	maxDigested = 8192
)

// ShareDirectoryName is the name of a share's directory on a volume.
func ShareDirectoryName(share string) string { return path.Base(ExportDirectory("", share, 0)) }

// DigestNames is the digest of the names of shares' directories that DataServers carry in their status; false: they are too many.
func DigestNames(names []string) (string, bool) {
	if len(names) > maxDigested {
		return "", false
	}
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, digestOf(name))
	}
	slices.Sort(parts)
	var all []byte
	for _, part := range slices.Compact(parts) {
		all = append(all, part...)
	}
	return base64.StdEncoding.EncodeToString(all), true
}

// DigestMayHave tells whether a name may be among those of a digest. A digest that can't be read may have every name.
func DigestMayHave(digest, name string) bool {
	all, err := base64.StdEncoding.DecodeString(digest)
	if err != nil || len(all)%digestBytes != 0 {
		return true
	}
	wanted := digestOf(name)
	for part := range slices.Chunk(all, digestBytes) {
		if string(part) == wanted {
			return true
		}
	}
	return false
}

func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(sum[:digestBytes])
}
