/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NVGPU_RUNLIST_H
#define NVGPU_RUNLIST_H

#include <linux/types.h>

struct nvgpu_runlist {
	u32 id;
};

#endif
