package tree

import "crypto/sha256"

// A directory's identity follows the directory and not its name (RFC 8881 sections 4.2.2 and 5.8): renamed it keeps its
// handle, and another directory of the same name has another. It is made from the UID of its ShareDirectory, 122 random bits that
// no client gets, so that only clients that could pass all directories above know a handle
// (docs/design/2026-11-22-file-identity.md).

// newID is the identity of what the parts describe. The first part says what kind of identity it is.
func newID(parts ...string) ID {
	sum := sum256(append([]string{"howdah node"}, parts...)...)
	return ID(sum[:len(ID{})])
}

// aboveID is the identity of a directory above the shares, the root among them. Anybody may know it: these
// directories are open to everybody.
func aboveID(path string) ID { return newID("above", path) }

// shareID is the identity of a share's root. Above it everything is open, and its own mode and access rules are asked
// whoever comes and however, so it need not be a secret.
func shareID(s *Share) ID { return newID("share", s.UID) }

// impliedID is the identity of a directory that exists only for what is below it, for as long as its ShareDirectory is missing.
func impliedID(s *Share, rel string) ID { return newID("implied", s.UID, rel) }

// directoryID is the identity of a directory with a ShareDirectory.
func directoryID(r *Directory) ID {
	if r.Identity != "" {
		return newID("directory", r.Identity)
	}
	return newID("directory", r.UID)
}

// identify is what a node's identity should be, by what it is now.
func (n *node) identify() ID {
	switch {
	case n.share == nil:
		return aboveID(n.path)
	case n.rel == "":
		return shareID(n.share)
	case n.directory == nil:
		return impliedID(n.share, n.rel)
	}
	return directoryID(n.directory)
}

// sum256 is SHA-256 over the parts; where one ends and the next begins matters.
func sum256(parts ...string) [sha256.Size]byte {
	b := make([]byte, 0, 128)
	for _, part := range parts {
		b = appendLength(b, len(part))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}
