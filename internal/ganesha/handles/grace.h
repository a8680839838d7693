// SPDX-License-Identifier: Apache-2.0
#ifndef HOWDAH_GRACE_H
#define HOWDAH_GRACE_H

// look_at_grace is called by each compound that works on a file.
void look_at_grace(void);

#endif
