// SPDX-License-Identifier: Apache-2.0
// Never linked: it compiles if layout.h says of ganesha's memory what ganesha's own headers say.
#include "config.h" // Of ganesha's build; an empty one does, as nothing here depends on options.
#include <stddef.h>

#include "nfs_core.h"
#include "nfs_file_handle.h"
#include "nfs_proto_data.h"

#include "layout.h"

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)

SAME(HANDLE_MOST, NFS4_FHSIZE);
SAME(OP_PUTFH, NFS4_OP_PUTFH);
SAME(STATUS_OK, NFS4_OK);
SAME(STATUS_BADHANDLE, NFS4ERR_BADHANDLE);
SAME(STATUS_DELAY, NFS4ERR_DELAY);
SAME(RESULT_ERROR, NFS_REQ_ERROR);

SAME(AT_FLAGS, offsetof(file_handle_v4_t, fhflags1));
SAME(AT_EXPORT, offsetof(file_handle_v4_t, id.exports));
SAME(AT_LENGTH, offsetof(file_handle_v4_t, fs_len));
SAME(HEAD_BYTES, offsetof(file_handle_v4_t, fsopaque));
SAME(FLAGS_OWN, BYTE_ORDER == BIG_ENDIAN ? FH_FSAL_BIG_ENDIAN : 0);
SAME(0, FLAG_SIGNED & (FILE_HANDLE_V4_FLAG_DS | FH_FSAL_BIG_ENDIAN));

SAME(sizeof(struct handle), sizeof(nfs_fh4));
SAME(offsetof(struct handle, length), offsetof(nfs_fh4, nfs_fh4_len));
SAME(offsetof(struct handle, bytes), offsetof(nfs_fh4, nfs_fh4_val));
SAME(offsetof(struct arguments, operation), offsetof(struct nfs_argop4, argop));
SAME(offsetof(struct arguments, handle), offsetof(struct nfs_argop4, nfs_argop4_u.opputfh.object));
SAME(offsetof(struct result, operation), offsetof(struct nfs_resop4, resop));
SAME(offsetof(struct result, status), offsetof(struct nfs_resop4, nfs_resop4_u.opputfh.status));
SAME(sizeof(((struct result *)0)->status), sizeof(nfsstat4));
SAME(sizeof(struct attributes), sizeof(fattr4));
SAME(offsetof(struct attributes, length), offsetof(fattr4, attr_vals.attrlist4_len));
SAME(offsetof(struct attributes, bytes), offsetof(fattr4, attr_vals.attrlist4_val));
SAME(offsetof(struct compound, current), offsetof(compound_data_t, currentFH));

// The functions that handles.c and owners.c stand in front of. A declaration that differs from the headers' does not compile.
bool nfs4_FSALToFhandle(bool allocate, nfs_fh4 *handle, const struct fsal_obj_handle *object, struct gsh_export *export);
enum nfs_req_result nfs4_op_putfh(struct nfs_argop4 *arguments, compound_data_t *compound, struct nfs_resop4 *result);
bool fsal_common_is_referral(struct fsal_obj_handle *object, struct fsal_attrlist *attributes, bool cache);
int nfs4_Fattr_To_FSAL_attr(struct fsal_attrlist *to, fattr4 *from, compound_data_t *compound);
