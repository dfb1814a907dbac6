/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - an independent check that no disabled context makes progress.
 *
 * It shares no state with the engine. Finished operations tell when each process was disabled, and spans tell when it
 * executed. The audit counts the spans that overlap. The count is gpuseg_sim_info.ran_while_disabled and must stay 0.
 */
#ifndef GPUSEG_VGPU_AUDIT_H
#define GPUSEG_VGPU_AUDIT_H

#include "engine.h"

struct audit {
	uint64_t ran_while_disabled;
	/* The newest interval [off, on) of each process is enough: a span is reported at its end, so an older interval
	 * that it overlaps is followed by no newer one it does not overlap. */
	struct {
		int32_t pid; /* 0: free */
		int64_t off_ns;
		int64_t on_ns;
	} intervals[ENGINE_CONTEXTS_MAX];
};

void audit_operated(struct audit *audit, const struct operation *operation);
void audit_span(struct audit *audit, const struct gpuseg_sim_span *span);
void audit_dropped(struct audit *audit, int32_t pid);

#endif /* GPUSEG_VGPU_AUDIT_H */
