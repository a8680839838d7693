// SPDX-License-Identifier: Apache-2.0
#pragma once

// prepare_mounts finds libcephfs' functions behind ours, in libcephfs or in what needs it.
void prepare_mounts(void *library);

// end_unasked_mounts unmounts what ganesha has not asked for by now: it has read its exports.
void end_unasked_mounts(void);
