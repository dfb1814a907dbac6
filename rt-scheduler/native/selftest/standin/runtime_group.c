/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts of runtime.c as groups of gpu.h: on the stand-in of nvgpu, with RUNTIME_HIP on that of KFD. */
#define _GNU_SOURCE
#include "gpu.h"
#include "runtime.h"

#include <pthread.h>
#include <sys/ioctl.h>

#include "selftest/spin.h"
#ifndef RUNTIME_HIP
#include "tegra/gpuseg_tegra.h"
#include "tegra/tegra_state.h"
#endif

static struct gpu_group *group;

static int join(uint32_t id, uint64_t slice_us)
{
	struct gpu *gpu = gpu_map();
	const int lock = gpu_lock();

	group = gpu_find(gpu, 0, 0);
	if (group) {
		group->id = id;
		group->slice_us = group->programmed_us = slice_us;
		group->pid = getpid();
	}
	gpu_unlock(lock);
	return group ? 0 : RUNTIME_UNKNOWN;
}

int runtime_launch(const struct runtime_kernel *kernel)
{
	const uint64_t head = group->head;

	while (head - __atomic_load_n(&group->tail, __ATOMIC_ACQUIRE) >= GPU_KERNELS)
		gpu_sleep(1);
	group->counter = kernel->counter;
	group->kernels[head % GPU_KERNELS] =
		(struct gpu_kernel){gpu_now_ns(), kernel->duration_ns, spin_result(kernel->iterations)};
	__atomic_store_n(&group->head, head + 1, __ATOMIC_RELEASE);
	return 0;
}

#ifdef RUNTIME_HIP

#define CREATE_QUEUE_BYTES 88
#define TOPOLOGY "sys/class/kfd/kfd/topology/nodes/1/gpu_id"

/* What ends holds by itself is noticed by who asks. */
extern int gpuseg_amd_off(void) __attribute__((weak));

static void *ask(void *nothing)
{
	for (;;) {
		gpuseg_amd_off();
		gpu_sleep(2);
	}
	return nothing;
}

/* As AMD's runtime does for a stream: a ring, and a queue that is active. */
int runtime_context(bool closed)
{
	unsigned char argument[CREATE_QUEUE_BYTES] = {0};
	const uint32_t size = 4096, percentage = 100, type = 2;
	const uint64_t ring = 0x7f0000000000u;
	const int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	char path[256];
	pthread_t thread;
	uint32_t gpu_id;
	FILE *file;

	(void)closed;
	snprintf(path, sizeof(path), "%s/" TOPOLOGY, getenv("GPUSEG_AMD_STANDIN"));
	file = fopen(path, "re");
	if (kfd < 0 || !file || fscanf(file, "%u", &gpu_id) != 1 || !gpuseg_amd_off)
		return RUNTIME_UNKNOWN;
	fclose(file);
	memcpy(argument, &ring, sizeof(ring));
	memcpy(argument + 32, &size, sizeof(size));
	memcpy(argument + 36, &gpu_id, sizeof(gpu_id));
	memcpy(argument + 40, &type, sizeof(type));
	memcpy(argument + 44, &percentage, sizeof(percentage));
	if (join(0, 0) != 0 || ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, sizeof(argument)), argument) != 0)
		return RUNTIME_UNKNOWN;
	return pthread_create(&thread, NULL, ask, NULL);
}

#else

int runtime_context(bool closed)
{
	const int fd = open(GPUSEG_TEGRA_TSG_DEVICE, O_RDWR | O_CLOEXEC);
	const struct tegra_tsg *tsg = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*tsg), PROT_READ, MAP_SHARED, fd, 0);

	if (closed) /* the mapping keeps the TSG */
		close(fd);
	return tsg == MAP_FAILED ? RUNTIME_UNKNOWN : join(tsg->tsgid, tsg->timeslice_us);
}

#endif
