/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observer_abi.h - what the BPF program, its helper gpuseg-observer and the daemon exchange. The daemon's side is
 * rt-scheduler/mechanisms, package observer; its tests run against this program.
 *
 * A record has 64 bytes, in the byte order of the machine. Every record but HELLO, LOST and GROUP comes from the BPF
 * program, through a ring buffer in memory; the helper passes it on, and adds passed_ns where the record has it.
 *
 *   0      4     8          16           24        32   36      40       44       48       52      56       60
 *   +------+-----+----------+------------+---------+----+-------+--------+--------+--------+-------+--------+-------+
 *   | kind | pid | time_ns  | start_ns   | cgroup  | fd | owner | client | parent | handle | class | engine | passed|
 *   +------+-----+----------+------------+---------+----+-------+--------+--------+--------+-------+--------+-------+
 *
 * GROUP and GROUP_GONE have fields of their own, see struct gpuseg_observer_group_record.
 *
 * A daemon that connects to the helper's socket sends one byte, whatever it is. Only then is it served, and the daemon
 * before it no longer: to connect and go is a way to ask whether the helper is there.
 */
#ifndef GPUSEG_OBSERVER_ABI_H
#define GPUSEG_OBSERVER_ABI_H

#ifndef __bpf__
#include <stdint.h>
typedef uint32_t gpuseg_u32;
typedef int32_t gpuseg_s32;
typedef uint64_t gpuseg_u64;
#else
typedef unsigned int gpuseg_u32;
typedef int gpuseg_s32;
typedef unsigned long long gpuseg_u64;
#endif

#define GPUSEG_OBSERVER_VERSION 4

enum gpuseg_observer_kind {
	GPUSEG_OBSERVER_HELLO =
		1, /* first record of a connection; start_ns: what began later is seen whole; handle: version */
	GPUSEG_OBSERVER_OPEN = 2,  /* fd: a device was opened; engine: its driver */
	GPUSEG_OBSERVER_CLOSE = 3, /* fd: it was closed; -1: several may have been */
	GPUSEG_OBSERVER_ALLOC = 4, /* nvidia: an object of a class that matters exists */
	GPUSEG_OBSERVER_FREE = 5,  /* nvidia: one does not any more, with what is below it */
	GPUSEG_OBSERVER_EXIT = 6,  /* the last thread of a process that used a device has ended */
	GPUSEG_OBSERVER_EXEC = 7,  /* such a process runs another program; descriptors may be closed */
	GPUSEG_OBSERVER_UNSEEN =
		8, /* a process uses a device in a way that was not seen from its beginning: look for it */
	GPUSEG_OBSERVER_LOST = 9,   /* handle: so many records were lost since the last one of this kind */
	GPUSEG_OBSERVER_WORK = 10,  /* kfd, nvgpu: a process made or removed queues or channels; engine: the driver */
	GPUSEG_OBSERVER_GROUP = 11, /* account of a control group, when it has changed */
	GPUSEG_OBSERVER_SCHEDULED = 12,	 /* nvidia: a process had a channel group, or one channel, scheduled */
	GPUSEG_OBSERVER_SCHEDULES = 13,	 /* nvidia: it has begun to: whoever reads this may look out for the next */
	GPUSEG_OBSERVER_GROUP_GONE = 14, /* last account of a control group, which was removed */
	GPUSEG_OBSERVER_TIMESLICE = 15,	 /* nvidia: a process gave a channel group a time slice; parent: us */
};

enum gpuseg_observer_driver {
	GPUSEG_OBSERVER_NVIDIA = 1,
	GPUSEG_OBSERVER_KFD = 2,
	GPUSEG_OBSERVER_NVGPU = 3,
};

struct gpuseg_observer_record {
	gpuseg_u32 kind;
	gpuseg_u32 pid;	     /* of the process, in the pid namespace of the helper */
	gpuseg_u64 time_ns;  /* CLOCK_MONOTONIC */
	gpuseg_u64 start_ns; /* when the process began, CLOCK_BOOTTIME; /proc/pid/stat shows it in clock ticks */
	gpuseg_u64 cgroup;   /* inode of its directory in the unified hierarchy */
	gpuseg_s32 fd;
	gpuseg_u32 owner; /* process that opened the file, 0 = not seen */
	gpuseg_u32 client;
	gpuseg_u32 parent;
	gpuseg_u32 handle;
	gpuseg_u32 class_id;
	gpuseg_u32 engine;    /* of a channel group: its engine type; of OPEN and WORK: enum gpuseg_observer_driver */
	gpuseg_u32 passed_ns; /* helper: from time_ns until it took the record; UINT32_MAX = that or more */
};

struct gpuseg_observer_group_record {
	gpuseg_u32 kind;
	gpuseg_u32 processes;  /* that have opened a device and not ended */
	gpuseg_u64 context_ns; /* nvidia: lifetime of channel groups for compute and graphics that have ended, sum */
	gpuseg_u64 cgroup;
	gpuseg_u64 ioctls;
	gpuseg_u64 ioctl_ns; /* time inside them */
	gpuseg_u64 opens;
	gpuseg_u64 contexts;	/* channel groups for compute and graphics, or queues, that were made */
	gpuseg_u64 lifetime_ns; /* from first open to end, sum over the processes that have ended */
};

#ifndef __bpf__
_Static_assert(sizeof(struct gpuseg_observer_record) == 64, "record");
_Static_assert(sizeof(struct gpuseg_observer_group_record) == 64, "record of a group");
#endif

/* What follows is between the BPF program and its helper. */

struct gpuseg_observer_device {
	gpuseg_u32 driver;
	gpuseg_u32 any_result; /* a stand-in: its node has no driver, so a failed ioctl counts as well */
};

struct gpuseg_observer_group {
	gpuseg_u64 ioctls;
	gpuseg_u64 ioctl_ns;
	gpuseg_u64 opens;
	gpuseg_u64 contexts;
	gpuseg_u64 lifetime_ns;
	gpuseg_u64 context_ns;
	gpuseg_u64 began; /* processes */
	gpuseg_u64 ended;
};

static inline void gpuseg_observer_account(struct gpuseg_observer_group_record *r, gpuseg_u32 kind, gpuseg_u64 cgroup,
					   const struct gpuseg_observer_group *g)
{
	r->kind = kind;
	r->processes = (gpuseg_u32)(g->began - g->ended);
	r->context_ns = g->context_ns;
	r->cgroup = cgroup;
	r->ioctls = g->ioctls;
	r->ioctl_ns = g->ioctl_ns;
	r->opens = g->opens;
	r->contexts = g->contexts;
	r->lifetime_ns = g->lifetime_ns;
}

#define GPUSEG_OBSERVER_GROUPS_MAX 4096

#endif
