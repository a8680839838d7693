package operations

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

type ops = []nfsv4.NfsArgop4

func walk(path string) ops {
	out := ops{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		out = append(out, lookup(name))
	}
	return out
}

func at(path string, more ...nfsv4.NfsArgop4) ops { return slices.Concat(walk(path), more) }

func lookup(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}}
}

func getattr(bits ...int) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: bitmapOf(bits...)}}
}

func putfh(b []byte) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: b}}
}

// putfhOf is PUTFH of the handle of what is at a path; do fills it in.
func putfhOf(path string) nfsv4.NfsArgop4 { return putfh([]byte(handleAt + path)) }

func mkdir(name string, attrs ...nfsv4.Fattr4) nfsv4.NfsArgop4 {
	args := nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: name}
	if len(attrs) > 0 {
		args.Createattrs = attrs[0]
	}
	return &nfsv4.NfsArgop4_OP_CREATE{Opcreate: args}
}

func rmdir(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: name}}
}

func rename(from, to string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: from, Newname: to}}
}

func open(name string, how nfsv4.Openflag4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{Openhow: how, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: name}}}
}

func fattr(encode func(*values), bits ...int) nfsv4.Fattr4 {
	var w values
	encode(&w)
	return nfsv4.Fattr4{Attrmask: bitmapOf(bits...), AttrVals: w.Bytes()}
}

var (
	getfh    = &nfsv4.NfsArgop4_OP_GETFH{}
	putroot  = &nfsv4.NfsArgop4_OP_PUTROOTFH{}
	savefh   = &nfsv4.NfsArgop4_OP_SAVEFH{}
	restore  = &nfsv4.NfsArgop4_OP_RESTOREFH{}
	lookupp  = &nfsv4.NfsArgop4_OP_LOOKUPP{}
	creating = &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}}
	guarded  = &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_GUARDED4{}}
	plain    = &nfsv4.Openflag4_default{}
	typeBit  = nfsv4.FATTR4_TYPE
	uid5     = fattr(func(w *values) { w.text("5") }, nfsv4.FATTR4_OWNER)
)

func TestOperationsAnswerTheStatusThatRFC8881Gives(t *testing.T) {
	for name, tc := range map[string]struct {
		caller rpc.Caller
		ops    ops
		want   nfsv4.Nfsstat4
	}{
		"18.21 PUTROOTFH sets the root":                                    {alice, ops{putroot, getfh}, nfsv4.NFS4_OK},
		"18.20 PUTPUBFH sets the root, too":                                {alice, ops{&nfsv4.NfsArgop4_OP_PUTPUBFH{}, getfh}, nfsv4.NFS4_OK},
		"18.8 GETFH needs a file handle":                                   {alice, ops{getfh}, nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.8 GETFH of a junction is moved":                                {alice, at("/open/plain/junction", getfh), nfsv4.NFS4ERR_MOVED},
		"18.19 PUTFH takes a handle of a directory":                        {alice, ops{putfhOf("/open/plain"), getfh}, nfsv4.NFS4_OK},
		"18.19 PUTFH of something that is not there is stale":              {alice, ops{putfhOf("/open/none")}, nfsv4.NFS4ERR_STALE},
		"18.19 PUTFH of a junction is stale":                               {alice, ops{putfhOf("/open/plain/junction")}, nfsv4.NFS4ERR_STALE},
		"18.19 PUTFH of a share that the client doesn't see is stale":      {alice, ops{putfhOf("/limited")}, nfsv4.NFS4ERR_STALE},
		"18.19 PUTFH of a handle of an earlier release is stale":           {alice, ops{putfh(append([]byte{'H', 1, 0, 0}, make([]byte, 16)...))}, nfsv4.NFS4ERR_STALE},
		"18.19 PUTFH of a handle of a later release is a bad handle":       {alice, ops{putfh(append([]byte{'H', 3, 0, 0}, make([]byte, 16)...))}, nfsv4.NFS4ERR_BADHANDLE},
		"18.19 PUTFH of garbage is a bad handle":                           {alice, ops{putfh([]byte("garbage"))}, nfsv4.NFS4ERR_BADHANDLE},
		"18.19 PUTFH of nothing is a bad handle":                           {alice, ops{putfh(nil)}, nfsv4.NFS4ERR_BADHANDLE},
		"18.28 SAVEFH needs a file handle":                                 {alice, ops{savefh}, nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.28 SAVEFH of a junction is moved":                              {alice, at("/open/plain/junction", savefh), nfsv4.NFS4ERR_MOVED},
		"18.27 RESTOREFH needs a saved one":                                {alice, ops{putroot, restore}, nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.27 RESTOREFH brings it back":                                   {alice, ops{putroot, savefh, lookup("open"), restore, lookup("open2")}, nfsv4.NFS4_OK},
		"18.13 LOOKUP needs a file handle":                                 {alice, ops{lookup("open")}, nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.13 LOOKUP of what is not there":                                {alice, at("/", lookup("none")), nfsv4.NFS4ERR_NOENT},
		"18.13 LOOKUP of no name is invalid":                               {alice, at("/", lookup("")), nfsv4.NFS4ERR_INVAL},
		"18.13 LOOKUP of a dot is a bad name":                              {alice, at("/", lookup(".")), nfsv4.NFS4ERR_BADNAME},
		"18.13 LOOKUP of two dots is a bad name":                           {alice, at("/", lookup("..")), nfsv4.NFS4ERR_BADNAME},
		"18.13 LOOKUP of a slash is a bad character":                       {alice, at("/", lookup("a/b")), nfsv4.NFS4ERR_BADCHAR},
		"18.13 LOOKUP of NUL is a bad character":                           {alice, at("/", lookup("a\x00")), nfsv4.NFS4ERR_BADCHAR},
		"18.13 LOOKUP of what is not UTF-8 is a bad character":             {alice, at("/", lookup("\xff")), nfsv4.NFS4ERR_BADCHAR},
		"18.4 CREATE of a name of Howdah's own is not permitted":           {alice, at("/open2", mkdir(".howdah-moving-x")), nfsv4.NFS4ERR_PERM},
		"18.26 RENAME to a name of Howdah's own is not permitted":          {alice, at("/open", savefh, rename("plain", ".howdah")), nfsv4.NFS4ERR_PERM},
		"18.4 CREATE of what is not UTF-8 is a bad character":              {alice, at("/open2", mkdir("\xff")), nfsv4.NFS4ERR_BADCHAR},
		"18.13 LOOKUP of 255 bytes is fine":                                {alice, at("/", lookup(strings.Repeat("x", 255))), nfsv4.NFS4ERR_NOENT},
		"18.13 LOOKUP of 256 bytes is too long":                            {alice, at("/", lookup(strings.Repeat("x", 256))), nfsv4.NFS4ERR_NAMETOOLONG},
		"18.13 LOOKUP needs search permission":                             {alice, at("/closed", lookup("x")), nfsv4.NFS4ERR_ACCESS},
		"18.13 LOOKUP by root needs none":                                  {rootUser, at("/closed", lookup("x")), nfsv4.NFS4ERR_NOENT},
		"18.13 LOOKUP of a share that the client doesn't see":              {alice, at("/", lookup("limited")), nfsv4.NFS4ERR_NOENT},
		"18.13 LOOKUP of it by a client that does":                         {reader1, at("/", lookup("limited")), nfsv4.NFS4_OK},
		"18.13 LOOKUP behind a junction is moved":                          {alice, at("/open/plain/junction", lookup("x")), nfsv4.NFS4ERR_MOVED},
		"18.13 LOOKUP of a junction whose owner doesn't serve is delayed":  {alice, at("/open/plain", lookup("idle")), nfsv4.NFS4ERR_DELAY},
		"18.13 LOOKUP of what is being made is delayed":                    {alice, at("/open/plain", lookup("making")), nfsv4.NFS4ERR_DELAY},
		"18.13 LOOKUP of a Single share finds a junction":                  {alice, at("/deep/single", getfh), nfsv4.NFS4ERR_MOVED},
		"18.14 LOOKUPP of the root":                                        {alice, at("/", lookupp), nfsv4.NFS4ERR_NOENT},
		"18.14 LOOKUPP goes up":                                            {alice, at("/open/plain", lookupp, lookupp, lookup("deep")), nfsv4.NFS4_OK},
		"18.7 GETATTR needs a file handle":                                 {alice, ops{getattr(typeBit)}, nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.7 GETATTR of a junction is moved":                              {alice, at("/open/plain/junction", getattr(typeBit)), nfsv4.NFS4ERR_MOVED},
		"18.7 GETATTR of a junction with fs_locations":                     {alice, at("/open/plain/junction", getattr(nfsv4.FATTR4_FS_LOCATIONS)), nfsv4.NFS4_OK},
		"18.7 GETATTR of a junction with rdattr_error":                     {alice, at("/open/plain/junction", getattr(typeBit, nfsv4.FATTR4_RDATTR_ERROR)), nfsv4.NFS4_OK},
		"18.7 GETATTR of what can only be set":                             {alice, at("/", getattr(nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_INVAL},
		"18.31 VERIFY of what is so":                                       {alice, at("/", verify(typeBit, nfsv4.NF4DIR)), nfsv4.NFS4_OK},
		"18.31 VERIFY of what is not so":                                   {alice, at("/", verify(typeBit, nfsv4.NF4REG)), nfsv4.NFS4ERR_NOT_SAME},
		"18.31 VERIFY of what is not supported":                            {alice, at("/", verify(nfsv4.FATTR4_ARCHIVE, 0)), nfsv4.NFS4ERR_ATTRNOTSUPP},
		"18.31 VERIFY of rdattr_error":                                     {alice, at("/", verify(nfsv4.FATTR4_RDATTR_ERROR, 0)), nfsv4.NFS4ERR_INVAL},
		"18.31 VERIFY with too few bytes":                                  {alice, at("/", verifyValues(func(w *values) { w.Write([]byte{0, 0}) }, typeBit)), nfsv4.NFS4ERR_BADXDR},
		"18.31 VERIFY with too many bytes":                                 {alice, at("/", verifyValues(func(w *values) { w.u64(2) }, typeBit)), nfsv4.NFS4ERR_BADXDR},
		"18.31 VERIFY with a string that ends too early":                   {alice, at("/", verifyValues(func(w *values) { w.u32(9); w.u32(0) }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4ERR_BADXDR},
		"18.31 VERIFY with a list that claims to be endless":               {alice, at("/", verifyValues(func(w *values) { w.u32(1<<32 - 1) }, nfsv4.FATTR4_SUPPORTED_ATTRS)), nfsv4.NFS4ERR_BADXDR},
		"18.31 VERIFY of another owner, a longer one":                      {alice, at("/", verifyValues(func(w *values) { w.text("123456789") }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4ERR_NOT_SAME},
		"18.31 VERIFY of locations that are not so":                        {alice, at("/", verifyValues(func(w *values) { w.pathname("/a"); w.u32(1); w.u32(1); w.text("s"); w.pathname("/b") }, nfsv4.FATTR4_FS_LOCATIONS)), nfsv4.NFS4ERR_NOT_SAME},
		"18.15 NVERIFY of what is so":                                      {alice, at("/", nverify(typeBit, nfsv4.NF4DIR)), nfsv4.NFS4ERR_SAME},
		"18.15 NVERIFY of what is not so":                                  {alice, at("/", nverify(typeBit, nfsv4.NF4REG)), nfsv4.NFS4_OK},
		"18.1 ACCESS of a junction is moved":                               {alice, at("/open/plain/junction", &nfsv4.NfsArgop4_OP_ACCESS{}), nfsv4.NFS4ERR_MOVED},
		"18.29 SECINFO of what is there":                                   {alice, at("/open", secinfo("plain")), nfsv4.NFS4_OK},
		"18.29 SECINFO consumes the file handle":                           {alice, at("/open", secinfo("plain"), getfh), nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.29 SECINFO of what is not there":                               {alice, at("/open", secinfo("none")), nfsv4.NFS4ERR_NOENT},
		"18.45 SECINFO_NO_NAME of the current one":                         {alice, at("/", secinfoNoName(nfsv4.SECINFO_STYLE4_CURRENT_FH)), nfsv4.NFS4_OK},
		"18.45 SECINFO_NO_NAME consumes the file handle":                   {alice, at("/", secinfoNoName(nfsv4.SECINFO_STYLE4_CURRENT_FH), getfh), nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.45 SECINFO_NO_NAME of the root's parent":                       {alice, at("/", secinfoNoName(nfsv4.SECINFO_STYLE4_PARENT)), nfsv4.NFS4ERR_NOENT},
		"18.4 CREATE of a directory outside shares":                        {rootUser, at("/", mkdir("x")), nfsv4.NFS4ERR_ROFS},
		"18.4 CREATE of a directory above a share":                         {rootUser, at("/deep", mkdir("x")), nfsv4.NFS4ERR_ROFS},
		"18.4 CREATE of a directory":                                       {alice, at("/open", mkdir("x"), getfh, getattr(typeBit)), nfsv4.NFS4_OK},
		"18.4 CREATE of a directory that is there":                         {alice, at("/open", mkdir("plain")), nfsv4.NFS4ERR_EXIST},
		"18.4 CREATE of a junction that is there":                          {alice, at("/open/plain", mkdir("junction")), nfsv4.NFS4ERR_EXIST},
		"18.4 CREATE tells those who may not that it is there":             {bob, at("/open/plain", mkdir("junction")), nfsv4.NFS4ERR_EXIST},
		"18.4 CREATE without permission":                                   {bob, at("/open/plain", mkdir("x")), nfsv4.NFS4ERR_ACCESS},
		"18.4 CREATE by a client that may only read":                       {reader1, at("/limited", mkdir("x")), nfsv4.NFS4ERR_ROFS},
		"18.4 CREATE of a symbolic link in a share":                        {alice, at("/open", create("x", &nfsv4.Createtype4_NF4LNK{})), nfsv4.NFS4ERR_PERM},
		"18.4 CREATE of a fifo outside shares":                             {alice, at("/", create("x", &nfsv4.Createtype4_NF4FIFO{})), nfsv4.NFS4ERR_ROFS},
		"18.4 CREATE with an owner by root":                                {rootUser, at("/open", mkdir("x", uid5)), nfsv4.NFS4_OK},
		"18.4 CREATE with an owner by another":                             {alice, at("/open", mkdir("x", uid5)), nfsv4.NFS4ERR_PERM},
		"18.4 CREATE with an owner that is no number":                      {rootUser, at("/open", mkdir("x", fattr(func(w *values) { w.text("joe@x") }, nfsv4.FATTR4_OWNER))), nfsv4.NFS4ERR_BADOWNER},
		"18.4 CREATE with an impossible mode":                              {alice, at("/open", mkdir("x", fattr(func(w *values) { w.u32(0o10755) }, nfsv4.FATTR4_MODE))), nfsv4.NFS4ERR_INVAL},
		"18.4 CREATE with too few values":                                  {alice, at("/open", mkdir("x", fattr(func(*values) {}, nfsv4.FATTR4_MODE))), nfsv4.NFS4ERR_BADXDR},
		"18.4 CREATE with too many values":                                 {alice, at("/open", mkdir("x", fattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_MODE))), nfsv4.NFS4ERR_BADXDR},
		"18.4 CREATE with an attribute that can't be set":                  {alice, at("/open", mkdir("x", fattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_FILEID))), nfsv4.NFS4ERR_INVAL},
		"18.4 CREATE with an unknown attribute":                            {alice, at("/open", mkdir("x", fattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_ARCHIVE))), nfsv4.NFS4ERR_ATTRNOTSUPP},
		"18.4 CREATE of a regular file":                                    {alice, at("/open", create("x", &nfsv4.Createtype4_default{Type: nfsv4.NF4REG})), nfsv4.NFS4ERR_BADTYPE},
		"18.4 CREATE of a named attribute":                                 {alice, at("/open", create("x", &nfsv4.Createtype4_default{Type: nfsv4.NF4NAMEDATTR})), nfsv4.NFS4ERR_BADTYPE},
		"18.4 CREATE of a type that there is not":                          {bob, at("/open/plain", create("x", &nfsv4.Createtype4_default{Type: 77})), nfsv4.NFS4ERR_BADTYPE},
		"18.4 CREATE behind a junction is moved":                           {alice, at("/open/plain/junction", mkdir("x")), nfsv4.NFS4ERR_MOVED},
		"18.4 CREATE in what this compound made is stale":                  {alice, at("/open/plain", mkdir("x"), mkdir("y")), nfsv4.NFS4ERR_STALE},
		"18.25 REMOVE outside shares":                                      {rootUser, at("/", rmdir("open")), nfsv4.NFS4ERR_ROFS},
		"18.25 REMOVE of what is not there":                                {alice, at("/open", rmdir("none")), nfsv4.NFS4ERR_NOENT},
		"18.25 REMOVE of what is being made is delayed":                    {alice, at("/open/plain", rmdir("making")), nfsv4.NFS4ERR_DELAY},
		"18.25 REMOVE without permission":                                  {bob, at("/open/plain", rmdir("junction")), nfsv4.NFS4ERR_ACCESS},
		"18.25 REMOVE of a junction":                                       {alice, at("/open/plain", rmdir("junction"), lookup("junction")), nfsv4.NFS4ERR_NOENT},
		"18.25 REMOVE by a client that may only read":                      {reader1, at("/limited", rmdir("x")), nfsv4.NFS4ERR_ROFS},
		"18.26 RENAME needs a saved handle":                                {alice, at("/open", rename("plain", "x")), nfsv4.NFS4ERR_NOFILEHANDLE},
		"18.26 RENAME to another share":                                    {alice, slices.Concat(at("/open/plain", savefh), at("/open2", rename("junction", "x"))), nfsv4.NFS4ERR_XDEV},
		"18.26 RENAME out of a share":                                      {alice, slices.Concat(at("/open/plain", savefh), at("/", rename("junction", "x"))), nfsv4.NFS4ERR_XDEV},
		"18.26 RENAME onto a directory that its owner finds empty":         {alice, at("/open/plain", savefh, rename("junction", "idle")), nfsv4.NFS4_OK},
		"18.26 RENAME onto an empty directory":                             {alice, at("/open", mkdir("x"), putroot, lookup("open"), savefh, rename("plain", "x")), nfsv4.NFS4_OK},
		"18.26 RENAME to a name that is being made is delayed":             {alice, at("/open/plain", savefh, rename("junction", "making")), nfsv4.NFS4ERR_DELAY},
		"18.26 RENAME to itself":                                           {alice, at("/open/plain", savefh, rename("junction", "junction")), nfsv4.NFS4_OK},
		"18.26 RENAME to another level":                                    {alice, slices.Concat(at("/open/plain", savefh), at("/open", rename("junction", "x"))), nfsv4.NFS4ERR_PERM},
		"18.26 RENAME of a directory with directories":                     {alice, at("/open", savefh, rename("plain", "x")), nfsv4.NFS4_OK},
		"18.26 RENAME to a bad name":                                       {alice, at("/open/plain", savefh, rename("junction", "..")), nfsv4.NFS4ERR_BADNAME},
		"18.26 RENAME without permission":                                  {bob, at("/open/plain", savefh, rename("junction", "x")), nfsv4.NFS4ERR_ACCESS},
		"18.26 RENAME":                                                     {alice, at("/open/plain", savefh, rename("junction", "x")), nfsv4.NFS4_OK},
		"18.16 OPEN that creates a file in a share":                        {alice, at("/open", open("x", creating)), nfsv4.NFS4ERR_PERM},
		"18.16 OPEN that creates a file outside shares":                    {alice, at("/", open("x", creating)), nfsv4.NFS4ERR_ROFS},
		"18.16 OPEN that creates without permission":                       {bob, at("/open/plain", open("x", creating)), nfsv4.NFS4ERR_ACCESS},
		"18.16 OPEN of what is not there":                                  {alice, at("/open", open("x", plain)), nfsv4.NFS4ERR_NOENT},
		"18.16 OPEN of a directory":                                        {alice, at("/open", open("plain", plain)), nfsv4.NFS4ERR_ISDIR},
		"18.16 OPEN of a directory to be created":                          {alice, at("/open", open("plain", creating)), nfsv4.NFS4ERR_ISDIR},
		"18.16 OPEN of a directory that must not be there":                 {alice, at("/open", open("plain", guarded)), nfsv4.NFS4ERR_EXIST},
		"18.16 OPEN of the current file handle":                            {alice, at("/open", &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{Openhow: plain, Claim: &nfsv4.OpenClaim4_CLAIM_FH{}}}), nfsv4.NFS4ERR_ISDIR},
		"18.16 OPEN to reclaim":                                            {alice, at("/open", &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{Openhow: plain, Claim: &nfsv4.OpenClaim4_CLAIM_PREVIOUS{}}}), nfsv4.NFS4ERR_NO_GRACE},
		"18.30 SETATTR of nothing":                                         {bob, at("/open/plain", setattr(func(*values) {})), nfsv4.NFS4_OK},
		"18.30 SETATTR of the mode by the owner":                           {alice, at("/open/plain", setattr(func(w *values) { w.u32(0o700) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4_OK},
		"18.30 SETATTR of the mode by another":                             {bob, at("/open/plain", setattr(func(w *values) { w.u32(0o700) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4ERR_PERM},
		"18.30 SETATTR of the mode of a share":                             {rootUser, at("/open", setattr(func(w *values) { w.u32(0o700) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4_OK},
		"18.30 SETATTR of the mode of a share by a squashed root":          {squashed, at("/limited", setattr(func(w *values) { w.u32(0o700) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4ERR_PERM},
		"18.30 SETATTR of an impossible mode":                              {alice, at("/open/plain", setattr(func(w *values) { w.u32(0o10000) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4ERR_INVAL},
		"18.30 SETATTR of the owner by root":                               {rootUser, at("/open/plain", setattr(func(w *values) { w.text("7") }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4_OK},
		"18.30 SETATTR of the owner by the owner":                          {alice, at("/open/plain", setattr(func(w *values) { w.text("7") }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4ERR_PERM},
		"18.30 SETATTR of an owner that is no number":                      {rootUser, at("/open/plain", setattr(func(w *values) { w.text("joe") }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4ERR_BADOWNER},
		"18.30 SETATTR of times by the owner":                              {alice, at("/open/plain", setattr(clientTime(7, 8), nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4_OK},
		"18.30 SETATTR of times by another":                                {bob, at("/open", setattr(clientTime(7, 8), nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_PERM},
		"18.30 SETATTR of times to now by who may write":                   {bob, at("/open", setattr(serverTime, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4_OK},
		"18.30 SETATTR of times to now by who may not":                     {bob, at("/open/plain", setattr(serverTime, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_ACCESS},
		"18.30 SETATTR of a time with too many nanoseconds":                {alice, at("/open/plain", setattr(clientTime(7, 1e9), nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_INVAL},
		"18.30 SETATTR of a time in the year 292277026596":                 {alice, at("/open/plain", setattr(clientTime(1<<63-1, 0), nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_INVAL},
		"18.30 SETATTR of a time of no kind":                               {alice, at("/open/plain", setattr(func(w *values) { w.u32(2) }, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_BADXDR},
		"18.30 SETATTR of too few values":                                  {alice, at("/open/plain", setattr(func(w *values) { w.u32(1) }, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_BADXDR},
		"18.30 SETATTR of too many values":                                 {alice, at("/open/plain", setattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_MODE)), nfsv4.NFS4ERR_BADXDR},
		"18.30 SETATTR of the size of a directory":                         {alice, at("/open/plain", setattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_SIZE)), nfsv4.NFS4ERR_ISDIR},
		"18.30 SETATTR of what is only given":                              {alice, at("/open/plain", setattr(func(w *values) { w.u64(1) }, nfsv4.FATTR4_FILEID)), nfsv4.NFS4ERR_INVAL},
		"18.30 SETATTR of an unknown attribute":                            {alice, at("/open/plain", setattr(func(w *values) { w.u32(1) }, nfsv4.FATTR4_ARCHIVE)), nfsv4.NFS4ERR_ATTRNOTSUPP},
		"18.30 SETATTR by a client that may only read":                     {reader1, at("/limited", setattr(serverTime, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_ROFS},
		"18.30 SETATTR outside shares":                                     {rootUser, at("/", setattr(serverTime, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_ROFS},
		"18.30 SETATTR of a junction is moved":                             {alice, at("/open/plain/junction", setattr(serverTime, nfsv4.FATTR4_TIME_MODIFY_SET)), nfsv4.NFS4ERR_MOVED},
		"18.30 SETATTR of what this compound made is its owner's to judge": {alice, at("/open/plain", mkdir("x"), setattr(func(w *values) { w.text("7") }, nfsv4.FATTR4_OWNER)), nfsv4.NFS4_OK},
		"18.9 LINK in a share":                                             {alice, at("/open", &nfsv4.NfsArgop4_OP_LINK{}), nfsv4.NFS4ERR_NOTSUPP},
		"18.17 OPENATTR in a share":                                        {alice, at("/open", &nfsv4.NfsArgop4_OP_OPENATTR{}), nfsv4.NFS4ERR_NOTSUPP},
		"18.22 READ of a directory":                                        {alice, at("/open", &nfsv4.NfsArgop4_OP_READ{}), nfsv4.NFS4ERR_ISDIR},
		"18.32 WRITE of a directory":                                       {alice, at("/open", &nfsv4.NfsArgop4_OP_WRITE{}), nfsv4.NFS4ERR_ISDIR},
		"18.3 COMMIT of a directory":                                       {alice, at("/open", &nfsv4.NfsArgop4_OP_COMMIT{}), nfsv4.NFS4ERR_ISDIR},
		"18.24 READLINK of a directory":                                    {alice, at("/open", &nfsv4.NfsArgop4_OP_READLINK{}), nfsv4.NFS4ERR_WRONG_TYPE},
		"18.2 CLOSE of what was never opened":                              {alice, at("/open", &nfsv4.NfsArgop4_OP_CLOSE{}), nfsv4.NFS4ERR_BAD_STATEID},
		"18.43 LAYOUTGET is not supported":                                 {alice, at("/open", &nfsv4.NfsArgop4_OP_LAYOUTGET{Oplayoutget: nfsv4.Layoutget4args{}}), nfsv4.NFS4ERR_NOTSUPP},
		"RFC 5531 AUTH_NONE is uid 65534, and may do what all may":         {noAuth, at("/open", mkdir("x")), nfsv4.NFS4_OK},
		"RFC 5531 AUTH_NONE is uid 65534, and may not do what root may":    {noAuth, at("/closed", lookup("x")), nfsv4.NFS4ERR_ACCESS},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := newWorld(t).do(tc.caller, tc.ops...); got != tc.want {
				t.Errorf("got %s, want %s", nfs.StatusName(got), nfs.StatusName(tc.want))
			}
		})
	}
}

func verify(bit int, value nfsv4.NfsFtype4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_VERIFY{Opverify: nfsv4.Verify4args{ObjAttributes: fattr(func(w *values) { w.u32(uint32(value)) }, bit)}}
}

func setattr(encode func(*values), bits ...int) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: fattr(encode, bits...)}}
}

func serverTime(w *values) { w.u32(uint32(nfsv4.SET_TO_SERVER_TIME4)) }

func clientTime(seconds uint64, nanoseconds uint32) func(*values) {
	return func(w *values) {
		w.u32(uint32(nfsv4.SET_TO_CLIENT_TIME4))
		w.u64(seconds)
		w.u32(nanoseconds)
	}
}

func verifyValues(encode func(*values), bit int) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_VERIFY{Opverify: nfsv4.Verify4args{ObjAttributes: fattr(encode, bit)}}
}

func nverify(bit int, value nfsv4.NfsFtype4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_NVERIFY{Opnverify: nfsv4.Nverify4args{ObjAttributes: fattr(func(w *values) { w.u32(uint32(value)) }, bit)}}
}

func secinfo(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: name}}
}

func secinfoNoName(style nfsv4.SecinfoStyle4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_SECINFO_NO_NAME{OpsecinfoNoName: style}
}

func create(name string, what nfsv4.Createtype4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: what, Objname: name}}
}

func TestAttributesOfNFS42AreUnknownInNFS41(t *testing.T) { // RFC 7862 section 12.2
	const of42 = nfsv4.FATTR4_CHANGE_ATTR_TYPE
	w := newWorld(t)
	for minor, want := range map[uint32]bool{1: false, 2: true} {
		w.minor = minor
		res, status := w.do(alice, at("/open", getattr(nfsv4.FATTR4_SUPPORTED_ATTRS, of42))...)
		if status != nfsv4.NFS4_OK {
			t.Fatal(nfs.StatusName(status))
		}
		got := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes
		if hasBit(got.Attrmask, of42) != want {
			t.Errorf("minor version %d: the reply has attributes %x", minor, got.Attrmask)
		}
		r := reader{b: got.AttrVals}
		var words []uint32
		r.skipList(func() { words = append(words, r.u32()) })
		if hasBit(words, of42) != want {
			t.Errorf("minor version %d: supported attributes are %x", minor, words)
		}
		wantStatus := nfsv4.NFS4ERR_ATTRNOTSUPP
		if want {
			wantStatus = nfsv4.NFS4_OK
		}
		if _, status := w.do(alice, at("/open", verifyValues(func(v *values) { v.u32(changeTypeUndefined) }, of42))...); status != wantStatus {
			t.Errorf("minor version %d: VERIFY: %s", minor, nfs.StatusName(status))
		}
	}
}

func TestWhatSETATTRReadsIsWhatIsSet(t *testing.T) { // RFC 8881 section 18.30.3: attributes in the order of their numbers
	w := newWorld(t)
	all := setattr(func(v *values) { v.u32(0o2750); v.text("5"); v.text("123456"); serverTime(v); clientTime(7, 8)(v) },
		nfsv4.FATTR4_MODE, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP, nfsv4.FATTR4_TIME_ACCESS_SET, nfsv4.FATTR4_TIME_MODIFY_SET)
	res, status := w.do(rootUser, at("/open/plain", all)...)
	if status != nfsv4.NFS4_OK {
		t.Fatal(nfs.StatusName(status))
	}
	if got := res[len(res)-1].(*nfsv4.NfsResop4_OP_SETATTR).Opsetattr.Attrsset; !slices.Equal(got, settableAttributes) {
		t.Errorf("the reply says that %x were set", got)
	}
	mode, owner, group := uint32(0o2750), uint32(5), uint32(123456)
	want := tree.Settings{
		Mode: &mode, Owner: &owner, Group: &group,
		Access: &tree.TimeSetting{Now: true}, Modify: &tree.TimeSetting{Time: time.Unix(7, 8).UTC()},
	}
	if diff := cmp.Diff([]tree.Settings{want}, w.mutator.set); diff != "" {
		t.Error(diff)
	}
}

func TestInAStickyDirectoryTheDataServerJudgesWhoRemovesADistributedDirectory(t *testing.T) {
	w := newWorld(t)
	sticky := directory("open", "sticky", "", internalv1.DirectoryReady, 50)
	sticky.Spec.Mode = "1777"
	w.handler.Tree.SetDirectory(sticky)
	w.handler.Tree.SetDirectory(directory("open", "sticky/given", "fs-0", internalv1.DirectoryReady, 51))
	deeper := share("deeper", "/deeper", func(s *v1alpha1.FileShareSpec) { s.Depth, s.Mode = 3, "1777" })
	w.handler.Tree.SetShare(fleet.ShareOf(deeper))
	w.handler.Tree.SetDirectory(directory("deeper", "alices", "", internalv1.DirectoryReady, 52))
	// Its ShareDirectory says that it is alice's. Its data server may know that she gave it to bob.
	if _, status := w.do(bob, at("/open/sticky", rmdir("given"))...); status != nfsv4.NFS4_OK {
		t.Errorf("of a distributed directory: %s", nfs.StatusName(status))
	}
	if _, status := w.do(bob, at("/deeper", rmdir("alices"))...); status != nfsv4.NFS4ERR_ACCESS {
		t.Errorf("of one of the namespace, which is another's: %s", nfs.StatusName(status))
	}
	if _, status := w.do(alice, at("/deeper", rmdir("alices"))...); status != nfsv4.NFS4_OK {
		t.Errorf("of the caller's own: %s", nfs.StatusName(status))
	}
}

func TestAccessIsWhatModeAndRulesGive(t *testing.T) { // RFC 8881 section 18.1
	const all = 0x3f
	const read = nfsv4.ACCESS4_READ | nfsv4.ACCESS4_LOOKUP
	const write = nfsv4.ACCESS4_MODIFY | nfsv4.ACCESS4_EXTEND | nfsv4.ACCESS4_DELETE
	for name, tc := range map[string]struct {
		caller rpc.Caller
		path   string
		want   uint32
	}{
		"not even root writes above shares":      {rootUser, "/", read},
		"the owner writes":                       {alice, "/open/plain", read | write},
		"others read":                            {bob, "/open/plain", read},
		"a closed directory gives nothing":       {bob, "/closed", 0},
		"a read-only client does not write":      {reader1, "/limited", read},
		"a squashed client has what others have": {squashed, "/limited", read | write},
	} {
		t.Run(name, func(t *testing.T) {
			res, status := newWorld(t).do(tc.caller, at(tc.path, &nfsv4.NfsArgop4_OP_ACCESS{Opaccess: nfsv4.Access4args{Access: all}})...)
			if status != nfsv4.NFS4_OK {
				t.Fatal(nfs.StatusName(status))
			}
			got := res[len(res)-1].(*nfsv4.NfsResop4_OP_ACCESS).Opaccess.(*nfsv4.Access4res_NFS4_OK).Resok4
			if diff := cmp.Diff(nfsv4.Access4resok{Supported: read | write, Access: tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADirectoryIsMadeAsTheSquashedCaller(t *testing.T) {
	w := newWorld(t)
	mode := fattr(func(m *values) { m.u32(0o2750) }, nfsv4.FATTR4_MODE)
	if _, status := w.do(squashed, at("/limited", mkdir("x", mode))...); status != nfsv4.NFS4_OK {
		t.Fatal(nfs.StatusName(status))
	}
	got := w.mutator.mkdirs[0]
	if got.Caller.UID != tree.SquashedID || got.Caller.GID != tree.SquashedID || got.Mode != 0o2750 || got.Owner != nil {
		t.Errorf("the request is %+v", got)
	}
}
