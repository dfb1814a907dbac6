/* SPDX-License-Identifier: Apache-2.0 */
#include "mechanism.h"

#include <stddef.h>

#include "common/base.h"

/*
 * The gate delays begins and never disables a context. Held launches go on by themselves when the daemon is silent: the
 * programs look at its heartbeat as this one does. So there is nothing to enable.
 */
static void nothing_to_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns)
{
	(void)deadline_ns;
	for (unsigned i = 0; i < count; i++)
		contexts[i]->result = 0;
}

static const struct mechanism mechanisms[] = {
	{GPUSEG_MECHANISM_GATE, "gate", nothing_to_release, NULL},
	{GPUSEG_MECHANISM_SIM, "sim", mechanism_sim_release, NULL},
	{GPUSEG_MECHANISM_NVIDIA, "nvidia", mechanism_nvidia_release, mechanism_nvidia_restore_timeslices},
	{GPUSEG_MECHANISM_TEGRA, "tegra", mechanism_tegra_release, NULL},
	{GPUSEG_MECHANISM_AMD, "amd", mechanism_amd_release, NULL},
	{GPUSEG_MECHANISM_LAUNCH, "launch", nothing_to_release, NULL},
};

const struct mechanism *mechanism_find(uint32_t id)
{
	for (unsigned i = 0; i < ARRAY_LENGTH(mechanisms); i++)
		if (mechanisms[i].id == id)
			return &mechanisms[i];
	return NULL;
}
