/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NVGPU_CHANNEL_H
#define NVGPU_CHANNEL_H

#include <linux/list.h>
#include <linux/types.h>

struct gk20a;

struct nvgpu_channel {
	struct gk20a *g;
	struct list_head ch_entry;
	u32 chid;
	u32 tsgid;
};

int nvgpu_channel_enable(struct gk20a *g, struct nvgpu_channel *ch);
int nvgpu_channel_disable(struct gk20a *g, struct nvgpu_channel *ch);

#endif
