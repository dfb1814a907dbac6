/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA: payload = struct gpuseg_rm_held. Duplicates the control descriptor of the application (pidfd_getfd) and
 * enables its channels through it. Takes about 0.4 ms per context on an H200. The call cannot be interrupted, so the
 * deadline is checked between contexts.
 */
#include "mechanism.h"

#include <errno.h>
#include <limits.h>

#include "common/base.h"
#include "rm/gpuseg_rm.h"

void mechanism_nvidia_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct held_context *c = contexts[i];
		int64_t result;

		if (c->payload_size == 0) {
			c->result = 0; /* it had no channels when it was disabled */
			continue;
		}
		if (i > 0 && now_ns() > deadline_ns) {
			c->result = -ETIMEDOUT;
			continue;
		}
		result = gpuseg_rm_release(c->pid, 0, c->payload, c->payload_size);
		/* no such descriptor, now another file, or its client is closed: its channels do not exist any more */
		if (result == -EBADF || result == -ENOTTY || result == GPUSEG_RM_INVALID_CLIENT)
			result = -ESRCH;
		c->result = result > 0 ? -EIO : (int)result;
	}
}

int mechanism_nvidia_restore_timeslices(const struct held_context *context)
{
	const int64_t result = gpuseg_rm_restore_timeslices(context->pid, context->payload, context->payload_size);

	return result > 0 ? -EIO : (int)result;
}
