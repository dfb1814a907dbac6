/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-rm-standin - keeps the state of NVIDIA's driver, with the rules that matter to an enforcer:
 *
 *  - an RM client belongs to the open file (connection) that created it; a request through another file gets
 *    INVALID_CLIENT (0x23), also from the same process [seen on an H200, 580.159.04];
 *  - the ioctl returns 0 if RM refuses; the result is in the status word;
 *  - FIFO_DISABLE_CHANNELS accepts at most 64 channels of any clients, processes them in order and stops at the first
 *    unknown one with INVALID_CHANNEL (0x21); the channels before it stay changed [seen];
 *  - disables are counted: a channel that was disabled twice needs two enables; surplus enables are ignored [seen];
 *  - GPFIFO_SCHEDULE of a channel group by its process lets its channels run, also those that were disabled before,
 *    until they are disabled again; the count of disables stays [assumed, from what an H200 did with new processes];
 *  - several GPUs (GPUS): a device names its GPU in its parameters; its objects are on that GPU; a subdevice controls
 *    only channels of its own GPU (others: INVALID_CHANNEL) [assumed];
 *  - an MPS client has channels of its own [seen]; its kernel does not run while a channel of its server is disabled
 *    [assumed: on an H200 a client hung while its server and the other clients were disabled; which of them it waited
 *    for is unknown];
 *  - a disabled channel stays disabled when the caller dies; a client ends when the last duplicate of its file is
 *    closed, not when its process ends [seen].
 *
 * One kernel per channel at a time. A kernel advances in real time while its channel is enabled. Contention between
 * contexts is not modelled, so response times are meaningless here.
 *
 * usage: gpuseg-rm-standin SOCKET [COST_US [GPUS]]   (COST_US: delay of each disable or enable; GPUS: default 1)
 *
 * With GPUSEG_RM_LOG=FILE it writes a line for each channel that is made or disabled: client, handle, CLOCK_MONOTONIC
 * ns.
 *
 * GPU n has RM's number 0x600 + 0x100 n, that is PCI address 0000:06:00.0 + n buses.
 */
#define _GNU_SOURCE
#include "gpuseg_rm.h"
#include "rm_wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOG_ENV "GPUSEG_RM_LOG"
#define FILES_MAX 256
#define OBJECTS_MAX 16384
#define WORK_STEPS 16

#define NV_OK 0x00u
#define NV_ERR_INSUFFICIENT_PERMISSIONS 0x1bu
#define NV_ERR_INVALID_ARGUMENT 0x1fu
#define NV_ERR_INVALID_CHANNEL 0x21u
#define NV_ERR_INVALID_CLIENT 0x23u
#define NV_ERR_INVALID_OBJECT_HANDLE 0x33u
#define NV_ERR_INVALID_PARAM_STRUCT 0x3au
#define NV_ERR_NO_MEMORY 0x51u
#define NV_ERR_NOT_SUPPORTED 0x56u
#define NV_ERR_OBJECT_NOT_FOUND 0x57u

struct object {
	uint32_t client;
	uint32_t parent;
	uint32_t handle;
	uint32_t class_id;
	uint32_t engine;
	uint32_t gpu;
	uint32_t disabled;
	uint32_t scheduled; /* since it was disabled */
	uint32_t server;    /* of the kernel: struct rm_wire_work */
	uint64_t timeslice_us;
	int file; /* of a client object */
	/* the kernel on a channel */
	int reply_fd; /* -1 = none */
	uint64_t duration_ns;
	uint64_t done_ns;
	uint64_t seed;
	uint64_t value;
	uint32_t steps;
};

static FILE *log_file; /* NULL, or when channels were made and disabled */
static struct object objects[OBJECTS_MAX];
static int object_count;
static int files[FILES_MAX];
static uint32_t next_client = 0xc1d00001u;
static struct rm_wire_inject injected;
static struct rm_wire_stats stats;
static long cost_us;
static uint32_t gpus = 1;
static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct object *find(uint32_t client, uint32_t handle)
{
	for (int i = 0; i < object_count; i++)
		if (objects[i].client == client && objects[i].handle == handle)
			return &objects[i];
	return NULL;
}

static int off(const struct object *o)
{
	return o->disabled && !o->scheduled;
}

static void drop(int index)
{
	if (objects[index].reply_fd >= 0)
		close(objects[index].reply_fd);
	objects[index] = objects[--object_count];
}

static void free_tree(uint32_t client, uint32_t handle)
{
	for (int i = 0; i < object_count;) {
		if (objects[i].client == client && objects[i].parent == handle && objects[i].handle != handle) {
			free_tree(client, objects[i].handle);
			i = 0; /* the table has changed */
		} else {
			i++;
		}
	}
	for (int i = 0; i < object_count; i++) {
		if (objects[i].client == client && objects[i].handle == handle) {
			drop(i);
			return;
		}
	}
}

static void answer(int fd, const struct rm_wire_request *request, int error)
{
	struct rm_wire_reply reply = {.magic = RM_WIRE_MAGIC, .error = error};

	memcpy(reply.block, request->block, sizeof(reply.block));
	memcpy(reply.params, request->params, sizeof(reply.params));
	if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		perror("gpuseg-rm-standin: reply");
}

static uint32_t allocate(int file, struct rm_wire_alloc *a, const uint8_t *params, uint32_t params_size)
{
	const struct object *parent;
	struct object *o;
	uint32_t gpu;

	if (object_count == OBJECTS_MAX)
		return NV_ERR_NO_MEMORY;
	if (a->class_id == GPUSEG_RM_CLASS_CLIENT) {
		o = &objects[object_count++];
		*o = (struct object){.client = next_client,
				     .handle = next_client,
				     .class_id = GPUSEG_RM_CLASS_CLIENT,
				     .file = file,
				     .reply_fd = -1};
		a->handle = next_client++;
		return NV_OK;
	}
	o = find(a->client, a->client);
	if (!o || o->file != file)
		return NV_ERR_INVALID_CLIENT;
	parent = find(a->client, a->parent);
	if (!parent)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	if (find(a->client, a->handle))
		return NV_ERR_INVALID_ARGUMENT;
	gpu = parent->gpu;
	if (a->class_id == GPUSEG_RM_CLASS_DEVICE && params_size >= sizeof(gpu))
		memcpy(&gpu, params, sizeof(gpu));
	if (gpu >= gpus)
		return NV_ERR_INVALID_ARGUMENT;
	o = &objects[object_count++];
	*o = (struct object){.client = a->client,
			     .parent = a->parent,
			     .handle = a->handle,
			     .class_id = a->class_id,
			     .gpu = gpu,
			     .file = file,
			     .reply_fd = -1};
	if (log_file && GPUSEG_RM_IS_CHANNEL(a->class_id))
		fprintf(log_file, "made %x %x %llu\n", a->client, a->handle, (unsigned long long)now_ns());
	if (a->class_id == GPUSEG_RM_CLASS_TSG) {
		if (params_size >= 16)
			memcpy(&o->engine, params + 12, sizeof(o->engine));
		o->timeslice_us = 1024;
	}
	return NV_OK;
}

static uint32_t switch_channels(uint32_t gpu, const struct gpuseg_rm_disable_channels *p)
{
	if (p->count > GPUSEG_RM_BATCH_MAX || p->runlist_preempt_event != 0)
		return NV_ERR_INVALID_ARGUMENT;
	if (p->disable)
		stats.disables++;
	else
		stats.enables++;
	if (p->count > stats.largest_batch)
		stats.largest_batch = p->count;
	for (uint32_t i = 0; i < p->count; i++) {
		struct object *o = find(p->client[i], p->channel[i]);

		if (!o || !GPUSEG_RM_IS_CHANNEL(o->class_id) || o->gpu != gpu)
			return NV_ERR_INVALID_CHANNEL;
		if (p->disable && o->disabled == 0 && log_file)
			fprintf(log_file, "disabled %x %x %llu\n", o->client, o->handle, (unsigned long long)now_ns());
		o->scheduled = 0;
		if (p->disable)
			o->disabled++;
		else if (o->disabled > 0)
			o->disabled--;
	}
	if (cost_us)
		usleep((useconds_t)cost_us);
	return NV_OK;
}

static uint32_t control(int file, const struct gpuseg_rm_control *c, uint8_t *params)
{
	struct object *client = find(c->client, c->client);
	struct object *o;

	stats.controls++;
	if (!client || client->file != file)
		return NV_ERR_INVALID_CLIENT;
	o = find(c->client, c->object);
	if (!o)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (injected.count && injected.command == c->command) {
		injected.count--;
		return injected.rm_status;
	}
	switch (c->command) {
	case GPUSEG_RM_GET_HANDLE_INFO: {
		struct gpuseg_rm_handle_info info;
		struct object *target;

		if (c->params_size != sizeof(info) || o != client)
			return NV_ERR_INVALID_PARAM_STRUCT;
		memcpy(&info, params, sizeof(info));
		target = find(c->client, info.object);
		if (!target)
			return NV_ERR_OBJECT_NOT_FOUND;
		if (info.index != 1 && info.index != 2)
			return NV_ERR_INVALID_ARGUMENT;
		info.data = info.index == 1 ? target->parent : target->class_id;
		memcpy(params, &info, sizeof(info));
		return NV_OK;
	}
	case GPUSEG_RM_GPU_GET_ID: {
		uint32_t id = 0x600 + 0x100 * o->gpu;

		if (c->params_size != sizeof(id) || o->class_id != GPUSEG_RM_CLASS_SUBDEVICE)
			return NV_ERR_INVALID_PARAM_STRUCT;
		memcpy(params, &id, sizeof(id));
		return NV_OK;
	}
	case GPUSEG_RM_FIFO_DISABLE_CHANNELS: {
		struct gpuseg_rm_disable_channels p;

		if (c->params_size != sizeof(p) || o->class_id != GPUSEG_RM_CLASS_SUBDEVICE)
			return NV_ERR_INVALID_PARAM_STRUCT;
		memcpy(&p, params, sizeof(p));
		return switch_channels(o->gpu, &p);
	}
	case GPUSEG_RM_GPFIFO_SCHEDULE:
		if (c->params_size != 3 || o->class_id != GPUSEG_RM_CLASS_TSG)
			return NV_ERR_INVALID_PARAM_STRUCT;
		for (int i = 0; i < object_count; i++)
			objects[i].scheduled |= objects[i].client == c->client && objects[i].parent == c->object;
		return NV_OK;
	case GPUSEG_RM_SET_TIMESLICE:
	case GPUSEG_RM_GET_TIMESLICE:
		if (c->params_size != 8 || o->class_id != GPUSEG_RM_CLASS_TSG)
			return NV_ERR_INVALID_PARAM_STRUCT;
		if (c->command == GPUSEG_RM_SET_TIMESLICE)
			memcpy(&o->timeslice_us, params, 8);
		else
			memcpy(params, &o->timeslice_us, 8);
		return NV_OK;
	case GPUSEG_RM_PREEMPT:
		return c->params_size == 8 && o->class_id == GPUSEG_RM_CLASS_TSG ? NV_OK : NV_ERR_INVALID_PARAM_STRUCT;
	case GPUSEG_RM_GET_INFO:
		if (c->params_size != 4 || o->class_id != GPUSEG_RM_CLASS_TSG)
			return NV_ERR_INVALID_PARAM_STRUCT;
		memset(params, 0, 4);
		return NV_OK;
	default:
		stats.foreign_commands++;
		return NV_ERR_NOT_SUPPORTED;
	}
}

static void serve(int file, int reply_fd, struct rm_wire_request *request)
{
	switch (request->number) {
	case GPUSEG_RM_ESC_ALLOC: {
		struct rm_wire_alloc a;

		memcpy(&a, request->block, sizeof(a));
		a.status = allocate(file, &a, request->params, request->params_size);
		memcpy(request->block, &a, sizeof(a));
		break;
	}
	case GPUSEG_RM_ESC_FREE: {
		struct rm_wire_free f;
		struct object *client;

		memcpy(&f, request->block, sizeof(f));
		client = find(f.client, f.client);
		f.status = NV_OK;
		if (!client || client->file != file)
			f.status = NV_ERR_INVALID_CLIENT;
		else if (!find(f.client, f.handle))
			f.status = NV_ERR_OBJECT_NOT_FOUND;
		else
			free_tree(f.client, f.handle);
		memcpy(request->block, &f, sizeof(f));
		break;
	}
	case GPUSEG_RM_ESC_CONTROL: {
		struct gpuseg_rm_control c;

		memcpy(&c, request->block, sizeof(c));
		c.status = control(file, &c, request->params);
		memcpy(request->block, &c, sizeof(c));
		break;
	}
	case RM_WIRE_ESC_WORK: {
		struct rm_wire_work w;
		struct object *o;

		memcpy(&w, request->block, sizeof(w));
		o = find(w.client, w.channel);
		if (!o || o->file != file || !GPUSEG_RM_IS_CHANNEL(o->class_id) || o->reply_fd >= 0) {
			w.status = NV_ERR_INVALID_CHANNEL;
			memcpy(request->block, &w, sizeof(w));
			break;
		}
		o->reply_fd = reply_fd; /* the reply follows when the kernel is complete */
		o->duration_ns = w.duration_ns;
		o->done_ns = 0;
		o->seed = w.seed;
		o->server = w.server;
		o->value = w.seed;
		o->steps = 0;
		return;
	}
	case RM_WIRE_ESC_INJECT:
		memcpy(&injected, request->block, sizeof(injected));
		break;
	case RM_WIRE_ESC_STATS:
		stats.disabled_channels = 0;
		stats.clients = 0;
		for (int i = 0; i < object_count; i++) {
			stats.disabled_channels += off(&objects[i]);
			stats.clients += objects[i].class_id == GPUSEG_RM_CLASS_CLIENT;
		}
		memcpy(request->block, &stats, sizeof(stats));
		break;
	default:
		answer(reply_fd, request, EINVAL);
		close(reply_fd);
		return;
	}
	answer(reply_fd, request, 0);
	close(reply_fd);
}

/* Returns 0 when the connection ended. */
static int receive(int file)
{
	struct rm_wire_request request;
	struct iovec iov = {.iov_base = &request, .iov_len = sizeof(request)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
	struct cmsghdr *c;
	int reply_fd = -1;
	ssize_t n;

	memset(&request, 0, sizeof(request));
	n = recvmsg(files[file], &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n <= 0)
		return 0;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&reply_fd, CMSG_DATA(c), sizeof(reply_fd));
	if (reply_fd < 0)
		return 1;
	if (n != (ssize_t)sizeof(request) || request.magic != RM_WIRE_MAGIC) {
		close(reply_fd);
		return 1;
	}
	serve(file, reply_fd, &request);
	return 1;
}

static void end_file(int file)
{
	close(files[file]);
	files[file] = -1;
	for (int i = 0; i < object_count;) {
		if (objects[i].file == file)
			drop(i);
		else
			i++;
	}
}

static int is_off(uint32_t client)
{
	for (int i = 0; client && i < object_count; i++)
		if (objects[i].client == client && off(&objects[i]))
			return 1;
	return 0;
}

static int runs(const struct object *o)
{
	return o->reply_fd >= 0 && !off(o) && !is_off(o->server);
}

static void advance(uint64_t elapsed_ns)
{
	for (int i = 0; i < object_count; i++) {
		struct object *o = &objects[i];
		uint32_t due;

		if (!runs(o))
			continue;
		o->done_ns += elapsed_ns;
		due = o->duration_ns && o->done_ns < o->duration_ns
			      ? (uint32_t)(o->done_ns * WORK_STEPS / o->duration_ns)
			      : WORK_STEPS;
		while (o->steps < due) {
			if (off(o))
				stats.ran_while_disabled++;
			o->value = o->value * 6364136223846793005ull + 1442695040888963407ull;
			o->steps++;
		}
		if (o->steps == WORK_STEPS) {
			struct rm_wire_request request = {.magic = RM_WIRE_MAGIC};
			struct rm_wire_work w = {.client = o->client,
						 .channel = o->handle,
						 .duration_ns = o->duration_ns,
						 .seed = o->seed,
						 .result = o->value};

			memcpy(request.block, &w, sizeof(w));
			answer(o->reply_fd, &request, 0);
			close(o->reply_fd);
			o->reply_fd = -1;
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct sigaction action = {.sa_handler = on_signal};
	int listener;
	uint64_t last;

	if (argc < 2 || strlen(argv[1]) >= sizeof(address.sun_path)) {
		fprintf(stderr, "usage: gpuseg-rm-standin SOCKET [COST_US [GPUS]]\n");
		return 2;
	}
	if (getenv(LOG_ENV)) {
		log_file = fopen(getenv(LOG_ENV), "we");
		if (!log_file) {
			perror(getenv(LOG_ENV));
			return 1;
		}
	}
	cost_us = argc > 2 ? atol(argv[2]) : 0;
	gpus = argc > 3 ? (uint32_t)atol(argv[3]) : 1;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (int i = 0; i < FILES_MAX; i++)
		files[i] = -1;
	strcpy(address.sun_path, argv[1]);
	unlink(argv[1]);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, 64) != 0) {
		perror(argv[1]);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	last = now_ns();
	while (!stopping) {
		struct pollfd polls[FILES_MAX + 1] = {{.fd = listener, .events = POLLIN}};
		int index[FILES_MAX + 1];
		nfds_t count = 1;
		int busy = 0;
		uint64_t now;

		for (int i = 0; i < FILES_MAX; i++) {
			if (files[i] >= 0) {
				index[count] = i;
				polls[count++] = (struct pollfd){.fd = files[i], .events = POLLIN};
			}
		}
		for (int i = 0; i < object_count; i++)
			busy |= runs(&objects[i]);
		if (poll(polls, count, busy ? 1 : 200) < 0 && errno != EINTR) {
			perror("gpuseg-rm-standin: poll");
			return 1;
		}
		now = now_ns();
		advance(now - last);
		last = now;
		if (polls[0].revents & POLLIN) {
			int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			for (int i = 0; fd >= 0 && i < FILES_MAX; i++) {
				if (files[i] < 0) {
					files[i] = fd;
					fd = -1;
				}
			}
			if (fd >= 0)
				close(fd);
		}
		for (nfds_t i = 1; i < count; i++)
			if (polls[i].revents && !receive(index[i]))
				end_file(index[i]);
	}
	unlink(argv[1]);
	return log_file && fclose(log_file) != 0;
}
