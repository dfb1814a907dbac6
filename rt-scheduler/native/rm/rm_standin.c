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
 * Queued kernels (see rm_wire.h) do contend: on each GPU one channel group runs at a time, in turns of its time slice,
 * and a switch takes SWITCH_NS. They run beside the others. A newcomer waits for the rest of the slice that runs.
 *
 * usage: gpuseg-rm-standin SOCKET [COST_US [GPUS]]   (COST_US: delay of each disable or enable; GPUS: default 1)
 *
 * With GPUSEG_RM_LOG=FILE it writes a line for each channel that is made or disabled: client, handle, CLOCK_MONOTONIC
 * ns; and for each compute channel group that ends: client, handle, disabled channels, time slice in us.
 *
 * GPUSEG_RM_FAULTS="WHAT:EFFECT[:ARGUMENT[:AFTER]];..." plants faults. WHAT: disable, enable, slice (set), get-slice,
 * class (of a handle), gpu-id. The first AFTER calls are right. EFFECT:
 *   refuse:STATUS  error:ERRNO (of the ioctl)  hang (no answer)  die (the driver ends)  slow:MS (effect and answer)
 *   nothing (success without effect; get-slice returns what was asked)  kept (the same, and get-slice tells the truth)
 *   late:MS (the effect, after the answer)  undone:MS (the effect ends by itself)  all (every channel or group of the
 *   GPU)  most (all channels but the first)  twice  fixed:US (a slice of US, whatever was asked)
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
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOG_ENV "GPUSEG_RM_LOG"
#define FILES_MAX 256
#define OBJECTS_MAX 16384
#define WORK_STEPS 16
#define JOBS_MAX 4096
#define GPUS_MAX 8
#define SWITCH_NS 100000u /* between channel groups */
#define FAULTS_ENV "GPUSEG_RM_FAULTS"
#define FAULTS_MAX 8
#define DELAYED_MAX 256

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
	uint32_t scheduled;	/* since it was disabled */
	uint32_t server;	/* of the kernel: struct rm_wire_work */
	uint64_t timeslice_us;	/* what was asked */
	uint64_t programmed_us; /* what is kept to */
	int file;		/* of a client object */
	/* the kernel on a channel */
	int reply_fd; /* -1 = none */
	uint64_t duration_ns;
	uint64_t done_ns;
	uint64_t seed;
	uint64_t value;
	uint32_t steps;
};

struct job { /* a queued kernel; the oldest first */
	uint32_t client;
	uint32_t channel;
	uint64_t duration_ns;
	uint64_t done_ns;
	uint64_t counter;
	uint64_t stores[2]; /* there: how many have run, and what this one computed */
	pid_t pid;
};

struct engine { /* which channel group runs queued kernels */
	uint32_t client;
	uint32_t tsg;
	uint64_t slice_ns; /* left */
	uint64_t switch_ns;
};

enum effect { HONEST, REFUSE, FAIL, HANG, DIE, SLOW, NOTHING, KEPT, LATE, UNDONE, ALL, MOST, TWICE, FIXED };

struct fault {
	char what[16];
	enum effect effect;
	uint64_t argument;
	uint64_t after;
	uint64_t seen;
};

struct delayed { /* a control that takes effect later; with reply_fd it is answered then */
	uint64_t due_ns;
	int reply_fd;
	int file;
	enum effect effect;
	struct rm_wire_request request;
};

static struct job jobs[JOBS_MAX];
static int job_count;
static struct engine engines[GPUS_MAX];
static struct fault faults[FAULTS_MAX];
static int fault_count;
static struct delayed delayed[DELAYED_MAX];
static int delayed_count;
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
		o->timeslice_us = o->engine == GPUSEG_RM_ENGINE_GR0 ? 2048 : 1024;
		o->programmed_us = o->timeslice_us;
	}
	return NV_OK;
}

static void switch_channel(struct object *o, int disable)
{
	if (disable && o->disabled == 0 && log_file)
		fprintf(log_file, "disabled %x %x %llu\n", o->client, o->handle, (unsigned long long)now_ns());
	o->scheduled = 0;
	if (disable)
		o->disabled++;
	else if (o->disabled > 0)
		o->disabled--;
}

static uint32_t switch_channels(uint32_t gpu, const struct gpuseg_rm_disable_channels *p, enum effect effect)
{
	if (p->count > GPUSEG_RM_BATCH_MAX || p->runlist_preempt_event != 0)
		return NV_ERR_INVALID_ARGUMENT;
	if (p->disable)
		stats.disables++;
	else
		stats.enables++;
	if (p->count > stats.largest_batch)
		stats.largest_batch = p->count;
	for (int i = 0; effect == ALL && i < object_count; i++)
		if (GPUSEG_RM_IS_CHANNEL(objects[i].class_id) && objects[i].gpu == gpu)
			switch_channel(&objects[i], p->disable);
	for (uint32_t i = effect == MOST ? 1 : 0; effect != ALL && i < p->count; i++) {
		struct object *o = find(p->client[i], p->channel[i]);

		if (!o || !GPUSEG_RM_IS_CHANNEL(o->class_id) || o->gpu != gpu)
			return NV_ERR_INVALID_CHANNEL;
		switch_channel(o, p->disable);
		if (effect == TWICE)
			switch_channel(o, p->disable);
	}
	if (cost_us)
		usleep((useconds_t)cost_us);
	return NV_OK;
}

static void set_slice(struct object *o, uint64_t us, enum effect effect, uint64_t fixed_us)
{
	for (int i = 0; effect == ALL && i < object_count; i++)
		if (objects[i].class_id == GPUSEG_RM_CLASS_TSG && objects[i].gpu == o->gpu)
			objects[i].timeslice_us = objects[i].programmed_us = us;
	if (effect != KEPT)
		o->timeslice_us = us;
	if (effect != KEPT && effect != NOTHING)
		o->programmed_us = effect == FIXED ? fixed_us : us;
}

static uint32_t control(int file, const struct gpuseg_rm_control *c, uint8_t *params, enum effect effect,
			uint64_t argument)
{
	struct object *client = find(c->client, c->client);
	struct object *o;
	uint64_t asked;

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
	if (effect == REFUSE)
		return (uint32_t)argument;
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
		return effect == NOTHING ? NV_OK : switch_channels(o->gpu, &p, effect);
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
		memcpy(&asked, params, sizeof(asked));
		if (c->command == GPUSEG_RM_SET_TIMESLICE)
			set_slice(o, asked, effect, argument);
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

/* ---- planted faults ---- */

static void plant_faults(void)
{
	static const char *const names[] = {"honest", "refuse", "error",  "hang", "die",  "slow",  "nothing",
					    "kept",   "late",	"undone", "all",  "most", "twice", "fixed"};
	char text[512];
	char *save = NULL;

	if (!getenv(FAULTS_ENV))
		return;
	snprintf(text, sizeof(text), "%s", getenv(FAULTS_ENV));
	for (char *one = strtok_r(text, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
		struct fault *f = &faults[fault_count];
		char effect[16], argument[32] = "0", after[32] = "0";
		const int words = sscanf(one, "%15[^:]:%15[^:]:%31[^:]:%31s", f->what, effect, argument, after);

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strcmp(effect, names[i]) == 0)
				f->effect = (enum effect)i;
		f->argument = strtoull(argument, NULL, 0);
		f->after = strtoull(after, NULL, 0);
		if (words < 2 || f->effect == HONEST || ++fault_count == FAULTS_MAX) {
			fprintf(stderr, "gpuseg-rm-standin: %s: \"%s\" is no fault\n", FAULTS_ENV, one);
			exit(2);
		}
	}
}

static const char *name_of(const struct gpuseg_rm_control *c, const uint8_t *params)
{
	struct gpuseg_rm_handle_info info;

	switch (c->command) {
	case GPUSEG_RM_FIFO_DISABLE_CHANNELS:
		return params[0] ? "disable" : "enable";
	case GPUSEG_RM_SET_TIMESLICE:
		return "slice";
	case GPUSEG_RM_GET_TIMESLICE:
		return "get-slice";
	case GPUSEG_RM_GPU_GET_ID:
		return "gpu-id";
	case GPUSEG_RM_GET_HANDLE_INFO:
		memcpy(&info, params, sizeof(info));
		return info.index == 2 ? "class" : "parent";
	default:
		return "";
	}
}

static const struct fault *fault_of(const struct gpuseg_rm_control *c, const uint8_t *params)
{
	const char *name = name_of(c, params);

	for (int i = 0; i < fault_count; i++)
		if (strcmp(faults[i].what, name) == 0 && faults[i].seen++ >= faults[i].after)
			return &faults[i];
	return NULL;
}

static void perform(int file, int reply_fd, struct rm_wire_request *request, enum effect effect, uint64_t argument)
{
	struct gpuseg_rm_control c;

	memcpy(&c, request->block, sizeof(c));
	c.status = control(file, &c, request->params, effect, argument);
	memcpy(request->block, &c, sizeof(c));
	if (reply_fd >= 0) {
		answer(reply_fd, request, 0);
		close(reply_fd);
	}
}

static void delay(uint64_t ms, int file, int reply_fd, const struct rm_wire_request *request)
{
	if (delayed_count == DELAYED_MAX)
		abort();
	delayed[delayed_count++] = (struct delayed){
		.due_ns = now_ns() + ms * 1000000u, .reply_fd = reply_fd, .file = file, .request = *request};
}

static void perform_delayed(void)
{
	for (int i = 0; i < delayed_count;) {
		struct delayed d = delayed[i];

		if (d.due_ns > now_ns()) {
			i++;
			continue;
		}
		delayed[i] = delayed[--delayed_count];
		perform(d.file, d.reply_fd, &d.request, HONEST, 0);
	}
}

static void serve_control(int file, int reply_fd, struct rm_wire_request *request)
{
	struct rm_wire_request later = *request;
	struct gpuseg_rm_control c;
	const struct fault *fault;
	struct object *o;
	uint64_t own_us;

	memcpy(&c, request->block, sizeof(c));
	fault = fault_of(&c, request->params);
	switch (fault ? fault->effect : HONEST) {
	case FAIL:
		answer(reply_fd, request, (int)fault->argument);
		close(reply_fd);
		return;
	case HANG: /* the caller waits as long as this program lives */
		return;
	case DIE:
		stopping = 1;
		close(reply_fd);
		return;
	case SLOW:
		delay(fault->argument, file, reply_fd, request);
		return;
	case LATE:
		perform(file, reply_fd, request, NOTHING, 0);
		delay(fault->argument, file, -1, &later);
		return;
	case UNDONE:
		o = find(c.client, c.object);
		own_us = o ? o->programmed_us : 0;
		perform(file, reply_fd, request, HONEST, 0);
		if (c.command == GPUSEG_RM_SET_TIMESLICE)
			memcpy(later.params, &own_us, sizeof(own_us));
		else
			later.params[0] = !later.params[0];
		delay(fault->argument, file, -1, &later);
		return;
	default:
		perform(file, reply_fd, request, fault ? fault->effect : HONEST, fault ? fault->argument : 0);
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
	case GPUSEG_RM_ESC_CONTROL:
		serve_control(file, reply_fd, request);
		return;
	case RM_WIRE_ESC_WORK: {
		struct rm_wire_work w;
		struct object *o;

		memcpy(&w, request->block, sizeof(w));
		o = find(w.client, w.channel);
		if (o && o->file == file && GPUSEG_RM_IS_CHANNEL(o->class_id) && w.pid && job_count < JOBS_MAX) {
			jobs[job_count++] = (struct job){.client = w.client,
							 .channel = w.channel,
							 .duration_ns = w.duration_ns,
							 .counter = w.counter,
							 .stores = {w.value, w.seed},
							 .pid = w.pid};
			break;
		}
		if (!o || o->file != file || !GPUSEG_RM_IS_CHANNEL(o->class_id) || o->reply_fd >= 0 || w.pid) {
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

static void log_end(int file)
{
	for (int t = 0; log_file && t < object_count; t++) {
		const struct object *tsg = &objects[t];
		unsigned disabled = 0;

		if (tsg->file != file || tsg->class_id != GPUSEG_RM_CLASS_TSG || tsg->engine != GPUSEG_RM_ENGINE_GR0)
			continue;
		for (int i = 0; i < object_count; i++)
			disabled += objects[i].client == tsg->client && objects[i].parent == tsg->handle &&
				    off(&objects[i]);
		fprintf(log_file, "ended %x %x %u %llu\n", tsg->client, tsg->handle, disabled,
			(unsigned long long)tsg->programmed_us);
	}
}

static void end_file(int file)
{
	int left = 0;

	log_end(file);
	close(files[file]);
	files[file] = -1;
	for (int i = 0; i < job_count; i++) {
		const struct object *client = find(jobs[i].client, jobs[i].client);

		if (client && client->file != file)
			jobs[left++] = jobs[i];
	}
	job_count = left;
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

/* ---- queued kernels ---- */

/* Its oldest kernel that may run; -1 = none. */
static int job_of(uint32_t client, uint32_t tsg)
{
	uint32_t looked_at = 0; /* kernels of one channel follow each other */

	for (int i = 0; i < job_count; i++) {
		const struct object *o;

		if (jobs[i].client != client || jobs[i].channel == looked_at)
			continue;
		o = find(client, jobs[i].channel);
		looked_at = jobs[i].channel;
		if (o && o->parent == tsg && !off(o))
			return i;
	}
	return -1;
}

/* The channel group of this GPU that follows the current one among those with a kernel that may run; NULL = none. */
static const struct object *next_group(uint32_t gpu, const struct engine *current)
{
	const struct object *first = NULL, *next = NULL;

	for (int i = 0; i < object_count; i++) {
		const struct object *o = &objects[i];
		const uint64_t key = (uint64_t)o->client << 32 | o->handle;

		if (o->class_id != GPUSEG_RM_CLASS_TSG || o->gpu != gpu || o->engine != GPUSEG_RM_ENGINE_GR0 ||
		    job_of(o->client, o->handle) < 0)
			continue;
		if (!first || key < ((uint64_t)first->client << 32 | first->handle))
			first = o;
		if (key > ((uint64_t)current->client << 32 | current->tsg) &&
		    (!next || key < ((uint64_t)next->client << 32 | next->handle)))
			next = o;
	}
	return next ? next : first;
}

static void complete(int index)
{
	struct job *job = &jobs[index];
	struct iovec from = {job->stores, sizeof(job->stores)};
	struct iovec to = {(void *)(uintptr_t)job->counter, sizeof(job->stores)};

	/* the process may have ended; its kernels go when its file does */
	if (process_vm_writev(job->pid, &from, 1, &to, 1, 0) < 0 && errno != ESRCH)
		perror("gpuseg-rm-standin: the counter of a queued kernel");
	memmove(job, job + 1, (size_t)(--job_count - index) * sizeof(*job));
}

static void advance_queued(uint32_t gpu, uint64_t elapsed_ns)
{
	struct engine *e = &engines[gpu];

	while (elapsed_ns > 0) {
		const int index = e->slice_ns ? job_of(e->client, e->tsg) : -1;
		uint64_t step_ns;

		if (index < 0) {
			const struct object *next = next_group(gpu, e);

			if (!next)
				return;
			if (next->client != e->client || next->handle != e->tsg)
				e->switch_ns = SWITCH_NS;
			e->client = next->client;
			e->tsg = next->handle;
			e->slice_ns = 1000 * (next->programmed_us ? next->programmed_us : 1);
			continue;
		}
		if (e->switch_ns) {
			step_ns = e->switch_ns < elapsed_ns ? e->switch_ns : elapsed_ns;
			e->switch_ns -= step_ns;
			elapsed_ns -= step_ns;
			continue;
		}
		step_ns = jobs[index].duration_ns - jobs[index].done_ns;
		step_ns = step_ns < e->slice_ns ? step_ns : e->slice_ns;
		step_ns = step_ns < elapsed_ns ? step_ns : elapsed_ns;
		e->slice_ns -= step_ns;
		elapsed_ns -= step_ns;
		jobs[index].done_ns += step_ns;
		if (jobs[index].done_ns == jobs[index].duration_ns)
			complete(index);
	}
}

static void advance(uint64_t elapsed_ns)
{
	for (uint32_t gpu = 0; gpu < gpus && job_count; gpu++)
		advance_queued(gpu, elapsed_ns);
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
		setvbuf(log_file, NULL, _IOLBF, 0);
	}
	cost_us = argc > 2 ? atol(argv[2]) : 0;
	gpus = argc > 3 ? (uint32_t)atol(argv[3]) : 1;
	if (gpus > GPUS_MAX) {
		fprintf(stderr, "gpuseg-rm-standin: %u GPUs; use 1..%d\n", gpus, GPUS_MAX);
		return 2;
	}
	plant_faults();
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
		int busy = job_count + delayed_count;
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
		perform_delayed();
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
