// SPDX-License-Identifier: GPL-2.0-only
/* Stand-in: the FIFO's tables. */
#include <linux/errno.h>
#include <linux/slab.h>
#include <nvgpu/channel.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/tsg.h>

int nvgpu_fifo_setup_sw(struct gk20a *g)
{
	u32 i;

	g->fifo.tsg = kcalloc(g->fifo.num_channels, sizeof(*g->fifo.tsg), GFP_KERNEL);
	g->fifo.channel = kcalloc(g->fifo.num_channels, sizeof(*g->fifo.channel), GFP_KERNEL);
	if (!g->fifo.tsg || !g->fifo.channel)
		return -ENOMEM;
	for (i = 0; i < g->fifo.num_channels; i++) {
		g->fifo.tsg[i].g = g;
		g->fifo.tsg[i].tsgid = i;
		INIT_LIST_HEAD(&g->fifo.tsg[i].ch_list);
		init_rwsem(&g->fifo.tsg[i].ch_list_lock);
		g->fifo.channel[i].g = g;
		g->fifo.channel[i].chid = i;
	}

	return 0;
}

void nvgpu_fifo_cleanup_sw(struct gk20a *g)
{
	kfree(g->fifo.tsg);
	kfree(g->fifo.channel);
}
