/* SPDX-License-Identifier: Apache-2.0 */
/* AMD: payload = struct gpuseg_amd_held. How to enable depends on how it was disabled, and on the daemon's state. */
#include "mechanism.h"

#include "amd/gpuseg_amd.h"
#include "common/base.h"

void mechanism_amd_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct held_context *c = contexts[i];

		c->result = gpuseg_amd_release(c->pid, process_start_ticks(c->pid), c->payload, c->payload_size,
					       deadline_ns);
	}
}
