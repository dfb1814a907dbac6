/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_kfd_agent.h - how the daemon orders libgpuseg-preload.so to disable the AMD queues of its application.
 *
 * KFD accepts UPDATE_QUEUE only from the process that owns the queue. So with the first queue of an application the
 * library starts a thread there, the agent. It follows orders in a page of memory: a sealed memfd of the application,
 * named GPUSEG_KFD_AGENT_NAME, close-on-exec. The daemon finds the memfd in /proc/<pid>/fd and duplicates the
 * descriptor. It checks that the memfd is sealed and has the right size, so that no access can fault, and that it names
 * its process, and maps it. No socket, path or configuration is needed. Without a daemon the thread sleeps for ever.
 *
 *   0       4         8     12      16      20            64                 128
 *   +-------+---------+-----+-------+-------+----    -----+----------+-------+----------+----------+--
 *   | magic | version | pid | flags | known | (agent's)   | doorbell |       | slot 0   | slot 1   | ... 64 slots
 *   +-------+---------+-----+-------+-------+----    -----+----------+-------+----------+----------+--
 *
 *   slot: 64 bytes, W daemon                                          64 bytes, W agent
 *   | owner | gpu_id | owner_ticks | flags | period | order | beat |  | result | queue | held | lapses | answered |
 *
 * One slot for each GPU, by its index. An order is one word: bit 0 = hold, above it a number that grows by one. The
 * agent follows the newest order, writes result, queue and held, and then writes the order into `answered`. A hold ends
 * by itself when `beat` has not changed for three quarters of the period; then `lapses` grows, and the order no longer
 * applies. So a daemon that died, hangs or is stopped holds no queue for longer than the period.
 *
 * The application owns the page and can write anything there. That gives it no more than it has anyway: whether it
 * obeys an order is its own choice.
 */
#ifndef GPUSEG_KFD_AGENT_H
#define GPUSEG_KFD_AGENT_H

#include <stddef.h>
#include <stdint.h>

#define GPUSEG_KFD_AGENT_MAGIC 0x414b5347u /* "GSKA" */
#define GPUSEG_KFD_AGENT_VERSION 1
#define GPUSEG_KFD_AGENT_NAME "gpuseg-kfd-agent"
#define GPUSEG_KFD_AGENT_SLOTS 64
#define GPUSEG_KFD_AGENT_BYTES 12288
#define GPUSEG_KFD_AGENT_HOLD 1u /* bit of an order */
#define GPUSEG_KFD_AGENT_PERIOD_MIN_MS 10
#define GPUSEG_KFD_AGENT_PERIOD_MAX_MS 60000

enum gpuseg_kfd_agent_flags {
	GPUSEG_KFD_AGENT_REAL_TIME = 1, /* its thread has SCHED_FIFO */
};

enum gpuseg_kfd_agent_scope { GPUSEG_KFD_AGENT_ALL_QUEUES = 1 /* copies (SDMA) as well as compute */ };

struct gpuseg_kfd_agent_slot {
	/* W: the daemon; if it does not, the watchdog writes `order`, by compare and swap */
	int32_t owner; /* pid of the daemon that gives the orders; 0 = none */
	uint32_t gpu_id;
	uint64_t owner_ticks; /* its start time, field 22 of /proc/PID/stat */
	uint32_t flags;	      /* enum gpuseg_kfd_agent_scope */
	uint32_t period_ms;
	uint32_t order; /* release: the fields above are complete */
	uint32_t beat;
	uint32_t reserved[8];
	/* W: the agent */
	int32_t result; /* 0 or the first -errno; EOPNOTSUPP: several KFD contexts, whose queue numbers clash */
	uint32_t queue; /* the one that failed */
	uint32_t held;	/* queues that this slot disables */
	uint32_t lapses;
	uint32_t answered; /* release; futex word */
	uint32_t reserved2[11];
};
_Static_assert(sizeof(struct gpuseg_kfd_agent_slot) == 128, "slot");
_Static_assert(offsetof(struct gpuseg_kfd_agent_slot, order) == 24, "order");
_Static_assert(offsetof(struct gpuseg_kfd_agent_slot, result) == 64, "result");
_Static_assert(offsetof(struct gpuseg_kfd_agent_slot, answered) == 80, "answered");

struct gpuseg_kfd_agent {
	/* W: the agent */
	uint32_t magic;
	uint32_t version; /* published last with release, when there is a thread to answer */
	int32_t pid;	  /* a forked child inherits the descriptor, but not the thread */
	uint32_t flags;	  /* enum gpuseg_kfd_agent_flags */
	uint32_t known;	  /* queues that the agent knows, of all GPUs and types */
	uint32_t missed;  /* queues whose number is too high for the agent's table */
	uint32_t reserved[10];
	uint32_t doorbell; /* W: daemon or watchdog, +1 after an order; futex word of the agent */
	uint32_t reserved2[15];
	struct gpuseg_kfd_agent_slot slots[GPUSEG_KFD_AGENT_SLOTS];
};
_Static_assert(offsetof(struct gpuseg_kfd_agent, doorbell) == 64, "doorbell");
_Static_assert(offsetof(struct gpuseg_kfd_agent, slots) == 128, "slots");
_Static_assert(sizeof(struct gpuseg_kfd_agent) <= GPUSEG_KFD_AGENT_BYTES, "page");

#endif /* GPUSEG_KFD_AGENT_H */
