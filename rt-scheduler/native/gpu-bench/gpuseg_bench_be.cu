/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A best-effort process that never stops: kernels of a set length back to back, results checked. It links nothing of
 * gpuseg.
 *
 * usage: gpuseg-bench-be PAGE KERNEL_MS NS_PER_ITERATION SECONDS [GPU]
 *   GPU     index in the order of the PCI bus; default: the first that the environment shows
 */
#include "gpu_work.cuh"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: gpuseg-bench-be PAGE KERNEL_MS NS_PER_ITERATION SECONDS [GPU]\n");
		return 2;
	}
	gpu_work_choose(argc > 5 ? atoi(argv[5]) : -1);
	double kernel_ms = atof(argv[2]);
	double per = atof(argv[3]);
	int64_t until = now_ns() + (int64_t)(atof(argv[4]) * 1e9);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, BE_PAGE_BYTES) != 0) {
		perror(argv[1]);
		return 1;
	}
	volatile struct be_page *page =
		(struct be_page *)mmap(0, sizeof(struct be_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct gpu_work w;
	gpu_work_open(&w, 1);
	if (per <= 0)
		per = gpu_work_calibrate(&w);
	w.n = (long)(kernel_ms * 1e6 / per);
	gpu_work_reference(&w);
	page->pid = getpid();
	page->first_ns = now_ns();
	__sync_synchronize();
	page->ready = 1;
	int64_t longest = 0;
	while (!page->stop && now_ns() < until) {
		int64_t a = now_ns();
		gpu_work_poison(&w, 0);
		gpu_work_launch(&w, 0, 0);
		CHECK(cudaDeviceSynchronize());
		int64_t b = now_ns();
		if (b - a > longest)
			longest = b - a;
		page->longest_ns = longest;
		page->last_ns = b;
		if (page->mark_ns && !page->after_ns && b > page->mark_ns)
			page->after_ns = b;
		page->kernels = page->kernels + 1;
		if (page->kernels % 4 == 0)
			page->wrong = page->wrong + gpu_work_wrong(&w);
	}
	page->wrong = page->wrong + gpu_work_wrong(&w);
	printf("{\"kernels\":%lu,\"wrong\":%lu,\"longest_ms\":%.3f,\"seconds\":%.3f}\n", (unsigned long)page->kernels,
	       (unsigned long)page->wrong, longest / 1e6, (now_ns() - page->first_ns) / 1e9);
	return page->wrong ? 1 : 0;
}
