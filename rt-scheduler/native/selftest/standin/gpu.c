/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-gpu-standin - runs the kernels of a GPU that gpu.h describes, until SIGTERM. In turns of the groups' time
 * slices, with SWITCH_NS in between, or all at once (`concurrent`). A newcomer waits for the rest of the slice that
 * runs.
 *
 * usage: gpuseg-gpu-standin FILE
 */
#define _GNU_SOURCE
#include "gpu.h"

#include <sys/uio.h>

#define SWITCH_NS 100000u
#define TICK_NS 500000
#define STEP_NS 1000000 /* who looks while a late program catches up sees groups at most so far apart */

static struct gpu *gpu;
static unsigned current;
static uint64_t slice_ns, switch_ns; /* left */
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	stopping = number;
}

/* A disable without a preemption lets the kernel end that has begun. */
static bool may_run(const struct gpu_group *g)
{
	return g->pid > 0 && g->tail < __atomic_load_n(&g->head, __ATOMIC_ACQUIRE) &&
	       (g->disabled == 0 || (!g->off && g->done_ns > 0));
}

static void complete(struct gpu_group *g)
{
	uint64_t page[2] = {g->tail + 1, g->kernels[g->tail % GPU_KERNELS].result ^ g->corrupted};
	struct iovec from = {page, sizeof(page)};
	struct iovec to = {(void *)(uintptr_t)g->counter, sizeof(page)};

	/* the process may have ended */
	if (process_vm_writev(g->pid, &from, 1, &to, 1, 0) < 0 && errno != ESRCH)
		perror("gpuseg-gpu-standin: the counter of a process");
	g->done_ns = 0;
	g->tail++;
}

/* What is left of the time until now when the oldest kernel of a group begins: none runs before it was launched. */
static uint64_t left_of(const struct gpu_group *g, uint64_t left_ns, int64_t time_ns)
{
	const int64_t since_ns = time_ns - g->kernels[g->tail % GPU_KERNELS].launched_ns;

	return since_ns <= 0 ? 0 : (uint64_t)since_ns < left_ns ? (uint64_t)since_ns : left_ns;
}

/* The oldest kernel of a group runs for at most this long. Returns how long it did. */
static uint64_t advance(struct gpu_group *g, uint64_t most_ns)
{
	const struct gpu_kernel *k = &g->kernels[g->tail % GPU_KERNELS];
	const uint64_t left_ns = k->duration_ns - g->done_ns, step_ns = left_ns < most_ns ? left_ns : most_ns;

	g->done_ns += step_ns;
	if (g->done_ns == k->duration_ns)
		complete(g);
	return step_ns;
}

static void advance_in_turns(uint64_t elapsed_ns, int64_t time_ns)
{
	while (elapsed_ns > 0) {
		struct gpu_group *g = &gpu->groups[current];
		unsigned next = current;

		if (slice_ns == 0 || !may_run(g)) {
			do
				next = (next + 1) % GPU_GROUPS;
			while (next != current && !may_run(&gpu->groups[next]));
			if (!may_run(&gpu->groups[next]))
				return;
			switch_ns = next != current ? SWITCH_NS : 0;
			current = next;
			slice_ns = 1000 * (gpu->groups[next].programmed_us ? gpu->groups[next].programmed_us : 1);
		} else if (left_of(g, elapsed_ns, time_ns) < elapsed_ns) {
			elapsed_ns = left_of(g, elapsed_ns, time_ns);
		} else if (switch_ns > 0) {
			const uint64_t step_ns = switch_ns < elapsed_ns ? switch_ns : elapsed_ns;

			switch_ns -= step_ns;
			elapsed_ns -= step_ns;
		} else {
			const uint64_t step_ns = advance(g, slice_ns < elapsed_ns ? slice_ns : elapsed_ns);

			slice_ns -= step_ns;
			elapsed_ns -= step_ns;
		}
	}
}

static void advance_all(uint64_t elapsed_ns, int64_t time_ns)
{
	for (unsigned i = 0; i < GPU_GROUPS; i++)
		for (uint64_t left_ns = elapsed_ns; left_ns > 0 && may_run(&gpu->groups[i]);) {
			left_ns = left_of(&gpu->groups[i], left_ns, time_ns);
			left_ns -= left_ns ? advance(&gpu->groups[i], left_ns) : 0;
		}
}

static void perform_due(int64_t time_ns)
{
	for (unsigned i = 0; i < GPU_GROUPS; i++)
		for (unsigned d = 0; d < GPU_DUE; d++) {
			struct gpu_group *g = &gpu->groups[i];
			const struct gpu_due due = g->due[d];

			if (due.at_ns == 0 || due.at_ns > time_ns)
				continue;
			g->due[d].at_ns = 0;
			if (due.is_slice)
				g->programmed_us = due.value;
			else
				gpu_change(g, due.value, true, GPU_HONEST);
		}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	const struct timespec tick = {.tv_nsec = TICK_NS};
	int64_t last_ns = gpu_now_ns();

	if (argc != 2 || setenv(GPU_ENV, argv[1], 1) != 0) {
		fprintf(stderr, "usage: gpuseg-gpu-standin FILE\n");
		return 2;
	}
	gpu = gpu_map();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!stopping) {
		const int lock = gpu_lock();
		const int64_t time_ns = gpu_now_ns();

		perform_due(time_ns);
		while (last_ns < time_ns) {
			const int64_t left_ns = time_ns - last_ns, step_ns = left_ns < STEP_NS ? left_ns : STEP_NS;

			last_ns += step_ns;
			if (gpu->concurrent)
				advance_all((uint64_t)step_ns, last_ns);
			else
				advance_in_turns((uint64_t)step_ns, last_ns);
		}
		gpu_unlock(lock);
		nanosleep(&tick, NULL);
	}
	return 0;
}
