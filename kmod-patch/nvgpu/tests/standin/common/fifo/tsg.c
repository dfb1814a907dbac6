// SPDX-License-Identifier: GPL-2.0-only
/* Stand-in: TSGs from a table. */
#include <nvgpu/channel.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/tsg.h>

struct nvgpu_tsg *nvgpu_tsg_from_ch(struct nvgpu_channel *ch)
{
	return &ch->g->fifo.tsg[ch->tsgid];
}

struct nvgpu_tsg *nvgpu_tsg_open(struct gk20a *g, pid_t pid)
{
	struct nvgpu_tsg *tsg = NULL;
	u32 i;

	for (i = 0; i < g->fifo.num_channels && !tsg; i++)
		if (!g->fifo.tsg[i].in_use)
			tsg = &g->fifo.tsg[i];
	if (!tsg)
		return NULL;
	tsg->in_use = true;
	tsg->tgid = pid;

	return tsg;
}

void nvgpu_tsg_release_common(struct gk20a *g, struct nvgpu_tsg *tsg)
{
	tsg->in_use = false;
	tsg->tgid = 0;
}
