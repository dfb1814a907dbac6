/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stand-in for the interface layer's header of the same name: the few names that the glue uses, declared as the driver
 * declares them, backed by fake_rm.c. For tests in a kernel without NVIDIA's driver.
 */
#ifndef NV_LINUX_H
#define NV_LINUX_H

#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/types.h>

typedef u32 NvU32;
typedef u32 NV_STATUS;

#define NV_OK 0x00u
#define NV_ERR_NO_MEMORY 0x51u

typedef struct {
	int unused;
} nvidia_stack_t;

typedef struct {
	int unused;
} nv_state_t;

typedef struct {
	struct list_head clients; /* fake_rm.c */
} nv_file_private_t;

typedef struct {
	nv_file_private_t nvfp;
} nv_linux_file_private_t;

extern struct rw_semaphore nv_system_pm_lock;

NV_STATUS rm_ioctl(nvidia_stack_t *sp, nv_state_t *nv, nv_file_private_t *nvfp, NvU32 cmd, void *data, NvU32 size);
void rm_kernel_rmapi_op(nvidia_stack_t *sp, void *op);

static inline int nv_kmem_cache_alloc_stack(nvidia_stack_t **stack)
{
	*stack = NULL;
	return 0;
}

static inline void nv_kmem_cache_free_stack(nvidia_stack_t *stack)
{
}

#endif
