/* SPDX-License-Identifier: Apache-2.0 */
/* nvgpu: TSGs through duplicates of the children's descriptors (tegra/gpuseg_tegra.h), all of one child in turn. */
#define _GNU_SOURCE
#include "driver.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "common/device_file.h"
#include "tegra/gpuseg_tegra.h"

#define TSGS_LISTED_MAX 4096

static struct {
	pid_t pid;
	uint32_t count;
	int fds[GPUSEG_TEGRA_TSGS_MAX];
	uint32_t own_us[GPUSEG_TEGRA_TSGS_MAX]; /* 0: the driver did not tell */
	struct gpuseg_tegra_held held;
} children[CHILDREN];

static int command(int fd, unsigned long number, void *argument)
{
	return ioctl(fd, number, argument) == 0 ? 0 : -errno;
}

/* How many TSGs the scheduler device lists for the process, or -errno. That is how a daemon finds processes. */
static int listed(pid_t pid)
{
	static uint8_t bits[TSGS_LISTED_MAX / 8];
	struct gpuseg_tegra_get_tsgs get = {.size = sizeof(bits), .buffer = (uintptr_t)bits};
	const int fd = open(GPUSEG_TEGRA_SCHED_DEVICE, O_RDWR | O_CLOEXEC);
	int count = fd < 0 ? -errno : command(fd, GPUSEG_TEGRA_GET_TSGS, &get);

	for (uint32_t i = 0; count >= 0 && i < 8 * get.size && i < TSGS_LISTED_MAX; i++) {
		struct gpuseg_tegra_params params = {.tsgid = i};

		if ((bits[i / 8] >> i % 8 & 1) && command(fd, GPUSEG_TEGRA_GET_PARAMS, &params) == 0)
			count += params.pid == (uint64_t)pid;
	}
	if (fd >= 0)
		close(fd);
	return count;
}

/* Once each, as far as there is room. */
static void add_name(char *names, size_t size, const char *name)
{
	const size_t used = strlen(names), length = strlen(name);

	if (strstr(names, name) || used + length + 2 > size)
		return;
	if (used)
		names[used] = ' ';
	memcpy(names + used + (used > 0), name, length + 1);
}

static void detach(int child)
{
	for (uint32_t i = 0; i < children[child].count; i++)
		close(children[child].fds[i]);
	children[child].count = 0;
}

static void attach(int child, const struct order *order, struct answer *answer)
{
	const int pidfd = pidfd_of(order->pid);
	char path[64], seen[104] = "";
	struct dirent *entry;
	int rc = 0;
	DIR *dir;

	children[child].pid = order->pid;
	children[child].count = 0;
	children[child].held = (struct gpuseg_tegra_held){.version = GPUSEG_TEGRA_HELD_VERSION};
	snprintf(path, sizeof(path), "/proc/%d/fd", order->pid);
	dir = opendir(path);
	while (pidfd >= 0 && dir && (entry = readdir(dir)) && children[child].count < GPUSEG_TEGRA_TSGS_MAX) {
		const int remote = atoi(entry->d_name), fd = gpuseg_tegra_duplicate(order->pid, pidfd, remote);
		const uint32_t n = children[child].count;
		char link[320], target[128];
		ssize_t length;

		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		if (strncmp(target, "/dev/nv", 7) == 0)
			add_name(seen, sizeof(seen), target);
		if (fd == -EPERM || fd == -EACCES)
			rc = fd;
		if (fd < 0)
			continue;
		children[child].fds[n] = fd;
		children[child].held.fds[n] = remote;
		children[child].held.count = ++children[child].count;
	}
	if (dir)
		closedir(dir);
	if (pidfd >= 0)
		close(pidfd);
	answer->listed = listed(order->pid);
	if (children[child].count == 0) {
		answer->status = rc ? rc : -ENOENT;
		snprintf(answer->how, sizeof(answer->how), "no descriptor of a TSG; those of the driver: %s",
			 seen[0] ? seen : "none");
		return;
	}
	for (uint32_t i = 0; i < children[child].count; i++) {
		struct gpuseg_tegra_timeslice slice = {0};

		if (command(children[child].fds[i], GPUSEG_TEGRA_GET_TIMESLICE, &slice) != 0)
			slice.timeslice_us = 0;
		/* those before the helper that hung had changed them */
		children[child].own_us[i] = order->argument ? (uint32_t)order->argument : slice.timeslice_us;
	}
	answer->value = children[child].own_us[0];
	snprintf(answer->found, sizeof(answer->found), "%u TSG%s", children[child].count,
		 children[child].count == 1 ? "" : "s");
	snprintf(answer->how, sizeof(answer->how), "descriptors: %s", seen);
}

static int64_t switch_child(int child, bool disable, struct answer *answer)
{
	int rc = 0;

	for (uint32_t i = 0; i < children[child].count && (rc == 0 || !disable); i++) {
		int one = command(children[child].fds[i], disable ? GPUSEG_TEGRA_DISABLE : GPUSEG_TEGRA_ENABLE, NULL);

		if (one == 0 && disable) {
			const int64_t from_ns = now_ns();

			one = command(children[child].fds[i], GPUSEG_TEGRA_PREEMPT, NULL);
			answer->preempt_ns += now_ns() - from_ns;
			answer->preempt_failed = one != 0;
		}
		rc = rc ? rc : one;
	}
	return rc;
}

static int64_t set_slice(int child, uint64_t us)
{
	int rc = -ENODEV;

	for (uint32_t i = 0; i < children[child].count && (i == 0 || rc == 0); i++) {
		/* the own slice of the first one stands for that of each */
		struct gpuseg_tegra_timeslice slice = {
			.timeslice_us = us == children[child].own_us[0] ? children[child].own_us[i] : (uint32_t)us};

		/* nothing is changed that cannot be given back */
		rc = children[child].own_us[i] == 0
			     ? -ENODATA
			     : command(children[child].fds[i], GPUSEG_TEGRA_SET_TIMESLICE, &slice);
	}
	return rc;
}

static int64_t get_slice(int child, uint64_t *us)
{
	struct gpuseg_tegra_timeslice slice = {0};
	const int rc =
		children[child].count ? command(children[child].fds[0], GPUSEG_TEGRA_GET_TIMESLICE, &slice) : -ENODEV;

	*us = slice.timeslice_us;
	return rc;
}

static int64_t restore_slices(int child)
{
	return children[child].own_us[0] ? set_slice(child, children[child].own_us[0]) : 0;
}

static int64_t hold(int child, struct gpuseg_held_entry *entries)
{
	const struct gpuseg_tegra_held *held = &children[child].held;
	struct answer unused = {0};

	note_held(&entries[0], children[child].pid, held,
		  offsetof(struct gpuseg_tegra_held, fds) + held->count * sizeof(held->fds[0]), GPUSEG_HELD_DISABLED);
	return switch_child(child, true, &unused);
}

/* "# R36 (release), REVISION: 4.3, ..." is R36.4.3; without that file it is the kernel's. */
static int read_machine(struct machine *m, char *why, size_t size)
{
	char text[256], revision[16];
	int release;

	(void)why, (void)size;
	machine_text(machine_path("/etc/nv_tegra_release"), text, sizeof(text));
	machine_line(text, "REVISION:", revision, sizeof(revision));
	revision[strspn(revision, "0123456789.")] = 0;
	if (sscanf(text, "# R%d", &release) == 1 && isdigit((unsigned char)revision[0]))
		snprintf(m->driver, sizeof(m->driver), "R%d.%s", release, revision);
	else
		snprintf(m->driver, sizeof(m->driver), "%s", m->kernel);
	strcpy(m->flavour, "nvgpu");
	snprintf(m->known_as, sizeof(m->known_as), "%s", m->board);
	m->gpus = 1;
	return 0;
}

const struct driver driver_tegra = {
	.mechanism = "tegra",
	.number = GPUSEG_MECHANISM_TEGRA,
	.found = "their TSGs are found",
	.lists = true,
	.counts = true,
	.long_us = 8000,
	.short_us = 1000, /* nvgpu's range is 1 to 50 ms */
	.whole_us = 50000,
	.lower_level = "launch",
	.lower_sentence = "Launches can be held, no more: use gpuseg exec and mechanism launch.",
	.machine = read_machine,
	.attach = attach,
	.detach = detach,
	.switch_child = switch_child,
	.set_slice = set_slice,
	.get_slice = get_slice,
	.restore_slices = restore_slices,
	.hold = hold,
};
