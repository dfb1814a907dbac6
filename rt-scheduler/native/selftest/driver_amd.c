/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KFD: the compute queues of a child, by the first interface that a daemon would use (amd/gpuseg_amd.h): a hold of
 * /dev/gpuseg-kfd, or an order to the agent of libgpuseg-preload.so in the child. Both end by themselves, here after
 * HOLD_MS.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "amd/agent_page.h"
#include "amd/gpuseg_amd.h"
#include "common/base.h"
#include "gpuseg_kfd.h"

#define KFD "/sys/class/kfd/kfd"
#define PARAMETERS "/sys/module/amdgpu/parameters"
#define HOLD_MS 10000
#define DAEMON_MS 100 /* of the process that stands for a daemon */
#define ANSWER_NS (2 * NS_PER_S)
#define SLOT 0
#define DAEMON_SLOT 1
#define GFX_MAJOR 10000
#define MES_SINCE 11
#define POLICY_NO_HWS 2

struct gpu {
	uint32_t gpu_id;
	int gfx; /* 90402 is gfx9.4.2 */
};

static struct {
	pid_t pid;
	uint64_t start_ticks;
	uint32_t gpu_id;
	struct gpuseg_kfd_agent *page; /* NULL: by /dev/gpuseg-kfd */
} children[CHILDREN];

static int device = -1; /* /dev/gpuseg-kfd */
static struct gpuseg_kfd_agent *beaten;

static long number_in(const char *path, long otherwise)
{
	char text[32], *end;
	long n;

	machine_text(machine_path(path), text, sizeof(text));
	n = strtol(text, &end, 10);
	return end == text ? otherwise : n;
}

/* The first GPU of the topology, which is HIP's device 0. Returns how many there are. */
static int read_gpus(struct gpu *first)
{
	int count = 0;

	*first = (struct gpu){0};
	for (int node = 0;; node++) {
		char path[96], text[4096], value[32];
		long id;

		snprintf(path, sizeof(path), KFD "/topology/nodes/%d/gpu_id", node);
		if (!machine_has(path))
			return count;
		id = number_in(path, 0);
		if (id == 0 || count++ > 0) /* 0: a processor */
			continue;
		snprintf(path, sizeof(path), KFD "/topology/nodes/%d/properties", node);
		machine_text(machine_path(path), text, sizeof(text));
		machine_line(text, "gfx_target_version", value, sizeof(value));
		*first = (struct gpu){(uint32_t)id, atoi(value)};
	}
}

static const char *mode_of(int gfx)
{
	return number_in(PARAMETERS "/sched_policy", 0) == POLICY_NO_HWS ? "no-hws"
	       : gfx / GFX_MAJOR >= MES_SINCE				 ? "mes"
									 : "hws";
}

/* Compute queues that KFD lists for the process; 0 also where it does not list it. */
static int listed(pid_t pid)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), KFD "/proc/%d/queues", pid);
	dir = opendir(machine_path(path));
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), KFD "/proc/%d/queues/%.20s/type", pid, entry->d_name);
		count += entry->d_name[0] != '.' && number_in(path, 1) == 0;
	}
	if (dir)
		closedir(dir);
	return count;
}

/* "" if the device can be used, else why not. Opens it. */
static void open_device(uint32_t gpu_id, char *why, size_t size)
{
	struct gpuseg_kfd_watchdog watchdog = {.period_ms = HOLD_MS};
	struct gpuseg_kfd_info info = {0};
	bool holds = false;

	why[0] = 0;
	if (device < 0)
		device = open(GPUSEG_AMD_HOLD_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0) {
		snprintf(why, size, GPUSEG_AMD_HOLD_DEVICE ": %s", strerror(errno));
		return;
	}
	if (ioctl(device, GPUSEG_KFD_IOC_INFO, &info) != 0 || info.abi != GPUSEG_KFD_ABI)
		snprintf(why, size, GPUSEG_AMD_HOLD_DEVICE ": ABI %u, not %d", info.abi, GPUSEG_KFD_ABI);
	for (uint32_t i = 0; !why[0] && i < info.n_gpus; i++) {
		struct gpuseg_kfd_gpu gpu = {.index = i};

		holds = holds || (ioctl(device, GPUSEG_KFD_IOC_GPU, &gpu) == 0 && gpu.gpu_id == gpu_id &&
				  gpu.preemption != GPUSEG_KFD_PREEMPT_NONE);
	}
	if (!why[0] && !holds)
		snprintf(why, size, GPUSEG_AMD_HOLD_DEVICE " refuses to hold on this GPU");
	if (!why[0] && ioctl(device, GPUSEG_KFD_IOC_WATCHDOG, &watchdog) != 0)
		snprintf(why, size, GPUSEG_AMD_HOLD_DEVICE ": watchdog: %s", strerror(errno));
	if (why[0]) {
		close(device);
		device = -1;
	}
}

static void detach(int child)
{
	if (children[child].page)
		agent_page_close(children[child].page);
	children[child].page = NULL;
}

static void attach(int child, const struct order *order, struct answer *answer)
{
	struct gpu gpu;
	int pidfd;

	read_gpus(&gpu);
	children[child].pid = order->pid;
	children[child].start_ticks = process_start_ticks(order->pid);
	children[child].gpu_id = gpu.gpu_id;
	children[child].page = NULL;
	answer->listed = listed(order->pid);
	open_device(gpu.gpu_id, answer->missing, sizeof(answer->missing));
	if (answer->missing[0]) {
		pidfd = pidfd_of(order->pid);
		answer->status = pidfd < 0 ? pidfd : agent_page_open(order->pid, pidfd, &children[child].page);
		if (pidfd >= 0)
			close(pidfd);
		snprintf(answer->how, sizeof(answer->how), "%s",
			 answer->status == -ENOENT ? "no agent: is libgpuseg-preload.so beside gpuseg-selftest?" : "");
	}
	if (answer->status != 0)
		return;
	if (children[child].page)
		snprintf(answer->found, sizeof(answer->found), "%u queues known to the agent",
			 children[child].page->known);
	else
		snprintf(answer->found, sizeof(answer->found), "%d compute queues", answer->listed);
	snprintf(answer->interface, sizeof(answer->interface), "%s, %s, %.40s", children[child].page ? "agent" : "kfd",
		 mode_of(gpu.gfx), report.machine.known_as);
	snprintf(answer->how, sizeof(answer->how), "%s",
		 children[child].page ? "UPDATE_QUEUE by the child itself" : "holds of " GPUSEG_AMD_HOLD_DEVICE);
}

static int hold_by_device(int child, bool disable)
{
	struct gpuseg_kfd_entry entry = {.pid = children[child].pid,
					 .op = disable ? GPUSEG_KFD_HOLD : GPUSEG_KFD_RELEASE_PROCESS,
					 .start_ticks = children[child].start_ticks,
					 .queue_id = GPUSEG_KFD_ALL_QUEUES,
					 .flags = disable ? GPUSEG_KFD_COMPUTE_ONLY : 0};
	struct gpuseg_kfd_apply apply = {.entries = (uintptr_t)&entry, .n_entries = 1};

	if (ioctl(device, GPUSEG_KFD_IOC_APPLY, &apply) != 0)
		return -errno;
	return !disable && entry.result == -ENOENT ? 0 : entry.result;
}

static int order_agent(int child, unsigned number, bool disable, uint32_t period_ms)
{
	struct gpuseg_kfd_agent_slot *slot = &children[child].page->slots[number];
	int rc;

	slot->owner = getpid();
	slot->owner_ticks = process_start_ticks(getpid());
	slot->gpu_id = children[child].gpu_id;
	slot->flags = 0;
	slot->period_ms = period_ms;
	__atomic_add_fetch(&slot->beat, 1, __ATOMIC_RELEASE);
	rc = agent_page_wait(children[child].page, number, agent_page_order(children[child].page, number, disable),
			     now_ns() + ANSWER_NS);
	return rc == 0 && disable && slot->held == 0 ? -ENOENT : rc;
}

static int64_t switch_child(int child, bool disable, struct answer *answer)
{
	(void)answer;
	return children[child].page ? order_agent(child, SLOT, disable, HOLD_MS) : hold_by_device(child, disable);
}

static int64_t hold(int child, struct gpuseg_held_entry *entries)
{
	struct gpuseg_amd_held held = {.version = GPUSEG_AMD_HELD_VERSION,
				       .interface = GPUSEG_AMD_AGENT,
				       .daemon = getpid(),
				       .fd = DAEMON_SLOT,
				       .daemon_start_ticks = process_start_ticks(getpid())};
	struct gpuseg_kfd_watchdog watchdog = {.period_ms = DAEMON_MS};

	if (!children[child].page) {
		device = open(GPUSEG_AMD_HOLD_DEVICE, O_RDWR | O_CLOEXEC); /* the helper keeps its own */
		if (device < 0 || ioctl(device, GPUSEG_KFD_IOC_WATCHDOG, &watchdog) != 0)
			return -EIO;
		held.interface = GPUSEG_AMD_KFD;
		held.fd = device;
	}
	note_held(&entries[0], children[child].pid, &held, sizeof(held), GPUSEG_HELD_DISABLED);
	beaten = children[child].page;
	return beaten ? order_agent(child, DAEMON_SLOT, true, DAEMON_MS) : hold_by_device(child, true);
}

static void beat(void)
{
	if (beaten)
		__atomic_add_fetch(&beaten->slots[DAEMON_SLOT].beat, 1, __ATOMIC_RELEASE);
	else if (ioctl(device, GPUSEG_KFD_IOC_KICK) != 0)
		_exit(EXIT_FAILURE); /* it lapsed: what was held is enabled */
}

static int read_machine(struct machine *m, char *why, size_t size)
{
	struct gpu gpu;

	m->gpus = read_gpus(&gpu);
	if (m->gpus == 0) {
		snprintf(why, size, "no GPU: KFD lists none in " KFD "/topology");
		return -ENODEV;
	}
	snprintf(m->known_as, sizeof(m->known_as), "gfx%d.%d.%d", gpu.gfx / GFX_MAJOR, gpu.gfx / 100 % 100,
		 gpu.gfx % 100);
	/* unloading a queue does not preempt there, and gfx12 has no such functions: a queue would stop the kernel */
	if (gpu.gfx / GFX_MAJOR >= MES_SINCE && strcmp(mode_of(gpu.gfx), "no-hws") == 0) {
		snprintf(why, size, "amdgpu.sched_policy=2 on %s is unsafe: load amdgpu with sched_policy=0",
			 m->known_as);
		return -ENODEV;
	}
	if (!machine_text(machine_path("/sys/module/amdgpu/version"), m->driver, sizeof(m->driver)))
		snprintf(m->driver, sizeof(m->driver), "%s", m->kernel);
	m->driver[strcspn(m->driver, "\n")] = 0;
	snprintf(m->model, sizeof(m->model), "%s", m->known_as);
	snprintf(m->flavour, sizeof(m->flavour), "amdgpu");
	return 0;
}

const struct driver driver_amd = {
	.mechanism = "amd",
	.number = GPUSEG_MECHANISM_AMD,
	.hip = true,
	.preload = "libgpuseg-preload.so",
	.found = "their queues are found",
	.lists = true,
	.interface = true,
	.lower_level = "gate",
	.lower_sentence = "Begins can be held, no more: use mechanism gate.",
	.machine = read_machine,
	.attach = attach,
	.detach = detach,
	.switch_child = switch_child,
	.hold = hold,
	.beat = beat,
};
