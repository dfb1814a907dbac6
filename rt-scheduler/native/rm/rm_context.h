/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm_context.h - a context on the RM stand-in: objects, handles and their order as libcuda of 580.159.04 used them on
 * an H200, and kernels on the first channel. For programs that simulate CUDA programs with libgpuseg-rm-fake.so
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
#include <unistd.h>

struct context {
	int fd;
	uint32_t client;
	uint32_t channel;
	uint32_t server; /* struct rm_wire_work */
};

/*
 * MPS, only with CUDA_MPS_PIPE_DIRECTORY set: a program that has the server's name stores the number of its RM client
 * in that directory, and a program that finds one there is a client of that server.
 */
#define MPS_PIPE_ENV "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_SERVER "nvidia-cuda-mps-server"

static inline int is_mps_server(void)
{
	return strcmp(program_invocation_short_name, MPS_SERVER) == 0;
}

static inline FILE *mps_file(const char *mode)
{
	const char *pipe = getenv(MPS_PIPE_ENV);
	char path[4096];

	if (!pipe || (size_t)snprintf(path, sizeof(path), "%s/standin-server", pipe) >= sizeof(path))
		return NULL;
	return fopen(path, mode);
}

/* 0 = not a client of a server. */
static inline uint32_t mps_server(void)
{
	FILE *file = is_mps_server() ? NULL : mps_file("re");
	uint32_t server = 0;

	if (file) {
		if (fscanf(file, "%x", &server) != 1)
			server = 0;
		fclose(file);
	}
	return server;
}

/* Channels for compute work on an H200: 8 for a context, 2 for an MPS client, 1 for the server. */
static inline uint32_t compute_channels(uint32_t server)
{
	return is_mps_server() ? 1 : server ? 2 : 8;
}

/* `detail`: the engine of a channel group, the GPU of a device. */
static inline uint32_t allocate(int fd, uint32_t client, uint32_t parent, uint32_t handle, uint32_t class_id,
				uint32_t detail)
{
	uint32_t params[5] = {0, 0, 0, detail, 0};
	struct rm_wire_alloc a = {.client = client, .parent = parent, .handle = handle, .class_id = class_id};

	if (class_id == GPUSEG_RM_CLASS_DEVICE)
		params[0] = detail;
	if (class_id == GPUSEG_RM_CLASS_TSG || class_id == GPUSEG_RM_CLASS_DEVICE) {
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

#define SECOND_CONTEXT 0x100u /* distance of its handles from those of the first */

/* Of a channel group: what only programs do, and the library for control does not. */
static inline void control(int fd, uint32_t client, uint32_t tsg, uint32_t command, void *params, uint32_t size)
{
	struct gpuseg_rm_control c = {.client = client,
				      .object = tsg,
				      .command = command,
				      .params = (uint64_t)(uintptr_t)params,
				      .params_size = size};

	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', GPUSEG_RM_ESC_CONTROL, sizeof(c)), &c) != 0 || c.status != 0) {
		fprintf(stderr, "command %x on the RM stand-in: status 0x%x, %s\n", command, c.status, strerror(errno));
		exit(1);
	}
}

/*
 * A context of an existing client. GPUSEG_RM_SCHEDULE_MS=N: so long after its channels it has them scheduled.
 * GPUSEG_RM_SLICE_US=N: it sets its time slice then, as libcuda does 34 ms later (H200).
 */
static inline struct context add_context(int fd, uint32_t client, uint32_t distance, uint32_t gpu)
{
	static const uint32_t copy_tsgs[3] = {0x5c00003e, 0x5c00004c, 0x5c00005a};
	const uint32_t device = 0x5c000002 + distance;
	const uint32_t tsg = 0x5c000015 + distance;
	uint8_t enabled[3] = {1, 0, 0};
	const char *slice = getenv("GPUSEG_RM_SLICE_US");
	uint64_t slice_us = slice ? strtoull(slice, NULL, 10) : 0;
	struct context c = {.fd = fd, .client = client, .server = mps_server()};

	allocate(fd, client, client, device, GPUSEG_RM_CLASS_DEVICE, gpu);
	allocate(fd, client, device, device + 1, GPUSEG_RM_CLASS_SUBDEVICE, 0);
	allocate(fd, client, device, tsg, GPUSEG_RM_CLASS_TSG, GPUSEG_RM_ENGINE_GR0);
	for (uint32_t i = 0; i < compute_channels(c.server); i++) {
		uint32_t channel = (i == 0 ? 0x5c00001c : 0x5c000022 + 4 * (i - 1)) + distance;

		allocate(fd, client, tsg, channel, 0xc86f, 0);
		allocate(fd, client, channel, channel + 1, 0xcbc0, 0);
		allocate(fd, client, channel, channel + 2, 0xc8b5, 0);
	}
	for (uint32_t t = 0; t < 3; t++) {
		allocate(fd, client, device, copy_tsgs[t] + distance, GPUSEG_RM_CLASS_TSG, 11 + t);
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t channel = copy_tsgs[t] + distance + 2 + 3 * i;

			allocate(fd, client, copy_tsgs[t] + distance, channel, 0xc86f, 0);
			allocate(fd, client, channel, channel + 1, 0xc8b5, 0);
		}
	}
	if (getenv("GPUSEG_RM_SCHEDULE_MS"))
		usleep((useconds_t)(1000 * atoi(getenv("GPUSEG_RM_SCHEDULE_MS"))));
	control(fd, client, tsg, GPUSEG_RM_GPFIFO_SCHEDULE, enabled, sizeof(enabled));
	if (slice_us)
		control(fd, client, tsg, GPUSEG_RM_SET_TIMESLICE, &slice_us, sizeof(slice_us));
	c.channel = 0x5c00001c + distance;
	return c;
}

static inline struct context make_context(int fd, uint32_t gpu)
{
	struct rm_wire_free probe = {0};
	struct context c;
	FILE *file;

	/* libcuda creates a client that it frees at once */
	probe.client = allocate(fd, 0, 0, 0, GPUSEG_RM_CLASS_CLIENT, 0);
	probe.handle = probe.client;
	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', GPUSEG_RM_ESC_FREE, sizeof(probe)), &probe) != 0)
		exit(1);
	c = add_context(fd, allocate(fd, 0, 0, 0, GPUSEG_RM_CLASS_CLIENT, 0), 0, gpu);
	file = is_mps_server() ? mps_file("we") : NULL;
	if (file) {
		fprintf(file, "%x\n", c.client);
		fclose(file);
	}
	return c;
}

/* The first of CUDA_VISIBLE_DEVICES, which is CUDA's device 0. */
static inline uint32_t visible_gpu(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	return visible ? (uint32_t)strtoul(visible, NULL, 10) : 0;
}

/* Returns 1 if the result is right, 0 if it is wrong, -1 if the driver has ended. */
static inline int kernel(const struct context *c, double ms, uint64_t seed)
{
	struct rm_wire_work w = {.client = c->client,
				 .channel = c->channel,
				 .duration_ns = (uint64_t)(ms * 1e6),
				 .seed = seed,
				 .server = c->server};

	if (ioctl(c->fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_WORK, sizeof(w)), &w) != 0 || w.status != 0)
		return -1;
	return w.result == rm_work_result(seed);
}

#endif
