// SPDX-License-Identifier: Apache-2.0
#ifndef HOWDAH_SNAPSHOTS_H
#define HOWDAH_SNAPSHOTS_H

// prepare_snapshots is to be called when FSAL_CEPH was loaded, before it is used.
void prepare_snapshots(void *fsal);

#endif
