package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// maxShares is how many shares a FileServer may have: what ganesha reloads and is looked at within seconds.
	maxShares = 4096
	// maxExportIDs is how many exports a data server can have: ganesha has 16 bits for Export_Id.
	maxExportIDs = 65535
)

// ShareExport is the export of a share by a data server. Every data server exports every live share, whether or not it
// owns a directory of it yet, so that the first directory that a client makes on it waits for no reload.
func ShareExport(share *v1alpha1.FileShare, dataServer string) *internalv1.ShareExport {
	meta := labels(shareLabels(share))
	meta[v1alpha1.DataServerLabel] = dataServer
	return &internalv1.ShareExport{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.ShareExport(naming.KeyOf(share), dataServer),
			Namespace:       naming.ServerNamespace(share),
			Labels:          meta,
			Annotations:     map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShare", share.Namespace, share.Name)},
			OwnerReferences: ownerOf(share),
			Finalizers:      []string{v1alpha1.ExportFinalizer},
		},
		Spec: internalv1.ShareExportSpec{
			FileServerRef: internalv1.FileServerReference{Name: share.Spec.FileServerRef.Name},
			DataServerRef: internalv1.DataServerReference{Name: dataServer},
			FileShareRef:  internalv1.FileShareReference{Name: naming.KeyOf(share)},
			UID:           share.Spec.UID,
			GID:           share.Spec.GID,
			Mode:          share.Spec.Mode,
			Access:        accessRules(share.Spec.Access),
			DataPolicy:    internalv1.DataRetain,
		},
	}
}

// ownerOf is the owner reference of a share's objects. None can reach into another namespace, so there the
// finalizer of the share sees to them. It does not block: with --cascade=foreground a share would wait for the data servers that are away.
func ownerOf(share *v1alpha1.FileShare) []metav1.OwnerReference {
	if naming.IsForeign(share) {
		return nil
	}
	owner := metav1.NewControllerRef(share, v1alpha1.GroupVersion.WithKind("FileShare"))
	owner.BlockOwnerDeletion = nil
	return []metav1.OwnerReference{*owner}
}

// accessRules spells out every rule, so that a data server needs no default of its own. Without any, the cluster's nodes are let in.
func accessRules(rules []v1alpha1.AccessRule) []v1alpha1.AccessRule {
	if len(rules) == 0 {
		rules = []v1alpha1.AccessRule{{Clients: []string{v1alpha1.ClientNodes}}}
	}
	out := make([]v1alpha1.AccessRule, 0, len(rules))
	for _, rule := range rules {
		rule.Clients = slices.Clone(rule.Clients)
		rule.AccessType = cmp.Or(rule.AccessType, v1alpha1.AccessReadWrite)
		rule.Squash = cmp.Or(rule.Squash, v1alpha1.SquashNone)
		rule.SourcePorts = cmp.Or(rule.SourcePorts, v1alpha1.SourcePortsAny)
		out = append(out, rule)
	}
	return out
}

// AccessDigest stands for an export's access rules in caches (controllers.CacheOptions): each data server has an export of each share,
// and the longest rules take 130 KiB of memory. It is a rule with a hash as its only client, which is longer than the
// schema lets a client be, so that it can't be written to the API by mistake. The digest of a digest is itself: a cache may ask twice.
func AccessDigest(rules []v1alpha1.AccessRule) []v1alpha1.AccessRule {
	const prefix = "sha256:"
	if len(rules) == 1 && len(rules[0].Clients) == 1 && strings.HasPrefix(rules[0].Clients[0], prefix) {
		return rules
	}
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(rules); err != nil {
		panic(err) // Strings can always be encoded, and a hash takes everything.
	}
	return []v1alpha1.AccessRule{{Clients: []string{prefix + hex.EncodeToString(hash.Sum(nil))}}}
}

// MaxShares is the maximum number of shares of a FileServer, given the number of exports of each share on a data
// server.
func MaxShares(exportsPerShare int32) int { return min(maxShares, maxExportIDs/int(exportsPerShare)) }
