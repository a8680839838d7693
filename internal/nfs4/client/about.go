package client

import (
	"path"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// subject is the path that an operation of a compound is about; "" if the compound does not tell it by names.
func subject(ops []nfsv4.NfsArgop4, index int) string {
	var current, saved string
	for i, op := range ops {
		var name string
		switch op := op.(type) {
		case *nfsv4.NfsArgop4_OP_PUTROOTFH:
			current = "/"
		case *nfsv4.NfsArgop4_OP_PUTFH:
			current = ""
		case *nfsv4.NfsArgop4_OP_SAVEFH:
			saved = current
		case *nfsv4.NfsArgop4_OP_RESTOREFH:
			current = saved
		case *nfsv4.NfsArgop4_OP_LOOKUP:
			if current != "" {
				current = path.Join(current, op.Oplookup.Objname)
			}
		case *nfsv4.NfsArgop4_OP_CREATE:
			name = op.Opcreate.Objname
		case *nfsv4.NfsArgop4_OP_REMOVE:
			name = op.Opremove.Target
		case *nfsv4.NfsArgop4_OP_RENAME:
			current, name = saved, op.Oprename.Oldname
		}
		if i == index {
			if current == "" {
				return ""
			}
			return path.Join(current, name)
		}
	}
	return ""
}
