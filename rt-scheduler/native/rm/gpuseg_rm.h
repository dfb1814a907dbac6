/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_rm.h - per-context control of another process's GPU channels through NVIDIA's stock driver.
 *
 * A CUDA process calls the Resource Manager (RM) by ioctl on /dev/nvidiactl. An RM client belongs to the open file
 * description that created it, not to a process. A process with a duplicate of the descriptor (pidfd_getfd(2), which
 * needs ptrace rights on the target) may issue controls for the client. The ioctl returns 0 even if RM refuses;
 * `status` holds the result.
 *
 * Only the commands of enum gpuseg_rm_command can be issued through this interface. Each acts on the objects of one
 * process. Device-wide commands cannot be issued, on purpose.
 *
 * Source of numbers: NVIDIA's public driver headers, 580.x. Tested: see the README of this directory.
 * Thread-safety: the functions have no state. One thread at a time may use a struct gpuseg_rm_process.
 */
#ifndef GPUSEG_RM_H
#define GPUSEG_RM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSEG_RM_ESC_FREE 0x29
#define GPUSEG_RM_ESC_CONTROL 0x2a
#define GPUSEG_RM_ESC_ALLOC 0x2b
#define GPUSEG_RM_IOCTL_CONTROL 0xc020462aUL

#define GPUSEG_RM_CLASS_CLIENT 0x41u
#define GPUSEG_RM_CLASS_DEVICE 0x80u
#define GPUSEG_RM_CLASS_SUBDEVICE 0x2080u
#define GPUSEG_RM_CLASS_TSG 0xa06cu
#define GPUSEG_RM_ENGINE_GR0 1u
#define GPUSEG_RM_BATCH_MAX 64	   /* channels of one disable or enable call */
#define GPUSEG_RM_CHANNELS_MAX 244 /* channels of one process; limited by the payload of the held file */
#define GPUSEG_RM_TSGS_MAX 64
#define GPUSEG_RM_DEVICES_MAX 16
#define GPUSEG_RM_INVALID_CHANNEL 0x21
#define GPUSEG_RM_INVALID_CLIENT 0x23
#define GPUSEG_RM_INVALID_OBJECT_HANDLE 0x33
#define GPUSEG_RM_OBJECT_NOT_FOUND 0x57

/* clang-format off */
/* A class is a GPFIFO channel if its low byte is 6f and it is not the channel group. Source: public class headers. */
#define GPUSEG_RM_IS_CHANNEL(c) (((c) & 0xffu) == 0x6fu && (c) >= 0xa06fu)
/* The class of an object below a channel tells its engine: compute (..c0), 3D (..97), copy (..b5). */
#define GPUSEG_RM_IS_GRAPHICS_OBJECT(c) (((c) & 0xffu) == 0xc0u || ((c) & 0xffu) == 0x97u)
/* clang-format on */

/* What processes do themselves: their channels run from then on, also those that were disabled before. */
#define GPUSEG_RM_GPFIFO_SCHEDULE 0xa06c0101 /* on a TSG; three bytes: enable, skip submit, skip enable */

/* The permitted commands. */
enum gpuseg_rm_command {
	GPUSEG_RM_GET_HANDLE_INFO = 0x00000d02,	      /* on a client: class and parent of one of its handles */
	GPUSEG_RM_GPU_GET_ID = 0x20800142,	      /* on a subdevice: which GPU it is */
	GPUSEG_RM_FIFO_DISABLE_CHANNELS = 0x2080110b, /* on a subdevice: disables or enables channels */
	GPUSEG_RM_SET_TIMESLICE = 0xa06c0103,	      /* on a TSG */
	GPUSEG_RM_GET_TIMESLICE = 0xa06c0104,	      /* on a TSG */
	GPUSEG_RM_PREEMPT = 0xa06c0105,		      /* on a TSG */
	GPUSEG_RM_GET_INFO = 0xa06c0106		      /* on a TSG */
};

struct gpuseg_rm_control {
	uint32_t client;
	uint32_t object;
	uint32_t command;
	uint32_t flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};

struct gpuseg_rm_disable_channels {
	uint8_t disable;
	uint8_t pad0[3];
	uint32_t count;
	uint8_t only_disable_scheduling;
	uint8_t rewind_gp_put;
	uint8_t pad1[6];
	uint64_t runlist_preempt_event;
	uint32_t client[GPUSEG_RM_BATCH_MAX];
	uint32_t channel[GPUSEG_RM_BATCH_MAX];
};

struct gpuseg_rm_handle_info {
	uint32_t object;
	uint32_t index; /* 1 = parent, 2 = class */
	uint64_t data;
};

/* Payload of an NVIDIA context in the held file: what is needed to enable it. */
#define GPUSEG_RM_HELD_VERSION 1
struct gpuseg_rm_held_channel {
	uint32_t client;
	uint32_t channel;
};

struct gpuseg_rm_held {
	uint32_t version; /* GPUSEG_RM_HELD_VERSION */
	int32_t fd;	  /* number of the control descriptor inside the application */
	uint32_t client;  /* RM client that the descriptor owns */
	uint32_t subdevice;
	uint32_t count;
	uint32_t reserved[3];
	struct gpuseg_rm_held_channel channels[GPUSEG_RM_CHANNELS_MAX];
};

/* Payload of a context whose time slices were changed: the original ones. */
#define GPUSEG_RM_TIMESLICES_VERSION 1
#define GPUSEG_RM_TIMESLICES_MAX 123
struct gpuseg_rm_own_timeslice {
	int32_t fd; /* as in struct gpuseg_rm_held */
	uint32_t client;
	uint32_t tsg;
	uint32_t own_us;
};

struct gpuseg_rm_timeslices {
	uint32_t version; /* GPUSEG_RM_TIMESLICES_VERSION */
	uint32_t count;
	uint32_t reserved[2];
	struct gpuseg_rm_own_timeslice tsgs[GPUSEG_RM_TIMESLICES_MAX];
};

struct gpuseg_rm_channel {
	uint32_t client;
	uint32_t handle;
	uint32_t tsg;
	uint32_t class_id;
};

struct gpuseg_rm_tsg {
	uint32_t client;
	uint32_t handle;
	uint32_t device; /* handle of its device */
	uint32_t engine; /* 1 = GR0 (compute and graphics); 0 = another */
	uint32_t channels;
	int fd; /* a duplicate */
};

struct gpuseg_rm_device {
	uint32_t client;
	uint32_t handle;
	uint32_t subdevice;
	uint32_t gpu_id; /* (PCI domain << 16) | (bus << 8) | device; UINT32_MAX = unknown */
	int fd;
};

struct gpuseg_rm_process {
	int pid;
	int pidfd;
	int fds[32];	    /* duplicates of its control descriptors */
	int remote_fds[32]; /* their numbers inside the process */
	uint32_t fd_count;
	uint32_t tsg_count;
	uint32_t channel_count;
	uint32_t device_count;
	uint32_t controls; /* ioctls used for the discovery */
	struct gpuseg_rm_tsg tsgs[GPUSEG_RM_TSGS_MAX];
	struct gpuseg_rm_channel channels[GPUSEG_RM_CHANNELS_MAX];
	struct gpuseg_rm_device devices[GPUSEG_RM_DEVICES_MAX];
};

/*
 * Issues one permitted control. Returns the RM status (0 = NV_OK); -errno if the ioctl itself failed; -EPERM if the
 * command is not permitted (nothing was issued).
 */
int64_t gpuseg_rm_control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params, uint32_t size);

/*
 * Duplicates the control descriptors of `pid` and finds its TSGs, channels and subdevices: it queries the class of each
 * handle in the ranges that the driver's user-mode library uses. Does not change the target. Returns 0; -errno of
 * pidfd_open or pidfd_getfd; -ENODEV if there is no control descriptor; -ENOENT if there is no TSG.
 */
int gpuseg_rm_attach(struct gpuseg_rm_process *process, int pid);
void gpuseg_rm_detach(struct gpuseg_rm_process *process);

/*
 * Disables (disable = 1) or enables channels through one subdevice, in batches of GPUSEG_RM_BATCH_MAX. The driver
 * counts disables: a channel that was disabled twice needs two enables. Surplus enables are ignored. Returns the first
 * RM status that is not 0, after all batches were tried.
 */
int64_t gpuseg_rm_switch(int fd, uint32_t client, uint32_t subdevice, int disable, const uint32_t *clients,
			 const uint32_t *channels, uint32_t count);

/* RM's number of the GPU of a TSG of the process; UINT32_MAX if it is unknown. */
uint32_t gpuseg_rm_gpu_id(const struct gpuseg_rm_process *process, const struct gpuseg_rm_tsg *tsg);

/*
 * What the held file needs of the GR0 TSGs of a process on the GPU of the first of them: to enable their channels, and
 * the time slices that they have now. 0, -ENODEV if it has no such TSG, -E2BIG, or the RM status of a query (> 0).
 */
int gpuseg_rm_note(const struct gpuseg_rm_process *process, struct gpuseg_rm_held *held);
int64_t gpuseg_rm_note_timeslices(const struct gpuseg_rm_process *process, struct gpuseg_rm_timeslices *own);

/* All channels of the GR0 TSGs (compute = 1), or of all TSGs, of the given processes, with one call per GPU. */
int64_t gpuseg_rm_switch_processes(struct gpuseg_rm_process *const *processes, uint32_t n, int disable, int compute);

/*
 * Enables the channels of a held entry through a duplicate of the application's descriptor (pidfd_getfd). Returns 0;
 * -ESRCH if the process has ended (nothing to do); -EINVAL if the payload is invalid; another -errno; or a positive RM
 * status.
 */
int64_t gpuseg_rm_release(int pid, uint64_t start_ticks, const void *payload, size_t size);

/*
 * Restores the time slices of the payload. An object that the process has freed meanwhile is no error. Returns as
 * gpuseg_rm_release().
 */
int64_t gpuseg_rm_restore_timeslices(int pid, const void *payload, size_t size);

/* Field 22 of /proc/<pid>/stat; 0 if there is no such process. */
uint64_t gpuseg_rm_start_ticks(int pid);

#ifdef __cplusplus
}
#endif
#endif /* GPUSEG_RM_H */
