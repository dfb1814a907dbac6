/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the simulated runtimes (runtime.c).
 *
 * GPUSEG_CUDA_FAULT="CALL:EFFECT[:ARGUMENT[:ROLE]]" plants one in processes whose command line has the word ROLE.
 * CALL: init, count, context, register, alloc, module, launch; compile (HIP). EFFECT: fail:ERROR, hang, exit:AFTER
 * (launches), stuck:AFTER (its kernels do not end), none (no kernel is queued, and launches succeed), close (nvgpu: no
 * descriptor of the context's TSG stays open).
 */
#ifndef GPUSEG_STANDIN_RUNTIME_FAULT_H
#define GPUSEG_STANDIN_RUNTIME_FAULT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int has_role(const char *role)
{
	char line[4096];
	const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	for (const char *word = line; word < line + n; word += strlen(word) + 1)
		if (strcmp(word, role) == 0)
			return 1;
	return 0;
}

static char fault_effect[16];
static long fault_argument;

/* The error that is planted here, or 0. */
static inline int fault(const char *call)
{
	const char *text = getenv("GPUSEG_CUDA_FAULT");
	char name[16] = "", role[16] = "";

	fault_effect[0] = 0;
	fault_argument = 0;
	if (!text || sscanf(text, "%15[^:]:%15[^:]:%ld:%15s", name, fault_effect, &fault_argument, role) < 2 ||
	    strcmp(name, call) != 0 || (role[0] && !has_role(role))) {
		fault_effect[0] = 0;
		return 0;
	}
	while (strcmp(fault_effect, "hang") == 0)
		pause();
	return strcmp(fault_effect, "fail") == 0 ? (int)fault_argument : 0;
}

#endif
