/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NVGPU_TSG_H
#define NVGPU_TSG_H

#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#define nvgpu_list_node list_head
#define nvgpu_rwsem rw_semaphore
#define nvgpu_rwsem_down_read(s) down_read(s)
#define nvgpu_rwsem_up_read(s) up_read(s)
#define nvgpu_list_for_each_entry(pos, head, type, member) list_for_each_entry(pos, head, member)

struct gk20a;
struct nvgpu_channel;
struct nvgpu_runlist;

struct nvgpu_tsg {
	struct gk20a *g;
	struct nvgpu_list_node ch_list;
	struct nvgpu_rwsem ch_list_lock;
	struct nvgpu_runlist *runlist;
	u32 tsgid;
	pid_t tgid;
	bool in_use;
};

struct nvgpu_tsg *nvgpu_tsg_open(struct gk20a *g, pid_t pid);
void nvgpu_tsg_release_common(struct gk20a *g, struct nvgpu_tsg *tsg);
struct nvgpu_tsg *nvgpu_tsg_from_ch(struct nvgpu_channel *ch);

#endif
