package ceph

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Everything of Howdah's in a Ceph cluster begins with this word. The least caps of an account that provisions name it as a prefix, so it
// is part of what administrators have written down.
const prefix = "howdah-"

// Group is the subvolume group of a FileServer. The identity, here and below, is v1alpha1.StorageIdentity.
func Group(identity string) string { return prefix + identity }

// Subvolume is that of a share: unique in the file system and not only in its group, because Ceph names the RADOS namespace of an isolated
// subvolume after it alone.
func Subvolume(identity, shareKey string) string { return prefix + hash(identity, shareKey) }

// ShareUser is the cephx user, without "client.", of a share: its only one, and no other share's.
func ShareUser(identity, shareKey string) string {
	return prefix + "share-" + hash(identity, shareKey)
}

// RecoveryUser is the cephx user, without "client.", that has the recovery records of a data server.
func RecoveryUser(identity string, ordinal int32) string {
	return prefix + "rec-" + Node(identity, ordinal)
}

// Node is a data server's name in the Ceph cluster: in the grace object, in the sessions of its clients, and as the RADOS namespace of its
// records. Names of objects of Kubernetes would not do: several clusters may use one Ceph.
func Node(identity string, ordinal int32) string {
	return identity + "-" + strconv.Itoa(int(ordinal))
}

// hash is 80 bits of SHA-256 over the parts.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}
