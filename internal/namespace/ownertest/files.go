package ownertest

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// firstFile is the cookie before the first file of a directory, and above those of directories.
const firstFile = 1 << 40

// listing is a READDIR's result as it is sent: millions of entries are made up in seconds.
type listing struct {
	*nfsv4.NfsResop4_OP_READDIR
	encoded []byte
}

// WriteTo implements nfsv4.NfsResop4.
func (l *listing) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(l.encoded)
	return int64(n), err
}

// GetEncodedSizeBytes implements nfsv4.NfsResop4.
func (l *listing) GetEncodedSizeBytes() int { return len(l.encoded) }

// listFiles lists files from a number on (RFC 8881 section 18.23.2), as many as fit.
func (o *Owner) listFiles(args *nfsv4.Readdir4args, from, files int) nfsv4.NfsResop4 {
	u32, u64 := binary.BigEndian.AppendUint32, binary.BigEndian.AppendUint64
	attributes := o.attributes("", args.AttrRequest)
	if has := attributes.Attrmask[0] & (1 << nfsv4.FATTR4_TYPE); has != 0 {
		binary.BigEndian.PutUint32(attributes.AttrVals, uint32(nfsv4.NF4REG))
	}
	encoded := u32(u32(nil, uint32(nfsv4.OP_READDIR)), uint32(nfsv4.NFS4_OK))
	encoded = append(encoded, make([]byte, nfsv4.NFS4_VERIFIER_SIZE)...)
	number := from
	for ; number < files && len(encoded) < int(args.Maxcount)-256; number++ {
		encoded = u64(u32(encoded, 1), firstFile+uint64(number)+1)
		name := fmt.Sprintf("file-%011d", number)
		encoded = append(u32(encoded, uint32(len(name))), name...)
		encoded = u32(encoded, uint32(len(attributes.Attrmask)))
		for _, word := range attributes.Attrmask {
			encoded = u32(encoded, word)
		}
		encoded = append(u32(encoded, uint32(len(attributes.AttrVals))), attributes.AttrVals...)
	}
	eof := uint32(0)
	if number == files {
		eof = 1
	}
	return &listing{&nfsv4.NfsResop4_OP_READDIR{}, u32(u32(encoded, 0), eof)}
}
