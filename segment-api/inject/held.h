/* SPDX-License-Identifier: Apache-2.0 */
/* held.h - launches that the daemon holds. All with inject.lock held. */
#ifndef GPUSEG_INJECT_HELD_H
#define GPUSEG_INJECT_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* Wait while the daemon holds launches. Releases the lock meanwhile. False: the segment has ended. */
bool held_wait(struct gpu *gpu);
/* Does the daemon hold launches now? */
bool held_now(const struct gpu *gpu);
/* The bound on all work in flight that the daemon's mechanism needs in the segment that was begun; 0 = none. */
int64_t held_bound(const struct gpu *gpu);

#endif /* GPUSEG_INJECT_HELD_H */
