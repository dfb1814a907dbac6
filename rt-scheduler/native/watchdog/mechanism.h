/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mechanism.h - how the watchdog enables a context, one row per mechanism.
 *
 * A new mechanism is one file with a release function and one row in mechanism.c. The function has only the held entry:
 * the daemon's descriptors were closed with the daemon.
 */
#ifndef GPUSEG_WATCHDOG_MECHANISM_H
#define GPUSEG_WATCHDOG_MECHANISM_H

#include <stdint.h>

#include "gpuseg_abi.h"

/* A copy of a held entry, and the result of its release. */
struct held_context {
	uint32_t index;	    /* in the held file */
	uint32_t mechanism; /* enum gpuseg_mechanism */
	int32_t pid;
	uint32_t gpu;
	int64_t since_ns;
	const uint8_t *payload; /* in the held file */
	uint32_t payload_size;
	int result; /* see release() */
};

struct mechanism {
	uint32_t id; /* enum gpuseg_mechanism */
	const char *name;
	/*
	 * Enables every context of the array, all of this mechanism, within `deadline_ns` (absolute). Sets each result:
	 * 0: enabled; -ESRCH: the context does not exist any more; another -errno: it may still be disabled.
	 */
	void (*release)(struct held_context *const contexts[], unsigned count, int64_t deadline_ns);
	/* Restores the time slices of one context; result as above. NULL: the mechanism does not change time slices. */
	int (*restore_timeslices)(const struct held_context *context);
};

/* NULL: this program cannot release this mechanism. */
const struct mechanism *mechanism_find(uint32_t id);

void mechanism_nvidia_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns);
int mechanism_nvidia_restore_timeslices(const struct held_context *context);
void mechanism_tegra_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns);
void mechanism_amd_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns);
void mechanism_sim_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns);

#endif /* GPUSEG_WATCHDOG_MECHANISM_H */
