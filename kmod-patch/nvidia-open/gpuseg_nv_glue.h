/* SPDX-License-Identifier: GPL-2.0-only */
/* What the semantic patch calls from the driver's interface layer (nvidia/nv.c). */
#ifndef GPUSEG_NV_GLUE_H
#define GPUSEG_NV_GLUE_H

#include "nv-linux.h"

/* In place of rm_ioctl in the driver's ioctl entry: records what the call makes and frees. */
NV_STATUS gpuseg_nv_rm_ioctl(nvidia_stack_t *sp, nv_state_t *nv, nv_linux_file_private_t *nvlfp, NvU32 cmd, void *data,
			     NvU32 size);

/* Before rm_cleanup_file_private. */
void gpuseg_nv_file_closing(nv_linux_file_private_t *nvlfp);

/* At the end of the module's init, and at the beginning of its exit. The driver works without us, should init fail. */
void gpuseg_nv_init(void);
void gpuseg_nv_exit(void);

#endif
