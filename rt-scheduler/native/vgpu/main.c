/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-vgpu - a virtual GPU in a process of its own, so that it outlives the scheduler as a driver does.
 *
 *   application --- vgpu.sock (0666) ---> connection ---> engine ---> fence page (memfd, futex)
 *   mechanism, watchdog --- vgpu.ctl (0600) ---> operation ---> engine ---> reply at the time of the effect
 *                                                   |
 *                                    audit, execution log (spans)
 *
 * One thread and one epoll instance. It sleeps on an absolute timerfd until the engine's next event. No peer is
 * trusted: a malformed packet closes the connection of its sender and affects no other. Nothing is allocated after
 * start.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base.h"
#include "vgpu/audit.h"
#include "vgpu/engine.h"
#include "vgpu/spanlog.h"

#define DURATION_MAX_NS (24 * 3600 * NS_PER_S) /* longest kernel: in practice endless */
#define TIMESLICE_MIN_NS (1 * NS_PER_US)
#define TIMESLICE_MAX_NS (10 * NS_PER_S)
#define COST_MAX_NS (1 * NS_PER_S)

enum {
	CONTROLS_MAX = 64,
	CONNECTIONS_MAX = ENGINE_STREAMS_MAX + CONTROLS_MAX, /* applications first: their index is the stream */
	CONNECTIONS_PER_PROCESS = 64,
	PACKETS_PER_TURN = 16, /* read from one connection before the others are read */
	EVENTS_PER_TURN = 64,
	NO_CONTEXT = -1
};

enum source {
	SOURCE_APPLICATIONS,
	SOURCE_CONTROLS,
	SOURCE_TIMER,
	SOURCE_SIGNAL,
	SOURCE_PARENT,
	SOURCE_CONNECTION,
	SOURCE_PROCESS
};

struct connection {
	int fd; /* -1: free */
	uint32_t generation;
	int32_t pid;
	int context;	 /* NO_CONTEXT until OPEN, and for controls */
	bool paused;	 /* not read until kernels finish */
	uint32_t queued; /* kernels submitted and not finished */
	uint64_t submitted;
	struct gpuseg_sim_fence *fence;
};

static struct vgpu {
	struct engine *engine;
	struct engine_config config;
	struct audit audit;
	struct spanlog log;
	int operations; /* log of changes of contexts, written at once; -1: none */
	int epoll, timer;
	int64_t timer_ns; /* current setting of the timer */
	uint64_t late_count;
	int64_t late_max_ns, late_sum_ns;
	uint64_t dropped_connections;
	unsigned applications_max; /* lower than ENGINE_STREAMS_MAX if descriptors are scarce */
	bool stop;
	struct connection connections[CONNECTIONS_MAX];
	struct {
		int pidfd;
		uint32_t generation;
	} processes[ENGINE_CONTEXTS_MAX]; /* by context */
} gpu;

/* epoll data: source, generation (an event of a descriptor closed in the same turn is stale), index */
static uint64_t tag(enum source source, uint32_t generation, uint32_t index)
{
	return (uint64_t)source << 56 | (uint64_t)(generation & 0xffffff) << 32 | index;
}

static int watch(int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data.u64 = data};

	return epoll_ctl(gpu.epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static bool is_control(const struct connection *c)
{
	return c - gpu.connections >= ENGINE_STREAMS_MAX;
}

static uint32_t index_of(const struct connection *c)
{
	return (uint32_t)(c - gpu.connections);
}

static void set_reading(struct connection *c, bool reading)
{
	struct epoll_event event = {
		.events = reading ? EPOLLIN : 0,
		.data.u64 = tag(SOURCE_CONNECTION, c->generation, index_of(c)),
	};

	c->paused = !reading;
	if (epoll_ctl(gpu.epoll, EPOLL_CTL_MOD, c->fd, &event) != 0)
		message("epoll: %s", strerror(errno));
}

/* Closes the descriptor and the fence page. The caller tells the engine. */
static void release_connection(struct connection *c)
{
	close(c->fd);
	if (c->fence)
		munmap(c->fence, sizeof(*c->fence));
	*c = (struct connection){.fd = -1, .generation = c->generation + 1, .context = NO_CONTEXT};
}

static void close_connection(struct connection *c)
{
	const int context = c->context;

	if (context != NO_CONTEXT)
		engine_close_stream(gpu.engine, context, index_of(c), now_ns());
	release_connection(c);
}

__attribute__((format(printf, 2, 3))) static void drop_connection(struct connection *c, const char *format, ...)
{
	char reason[160];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	message("process %" PRId32 ": %s; its connection is closed", c->pid, reason);
	gpu.dropped_connections++;
	close_connection(c);
}

/* ---- callbacks of the engine ---- */

static void on_span(void *argument, const struct gpuseg_sim_span *span)
{
	(void)argument;
	audit_span(&gpu.audit, span);
	spanlog_append(&gpu.log, span);
}

static void on_completed(void *argument, uint32_t stream, uint64_t fence, int64_t time_ns)
{
	struct connection *c = &gpu.connections[stream];
	struct gpuseg_sim_fence *page = c->fence;

	(void)argument;
	__atomic_store_n(&page->completed_ns, time_ns, __ATOMIC_RELAXED);
	/* release; pairs with the acquire in sim.c: gpuseg_sim_wait */
	__atomic_store_n(&page->completed, fence, __ATOMIC_RELEASE);
	/* Store, then look (ADR 30): either the waiter sees the new value, or this load sees `waiting`. */
	atomic_thread_fence(memory_order_seq_cst);
	if (__atomic_load_n(&page->waiting, __ATOMIC_RELAXED))
		syscall(SYS_futex, &page->completed, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	if (--c->queued <= ENGINE_KERNELS_PER_STREAM / 2 && c->paused)
		set_reading(c, true);
}

static bool send_packet(struct connection *c, struct iovec *parts, size_t count, int descriptor)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary = {0};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = count};

	if (descriptor >= 0) {
		header.msg_control = ancillary.bytes;
		header.msg_controllen = sizeof(ancillary.bytes);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &descriptor, sizeof(int));
	}
	return sendmsg(c->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static struct gpuseg_sim_msg reply_to(uint32_t op, int32_t status, int64_t time_ns)
{
	return (struct gpuseg_sim_msg){
		.magic = GPUSEG_SIM_MAGIC,
		.version = GPUSEG_ABI_VERSION,
		.op = op,
		.status = status,
		.time_ns = time_ns,
	};
}

/* Unbuffered, because operations are rare, and the fault tests read them during the run. */
static void log_change(int64_t time_ns, int32_t pid, uint32_t change)
{
	const struct gpuseg_sim_operation line = {.time_ns = time_ns, .pid = pid, .change = change};

	if (gpu.operations < 0)
		return;
	if (write(gpu.operations, &line, sizeof(line)) != sizeof(line)) {
		message("operations: write failed: %s; the log ends here", strerror(errno));
		close(gpu.operations);
		gpu.operations = -1;
	}
}

static void log_operation(const struct operation *o)
{
	if (o->op == GPUSEG_SIM_TIMESLICE)
		return;
	for (unsigned i = 0; i < o->count; i++)
		if (o->served >> i & 1)
			log_change(o->effect_ns, o->pids[i],
				   o->op == GPUSEG_SIM_ENABLE ? GPUSEG_SIM_ENABLED : GPUSEG_SIM_DISABLED);
}

static void on_operated(void *argument, const struct operation *o)
{
	struct connection *c = &gpu.connections[(uint32_t)o->token];
	struct gpuseg_sim_msg reply = reply_to(o->op, o->status, o->effect_ns);
	struct iovec part = {&reply, sizeof(reply)};

	(void)argument;
	audit_operated(&gpu.audit, o);
	log_operation(o);
	if (c->fd < 0 || c->generation != (uint32_t)(o->token >> 32))
		return; /* the connection closed: the operation stands, and there is no one to reply to */
	reply.arg_ns = o->arg_ns;
	reply.count = o->count;
	memcpy(reply.pids, o->pids, sizeof(reply.pids));
	if (!send_packet(c, &part, 1, -1))
		drop_connection(c, "does not read its replies (%s)", strerror(errno));
}

static int watch_process(int32_t pid, int context)
{
	const int fd = pidfd_of(pid);
	int rc;

	if (fd < 0)
		return fd;
	rc = watch(fd, EPOLLIN, tag(SOURCE_PROCESS, gpu.processes[context].generation, (uint32_t)context));
	if (rc != 0) {
		close(fd);
		return rc;
	}
	gpu.processes[context].pidfd = fd;
	return 0;
}

/* Adds a context. A pidfd reports the end of its process, even if a child keeps the connection open. */
static int add_process(int32_t pid)
{
	const int context = engine_add_context(gpu.engine, pid);
	int rc;

	if (context < 0)
		return context;
	rc = watch_process(pid, context);
	if (rc != 0) {
		engine_forget_context(gpu.engine, context);
		return rc;
	}
	return context;
}

static int on_unknown_pid(void *argument, int32_t pid)
{
	const int context = add_process(pid);

	(void)argument;
	/* After -ESRCH there is nothing to remember: the process does not exist, which the caller replies anyway. */
	if (context < 0 && context != -ESRCH)
		message("process %" PRId32 ": cannot remember that it is disabled: %s", pid, strerror(-context));
	return context < 0 ? NO_CONTEXT : context;
}

static void on_dropped(void *argument, int context, int32_t pid)
{
	(void)argument;
	audit_dropped(&gpu.audit, pid);
	log_change(now_ns(), pid, GPUSEG_SIM_GONE);
	if (gpu.processes[context].pidfd >= 0)
		close(gpu.processes[context].pidfd);
	gpu.processes[context].pidfd = -1;
	gpu.processes[context].generation++;
}

/* ---- packets and deaths ---- */

static void process_died(int context)
{
	/* A child may hold copies of the connections. They belong to the dead process and are closed with it. */
	for (struct connection *c = gpu.connections; c < gpu.connections + ENGINE_STREAMS_MAX; c++)
		if (c->fd >= 0 && c->context == context)
			release_connection(c);
	engine_drop_context(gpu.engine, context, now_ns());
}

static void handle_open(struct connection *c)
{
	struct gpuseg_sim_msg reply = reply_to(GPUSEG_SIM_OPEN, 0, now_ns());
	struct iovec part = {&reply, sizeof(reply)};
	int fd, context, rc = 0;

	if (c->context != NO_CONTEXT) {
		drop_connection(c, "OPEN twice on one connection");
		return;
	}
	/* Its size is sealed, so that the application cannot make our store fault. */
	fd = memfd_create("gpuseg-fence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, sizeof(*c->fence)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		rc = -errno;
	if (rc == 0) {
		c->fence = mmap(NULL, sizeof(*c->fence), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (c->fence == MAP_FAILED) {
			rc = -errno;
			c->fence = NULL;
		}
	}
	if (rc == 0) {
		context = engine_find_context(gpu.engine, c->pid);
		if (context < 0)
			context = add_process(c->pid);
		if (context < 0) {
			rc = context;
		} else {
			c->context = context;
			engine_open_stream(gpu.engine, context);
		}
	}
	reply.status = rc;
	if (!send_packet(c, &part, 1, rc == 0 ? fd : -1))
		drop_connection(c, "OPEN: cannot answer: %s", strerror(errno));
	else if (rc != 0)
		drop_connection(c, "OPEN: %s", strerror(-rc));
	if (fd >= 0)
		close(fd);
}

static void handle_submit(struct connection *c, const struct gpuseg_sim_msg *m)
{
	if (c->context == NO_CONTEXT) {
		drop_connection(c, "SUBMIT before OPEN");
		return;
	}
	if (m->arg != c->submitted + 1) {
		drop_connection(c, "SUBMIT of fence %" PRIu64 "; the next one is %" PRIu64, m->arg, c->submitted + 1);
		return;
	}
	if (m->arg_ns < 0 || m->arg_ns > DURATION_MAX_NS) {
		drop_connection(c, "SUBMIT of %" PRId64 " ns; a kernel lasts 0 to %" PRId64 " ns", m->arg_ns,
				DURATION_MAX_NS);
		return;
	}
	c->submitted++;
	c->queued++;
	/* There is always room: the engine has as many kernels as all connections may submit. */
	engine_submit(gpu.engine, c->context, index_of(c), m->arg, m->arg_ns, now_ns());
	if (c->queued >= ENGINE_KERNELS_PER_STREAM)
		set_reading(c, false); /* its socket fills up and its sender waits, as with a full ring buffer */
}

static void reply_now(struct connection *c, const struct gpuseg_sim_msg *m, int32_t status)
{
	struct gpuseg_sim_msg reply = reply_to(m->op, status, now_ns());
	struct iovec part = {&reply, sizeof(reply)};

	if (!send_packet(c, &part, 1, -1))
		drop_connection(c, "does not read its replies (%s)", strerror(errno));
}

static void handle_operation(struct connection *c, const struct gpuseg_sim_msg *m)
{
	struct operation o = {.op = m->op, .count = m->count, .arg_ns = m->arg_ns};
	int rc;

	if (m->count > GPUSEG_SIM_BATCH_MAX) {
		drop_connection(c, "operation on %" PRIu32 " processes; %d is the most", m->count,
				GPUSEG_SIM_BATCH_MAX);
		return;
	}
	for (uint32_t i = 0; i < m->count; i++) {
		o.pids[i] = m->pids[i];
		if (m->pids[i] <= 0) {
			drop_connection(c, "operation on process %" PRId32 "; a process id is positive", m->pids[i]);
			return;
		}
	}
	if (m->op == GPUSEG_SIM_TIMESLICE && m->arg_ns != 0 &&
	    (m->arg_ns < TIMESLICE_MIN_NS || m->arg_ns > TIMESLICE_MAX_NS)) {
		reply_now(c, m, -EINVAL);
		return;
	}
	o.token = (uint64_t)c->generation << 32 | index_of(c);
	rc = engine_operate(gpu.engine, &o, now_ns());
	if (rc != 0)
		reply_now(c, m, rc);
}

static void handle_info(struct connection *c)
{
	const struct engine_counters *counters;
	struct gpuseg_sim_msg reply = reply_to(GPUSEG_SIM_INFO, 0, now_ns());

	engine_advance(gpu.engine, reply.time_ns);
	counters = engine_counters(gpu.engine);

	struct gpuseg_sim_info info = {
		.magic = GPUSEG_SIM_MAGIC,
		.version = GPUSEG_ABI_VERSION,
		.pid = getpid(),
		.contexts = engine_context_count(gpu.engine),
		.disabled = engine_disabled_count(gpu.engine),
		.timeslice_ns = gpu.config.timeslice_ns,
		.switch_cost_ns = gpu.config.switch_cost_ns,
		.disable_cost_ns = gpu.config.disable_cost_ns,
		.enable_cost_ns = gpu.config.enable_cost_ns,
		.kernels_completed = counters->kernels_completed,
		.switches = counters->switches,
		.preemptions = counters->preemptions,
		.operations = counters->operations,
		.ran_while_disabled = gpu.audit.ran_while_disabled,
		.busy_ns = counters->busy_ns,
	};
	struct iovec parts[] = {{&reply, sizeof(reply)}, {&info, sizeof(info)}};

	if (!send_packet(c, parts, ARRAY_LENGTH(parts), -1))
		drop_connection(c, "does not read its replies (%s)", strerror(errno));
}

static void handle_packet(struct connection *c, const struct gpuseg_sim_msg *m, size_t length)
{
	if (length != sizeof(*m))
		drop_connection(c, "packet of %zu bytes; a message has %zu", length, sizeof(*m));
	else if (m->magic != GPUSEG_SIM_MAGIC)
		drop_connection(c, "packet with magic 0x%08" PRIx32 " instead of 0x%08x", m->magic, GPUSEG_SIM_MAGIC);
	else if (m->version >> 16 != GPUSEG_ABI_MAJOR)
		drop_connection(c, "speaks layout version %" PRIu32 "; this is %d", m->version >> 16, GPUSEG_ABI_MAJOR);
	else if (!is_control(c) && m->op == GPUSEG_SIM_OPEN)
		handle_open(c);
	else if (!is_control(c) && m->op == GPUSEG_SIM_SUBMIT)
		handle_submit(c, m);
	else if (is_control(c) &&
		 (m->op == GPUSEG_SIM_ENABLE || m->op == GPUSEG_SIM_DISABLE || m->op == GPUSEG_SIM_TIMESLICE))
		handle_operation(c, m);
	else if (is_control(c) && m->op == GPUSEG_SIM_INFO)
		handle_info(c);
	else
		drop_connection(c, "unknown operation %" PRIu32 " on the %s socket", m->op,
				is_control(c) ? "control" : "application");
}

static void read_connection(struct connection *c)
{
	const uint32_t generation = c->generation;

	for (int i = 0; i < PACKETS_PER_TURN && c->generation == generation && !c->paused; i++) {
		struct gpuseg_sim_msg m;
		/*
		 * MSG_TRUNC returns the true length. There is no room for ancillary data, so the kernel closes
		 * descriptors that were sent along.
		 */
		const ssize_t length = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

		if (length > 0) {
			handle_packet(c, &m, (size_t)length);
		} else if (length == 0) {
			/* End of file, or an empty packet, which looks the same and is not valid either. */
			close_connection(c);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			close_connection(c);
		}
	}
}

static void accept_connections(int listener, bool control)
{
	struct connection *const first = gpu.connections + (control ? ENGINE_STREAMS_MAX : 0);
	struct connection *const last = control ? gpu.connections + CONNECTIONS_MAX : first + gpu.applications_max;

	for (int i = 0; i < PACKETS_PER_TURN; i++) {
		const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct connection *free_one = NULL;
		struct ucred peer = {0};
		socklen_t size = sizeof(peer);
		int of_process = 0;

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				message("accept: %s", strerror(errno));
			return;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
			message("a connection from a process of another pid namespace is refused: its pid is unknown "
				"here");
			close(fd);
			continue;
		}
		for (struct connection *c = first; c < last; c++) {
			of_process += c->fd >= 0 && c->pid == peer.pid;
			if (c->fd < 0 && !free_one)
				free_one = c;
		}
		if (!free_one || of_process >= CONNECTIONS_PER_PROCESS) {
			message("process %d: connection refused: %s", peer.pid,
				free_one ? "it has too many" : "there are too many");
			close(fd);
			continue;
		}
		free_one->fd = fd;
		free_one->pid = peer.pid;
		if (watch(fd, EPOLLIN, tag(SOURCE_CONNECTION, free_one->generation, index_of(free_one))) != 0)
			drop_connection(free_one, "epoll: %s", strerror(errno));
	}
}

/* ---- the loop ---- */

static void note_lateness(int64_t due_ns, int64_t time_ns)
{
	const int64_t late_ns = time_ns - due_ns;

	gpu.late_count++;
	gpu.late_sum_ns += late_ns;
	if (late_ns > gpu.late_max_ns)
		gpu.late_max_ns = late_ns;
}

static void set_timer(void)
{
	int64_t next_ns = engine_next_event(gpu.engine);

	if (gpu.log.due_ns < next_ns)
		next_ns = gpu.log.due_ns;
	if (next_ns == gpu.timer_ns)
		return;
	gpu.timer_ns = next_ns;

	/* A time in the past fires at once. All zero disarms the timer. */
	struct itimerspec when = {.it_value = to_timespec(next_ns == INT64_MAX ? 0 : next_ns)};
	if (timerfd_settime(gpu.timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
		message("timerfd: %s", strerror(errno));
}

static void handle_event(const struct epoll_event *event, int applications, int controls)
{
	const enum source source = (enum source)(event->data.u64 >> 56);
	const uint32_t generation = (event->data.u64 >> 32) & 0xffffff;
	const uint32_t index = (uint32_t)event->data.u64;
	uint64_t expirations;

	switch (source) {
	case SOURCE_APPLICATIONS:
		accept_connections(applications, false);
		break;
	case SOURCE_CONTROLS:
		accept_connections(controls, true);
		break;
	case SOURCE_TIMER:
		if (read(gpu.timer, &expirations, sizeof(expirations)) == sizeof(expirations))
			gpu.timer_ns = 0; /* it must be set again */
		break;
	case SOURCE_SIGNAL:
	case SOURCE_PARENT:
		gpu.stop = true;
		break;
	case SOURCE_CONNECTION:
		if ((gpu.connections[index].generation & 0xffffff) != generation)
			break;
		if (gpu.connections[index].paused) /* only a hang-up wakes a paused one */
			close_connection(&gpu.connections[index]);
		else
			read_connection(&gpu.connections[index]);
		break;
	case SOURCE_PROCESS:
		if ((gpu.processes[index].generation & 0xffffff) == generation)
			process_died((int)index);
		break;
	}
}

static int run(int applications, int controls)
{
	struct epoll_event events[EVENTS_PER_TURN];

	while (!gpu.stop) {
		set_timer();
		const int count = epoll_wait(gpu.epoll, events, EVENTS_PER_TURN, -1);
		const int64_t time_ns = now_ns();
		const int64_t due_ns = engine_next_event(gpu.engine);

		if (count < 0 && errno != EINTR) {
			message("epoll_wait: %s", strerror(errno));
			return -errno;
		}
		if (due_ns <= time_ns)
			note_lateness(due_ns, time_ns);
		/* The engine's own events come before the packets that arrived meanwhile. */
		engine_advance(gpu.engine, time_ns);
		if (gpu.log.due_ns <= time_ns)
			spanlog_flush(&gpu.log);
		for (int i = 0; i < count; i++)
			handle_event(&events[i], applications, controls);
	}
	return 0;
}

/* Replaces a socket file that a dead virtual GPU left, but not that of a live one. */
static int listen_at(const char *directory, const char *name, mode_t mode)
{
	struct sockaddr_un address;
	int fd, probe, rc;

	if (unix_address(&address, directory, name) != 0) {
		message("--dir: \"%s\" is too long for a socket in it (%zu bytes at most)", directory,
			sizeof(address.sun_path) - strlen(name) - 2);
		return -ENAMETOOLONG;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || probe < 0) {
		rc = -errno;
	} else if (connect(probe, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN) {
		rc = -EADDRINUSE;
	} else {
		if (errno == ECONNREFUSED)
			unlink(address.sun_path);
		/* umask(2) sets the mode when the file is created; a later chmod(2) would leave a gap. */
		const mode_t old = umask((mode_t)(0777 & ~mode));
		rc = bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 128) != 0 ? -errno : 0;
		umask(old);
	}
	if (probe >= 0)
		close(probe);
	if (rc == 0)
		return fd;
	if (rc == -EADDRINUSE)
		message("%s: a virtual GPU is already listening there", address.sun_path);
	else
		message("%s: %s", address.sun_path, strerror(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Two descriptors per application, one per control connection, and some for this process. */
static void provide_descriptors(void)
{
	struct rlimit limit = {0};
	const rlim_t ours = 32, wanted = 2 * ENGINE_STREAMS_MAX + CONTROLS_MAX + ours;

	gpu.applications_max = ENGINE_STREAMS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted)
		return;
	gpu.applications_max =
		limit.rlim_cur > CONTROLS_MAX + ours + 2 ? (unsigned)((limit.rlim_cur - CONTROLS_MAX - ours) / 2) : 1;
	message("only %u applications can connect: the limit of open files is %ju", gpu.applications_max,
		(uintmax_t)limit.rlim_cur);
}

struct options {
	const char *directory;
	const char *log;
	const char *operations;
	int ready_fd; /* -1: a line on stdout */
	pid_t parent; /* 0: none */
	struct scheduling scheduling;
	bool summary; /* counters on stderr at the end */
};

static const char help[] =
	"Usage: gpuseg-vgpu --dir DIR [option]...\n"
	"A virtual GPU: one execution engine, contexts in turns, enable and disable with a cost.\n\n"
	"  --dir DIR                  runtime directory; " GPUSEG_SIM_SOCKET_NAME " and " GPUSEG_SIM_CONTROL_NAME
	" appear in it\n"
	"  --timeslice DURATION       turn of a context (default 1024us)\n"
	"  --switch-cost DURATION     of a change of the context on the engine (default 200us)\n"
	"  --disable-cost DURATION    from a DISABLE to its effect (default 300us)\n"
	"  --enable-cost DURATION     from an ENABLE to its effect (default 200us)\n"
	"  --log FILE                 write every span of execution (binary gpuseg_sim_span)\n"
	"  --operations FILE          write every change of a context at once (binary gpuseg_sim_operation)\n"
	"  --ready-fd N               write \"ready\" to descriptor N and close it, instead of stdout\n"
	"  --parent PID               exit when this process dies\n"
	"  --scheduling fifo:P|other  scheduling of the GPU's thread, if permitted (default other)\n"
	"  --summary                  print counters and the timer's lateness to stderr at the end\n"
	"  --help                     this text\n"
	"Durations carry a unit: 250us, 1.5ms, 2s.\n";

static void parse_options(int argc, char **argv, struct options *options)
{
	enum {
		DIR_ = 1,
		TIMESLICE,
		SWITCH,
		DISABLE,
		ENABLE,
		LOG,
		OPERATIONS,
		READY,
		PARENT,
		SCHEDULING,
		SUMMARY,
		HELP
	};
	static const struct option known[] = {
		{"dir", required_argument, NULL, DIR_},
		{"timeslice", required_argument, NULL, TIMESLICE},
		{"switch-cost", required_argument, NULL, SWITCH},
		{"disable-cost", required_argument, NULL, DISABLE},
		{"enable-cost", required_argument, NULL, ENABLE},
		{"log", required_argument, NULL, LOG},
		{"operations", required_argument, NULL, OPERATIONS},
		{"ready-fd", required_argument, NULL, READY},
		{"parent", required_argument, NULL, PARENT},
		{"scheduling", required_argument, NULL, SCHEDULING},
		{"summary", no_argument, NULL, SUMMARY},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case DIR_:
			options->directory = optarg;
			break;
		case TIMESLICE:
			gpu.config.timeslice_ns =
				option_duration("--timeslice", optarg, TIMESLICE_MIN_NS, TIMESLICE_MAX_NS);
			break;
		case SWITCH:
			gpu.config.switch_cost_ns = option_duration("--switch-cost", optarg, 0, COST_MAX_NS);
			break;
		case DISABLE:
			gpu.config.disable_cost_ns = option_duration("--disable-cost", optarg, 0, COST_MAX_NS);
			break;
		case ENABLE:
			gpu.config.enable_cost_ns = option_duration("--enable-cost", optarg, 0, COST_MAX_NS);
			break;
		case LOG:
			options->log = optarg;
			break;
		case OPERATIONS:
			options->operations = optarg;
			break;
		case READY:
			options->ready_fd = (int)option_integer("--ready-fd", optarg, 0, INT32_MAX);
			break;
		case PARENT:
			options->parent = (pid_t)option_integer("--parent", optarg, 1, INT32_MAX);
			break;
		case SCHEDULING:
			options->scheduling = option_scheduling("--scheduling", optarg);
			break;
		case SUMMARY:
			options->summary = true;
			break;
		case HELP:
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("unexpected argument \"%s\"; see --help", argv[optind]);
	if (!options->directory)
		usage_error("--dir is missing; give the runtime directory, like --dir /dev/shm/gpuseg");
}

static int announce(int ready_fd)
{
	static const char ready[] = "ready\n";
	const int fd = ready_fd >= 0 ? ready_fd : STDOUT_FILENO;

	if (write(fd, ready, sizeof(ready) - 1) != (ssize_t)(sizeof(ready) - 1)) {
		message("--ready-fd %d: %s", fd, strerror(errno));
		return -errno;
	}
	if (ready_fd >= 0)
		close(ready_fd);
	return 0;
}

static int watch_parent(pid_t parent)
{
	const int fd = pidfd_of(parent);

	if (fd < 0) {
		message("--parent %d: %s", parent, strerror(-fd));
		return fd;
	}
	return watch(fd, EPOLLIN, tag(SOURCE_PARENT, 0, 0));
}

static void print_summary(void)
{
	const struct engine_counters *counters = engine_counters(gpu.engine);

	message("%" PRIu64 " kernels, %" PRIu64 " switches, %" PRIu64 " preemptions, %" PRIu64 " operations, %" PRIu64
		" connections dropped, ran while disabled %" PRIu64 "; late %" PRIu64 " times, mean %" PRId64
		" ns, max %" PRId64 " ns",
		counters->kernels_completed, counters->switches, counters->preemptions, counters->operations,
		gpu.dropped_connections, gpu.audit.ran_while_disabled, gpu.late_count,
		gpu.late_count ? gpu.late_sum_ns / (int64_t)gpu.late_count : 0, gpu.late_max_ns);
}

int main(int argc, char **argv)
{
	static const struct engine_sink sink = {
		.span = on_span,
		.completed = on_completed,
		.operated = on_operated,
		.unknown_pid = on_unknown_pid,
		.dropped = on_dropped,
	};
	struct options options = {.ready_fd = -1};
	int applications, controls, signals, rc;
	sigset_t stop_signals;

	program_name = "gpuseg-vgpu";
	gpu.config = (struct engine_config){1024 * NS_PER_US, 200 * NS_PER_US, 300 * NS_PER_US, 200 * NS_PER_US};
	parse_options(argc, argv, &options);

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		gpu.connections[i] = (struct connection){.fd = -1, .context = NO_CONTEXT};
	for (int i = 0; i < ENGINE_CONTEXTS_MAX; i++)
		gpu.processes[i].pidfd = -1;
	provide_descriptors();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&stop_signals);
	sigaddset(&stop_signals, SIGTERM);
	sigaddset(&stop_signals, SIGINT);
	sigprocmask(SIG_BLOCK, &stop_signals, NULL);

	gpu.engine = engine_create(&gpu.config, &sink);
	gpu.epoll = epoll_create1(EPOLL_CLOEXEC);
	gpu.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	gpu.timer_ns = INT64_MAX;
	signals = signalfd(-1, &stop_signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!gpu.engine || gpu.epoll < 0 || gpu.timer < 0 || signals < 0 ||
	    watch(gpu.timer, EPOLLIN, tag(SOURCE_TIMER, 0, 0)) || watch(signals, EPOLLIN, tag(SOURCE_SIGNAL, 0, 0))) {
		message("start: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (options.parent && watch_parent(options.parent) != 0)
		return EXIT_FAILURE;
	rc = spanlog_open(&gpu.log, options.log);
	if (rc != 0) {
		message("--log: \"%s\": %s", options.log, strerror(-rc));
		return EXIT_FAILURE;
	}
	gpu.operations = -1;
	if (options.operations) {
		gpu.operations = open(options.operations, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (gpu.operations < 0) {
			message("--operations: \"%s\": %s", options.operations, strerror(errno));
			return EXIT_FAILURE;
		}
	}
	if (mkdir(options.directory, 0755) != 0 && errno != EEXIST) {
		message("--dir: \"%s\": %s", options.directory, strerror(errno));
		return EXIT_FAILURE;
	}
	controls = listen_at(options.directory, GPUSEG_SIM_CONTROL_NAME, 0600);
	if (controls < 0)
		return EXIT_FAILURE;
	applications = listen_at(options.directory, GPUSEG_SIM_SOCKET_NAME, 0666);
	if (applications < 0)
		return EXIT_FAILURE;
	if (watch(applications, EPOLLIN, tag(SOURCE_APPLICATIONS, 0, 0)) ||
	    watch(controls, EPOLLIN, tag(SOURCE_CONTROLS, 0, 0))) {
		message("epoll: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (options.scheduling.fifo) {
		rc = apply_scheduling(options.scheduling);
		if (rc != 0)
			message("--scheduling fifo:%d: %s; going on as other", options.scheduling.priority,
				strerror(-rc));
		rc = lock_memory();
		if (rc != 0)
			message("memory is not locked: %s", strerror(-rc));
	}
	if (announce(options.ready_fd) != 0)
		return EXIT_FAILURE;

	rc = run(applications, controls);

	struct sockaddr_un address;
	if (unix_address(&address, options.directory, GPUSEG_SIM_SOCKET_NAME) == 0)
		unlink(address.sun_path);
	if (unix_address(&address, options.directory, GPUSEG_SIM_CONTROL_NAME) == 0)
		unlink(address.sun_path);
	engine_stop(gpu.engine, now_ns());
	if (spanlog_close(&gpu.log) != 0 && rc == 0)
		rc = gpu.log.error;
	if (options.summary)
		print_summary();
	engine_destroy(gpu.engine);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
