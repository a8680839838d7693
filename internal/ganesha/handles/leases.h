// SPDX-License-Identifier: Apache-2.0
#ifndef HOWDAH_LEASES_H
#define HOWDAH_LEASES_H

// mark_late_clients begins when ganesha has made its reaper, and ends with ganesha.
void mark_late_clients(void);

#endif
