/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "rm/gpuseg_rm.h"

#define CALL_LIMIT_NS (3 * NS_PER_S)	/* a call takes 1 ms, and 110 ms beside many that start */
#define ATTACH_LIMIT_NS (15 * NS_PER_S) /* thousands of calls */
#define END_LIMIT_NS (2 * NS_PER_S)
#define HOLDER_SLICE_US 3000
#define BEAT_NS (5 * NS_PER_MS)

volatile int stopping;

static pid_t helper;
static int channel = -1;

/* ---- in the helper ---- */

static struct {
	struct gpuseg_rm_process process;
	bool attached;
	unsigned disabled;		 /* the driver counts */
	struct gpuseg_rm_timeslices own; /* noted at the attach; count 0: the driver did not tell */
	int64_t own_status;
} children[CHILDREN];

bool is_child_of(pid_t pid, pid_t parent)
{
	char path[64], line[512], state;
	int of;
	FILE *file;
	const char *name_end;
	size_t n;

	if (pid <= 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	name_end = strrchr(line, ')');
	return name_end && sscanf(name_end, ") %c %d", &state, &of) == 2 && of == parent;
}

static int64_t switch_child(int child, int disable)
{
	struct gpuseg_rm_process *one[] = {&children[child].process};
	int64_t status;

	if (!children[child].attached)
		return -ENODEV;
	if (disable)
		children[child].disabled++; /* before the call: nobody knows whether one that fails has an effect */
	status = gpuseg_rm_switch_processes(one, 1, disable, 1);
	if (status == 0 && !disable && children[child].disabled > 0)
		children[child].disabled--;
	return status;
}

static int64_t set_slice(const struct gpuseg_rm_process *p, uint64_t us)
{
	int64_t status = -ENODEV;

	for (uint32_t t = 0; t < p->tsg_count; t++) {
		const struct gpuseg_rm_tsg *tsg = &p->tsgs[t];

		if (tsg->engine == GPUSEG_RM_ENGINE_GR0)
			status = gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle, GPUSEG_RM_SET_TIMESLICE, &us,
						   sizeof(us));
		if (status > 0)
			return status;
	}
	return status;
}

static int64_t get_slice(const struct gpuseg_rm_process *p, uint64_t *us)
{
	for (uint32_t t = 0; t < p->tsg_count; t++)
		if (p->tsgs[t].engine == GPUSEG_RM_ENGINE_GR0)
			return gpuseg_rm_control(p->tsgs[t].fd, p->tsgs[t].client, p->tsgs[t].handle,
						 GPUSEG_RM_GET_TIMESLICE, us, sizeof(*us));
	return -ENODEV;
}

static int64_t restore_slices(int child)
{
	int64_t result = 0;

	for (uint32_t i = 0; i < children[child].own.count; i++) {
		const struct gpuseg_rm_own_timeslice *own = &children[child].own.tsgs[i];
		uint64_t us = own->own_us;

		for (uint32_t t = 0; t < children[child].process.tsg_count; t++) {
			const struct gpuseg_rm_tsg *tsg = &children[child].process.tsgs[t];

			if (tsg->client == own->client && tsg->handle == own->tsg && result == 0)
				result = gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle, GPUSEG_RM_SET_TIMESLICE,
							   &us, sizeof(us));
		}
	}
	return result;
}

static int64_t give_back(void)
{
	int64_t result = 0;

	for (int c = 0; c < CHILDREN; c++) {
		int64_t status = 0;

		if (!children[c].attached)
			continue;
		/* one more than was counted: a helper before this one may have been in a call */
		for (unsigned n = children[c].disabled + 1; n > 0; n--)
			status = switch_child(c, 0);
		if (status != 0 && result == 0)
			result = status;
		status = restore_slices(c);
		if (status != 0 && result == 0)
			result = status;
	}
	return result;
}

static void attach(const struct order *order, pid_t parent, struct answer *answer)
{
	struct gpuseg_rm_process *p = &children[order->child].process;

	if (!is_child_of(order->pid, parent)) {
		answer->status = -ECHILD;
		return;
	}
	if (children[order->child].attached)
		gpuseg_rm_detach(p);
	children[order->child].attached = false;
	children[order->child].disabled = 0;
	children[order->child].own.count = 0;
	answer->status = gpuseg_rm_attach(p, order->pid);
	if (answer->status != 0)
		return;
	children[order->child].attached = true;
	answer->descriptors = p->fd_count;
	answer->controls = p->controls;
	answer->gpu_id = UINT32_MAX;
	for (uint32_t t = 0; t < p->tsg_count; t++) {
		if (p->tsgs[t].engine != GPUSEG_RM_ENGINE_GR0)
			continue;
		answer->groups++;
		answer->channels += p->tsgs[t].channels;
		answer->gpu_id = gpuseg_rm_gpu_id(p, &p->tsgs[t]);
	}
	children[order->child].own_status = gpuseg_rm_note_timeslices(p, &children[order->child].own);
	if (children[order->child].own_status != 0)
		children[order->child].own.count = 0;
	/* those before the helper that hung had changed them */
	for (uint32_t i = 0; order->argument && i < children[order->child].own.count; i++)
		children[order->child].own.tsgs[i].own_us = (uint32_t)order->argument;
	answer->value = children[order->child].own.count ? children[order->child].own.tsgs[0].own_us : 0;
}

/* Nothing is changed that cannot be given back. */
static int64_t slice(int child, uint64_t us)
{
	if (!children[child].attached)
		return -ENODEV;
	return children[child].own_status != 0 ? children[child].own_status : set_slice(&children[child].process, us);
}

/* ---- a stand-in for a daemon ---- */

static void *map_file(const char *directory, const char *name, size_t size)
{
	char path[128];
	int fd;
	void *map;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static void note(struct gpuseg_held_entry *entry, const struct gpuseg_rm_process *p, const void *payload, size_t size,
		 uint32_t state)
{
	entry->mechanism = GPUSEG_MECHANISM_NVIDIA;
	entry->pid = p->pid;
	entry->pid_start_ticks = process_start_ticks(p->pid);
	entry->since_ns = now_ns();
	memcpy(entry->payload, payload, size);
	entry->payload_size = (uint32_t)size;
	__atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

/* Notes and changes the child as a daemon does, then says so in the status page and beats until it is killed. */
__attribute__((noreturn)) static void hold(int child, const char *directory)
{
	const struct gpuseg_rm_process *p = &children[child].process;
	struct gpuseg_status *status = map_file(directory, GPUSEG_STATUS_NAME, sizeof(*status));
	struct gpuseg_held *held = map_file(directory, GPUSEG_HELD_NAME,
					    sizeof(*held) + GPUSEG_HELD_MAX * sizeof(struct gpuseg_held_entry));
	struct gpuseg_held_entry *entries = (struct gpuseg_held_entry *)(held + 1);
	struct gpuseg_rm_timeslices slices;
	struct gpuseg_rm_held channels;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!status || !held || gpuseg_rm_note_timeslices(p, &slices) != 0 || gpuseg_rm_note(p, &channels) != 0)
		_exit(EXIT_FAILURE);
	held->magic = GPUSEG_HELD_MAGIC;
	held->entry_size = sizeof(*entries);
	held->entry_count = GPUSEG_HELD_MAX;
	__atomic_store_n(&held->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
	status->magic = GPUSEG_STATUS_MAGIC;
	status->daemon_pid = getpid();
	status->daemon_start_ticks = process_start_ticks(getpid());
	status->heartbeat_ns = now_ns();
	__atomic_store_n(&status->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
	note(&entries[0], p, &slices, sizeof(slices), GPUSEG_HELD_TIMESLICE);
	if (set_slice(p, HOLDER_SLICE_US) != 0)
		_exit(EXIT_FAILURE);
	note(&entries[1], p, &channels, sizeof(channels), GPUSEG_HELD_DISABLED);
	if (switch_child(child, 1) != 0)
		_exit(EXIT_FAILURE);
	status->reserved[0] = 1; /* all is done; the parent waits for it */
	for (;;) {
		__atomic_store_n(&status->heartbeat_ns, now_ns(), __ATOMIC_RELEASE);
		sleep_until(now_ns() + BEAT_NS, NULL);
	}
}

static void obey(const struct order *order, pid_t parent, struct answer *answer)
{
	const int64_t from_ns = now_ns();

	*answer = (struct answer){.number = order->number};
	switch (order->code) {
	case ORDER_ATTACH:
		attach(order, parent, answer);
		break;
	case ORDER_DETACH:
		if (children[order->child].attached)
			gpuseg_rm_detach(&children[order->child].process);
		children[order->child].attached = false;
		break;
	case ORDER_SWITCH:
		answer->status = switch_child(order->child, order->argument != 0);
		break;
	case ORDER_SLICE:
		answer->status = slice(order->child, order->argument);
		break;
	case ORDER_GET_SLICE:
		answer->status = children[order->child].attached
					 ? get_slice(&children[order->child].process, &answer->value)
					 : -ENODEV;
		break;
	case ORDER_HOLD: {
		const pid_t holder = children[order->child].attached ? fork() : -1;

		if (holder == 0)
			hold(order->child, order->directory);
		answer->status = holder < 0 ? -ENODEV : 0;
		answer->value = (uint64_t)holder;
		break;
	}
	case ORDER_GIVE_BACK:
		answer->status = give_back();
		break;
	}
	answer->took_ns = now_ns() - from_ns;
}

__attribute__((noreturn)) static void helper_main(int fd, pid_t parent)
{
	struct order order;
	struct answer answer;

	/* Ctrl-C goes to all processes of the terminal. This one ends when the parent has. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	while (recv(fd, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		waitpid(-1, NULL, WNOHANG); /* a holder */
		obey(&order, parent, &answer);
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer))
			break;
	}
	_exit(give_back() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the parent ---- */

int helper_start(void)
{
	const pid_t parent = getpid();
	int pair[2];

	if (channel >= 0)
		close(channel);
	channel = -1;
	if (helper > 0)
		kill(helper, SIGKILL); /* it ends when its call returns */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	helper = fork();
	if (helper < 0) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	if (helper == 0) {
		close(pair[0]);
		memset(children, 0, sizeof(children));
		helper_main(pair[1], parent);
	}
	close(pair[1]);
	channel = pair[0];
	return 0;
}

int helper_call(const struct order *asked, struct answer *answer)
{
	static uint32_t number;
	struct order order[1] = {*asked};
	const bool last = order->code == ORDER_GIVE_BACK;
	const int64_t limit_ns = now_ns() + (order->code == ORDER_ATTACH ? ATTACH_LIMIT_NS : CALL_LIMIT_NS);

	order->number = ++number;
	*answer = (struct answer){0};
	if (channel < 0 || send(channel, order, sizeof(*order), MSG_NOSIGNAL) != (ssize_t)sizeof(*order))
		return -EPIPE;
	for (;;) {
		struct pollfd ready = {.fd = channel, .events = POLLIN};
		const int64_t left_ns = limit_ns - now_ns();

		if (stopping && !last)
			return -EINTR;
		if (left_ns <= 0)
			return -ETIMEDOUT;
		if (poll(&ready, 1, 20) <= 0)
			continue;
		if (recv(channel, answer, sizeof(*answer), 0) != (ssize_t)sizeof(*answer))
			return -EPIPE;
		if (answer->number == number) /* not that of a call that nobody waited for */
			return 0;
	}
}

void helper_stop(void)
{
	const int64_t limit_ns = now_ns() + END_LIMIT_NS;

	if (channel >= 0)
		close(channel);
	channel = -1;
	while (helper > 0 && now_ns() < limit_ns) {
		if (waitpid(helper, NULL, WNOHANG) != 0)
			helper = 0;
		else
			sleep_until(now_ns() + 2 * NS_PER_MS, NULL);
	}
	if (helper > 0)
		kill(helper, SIGKILL); /* in a call that does not return; it ends when that does */
	helper = 0;
}
