/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm_context.h - a context on the RM stand-in: the objects, handles and the order that libcuda of 580.159.04 showed on
 * an H200, and kernels on its first channel. For programs that stand in for CUDA programs; libgpuseg-rm-fake.so is
 * preloaded.
 */
#ifndef GPUSEG_RM_CONTEXT_H
#define GPUSEG_RM_CONTEXT_H

#include "gpuseg_rm.h"
#include "rm_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

struct context {
	int fd;
	uint32_t client;
	uint32_t channel;
};

static inline uint32_t allocate(int fd, uint32_t client, uint32_t parent, uint32_t handle, uint32_t class_id,
				uint32_t engine)
{
	uint32_t params[5] = {0, 0, 0, engine, 0};
	struct rm_wire_alloc a = {.client = client, .parent = parent, .handle = handle, .class_id = class_id};

	if (class_id == GPUSEG_RM_CLASS_TSG) {
		a.params = (uint64_t)(uintptr_t)params;
		a.params_size = sizeof(params);
	}
	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', GPUSEG_RM_ESC_ALLOC, sizeof(a)), &a) != 0 || a.status != 0) {
		fprintf(stderr, "allocation of class %x on the RM stand-in: status 0x%x, %s\n", class_id, a.status,
			strerror(errno));
		exit(1);
	}
	return a.handle;
}

static inline struct context make_context(int fd)
{
	static const uint32_t copy_tsgs[3] = {0x5c00003e, 0x5c00004c, 0x5c00005a};
	struct context c = {.fd = fd};
	struct rm_wire_free probe = {0};

	/* libcuda makes a client that it frees at once */
	probe.client = allocate(fd, 0, 0, 0, GPUSEG_RM_CLASS_CLIENT, 0);
	probe.handle = probe.client;
	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', GPUSEG_RM_ESC_FREE, sizeof(probe)), &probe) != 0)
		exit(1);
	c.client = allocate(fd, 0, 0, 0, GPUSEG_RM_CLASS_CLIENT, 0);
	allocate(fd, c.client, c.client, 0x5c000002, GPUSEG_RM_CLASS_DEVICE, 0);
	allocate(fd, c.client, 0x5c000002, 0x5c000003, GPUSEG_RM_CLASS_SUBDEVICE, 0);
	allocate(fd, c.client, 0x5c000002, 0x5c000015, GPUSEG_RM_CLASS_TSG, GPUSEG_RM_ENGINE_GR0);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t channel = i == 0 ? 0x5c00001c : 0x5c000022 + 4 * (i - 1);

		allocate(fd, c.client, 0x5c000015, channel, 0xc86f, 0);
		allocate(fd, c.client, channel, channel + 1, 0xcbc0, 0);
		allocate(fd, c.client, channel, channel + 2, 0xc8b5, 0);
	}
	for (uint32_t t = 0; t < 3; t++) {
		allocate(fd, c.client, 0x5c000002, copy_tsgs[t], GPUSEG_RM_CLASS_TSG, 11 + t);
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t channel = copy_tsgs[t] + 2 + 3 * i;

			allocate(fd, c.client, copy_tsgs[t], channel, 0xc86f, 0);
			allocate(fd, c.client, channel, channel + 1, 0xc8b5, 0);
		}
	}
	c.channel = 0x5c00001c;
	return c;
}

/* Returns 1 for a right result, 0 for a wrong one, -1 when the driver is gone. */
static inline int kernel(const struct context *c, double ms, uint64_t seed)
{
	struct rm_wire_work w = {
		.client = c->client, .channel = c->channel, .duration_ns = (uint64_t)(ms * 1e6), .seed = seed};

	if (ioctl(c->fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_WORK, sizeof(w)), &w) != 0 || w.status != 0)
		return -1;
	return w.result == rm_work_result(seed);
}

#endif
