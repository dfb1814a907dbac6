/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - streams that work for a task of the program. All with inject.lock held. */
#ifndef GPUSEG_INJECT_RANKS_H
#define GPUSEG_INJECT_RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* The stream works for a task of priority `rank`, 1..99, 0 = best effort; -1 = for none. 0, -EINVAL or -ENOSPC. */
int rank_set(uintptr_t handle, int rank);
/* True if it works for a task, and then its priority. */
bool rank_of(uintptr_t handle, int *priority);

#endif /* GPUSEG_INJECT_RANKS_H */
