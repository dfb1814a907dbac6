/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes with forks or several contexts, for process_checks.py. Kernels back to back, results checked. It links
 * nothing of gpuseg.
 *
 * usage: gpuseg-bench-proc PAGE KERNEL_MS NS_PER_ITERATION SECONDS plain | fork | exec COMMAND... | two | gpus
 *   plain  one context
 *   fork   a child that is forked after CUDA was opened keeps the descriptors and does nothing
 *   exec   a child that is forked after CUDA was opened executes COMMAND
 *   two    a second context on the same GPU
 *   gpus   a second context on the next GPU
 *
 * The word at byte 12 of PAGE selects the context of the next kernel: 0 the first, 1 the second. The 32 bits at byte 72
 * hold the pid of the child.
 */
#include "gpu_work.cuh"

#ifdef __CUDACC__
#include <dlfcn.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int two_gpus;

/* Makes a context current, and creates it if it does not exist. */
static void use(int second)
{
#ifdef __CUDACC__
	/* By name: the runtime has no second context on one device, and the old symbol is in every release. */
	static int (*create)(void **, unsigned, int);
	static int (*current)(void *);
	static int (*which)(void **);
	static void *contexts[2];

	if (two_gpus) {
		CHECK(cudaSetDevice(second));
		return;
	}
	if (!current) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		CHECK(cudaFree(0));
		create = (int (*)(void **, unsigned, int))dlsym(library, "cuCtxCreate_v2");
		current = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
		which = (int (*)(void **))dlsym(library, "cuCtxGetCurrent");
		if (!create || !current || !which || which(&contexts[0]) != 0) {
			fprintf(stderr, "libcuda.so.1 has no cuCtxCreate_v2\n");
			exit(1);
		}
	}
	if (second && !contexts[1] && create(&contexts[1], 0, 0) != 0) {
		fprintf(stderr, "a second context cannot be made\n");
		exit(1);
	}
	if (current(contexts[second]) != 0)
		exit(1);
#else
	CHECK(cuda_standin_use(second, two_gpus));
#endif
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: gpuseg-bench-proc PAGE KERNEL_MS NS_PER_ITERATION SECONDS plain|fork|exec "
				"COMMAND...|two|gpus\n");
		return 2;
	}
	const char *mode = argv[5];
	const int contexts = strcmp(mode, "two") == 0 || strcmp(mode, "gpus") == 0 ? 2 : 1;
	two_gpus = strcmp(mode, "gpus") == 0;
	int64_t until = now_ns() + (int64_t)(atof(argv[4]) * 1e9);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, BE_PAGE_BYTES) != 0) {
		perror(argv[1]);
		return 1;
	}
	volatile struct be_page *page =
		(struct be_page *)mmap(0, sizeof(struct be_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct gpu_work w[2];
	long wrong = 0;
	for (int i = 0; i < contexts; i++) {
		use(i);
		gpu_work_open(&w[i], 1);
		w[i].n = (long)(atof(argv[2]) * 1e6 / atof(argv[3]));
		gpu_work_reference(&w[i]);
	}
	pid_t child = -1;
	if (strcmp(mode, "fork") == 0 || strcmp(mode, "exec") == 0) {
		const pid_t parent = getpid();
		child = fork();
		if (child == 0 && mode[0] == 'e') {
			execvp(argv[6], argv + 6);
			perror(argv[6]);
			_exit(127);
		}
		if (child == 0) {
			while (getppid() == parent)
				usleep(2000);
			_exit(0);
		}
		page->child = child;
	}
	page->pid = getpid();
	page->first_ns = now_ns();
	__sync_synchronize();
	page->ready = 1;
	while (!page->stop && now_ns() < until) {
		const int second = contexts == 2 && page->reserved == 1;
		use(second);
		gpu_work_poison(&w[second], 0);
		gpu_work_launch(&w[second], 0, 0);
		CHECK(cudaDeviceSynchronize());
		wrong += gpu_work_wrong(&w[second]);
		page->wrong = wrong;
		page->last_ns = now_ns();
		page->kernels = page->kernels + 1;
	}
	if (child > 0) {
		kill(child, SIGTERM);
		waitpid(child, NULL, 0);
	}
	printf("{\"kernels\":%lu,\"wrong\":%ld}\n", (unsigned long)page->kernels, wrong);
	return wrong ? 1 : 0;
}
