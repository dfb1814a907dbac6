/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - the GPUs that the program uses. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpu.h"
#include "inject.h"
#include "settings.h"

#define GPUS_DIR "/proc/driver/nvidia/gpus"
#define UNMANAGED_NS (60 * NS_PER_S) /* after a wait that reached its limit */

struct gpu gpus[GPUS_MAX];

void gpus_init(void)
{
	for (size_t i = 0; i < GPUS_MAX; i++)
		gpus[i].index = -1;
}

/* The daemon numbers GPUs in the order of the PCI bus. 0 if the driver does not list them. */
static int gpu_index(const char *pci)
{
	const struct dirent *entry;
	int before = 0;
	DIR *dir = opendir(GPUS_DIR);

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && strcasecmp(entry->d_name, pci) < 0)
			before++;
	}
	closedir(dir);
	return before;
}

struct gpu *gpu_at(const char *pci)
{
	for (size_t i = 0; i < GPUS_MAX; i++) {
		struct gpu *gpu = &gpus[i];

		if (gpu->index >= 0 && strcmp(gpu->pci, pci) == 0)
			return gpu;
		if (gpu->index < 0) {
			gpu->index = gpu_index(pci);
			snprintf(gpu->pci, sizeof(gpu->pci), "%s", pci);
			return gpu;
		}
	}
	return NULL;
}

void gpu_changed(struct gpu *gpu)
{
	__atomic_fetch_add(&gpu->generation, 1, __ATOMIC_RELEASE);
	if (gpu->waiters)
		futex_wake_all(&gpu->generation);
}

void gpu_give_up(struct gpu *gpu, const char *what)
{
	const int64_t at_ns = now_ns();

	if (gpu->unmanaged_until_ns - at_ns > 0)
		return;
	gpu->unmanaged_until_ns = at_ns + UNMANAGED_NS;
	say("GPU %d: %s within %lld ms; runs unmanaged for %lld s, then tries again", gpu->index, what,
	    (long long)(inject.settings.wait_ns / NS_PER_MS), (long long)(UNMANAGED_NS / NS_PER_S));
}
