// SPDX-License-Identifier: Apache-2.0
#ifndef HOWDAH_CEPHFS_H
#define HOWDAH_CEPHFS_H

// prepare_cephfs is to be called when FSAL_CEPH was loaded, before it is used.
void prepare_cephfs(void *fsal);

#endif
