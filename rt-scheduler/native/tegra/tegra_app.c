/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-tegra-app - an endless process with TSGs of the stand-in. It counts kernels of 1 ms while none of its TSGs is
 * off the hardware. A TSG that is only disabled finishes its running kernel. Runs with libgpuseg-tegra-fake.so
 * preloaded.
 *
 * usage: gpuseg-tegra-app PAGE TSGS
 *   PAGE    mapped file: pid, ready, stop, more (1: opens another TSG, then 0), kernels (struct page)
 *
 * GPUSEG_SHADOW=DEVICE: opens that device, too, whenever it opens a TSG, for gpuseg-observer.
 */
#define _GNU_SOURCE
#include "gpuseg_tegra.h"
#include "tegra_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX 16

struct page {
	int32_t pid;
	uint32_t ready;
	uint32_t stop;
	uint32_t more;
	uint64_t kernels;
};

static struct tegra_tsg *open_tsg(void)
{
	const int fd = open(GPUSEG_TEGRA_TSG_DEVICE, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct tegra_tsg), PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		perror("gpuseg-tegra-app: " GPUSEG_TEGRA_TSG_DEVICE);
		exit(1);
	}
	if (getenv("GPUSEG_SHADOW") && open(getenv("GPUSEG_SHADOW"), O_RDWR | O_CLOEXEC) < 0) {
		perror(getenv("GPUSEG_SHADOW"));
		exit(1);
	}
	return at;
}

int main(int argc, char **argv)
{
	struct tegra_tsg *tsgs[MAX];
	struct page *page;
	int count = argc == 3 ? atoi(argv[2]) : 0;
	int fd;

	if (count < 1 || count >= MAX) {
		fprintf(stderr, "usage: gpuseg-tegra-app PAGE TSGS (1 to %d)\n", MAX - 1);
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	for (int i = 0; i < count; i++)
		tsgs[i] = open_tsg();
	page->pid = getpid();
	__atomic_store_n(&page->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&page->stop, __ATOMIC_ACQUIRE)) {
		const struct timespec kernel = {.tv_nsec = 1000000};
		int off = 0;

		if (__atomic_load_n(&page->more, __ATOMIC_ACQUIRE) && count < MAX) {
			tsgs[count++] = open_tsg();
			__atomic_store_n(&page->more, 0, __ATOMIC_RELEASE);
		}
		for (int i = 0; i < count; i++)
			off |= __atomic_load_n(&tsgs[i]->off, __ATOMIC_ACQUIRE) != 0;
		nanosleep(&kernel, NULL);
		if (!off)
			__atomic_add_fetch(&page->kernels, 1, __ATOMIC_RELEASE);
	}
	return 0;
}
