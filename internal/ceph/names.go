package ceph

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// All names of Howdah in a Ceph cluster begin with this prefix. The capabilities of provisioning accounts name it, so it can't
// be changed.
const prefix = "howdah-"

// Group returns the subvolume group of a FileServer. identity, here and below, is v1alpha1.StorageIdentity.
func Group(identity string) string { return prefix + identity }

// Subvolume returns the subvolume of a share. It is unique in the whole file system, because Ceph names the RADOS namespace of
// an isolated subvolume only after the subvolume.
func Subvolume(identity, shareKey string) string { return prefix + hash(identity, shareKey) }

// ShareUser returns the cephx user of a share, without "client.". Each share has exactly one user, which no other share uses.
func ShareUser(identity, shareKey string) string {
	return prefix + "share-" + hash(identity, shareKey)
}

// RecoveryUser returns the cephx user, without "client.", of a data server's recovery records.
func RecoveryUser(identity string, ordinal int32) string {
	return prefix + "rec-" + Node(identity, ordinal)
}

// Node returns a data server's name in the Ceph cluster: in the grace object, in its client sessions, and as the RADOS
// namespace of its records. Kubernetes names would not be unique, as several clusters may use one Ceph.
func Node(identity string, ordinal int32) string {
	return identity + "-" + strconv.Itoa(int(ordinal))
}

// hash returns 80 bits of a SHA-256 over the parts.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}
