/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"

enum { NOT_FOUND = -1 };

static int find(const struct audit *audit, int32_t pid)
{
	for (int i = 0; i < ENGINE_CONTEXTS_MAX; i++)
		if (audit->intervals[i].pid == pid)
			return i;
	return NOT_FOUND;
}

void audit_operated(struct audit *audit, const struct operation *operation)
{
	if (operation->op == GPUSEG_SIM_TIMESLICE)
		return;
	for (unsigned i = 0; i < operation->count; i++) {
		int at = find(audit, operation->pids[i]);

		if (!(operation->served >> i & 1))
			continue;
		if (operation->op == GPUSEG_SIM_ENABLE) {
			if (at != NOT_FOUND && audit->intervals[at].on_ns == INT64_MAX)
				audit->intervals[at].on_ns = operation->effect_ns;
			continue;
		}
		if (at == NOT_FOUND)
			at = find(audit, 0);
		else if (audit->intervals[at].on_ns == INT64_MAX)
			continue; /* it was disabled before and still is */
		audit->intervals[at].pid = operation->pids[i];
		audit->intervals[at].off_ns = operation->effect_ns;
		audit->intervals[at].on_ns = INT64_MAX;
	}
}

void audit_span(struct audit *audit, const struct gpuseg_sim_span *span)
{
	const int at = find(audit, span->pid);

	if (at != NOT_FOUND && span->start_ns < audit->intervals[at].on_ns &&
	    span->end_ns > audit->intervals[at].off_ns)
		audit->ran_while_disabled++;
}

void audit_dropped(struct audit *audit, int32_t pid)
{
	const int at = find(audit, pid);

	if (at != NOT_FOUND)
		audit->intervals[at].pid = 0;
}
