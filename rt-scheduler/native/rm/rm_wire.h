/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm_wire.h - the protocol between the parts of the RM stand-in (see README.md): the fake library in a process, and
 * gpuseg-rm-standin, which keeps the driver's state.
 *
 * One connected SOCK_SEQPACKET socket represents one open of /dev/nvidiactl. Duplicates of the descriptor (dup, fork,
 * pidfd_getfd) share the connection, which ends when the last of them is closed, as an open file does. Each request
 * carries a descriptor for its reply, so replies reach the right process.
 */
#ifndef GPUSEG_RM_WIRE_H
#define GPUSEG_RM_WIRE_H

#include <stdint.h>

#define RM_WIRE_MAGIC 0x57524d47u
#define RM_WIRE_ENV "GPUSEG_RM_STANDIN"	 /* path of the stand-in's socket */
#define RM_WIRE_NAME "gpuseg-nvidiactl-" /* abstract name of a connection, with pid and number behind it */
#define RM_WIRE_BLOCK 64
#define RM_WIRE_PARAMS 1024

/* Escapes of the stand-in only; the real driver does not have these numbers. */
#define RM_WIRE_ESC_WORK 0xf0	/* struct rm_wire_work: a kernel on a channel; returns when it has run, or if queued */
#define RM_WIRE_ESC_INJECT 0xf1 /* struct rm_wire_inject: fault for the tests */
#define RM_WIRE_ESC_STATS 0xf2	/* struct rm_wire_stats */

struct rm_wire_request {
	uint32_t magic;
	uint32_t number; /* of the ioctl */
	uint32_t block_size;
	uint32_t params_size;
	uint8_t block[RM_WIRE_BLOCK];
	uint8_t params[RM_WIRE_PARAMS];
};

struct rm_wire_reply {
	uint32_t magic;
	int32_t error; /* errno of the ioctl itself, normally 0: the result of RM is in the block's status */
	uint8_t block[RM_WIRE_BLOCK];
	uint8_t params[RM_WIRE_PARAMS];
};

struct rm_wire_alloc { /* the 48-byte form */
	uint32_t client;
	uint32_t parent;
	uint32_t handle;
	uint32_t class_id;
	uint64_t params;
	uint64_t rights;
	uint32_t params_size;
	uint32_t flags;
	uint32_t status;
	uint32_t pad;
};
_Static_assert(sizeof(struct rm_wire_alloc) == 48, "RM alloc block");

struct rm_wire_free {
	uint32_t client;
	uint32_t parent;
	uint32_t handle;
	uint32_t status;
};

struct rm_wire_work {
	uint32_t client;
	uint32_t channel;
	uint64_t duration_ns;
	uint64_t seed;
	uint64_t result; /* rm_work_result(seed) if every part of the kernel ran exactly once */
	uint32_t status;
	uint32_t server; /* 0, or the client of the MPS server without which it does not run */
	/*
	 * A queued kernel: the call returns at once, and the kernel stores `value` and `seed` at `counter` of process
	 * `pid` when it has run, as a kernel does in pinned memory. 0 = not queued.
	 */
	int32_t pid;
	uint32_t pad;
	uint64_t counter;
	uint64_t value;
};
_Static_assert(sizeof(struct rm_wire_work) == RM_WIRE_BLOCK, "work block");

struct rm_wire_inject {
	uint32_t command; /* the next `count` controls of this command return `rm_status` and do nothing */
	uint32_t count;
	uint32_t rm_status;
	uint32_t status;
};

struct rm_wire_stats {
	uint64_t controls;
	uint64_t disables; /* FIFO_DISABLE_CHANNELS calls that disabled */
	uint64_t enables;
	uint64_t largest_batch;
	uint64_t foreign_commands;   /* controls that are not permitted: must stay 0 */
	uint64_t disabled_channels;  /* now */
	uint64_t ran_while_disabled; /* must stay 0 */
	uint32_t clients;
	uint32_t status;
};
_Static_assert(sizeof(struct rm_wire_stats) == 64, "stats block");

static inline uint64_t rm_work_result(uint64_t seed)
{
	uint64_t x = seed;

	for (int i = 0; i < 16; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

#endif
