/* SPDX-License-Identifier: Apache-2.0 */
/* captures.h - streams that are being captured. All with inject.lock held. */
#ifndef GPUSEG_INJECT_CAPTURES_H
#define GPUSEG_INJECT_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#define CAPTURES_MAX 64

extern unsigned int captures_open; /* captures.c writes it */

/* Also without the lock, to skip a call of the driver. */
static inline bool captures_any(void)
{
	return __atomic_load_n(&captures_open, __ATOMIC_RELAXED);
}

/* False: there are too many. */
bool captures_add(uintptr_t handle);
/* Of a capture that has ended, or that never began. */
void captures_drop(uintptr_t handle);
/* Captures whose end was not seen: their streams are asked, which is allowed at any time. Releases the lock. */
void captures_check(void);

#endif /* GPUSEG_INJECT_CAPTURES_H */
