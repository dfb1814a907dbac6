/* SPDX-License-Identifier: GPL-2.0-only */
/* fake_rm.h - what the tests ask of the fake Resource Manager beyond the real one's ioctls, on /dev/fake-nvidiactl. */
#ifndef FAKE_RM_H
#define FAKE_RM_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct fake_channel {
	__u32 client;
	__u32 handle;
	__u32 disables; /* counted as the driver counts */
	__u32 gpu;
};

struct fake_dump {
	__u64 channels; /* struct fake_channel[room] */
	__u32 room;
	__u32 count;
	__u32 clients;
	__u32 calls;	 /* FIFO_DISABLE_CHANNELS */
	__u32 largest;	 /* entries of one call */
	__u32 gone;	 /* entries that named no channel: must stay 0 */
	__u32 wrong_gpu; /* entries of another GPU than the subdevice's: must stay 0 */
	__u32 twice;	 /* disables of what was disabled: must stay 0 */
};

struct fake_inject {
	__u32 status;  /* answered by FIFO_DISABLE_CHANNELS at its entry number `at` */
	__u32 at;
	__u32 count;   /* by so many calls */
	__u32 enables; /* 1: only by calls that enable, 0: only by those that disable, 2: by frees (at is ignored) */
	__u32 delay_us; /* of every call from now on */
};

#define FAKE_DUMP _IOWR('F', 0xf0, struct fake_dump)
#define FAKE_INJECT _IOW('F', 0xf1, struct fake_inject)

#endif
