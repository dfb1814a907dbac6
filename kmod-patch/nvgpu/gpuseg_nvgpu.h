/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * GPU segments on nvgpu (Tegra): an ioctl of /dev/nvgpu/igpu0/ctrl, and what the semantic patch calls.
 *
 * The same number as the one of GCAPS's published patch; the larger argument tells them apart.
 */
#ifndef GPUSEG_NVGPU_H
#define GPUSEG_NVGPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPUSEG_NVGPU_BEGIN 1
#define GPUSEG_NVGPU_END 2
#define GPUSEG_NVGPU_PRIORITY_MAX 99

/*
 * Begin: from now until End the process has a GPU segment of this priority. One segment for each open file.
 * 0; -EALREADY a segment is open on this file; -EINVAL op, reserved or priority; -EPERM the priority is above the
 * caller's own rt_priority without CAP_SYS_NICE, or another process is meant without CAP_SYS_ADMIN; -ESRCH no such
 * process; -EIO the runlist could not be changed: nothing has begun.
 * End: 0; -EINVAL no segment is open on this file. Closing the file ends its segment.
 */
struct gpuseg_nvgpu_segment_args {
	__u32 op;
	__s32 pid;	    /* 0 = the caller's process */
	__s32 gpu_priority; /* 1..99, higher first; 0 = best effort; -1 = the caller's rt_priority */
	__u32 reserved;
	__u64 took_ns;	    /* out: for the runlist updates */
	__u32 updates;	    /* out: how many */
	__u32 running;	    /* out: pid whose segment has the GPU, 0 = best effort */
};

#define GPUSEG_NVGPU_IOCTL_SEGMENT _IOWR('G', 43, struct gpuseg_nvgpu_segment_args)

#ifdef __KERNEL__
struct gk20a;
struct nvgpu_channel;
struct nvgpu_runlist;
struct nvgpu_tsg;

/*
 * After the FIFO is set up, and before it is removed. init: 0 or -ENOMEM; without it every call below passes through.
 */
int gpuseg_nvgpu_init(struct gk20a *g);
void gpuseg_nvgpu_exit(struct gk20a *g);

/*
 * session = private data of the open control file, as an identity. The first takes the address of the argument in user
 * memory.
 */
long gpuseg_nvgpu_ioctl(struct gk20a *g, const void *session, unsigned long arg);
long gpuseg_nvgpu_segment(struct gk20a *g, const void *session, struct gpuseg_nvgpu_segment_args *args);
void gpuseg_nvgpu_session_closed(struct gk20a *g, const void *session);

/* In place of g->ops.runlist.update wherever the driver itself calls it: a channel that is held is not added. */
int gpuseg_nvgpu_runlist_update(struct gk20a *g, struct nvgpu_runlist *rl, struct nvgpu_channel *ch, bool add,
				bool wait_for_finish);

/* A TSG was opened: it starts held when another process's segment has the GPU. Closed: its number may be reused. */
void gpuseg_nvgpu_tsg_opened(struct gk20a *g, struct nvgpu_tsg *tsg);
void gpuseg_nvgpu_tsg_closed(struct gk20a *g, struct nvgpu_tsg *tsg);
#endif

#endif
