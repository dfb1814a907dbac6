/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpuseg_rm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../common/device_file.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Source: Linux, Documentation/admin-guide/devices.txt, and /proc/devices with driver 580 (H200). */
#define CONTROL_MINOR 255

#define RM_CLIENT_BASE 0xc1d00000u
#define RM_CLIENT_SCAN 0x2000u
#define RM_HANDLE_BASE 0x5c000000u
#define RM_HANDLE_SCAN 0x400u /* at least; more with several GPUs or contexts */
#define RM_HANDLE_SCAN_MAX 0x10000u
#define RM_HANDLE_MISSES 0x100u /* so many unknown handles in a row end the search */

_Static_assert(sizeof(struct gpuseg_rm_control) == 32, "RM control block");
_Static_assert(sizeof(struct gpuseg_rm_disable_channels) == 536, "disable channels parameters");
_Static_assert(sizeof(struct gpuseg_rm_handle_info) == 16, "handle info parameters");
_Static_assert(sizeof(struct gpuseg_rm_held) == 1984, "held payload fills its entry");
_Static_assert(sizeof(struct gpuseg_rm_timeslices) == 1984, "so does that of time slices");

static int whitelisted(uint32_t command)
{
	switch (command) {
	case GPUSEG_RM_GET_HANDLE_INFO:
	case GPUSEG_RM_GPU_GET_ID:
	case GPUSEG_RM_FIFO_DISABLE_CHANNELS:
	case GPUSEG_RM_SET_TIMESLICE:
	case GPUSEG_RM_GET_TIMESLICE:
	case GPUSEG_RM_PREEMPT:
	case GPUSEG_RM_GET_INFO:
		return 1;
	default:
		return 0;
	}
}

int64_t gpuseg_rm_control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params, uint32_t size)
{
	struct gpuseg_rm_control block = {.client = client, .object = object, .command = command};

	if (!whitelisted(command))
		return -EPERM;
	block.params = (uint64_t)(uintptr_t)params;
	block.params_size = size;
	for (;;) {
		if (ioctl(fd, GPUSEG_RM_IOCTL_CONTROL, &block) >= 0)
			return block.status;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

static int64_t handle_info(int fd, uint32_t client, uint32_t object, uint32_t index, uint32_t *result)
{
	struct gpuseg_rm_handle_info info = {.object = object, .index = index};
	int64_t status = gpuseg_rm_control(fd, client, client, GPUSEG_RM_GET_HANDLE_INFO, &info, sizeof(info));

	*result = (uint32_t)info.data;
	return status;
}

uint64_t gpuseg_rm_start_ticks(int pid)
{
	char path[64];
	char line[1024];
	FILE *file;
	char *field;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	field = strrchr(line, ')'); /* the name may contain blanks and parentheses */
	if (!field)
		return 0;
	field++;
	for (int i = 3; i < 22; i++) {
		field = strchr(field + 1, ' ');
		if (!field)
			return 0;
	}
	return strtoull(field, NULL, 10);
}

/* A duplicate of a control descriptor; -ENOTTY if it is something else. */
static int duplicate_control(int pid, int pidfd, int remote)
{
	static const char *const drivers[] = {"nvidia-frontend", "nvidia", "nvidiactl"};
	const int major = device_file_major(drivers, sizeof(drivers) / sizeof(drivers[0]));
	const struct device_number control = {.major = (unsigned)major, .minor = CONTROL_MINOR};

	return device_file_duplicate(pid, pidfd, remote, major < 0 ? NULL : &control);
}

static int take_descriptors(struct gpuseg_rm_process *p)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int error = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", p->pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) && p->fd_count < 32) {
		char link[384];
		char target[256];
		ssize_t n;
		int fd;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "/dev/nvidiactl") != 0)
			continue;
		fd = duplicate_control(p->pid, p->pidfd, atoi(entry->d_name));
		if (fd < 0) {
			error = fd;
			continue;
		}
		p->fds[p->fd_count] = fd;
		p->remote_fds[p->fd_count++] = atoi(entry->d_name);
	}
	closedir(dir);
	if (p->fd_count == 0)
		return error ? error : -ENODEV;
	return 0;
}

static void note_object(struct gpuseg_rm_process *p, int fd, uint32_t client, uint32_t handle, uint32_t class_id)
{
	uint32_t parent = 0;

	if (class_id == GPUSEG_RM_CLASS_SUBDEVICE && p->device_count < GPUSEG_RM_DEVICES_MAX) {
		struct gpuseg_rm_device *d = &p->devices[p->device_count];
		uint32_t id = UINT32_MAX;

		p->controls += 2;
		handle_info(fd, client, handle, 1, &parent);
		if (gpuseg_rm_control(fd, client, handle, GPUSEG_RM_GPU_GET_ID, &id, sizeof(id)) != 0)
			id = UINT32_MAX;
		*d = (struct gpuseg_rm_device){
			.client = client, .handle = parent, .subdevice = handle, .gpu_id = id, .fd = fd};
		p->device_count++;
	} else if (class_id == GPUSEG_RM_CLASS_TSG && p->tsg_count < GPUSEG_RM_TSGS_MAX) {
		p->controls++;
		handle_info(fd, client, handle, 1, &parent);
		p->tsgs[p->tsg_count++] =
			(struct gpuseg_rm_tsg){.client = client, .handle = handle, .device = parent, .fd = fd};
	} else if (GPUSEG_RM_IS_CHANNEL(class_id) && p->channel_count < GPUSEG_RM_CHANNELS_MAX) {
		p->controls++;
		handle_info(fd, client, handle, 1, &parent);
		p->channels[p->channel_count++] = (struct gpuseg_rm_channel){
			.client = client, .handle = handle, .tsg = parent, .class_id = class_id};
	}
}

static int index_of_tsg(const struct gpuseg_rm_process *p, uint32_t client, uint32_t tsg)
{
	for (uint32_t i = 0; i < p->tsg_count; i++)
		if (p->tsgs[i].client == client && p->tsgs[i].handle == tsg)
			return (int)i;
	return -1;
}

static const struct gpuseg_rm_tsg *tsg_of(const struct gpuseg_rm_process *p, uint32_t client, uint32_t tsg)
{
	const int i = index_of_tsg(p, client, tsg);

	return i < 0 ? NULL : &p->tsgs[i];
}

static void scan_client(struct gpuseg_rm_process *p, int fd, uint32_t client)
{
	uint32_t graphics[GPUSEG_RM_CHANNELS_MAX];
	uint32_t graphics_count = 0;
	uint32_t first_channel = p->channel_count;
	uint32_t misses = 0;

	for (uint32_t h = RM_HANDLE_BASE; h < RM_HANDLE_BASE + RM_HANDLE_SCAN_MAX; h++) {
		uint32_t class_id = 0;

		p->controls++;
		if (handle_info(fd, client, h, 2, &class_id) != 0) {
			if (++misses >= RM_HANDLE_MISSES && h >= RM_HANDLE_BASE + RM_HANDLE_SCAN)
				break;
			continue;
		}
		misses = 0;
		if (getenv("GPUSEG_RM_VERBOSE")) {
			uint32_t parent = 0;
			handle_info(fd, client, h, 1, &parent);
			printf("  client %08x object %08x class %04x parent %08x\n", client, h, class_id, parent);
		}
		if (GPUSEG_RM_IS_GRAPHICS_OBJECT(class_id) && graphics_count < GPUSEG_RM_CHANNELS_MAX)
			handle_info(fd, client, h, 1, &graphics[graphics_count++]);
		note_object(p, fd, client, h, class_id);
	}
	for (uint32_t c = first_channel; c < p->channel_count; c++) {
		const int of = index_of_tsg(p, client, p->channels[c].tsg);
		struct gpuseg_rm_tsg *tsg = of < 0 ? NULL : &p->tsgs[of];

		if (!tsg)
			continue;
		tsg->channels++;
		for (uint32_t g = 0; g < graphics_count; g++)
			if (graphics[g] == p->channels[c].handle)
				tsg->engine = GPUSEG_RM_ENGINE_GR0;
	}
}

int gpuseg_rm_attach(struct gpuseg_rm_process *p, int pid)
{
	int error;

	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0)
		return -errno;
	error = take_descriptors(p);
	if (error) {
		gpuseg_rm_detach(p);
		return error;
	}
	for (uint32_t i = 0; i < p->fd_count; i++) {
		for (uint32_t c = RM_CLIENT_BASE; c < RM_CLIENT_BASE + RM_CLIENT_SCAN; c++) {
			uint32_t class_id = 0;

			p->controls++;
			if (handle_info(p->fds[i], c, c, 2, &class_id) == 0)
				scan_client(p, p->fds[i], c);
		}
	}
	if (p->tsg_count == 0) {
		gpuseg_rm_detach(p);
		return -ENOENT;
	}
	return 0;
}

void gpuseg_rm_detach(struct gpuseg_rm_process *p)
{
	for (uint32_t i = 0; i < p->fd_count; i++)
		close(p->fds[i]);
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->fd_count = 0;
	p->pidfd = -1;
}

int64_t gpuseg_rm_switch(int fd, uint32_t client, uint32_t subdevice, int disable, const uint32_t *clients,
			 const uint32_t *channels, uint32_t count)
{
	int64_t result = 0;

	for (uint32_t done = 0; done < count;) {
		struct gpuseg_rm_disable_channels params = {.disable = disable ? 1 : 0};
		int64_t status;

		while (done < count && params.count < GPUSEG_RM_BATCH_MAX) {
			params.client[params.count] = clients[done];
			params.channel[params.count++] = channels[done++];
		}
		status = gpuseg_rm_control(fd, client, subdevice, GPUSEG_RM_FIFO_DISABLE_CHANNELS, &params,
					   sizeof(params));
		if (status != 0 && result == 0)
			result = status;
	}
	return result;
}

static const struct gpuseg_rm_device *device_of(const struct gpuseg_rm_process *p, const struct gpuseg_rm_tsg *tsg)
{
	for (uint32_t d = 0; d < p->device_count; d++)
		if (p->devices[d].client == tsg->client && p->devices[d].handle == tsg->device)
			return &p->devices[d];
	return NULL;
}

uint32_t gpuseg_rm_gpu_id(const struct gpuseg_rm_process *process, const struct gpuseg_rm_tsg *tsg)
{
	const struct gpuseg_rm_device *device = device_of(process, tsg);

	return device ? device->gpu_id : UINT32_MAX;
}

/* The number of a duplicate's original inside the process; -1 = unknown. */
static int remote_of(const struct gpuseg_rm_process *p, int fd)
{
	for (uint32_t i = 0; i < p->fd_count; i++)
		if (p->fds[i] == fd)
			return p->remote_fds[i];
	return -1;
}

int gpuseg_rm_note(const struct gpuseg_rm_process *process, struct gpuseg_rm_held *held)
{
	const struct gpuseg_rm_device *carrier = NULL;

	memset(held, 0, sizeof(*held));
	held->version = GPUSEG_RM_HELD_VERSION;
	for (uint32_t c = 0; c < process->channel_count; c++) {
		const struct gpuseg_rm_channel *channel = &process->channels[c];
		const struct gpuseg_rm_tsg *tsg = tsg_of(process, channel->client, channel->tsg);
		const struct gpuseg_rm_device *device = tsg ? device_of(process, tsg) : NULL;

		if (!device || tsg->engine != GPUSEG_RM_ENGINE_GR0 || (carrier && carrier->gpu_id != device->gpu_id))
			continue;
		if (held->count == GPUSEG_RM_CHANNELS_MAX)
			return -E2BIG;
		if (!carrier)
			carrier = device;
		held->channels[held->count++] =
			(struct gpuseg_rm_held_channel){.client = channel->client, .channel = channel->handle};
	}
	if (!carrier)
		return -ENODEV;
	held->fd = remote_of(process, carrier->fd);
	held->client = carrier->client;
	held->subdevice = carrier->subdevice;
	return 0;
}

int64_t gpuseg_rm_note_timeslices(const struct gpuseg_rm_process *process, struct gpuseg_rm_timeslices *own)
{
	memset(own, 0, sizeof(*own));
	own->version = GPUSEG_RM_TIMESLICES_VERSION;
	for (uint32_t t = 0; t < process->tsg_count; t++) {
		const struct gpuseg_rm_tsg *tsg = &process->tsgs[t];
		uint64_t us = 0;
		int64_t status;

		if (tsg->engine != GPUSEG_RM_ENGINE_GR0)
			continue;
		if (own->count == GPUSEG_RM_TIMESLICES_MAX)
			return -E2BIG;
		status = gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle, GPUSEG_RM_GET_TIMESLICE, &us, sizeof(us));
		if (status != 0)
			return status;
		own->tsgs[own->count++] = (struct gpuseg_rm_own_timeslice){.fd = remote_of(process, tsg->fd),
									   .client = tsg->client,
									   .tsg = tsg->handle,
									   .own_us = (uint32_t)us};
	}
	return own->count ? 0 : -ENODEV;
}

int64_t gpuseg_rm_switch_processes(struct gpuseg_rm_process *const *processes, uint32_t n, int disable, int compute)
{
	uint32_t done[GPUSEG_RM_DEVICES_MAX]; /* GPUs: a subdevice controls only channels of its own */
	uint32_t done_count = 0;
	int64_t result = 0;

	for (;;) {
		uint32_t clients[GPUSEG_RM_CHANNELS_MAX];
		uint32_t channels[GPUSEG_RM_CHANNELS_MAX];
		const struct gpuseg_rm_device *carrier = NULL;
		uint32_t count = 0;
		int64_t status;

		for (uint32_t i = 0; i < n; i++) {
			struct gpuseg_rm_process *p = processes[i];

			for (uint32_t c = 0; c < p->channel_count; c++) {
				const struct gpuseg_rm_tsg *tsg = tsg_of(p, p->channels[c].client, p->channels[c].tsg);
				const struct gpuseg_rm_device *device = tsg ? device_of(p, tsg) : NULL;
				int seen = 0;

				if (!device || (compute && tsg->engine != GPUSEG_RM_ENGINE_GR0))
					continue;
				for (uint32_t k = 0; k < done_count; k++)
					seen |= done[k] == device->gpu_id;
				if (seen || (carrier && carrier->gpu_id != device->gpu_id))
					continue;
				if (count == GPUSEG_RM_CHANNELS_MAX)
					return -E2BIG;
				if (!carrier)
					carrier = device;
				clients[count] = p->channels[c].client;
				channels[count++] = p->channels[c].handle;
			}
		}
		if (!carrier)
			return done_count == 0 ? -ENODEV : result;
		status = gpuseg_rm_switch(carrier->fd, carrier->client, carrier->subdevice, disable, clients, channels,
					  count);
		if (status != 0 && result == 0)
			result = status;
		if (done_count == GPUSEG_RM_DEVICES_MAX)
			return result;
		done[done_count++] = carrier->gpu_id;
	}
}

int64_t gpuseg_rm_release(int pid, uint64_t start_ticks, const void *payload, size_t size)
{
	struct gpuseg_rm_held held;
	uint32_t clients[GPUSEG_RM_CHANNELS_MAX] = {0};
	uint32_t channels[GPUSEG_RM_CHANNELS_MAX] = {0};
	const size_t header = offsetof(struct gpuseg_rm_held, channels);
	int64_t result;
	int pidfd;
	int fd;

	if (size < header || size > sizeof(held))
		return -EINVAL;
	memset(&held, 0, sizeof(held));
	memcpy(&held, payload, size);
	if (held.version != GPUSEG_RM_HELD_VERSION || held.count > GPUSEG_RM_CHANNELS_MAX ||
	    size < header + held.count * sizeof(held.channels[0]))
		return -EINVAL;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	/* After pidfd_open the pid cannot be reused, so /proc shows the process of the pidfd. */
	if (start_ticks && gpuseg_rm_start_ticks(pid) != start_ticks) {
		close(pidfd);
		return -ESRCH;
	}
	fd = duplicate_control(pid, pidfd, held.fd);
	if (fd < 0) {
		close(pidfd);
		return fd;
	}
	for (uint32_t i = 0; i < held.count; i++) {
		clients[i] = held.channels[i].client;
		channels[i] = held.channels[i].channel;
	}
	result = gpuseg_rm_switch(fd, held.client, held.subdevice, 0, clients, channels, held.count);
	if (result == GPUSEG_RM_INVALID_CHANNEL) {
		/* The application freed one, and RM stopped there. Enable the rest one by one. */
		result = 0;
		for (uint32_t i = 0; i < held.count; i++) {
			const int64_t one =
				gpuseg_rm_switch(fd, held.client, held.subdevice, 0, &clients[i], &channels[i], 1);

			if (one != 0 && one != GPUSEG_RM_INVALID_CHANNEL && result == 0)
				result = one;
		}
	}
	close(fd);
	close(pidfd);
	return result;
}

int64_t gpuseg_rm_restore_timeslices(int pid, const void *payload, size_t size)
{
	struct gpuseg_rm_timeslices own;
	const size_t header = offsetof(struct gpuseg_rm_timeslices, tsgs);
	int64_t result = 0;
	int pidfd;

	if (size < header || size > sizeof(own))
		return -EINVAL;
	memset(&own, 0, sizeof(own));
	memcpy(&own, payload, size);
	if (own.version != GPUSEG_RM_TIMESLICES_VERSION || own.count > GPUSEG_RM_TIMESLICES_MAX ||
	    size < header + own.count * sizeof(own.tsgs[0]))
		return -EINVAL;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	for (uint32_t i = 0; i < own.count; i++) {
		uint64_t us = own.tsgs[i].own_us;
		const int fd = duplicate_control(pid, pidfd, own.tsgs[i].fd);
		int64_t one = fd < 0 ? fd : 0;

		if (fd >= 0) {
			one = gpuseg_rm_control(fd, own.tsgs[i].client, own.tsgs[i].tsg, GPUSEG_RM_SET_TIMESLICE, &us,
						sizeof(us));
			close(fd);
		}
		/* the process closed or freed it */
		if (one == -EBADF || one == -ENOTTY || one == GPUSEG_RM_INVALID_CLIENT ||
		    one == GPUSEG_RM_INVALID_OBJECT_HANDLE || one == GPUSEG_RM_OBJECT_NOT_FOUND)
			one = 0;
		if (one != 0 && result == 0)
			result = one;
	}
	close(pidfd);
	return result;
}
