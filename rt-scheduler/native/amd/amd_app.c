/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-amd-app - an endless process with queues of the stand-in. It counts kernels of 1 ms while none of its compute
 * queues is off the hardware. Runs with libgpuseg-amd-fake.so preloaded.
 *
 * usage: gpuseg-amd-app PAGE GPU_ID QUEUES [compute|copies]
 *   PAGE    mapped file: pid, ready, stop, more (an order, then 0), kernels, signals (struct page)
 *           orders: 1 makes another queue, 2 resumes all with UPDATE_QUEUE as ROCm's runtime does, 3 destroys the last
 *
 * GPUSEG_SHADOW=DEVICE: opens that device, too, and repeats on it the making of queues, for gpuseg-observer.
 *
 *   copies  also makes an SDMA queue
 */
#define _GNU_SOURCE
#include "amd_state.h"
#include "gpuseg_amd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CREATE_QUEUE_BYTES 88
#define CREATE_QUEUE_SIZE 32
#define CREATE_QUEUE_GPU 36
#define CREATE_QUEUE_TYPE 40
#define CREATE_QUEUE_PERCENTAGE 44
#define CREATE_QUEUE_ID 52
#define RING 0x7f0000000000u
#define RING_BYTES 4096u
#define MADE_MAX 16

struct page {
	int32_t pid;
	uint32_t ready;
	uint32_t stop;
	uint32_t more;
	uint64_t kernels;
	uint32_t signals;
};

/* From the preloaded library: is a compute queue of this process off the hardware? */
extern int gpuseg_amd_off(void) __attribute__((weak));

static struct page *page;
static uint32_t ids[MADE_MAX];
static int made;
static int shadow = -1;

static void on_signal(int number)
{
	(void)number;
	__atomic_add_fetch(&page->signals, 1, __ATOMIC_RELEASE);
}

static void create_queue(int kfd, uint32_t gpu_id, uint32_t type)
{
	const uint32_t size = RING_BYTES, percentage = 100;
	unsigned char argument[CREATE_QUEUE_BYTES] = {0};

	memcpy(argument, &(uint64_t){RING}, sizeof(uint64_t));
	memcpy(argument + CREATE_QUEUE_SIZE, &size, sizeof(size));
	memcpy(argument + CREATE_QUEUE_PERCENTAGE, &percentage, sizeof(percentage));
	memcpy(argument + CREATE_QUEUE_GPU, &gpu_id, sizeof(gpu_id));
	memcpy(argument + CREATE_QUEUE_TYPE, &type, sizeof(type));
	if (made == MADE_MAX || ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, CREATE_QUEUE_BYTES), argument) != 0) {
		perror("gpuseg-amd-app: CREATE_QUEUE");
		exit(1);
	}
	memcpy(&ids[made++], argument + CREATE_QUEUE_ID, sizeof(ids[0]));
	if (shadow >= 0) /* fails: that device is no GPU's */
		syscall(SYS_ioctl, shadow, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, CREATE_QUEUE_BYTES), argument);
}

static void resume_all(int kfd)
{
	for (int i = 0; i < made; i++) {
		const struct {
			uint64_t address;
			uint32_t id, size, percentage, priority;
		} update = {RING, ids[i], RING_BYTES, 100, 7};

		if (ioctl(kfd, _IOC(_IOC_WRITE, 'K', 7, sizeof(update)), &update) != 0)
			perror("gpuseg-amd-app: UPDATE_QUEUE");
	}
}

static void destroy_last(int kfd)
{
	uint32_t argument[2] = {made > 0 ? ids[--made] : UINT32_MAX};

	if (ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 3, sizeof(argument)), argument) != 0)
		perror("gpuseg-amd-app: DESTROY_QUEUE");
}

static void obey(int kfd, uint32_t gpu_id, uint32_t order)
{
	if (order == 1)
		create_queue(kfd, gpu_id, 2);
	else if (order == 2)
		resume_all(kfd);
	else
		destroy_last(kfd);
}

int main(int argc, char **argv)
{
	const uint32_t gpu_id = argc > 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const int count = argc > 3 ? atoi(argv[3]) : -1;
	const char *kind = argc > 4 ? argv[4] : "compute";
	struct sigaction action = {.sa_handler = on_signal};
	int fd, kfd;

	if (count < 0 || !gpuseg_amd_off) {
		fprintf(stderr, "usage: gpuseg-amd-app PAGE GPU_ID QUEUES [compute|copies], with the "
				"stand-in preloaded\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	sigaction(SIGUSR1, &action, NULL);
	kfd = open(GPUSEG_AMD_KFD_DEVICE, O_RDWR | O_CLOEXEC);
	if (kfd < 0) {
		perror("gpuseg-amd-app: " GPUSEG_AMD_KFD_DEVICE);
		return 1;
	}
	if (getenv("GPUSEG_SHADOW"))
		shadow = open(getenv("GPUSEG_SHADOW"), O_RDWR | O_CLOEXEC);
	for (int i = 0; i < count; i++)
		create_queue(kfd, gpu_id, 2);
	if (strcmp(kind, "copies") == 0)
		create_queue(kfd, gpu_id, 1);
	page->pid = getpid();
	__atomic_store_n(&page->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&page->stop, __ATOMIC_ACQUIRE)) {
		const struct timespec kernel = {.tv_nsec = 1000000};

		const uint32_t order = __atomic_load_n(&page->more, __ATOMIC_ACQUIRE);

		if (order) {
			obey(kfd, gpu_id, order);
			__atomic_store_n(&page->more, 0, __ATOMIC_RELEASE);
		}
		nanosleep(&kernel, NULL);
		if (!gpuseg_amd_off())
			__atomic_add_fetch(&page->kernels, 1, __ATOMIC_RELEASE);
	}
	return 0;
}
