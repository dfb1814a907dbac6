/* SPDX-License-Identifier: Apache-2.0 */
/* Tegra: payload = struct gpuseg_tegra_held. Duplicates the TSG descriptors of the application and enables them. */
#include "mechanism.h"

#include <errno.h>

#include "common/base.h"
#include "tegra/gpuseg_tegra.h"

void mechanism_tegra_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct held_context *c = contexts[i];

		if (c->payload_size == 0)
			c->result = 0; /* it had no TSG when it was disabled */
		else if (i > 0 && now_ns() > deadline_ns)
			c->result = -ETIMEDOUT;
		else
			c->result = gpuseg_tegra_release(c->pid, c->payload, c->payload_size);
	}
}
