/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

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

#define CALL_LIMIT_NS (3 * NS_PER_S)	/* a call takes 1 ms, and 110 ms beside many that start */
#define ATTACH_LIMIT_NS (15 * NS_PER_S) /* thousands of calls */
#define ORDER_LIMIT_NS (90 * NS_PER_S)	/* as long as the helper goes on: the processors may be busy */
#define END_LIMIT_NS (2 * NS_PER_S)
#define BEAT_NS (5 * NS_PER_MS)

volatile int stopping;

static pid_t helper;
static int channel = -1;

/* ---- in the helper ---- */

static struct {
	bool attached;
	unsigned disabled; /* the driver may count */
} children[CHILDREN];

static int64_t switch_child(int child, bool disable, struct answer *answer)
{
	int64_t status;

	if (!children[child].attached)
		return -ENODEV;
	if (disable)
		children[child].disabled++; /* before the call: nobody knows whether one that fails has an effect */
	status = driver->switch_child(child, disable, answer);
	if (status == 0 && !disable && children[child].disabled > 0)
		children[child].disabled--;
	return status;
}

static int64_t give_back(void)
{
	struct answer unused;
	int64_t result = 0;

	for (int c = 0; c < CHILDREN; c++) {
		int64_t status = 0;

		if (!children[c].attached)
			continue;
		/* one more than was counted: a helper before this one may have been in a call */
		for (unsigned n = children[c].disabled + 1; n > 0; n--)
			status = switch_child(c, false, &unused);
		if (status != 0 && result == 0)
			result = status;
		status = driver->long_us ? driver->restore_slices(c) : 0;
		if (status != 0 && result == 0)
			result = status;
	}
	return result;
}

static void attach(const struct order *order, pid_t parent, struct answer *answer)
{
	if (!is_child_of(order->pid, parent)) {
		answer->status = -ECHILD;
		return;
	}
	if (children[order->child].attached)
		driver->detach(order->child);
	children[order->child].disabled = 0;
	driver->attach(order->child, order, answer);
	children[order->child].attached = answer->status == 0;
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

void note_held(struct gpuseg_held_entry *entry, pid_t pid, const void *payload, size_t size, uint32_t state)
{
	entry->mechanism = driver->number;
	entry->pid = pid;
	entry->pid_start_ticks = process_start_ticks(pid);
	entry->since_ns = now_ns();
	memcpy(entry->payload, payload, size);
	entry->payload_size = (uint32_t)size;
	__atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

/* Notes and changes the child as a daemon does, then says so in the status page and beats until it is killed. */
__attribute__((noreturn)) static void hold(int child, const char *directory)
{
	struct gpuseg_status *status = map_file(directory, GPUSEG_STATUS_NAME, sizeof(*status));
	struct gpuseg_held *held = map_file(directory, GPUSEG_HELD_NAME,
					    sizeof(*held) + GPUSEG_HELD_MAX * sizeof(struct gpuseg_held_entry));
	struct gpuseg_held_entry *entries = (struct gpuseg_held_entry *)(held + 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!status || !held)
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
	if (driver->hold(child, entries) != 0)
		_exit(EXIT_FAILURE);
	status->reserved[0] = 1; /* all is done; the parent waits for it */
	for (;;) {
		__atomic_store_n(&status->heartbeat_ns, now_ns(), __ATOMIC_RELEASE);
		if (driver->beat)
			driver->beat();
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
			driver->detach(order->child);
		children[order->child].attached = false;
		break;
	case ORDER_SWITCH:
		answer->status = switch_child(order->child, order->argument != 0, answer);
		break;
	case ORDER_SLICE:
		answer->status =
			children[order->child].attached ? driver->set_slice(order->child, order->argument) : -ENODEV;
		break;
	case ORDER_GET_SLICE:
		answer->status =
			children[order->child].attached ? driver->get_slice(order->child, &answer->value) : -ENODEV;
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
	const int64_t from_ns = now_ns();
	int64_t limit_ns = from_ns + (order->code == ORDER_ATTACH ? ATTACH_LIMIT_NS : CALL_LIMIT_NS);
	uint64_t ran_ns = 0;

	order->number = ++number;
	*answer = (struct answer){0};
	if (channel < 0 || send(channel, order, sizeof(*order), MSG_NOSIGNAL) != (ssize_t)sizeof(*order))
		return -EPIPE;
	for (;;) {
		struct pollfd ready = {.fd = channel, .events = POLLIN};
		const int64_t time_ns = now_ns();

		if (stopping && !last)
			return -EINTR;
		if (process_advances(helper, &ran_ns) && limit_ns < time_ns + CALL_LIMIT_NS)
			limit_ns = time_ns + CALL_LIMIT_NS;
		if (time_ns >= limit_ns || time_ns >= from_ns + ORDER_LIMIT_NS)
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
