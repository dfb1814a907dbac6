/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NVGPU_FIFO_H
#define NVGPU_FIFO_H

#include <linux/types.h>

struct gk20a;
struct nvgpu_tsg;
struct nvgpu_channel;

struct nvgpu_fifo {
	u32 num_channels;
	struct nvgpu_tsg *tsg;
	struct nvgpu_channel *channel;
};

int nvgpu_fifo_setup_sw(struct gk20a *g);
void nvgpu_fifo_cleanup_sw(struct gk20a *g);

#endif
