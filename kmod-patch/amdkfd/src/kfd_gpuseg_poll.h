/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KFD_GPUSEG_POLL_H
#define KFD_GPUSEG_POLL_H

#include <linux/delay.h>

#define KFD_GPUSEG_SPIN_US	2
#define KFD_GPUSEG_SPINS	50
#define KFD_GPUSEG_SHORT_SLEEPS	50

/**
 * kfd_gpuseg_poll_wait - wait between two reads of "is this HQD idle"
 * @polls: reads so far, counted here; starts at 0
 *
 * Sleeping 0.5 to 1 ms after the first read makes every unload that is not done at
 * once last that long. This spins for 100 us in all, then sleeps 20 to 50 us at a
 * time for a few milliseconds at most, then as long as the driver always did. How
 * long the driver waits before it gives up is the caller's, and unchanged.
 */
static inline void kfd_gpuseg_poll_wait(unsigned int *polls)
{
	unsigned int n = (*polls)++;

	if (n < KFD_GPUSEG_SPINS)
		udelay(KFD_GPUSEG_SPIN_US);
	else if (n < KFD_GPUSEG_SPINS + KFD_GPUSEG_SHORT_SLEEPS)
		usleep_range(20, 50);
	else
		usleep_range(500, 1000);
}

#endif
