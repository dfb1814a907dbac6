// SPDX-License-Identifier: GPL-2.0-only
/* Stand-in: a channel comes and goes. */
#include <nvgpu/channel.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/tsg.h>

int nvgpu_channel_enable(struct gk20a *g, struct nvgpu_channel *ch)
{
	return g->ops.runlist.update(g, g->fifo.tsg[ch->tsgid].runlist, ch, true, true);
}

int nvgpu_channel_disable(struct gk20a *g, struct nvgpu_channel *ch)
{
	return g->ops.runlist.update(g, g->fifo.tsg[ch->tsgid].runlist, ch, false, true);
}
