/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between the three parts: core (owners of channels, which are disabled), device (/dev/gpuseg-nv)
 * and glue (the driver's ioctl path, the Resource Manager).
 */
#ifndef GPUSEG_NV_INTERNAL_H
#define GPUSEG_NV_INTERNAL_H

#include <linux/types.h>

#include "gpuseg_nv.h"

#define GPUSEG_NV_BATCH_MAX 64 /* of one FIFO_DISABLE_CHANNELS */

/* RM status values that are told apart. Source: public nvstatuscodes.h. */
#define GPUSEG_NV_RM_OK 0x00u
#define GPUSEG_NV_RM_INVALID_CHANNEL 0x21u
#define GPUSEG_NV_RM_INVALID_CLIENT 0x23u
#define GPUSEG_NV_RM_OBJECT_NOT_FOUND 0x57u

struct gpuseg_nv_file;

/*
 * Core, called by the glue around the driver's own calls. `file` is the open file's private data, as an identity.
 */

/* Object classes that matter; everything else is not recorded. */
bool gpuseg_nv_watches(u32 class_id);

/*
 * Around an allocation or duplication of an object that matters: from begin to end, no other thread changes the tree
 * of objects of this file. NULL: out of memory, RM must not be asked.
 */
struct gpuseg_nv_file *gpuseg_nv_begin(const void *file);
void gpuseg_nv_end(struct gpuseg_nv_file *f);

/*
 * Between them: RM made an object. client, parent and handle as it answered. Returns 0 or -ENOMEM: then the object
 * exists and stays unknown.
 */
int gpuseg_nv_created(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 class_id);

/* The same for a duplicate; nothing happens when the source is not recorded. */
int gpuseg_nv_duplicated(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 source_client, u32 source);

/*
 * Around RM's free of an object and of all below it: from begin on, no call names them. NULL: nothing recorded is
 * concerned, and end is not called.
 */
struct gpuseg_nv_file *gpuseg_nv_free_begin(const void *file, u32 client, u32 handle);
void gpuseg_nv_free_end(struct gpuseg_nv_file *f, bool freed);

/* Before RM cleans up after an open file: no call names its objects any more. */
void gpuseg_nv_file_gone(const void *file);

/* Core, called by the device. */

int gpuseg_nv_controller_open(void);
void gpuseg_nv_controller_close(void);
int gpuseg_nv_switch(struct gpuseg_nv_switch *request, struct gpuseg_nv_target *targets);
int gpuseg_nv_set_watchdog(u32 period_ms);
int gpuseg_nv_protect(const char *name);
u32 gpuseg_nv_list(struct gpuseg_nv_process *processes, u32 room);
void gpuseg_nv_info(struct gpuseg_nv_info *info);
bool gpuseg_nv_has_news(void);
struct wait_queue_head *gpuseg_nv_wait_queue(void);

/* After the last caller of the above is gone. */
void gpuseg_nv_core_exit(void);

/* Device. */
int gpuseg_nv_device_init(void);
void gpuseg_nv_device_exit(void);

/* Glue, called by the core, under its lock. */

/* Between these two, the driver is not suspended by power management. */
int gpuseg_nv_rm_enter(void);
void gpuseg_nv_rm_leave(void);

/*
 * Disables or enables n <= GPUSEG_NV_BATCH_MAX channels of one GPU. Returns the RM status: 0 all done; else RM stopped
 * at some entry, those before it are done.
 */
u32 gpuseg_nv_rm_switch(u32 client, u32 subdevice, bool disable, u32 n, const u32 *clients, const u32 *channels);

/* The GPU behind a subdevice; returns the RM status. */
u32 gpuseg_nv_rm_gpu_id(u32 client, u32 subdevice, u32 *gpu);

#endif
