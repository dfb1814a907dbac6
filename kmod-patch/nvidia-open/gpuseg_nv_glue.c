// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the core and NVIDIA's driver: records the results of an application's allocations, duplications and frees,
 * and issues the two controls that the core needs.
 *
 * The controls go through rm_kernel_rmapi_op, the entry that nvidia-modeset uses, on the application's own client and
 * handles. rm_ioctl on the application's file would do the same (it is what the unpatched mechanism does with a
 * duplicate of the descriptor), but it takes the parameters from user memory, and on the way that matters most, the
 * release after the controller died, there is none. What rm_ioctl would check, that the client belongs to the file, is
 * what the core's records say: a handle is known only after RM accepted it through that file, and the file cannot be
 * cleaned up while the core's lock is held. No check of RM is removed or relaxed for user space.
 *
 * Source of numbers and layouts: NVIDIA's public headers (nvos.h, nv_escape.h, ctrl2080fifo.h, ctrl2080gpu.h), 535 to
 * 580. Never run on hardware.
 */
#include <linux/build_bug.h>
#include <linux/printk.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "gpuseg_nv_glue.h"
#include "gpuseg_nv_internal.h"

#define ESC_RM_FREE 0x29
#define ESC_RM_ALLOC 0x2b
#define ESC_RM_DUP_OBJECT 0x34

#define OP_CONTROL 0x36 /* NV04_CONTROL */
#define CONTROL_GPU_GET_ID 0x20800142
#define CONTROL_FIFO_DISABLE_CHANNELS 0x2080110b

struct gpuseg_nv_rm_alloc {
	u32 client;
	u32 parent;
	u32 handle;
	u32 class_id;
	u64 params;
	union {
		struct {
			u32 params_size;
			u32 status;
		} brief;
		struct {
			u64 rights;
			u32 params_size;
			u32 flags;
			u32 status;
			u32 pad;
		} full;
	};
};

static_assert(offsetof(struct gpuseg_nv_rm_alloc, brief.status) == 28);
static_assert(offsetof(struct gpuseg_nv_rm_alloc, full.status) == 40);
#define ALLOC_BRIEF_SIZE 32
#define ALLOC_FULL_SIZE 48

struct gpuseg_nv_rm_free {
	u32 client;
	u32 parent;
	u32 handle;
	u32 status;
};

struct gpuseg_nv_rm_duplicate {
	u32 client;
	u32 parent;
	u32 handle;
	u32 source_client;
	u32 source;
	u32 flags;
	u32 status;
};

struct gpuseg_nv_rm_kernel_op {
	u32 op;
	u32 pad;
	union {
		struct {
			u32 client;
			u32 object;
			u32 command;
			u32 flags;
			u64 params;
			u32 params_size;
			u32 status;
		} control;
		u8 room[256]; /* the union is as large as its largest member, which differs between releases */
	};
};

struct gpuseg_nv_disable_channels {
	u8 disable;
	u8 pad0[3];
	u32 count;
	u8 only_disable_scheduling;
	u8 rewind_gp_put;
	u8 pad1[6];
	u64 preempt_event;
	u32 client[GPUSEG_NV_BATCH_MAX];
	u32 channel[GPUSEG_NV_BATCH_MAX];
};

static_assert(sizeof(struct gpuseg_nv_disable_channels) == 536);

/* False: nothing is recorded and every call passes. */
static bool gpuseg_nv_ready;

/* Under the core's lock. */
static nvidia_stack_t *gpuseg_nv_stack;
static struct gpuseg_nv_disable_channels gpuseg_nv_parameters;
static struct gpuseg_nv_rm_kernel_op gpuseg_nv_operation;

/* What a successful allocation made. */
static void gpuseg_nv_allocated(struct gpuseg_nv_file *f, const struct gpuseg_nv_rm_alloc *a, u32 size)
{
	const u32 status = size >= ALLOC_FULL_SIZE ? a->full.status : a->brief.status;

	if (status == GPUSEG_NV_RM_OK && gpuseg_nv_created(f, a->client, a->parent, a->handle, a->class_id))
		pr_warn_ratelimited("gpuseg: object 0x%x of client 0x%x is not recorded: out of memory\n", a->handle,
				    a->client);
}

static NV_STATUS gpuseg_nv_alloc_object(nvidia_stack_t *sp, nv_state_t *nv, nv_linux_file_private_t *nvlfp, void *data,
					NvU32 size)
{
	struct gpuseg_nv_file *f = gpuseg_nv_begin(nvlfp);
	NV_STATUS result;

	if (!f)
		return NV_ERR_NO_MEMORY;
	result = rm_ioctl(sp, nv, &nvlfp->nvfp, ESC_RM_ALLOC, data, size);
	if (result == NV_OK)
		gpuseg_nv_allocated(f, data, size);
	gpuseg_nv_end(f);
	return result;
}

static NV_STATUS gpuseg_nv_duplicate_object(nvidia_stack_t *sp, nv_state_t *nv, nv_linux_file_private_t *nvlfp,
					    void *data, NvU32 size)
{
	struct gpuseg_nv_file *f = gpuseg_nv_begin(nvlfp);
	const struct gpuseg_nv_rm_duplicate *d = data;
	NV_STATUS result;

	if (!f)
		return NV_ERR_NO_MEMORY;
	result = rm_ioctl(sp, nv, &nvlfp->nvfp, ESC_RM_DUP_OBJECT, data, size);
	if (result == NV_OK && d->status == GPUSEG_NV_RM_OK &&
	    gpuseg_nv_duplicated(f, d->client, d->parent, d->handle, d->source_client, d->source))
		pr_warn_ratelimited("gpuseg: copy 0x%x of client 0x%x is not recorded: out of memory\n", d->handle,
				    d->client);
	gpuseg_nv_end(f);
	return result;
}

static NV_STATUS gpuseg_nv_free_object(nvidia_stack_t *sp, nv_state_t *nv, nv_linux_file_private_t *nvlfp, void *data,
				       NvU32 size)
{
	const struct gpuseg_nv_rm_free *r = data;
	struct gpuseg_nv_file *f = gpuseg_nv_free_begin(nvlfp, r->client, r->handle);
	const NV_STATUS result = rm_ioctl(sp, nv, &nvlfp->nvfp, ESC_RM_FREE, data, size);

	if (f)
		gpuseg_nv_free_end(f, result == NV_OK && r->status == GPUSEG_NV_RM_OK);
	return result;
}

NV_STATUS gpuseg_nv_rm_ioctl(nvidia_stack_t *sp, nv_state_t *nv, nv_linux_file_private_t *nvlfp, NvU32 cmd, void *data,
			     NvU32 size)
{
	if (!smp_load_acquire(&gpuseg_nv_ready)) /* pairs with the release in gpuseg_nv_init() */
		return rm_ioctl(sp, nv, &nvlfp->nvfp, cmd, data, size);
	switch (cmd) {
	case ESC_RM_ALLOC:
		if (size >= ALLOC_BRIEF_SIZE && gpuseg_nv_watches(((struct gpuseg_nv_rm_alloc *)data)->class_id))
			return gpuseg_nv_alloc_object(sp, nv, nvlfp, data, size);
		break;
	case ESC_RM_DUP_OBJECT:
		if (size >= sizeof(struct gpuseg_nv_rm_duplicate))
			return gpuseg_nv_duplicate_object(sp, nv, nvlfp, data, size);
		break;
	case ESC_RM_FREE:
		if (size >= sizeof(struct gpuseg_nv_rm_free))
			return gpuseg_nv_free_object(sp, nv, nvlfp, data, size);
		break;
	}
	return rm_ioctl(sp, nv, &nvlfp->nvfp, cmd, data, size);
}

void gpuseg_nv_file_closing(nv_linux_file_private_t *nvlfp)
{
	gpuseg_nv_file_gone(nvlfp);
}

int gpuseg_nv_rm_enter(void)
{
	/* As the driver's own ioctls: they wait here while the system is suspended. */
	down_read(&nv_system_pm_lock);
	return 0;
}

void gpuseg_nv_rm_leave(void)
{
	up_read(&nv_system_pm_lock);
}

static u32 gpuseg_nv_control(u32 client, u32 object, u32 command, void *params, u32 size)
{
	memset(&gpuseg_nv_operation, 0, sizeof(gpuseg_nv_operation));
	gpuseg_nv_operation.op = OP_CONTROL;
	gpuseg_nv_operation.control.client = client;
	gpuseg_nv_operation.control.object = object;
	gpuseg_nv_operation.control.command = command;
	gpuseg_nv_operation.control.params = (uintptr_t)params;
	gpuseg_nv_operation.control.params_size = size;
	rm_kernel_rmapi_op(gpuseg_nv_stack, &gpuseg_nv_operation);
	return gpuseg_nv_operation.control.status;
}

u32 gpuseg_nv_rm_switch(u32 client, u32 subdevice, bool disable, u32 n, const u32 *clients, const u32 *channels)
{
	memset(&gpuseg_nv_parameters, 0, sizeof(gpuseg_nv_parameters));
	gpuseg_nv_parameters.disable = disable;
	gpuseg_nv_parameters.count = n;
	memcpy(gpuseg_nv_parameters.client, clients, n * sizeof(*clients));
	memcpy(gpuseg_nv_parameters.channel, channels, n * sizeof(*channels));
	return gpuseg_nv_control(client, subdevice, CONTROL_FIFO_DISABLE_CHANNELS, &gpuseg_nv_parameters,
				 sizeof(gpuseg_nv_parameters));
}

u32 gpuseg_nv_rm_gpu_id(u32 client, u32 subdevice, u32 *gpu)
{
	u32 id = 0;
	u32 status = gpuseg_nv_control(client, subdevice, CONTROL_GPU_GET_ID, &id, sizeof(id));

	if (status == GPUSEG_NV_RM_OK)
		*gpu = id;
	return status;
}

void gpuseg_nv_init(void)
{
	int rc = nv_kmem_cache_alloc_stack(&gpuseg_nv_stack);

	if (!rc) {
		rc = gpuseg_nv_device_init();
		if (rc)
			nv_kmem_cache_free_stack(gpuseg_nv_stack);
	}
	if (rc)
		pr_err("gpuseg: no /dev/gpuseg-nv: error %d; the driver works as without the patch\n", rc);
	else
		smp_store_release(&gpuseg_nv_ready, true); /* pairs with the acquire in gpuseg_nv_rm_ioctl() */
}

void gpuseg_nv_exit(void)
{
	if (!gpuseg_nv_ready)
		return;
	gpuseg_nv_device_exit();
	gpuseg_nv_core_exit();
	nv_kmem_cache_free_stack(gpuseg_nv_stack);
}
