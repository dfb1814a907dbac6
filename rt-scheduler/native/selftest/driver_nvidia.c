/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver: channels through RM controls on duplicates of the children's descriptors (rm/gpuseg_rm.h). */
#define _GNU_SOURCE
#include "driver.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "rm/gpuseg_rm.h"

#define STANDIN_PROC_ENV "GPUSEG_RM_PROC" /* in place of PROC where a stand-in of the driver is preloaded */
#define PROC "/proc/driver/nvidia"
#define HOLDER_SLICE_US 3000

static struct {
	struct gpuseg_rm_process process;
	struct gpuseg_rm_timeslices own; /* noted at the attach; count 0: the driver did not tell */
	int64_t own_status;
} children[CHILDREN];

static int64_t set_slice_of(const struct gpuseg_rm_process *p, uint64_t us)
{
	int64_t status = -ENODEV;

	for (uint32_t t = 0; t < p->tsg_count; t++) {
		const struct gpuseg_rm_tsg *tsg = &p->tsgs[t];

		if (tsg->engine == GPUSEG_RM_ENGINE_GR0)
			status = gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle, GPUSEG_RM_SET_TIMESLICE, &us,
						   sizeof(us));
		if (status > 0)
			return status;
	}
	return status;
}

static int64_t get_slice(int child, uint64_t *us)
{
	const struct gpuseg_rm_process *p = &children[child].process;

	for (uint32_t t = 0; t < p->tsg_count; t++)
		if (p->tsgs[t].engine == GPUSEG_RM_ENGINE_GR0)
			return gpuseg_rm_control(p->tsgs[t].fd, p->tsgs[t].client, p->tsgs[t].handle,
						 GPUSEG_RM_GET_TIMESLICE, us, sizeof(*us));
	return -ENODEV;
}

static int64_t restore_slices(int child)
{
	int64_t result = 0;

	for (uint32_t i = 0; i < children[child].own.count; i++) {
		const struct gpuseg_rm_own_timeslice *own = &children[child].own.tsgs[i];
		uint64_t us = own->own_us;

		for (uint32_t t = 0; t < children[child].process.tsg_count; t++) {
			const struct gpuseg_rm_tsg *tsg = &children[child].process.tsgs[t];

			if (tsg->client == own->client && tsg->handle == own->tsg && result == 0)
				result = gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle, GPUSEG_RM_SET_TIMESLICE,
							   &us, sizeof(us));
		}
	}
	return result;
}

static void attach(int child, const struct order *order, struct answer *answer)
{
	struct gpuseg_rm_process *p = &children[child].process;
	uint32_t groups = 0, channels = 0, gpu_id = UINT32_MAX;

	children[child].own.count = 0;
	answer->status = gpuseg_rm_attach(p, order->pid);
	if (answer->status != 0) {
		snprintf(answer->how, sizeof(answer->how), "the driver shows no channel group");
		return;
	}
	for (uint32_t t = 0; t < p->tsg_count; t++) {
		if (p->tsgs[t].engine != GPUSEG_RM_ENGINE_GR0)
			continue;
		groups++;
		channels += p->tsgs[t].channels;
		gpu_id = gpuseg_rm_gpu_id(p, &p->tsgs[t]);
	}
	snprintf(answer->found, sizeof(answer->found), "%u channels in %u queries", channels, p->controls);
	snprintf(answer->how, sizeof(answer->how), "of the compute channel group, through %u descriptors", p->fd_count);
	if (groups == 0 || channels == 0 || gpu_id == UINT32_MAX) {
		snprintf(answer->how, sizeof(answer->how), "%s",
			 channels == 0 ? "no channel for compute work" : "the driver does not say on which GPU it is");
		gpuseg_rm_detach(p);
		answer->status = -ENOENT;
		return;
	}
	children[child].own_status = gpuseg_rm_note_timeslices(p, &children[child].own);
	if (children[child].own_status != 0)
		children[child].own.count = 0;
	/* those before the helper that hung had changed them */
	for (uint32_t i = 0; order->argument && i < children[child].own.count; i++)
		children[child].own.tsgs[i].own_us = (uint32_t)order->argument;
	answer->value = children[child].own.count ? children[child].own.tsgs[0].own_us : 0;
}

static void detach(int child)
{
	gpuseg_rm_detach(&children[child].process);
}

static int64_t switch_child(int child, bool disable, struct answer *answer)
{
	struct gpuseg_rm_process *one[] = {&children[child].process};

	(void)answer;
	return gpuseg_rm_switch_processes(one, 1, disable, 1);
}

/* Nothing is changed that cannot be given back. */
static int64_t set_slice(int child, uint64_t us)
{
	return children[child].own_status != 0 ? children[child].own_status
					       : set_slice_of(&children[child].process, us);
}

static int64_t hold(int child, struct gpuseg_held_entry *entries)
{
	struct gpuseg_rm_process *p = &children[child].process;
	struct gpuseg_rm_timeslices slices;
	struct gpuseg_rm_held channels;

	if (gpuseg_rm_note_timeslices(p, &slices) != 0 || gpuseg_rm_note(p, &channels) != 0)
		return -EIO;
	note_held(&entries[0], p->pid, &slices, sizeof(slices), GPUSEG_HELD_TIMESLICE);
	if (set_slice_of(p, HOLDER_SLICE_US) != 0)
		return -EIO;
	note_held(&entries[1], p->pid, &channels, sizeof(channels), GPUSEG_HELD_DISABLED);
	return gpuseg_rm_switch_processes(&p, 1, 1, 1);
}

/* ---- the machine ---- */

/* The first GPU in the order of the PCI bus; its file of information. Returns how many there are. */
static int read_gpus(const char *proc, char *text, size_t size)
{
	char path[PATH_MAX], first[256] = "";
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	text[0] = 0;
	snprintf(path, sizeof(path), "%s/gpus", proc);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (!first[0] || strcmp(entry->d_name, first) < 0)
			snprintf(first, sizeof(first), "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (count == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/gpus/%s/information", proc, first);
	machine_text(path, text, size);
	return count;
}

static void read_version(const char *text, struct machine *m)
{
	const char *at = text;

	/* the first word that begins as a version does */
	while (at && *at) {
		at += strspn(at, " \t\n");
		if (isdigit((unsigned char)*at) && strcspn(at, ".") < strcspn(at, " \t\n"))
			break;
		at += strcspn(at, " \t\n");
	}
	snprintf(m->driver, sizeof(m->driver), "%.*s", at ? (int)strcspn(at, " \t\n") : 0, at ? at : "");
	snprintf(m->flavour, sizeof(m->flavour), strstr(text, "Open Kernel Module") ? "open" : "closed");
}

static int read_machine(struct machine *m, char *why, size_t size)
{
	const char *proc = PROC;
	char path[PATH_MAX], text[4096];

	if (m->standin && getenv(STANDIN_PROC_ENV))
		proc = getenv(STANDIN_PROC_ENV);
	snprintf(path, sizeof(path), "%s/version", proc);
	if (!machine_text(path, text, sizeof(text))) {
		snprintf(why, size,
			 "no GPU driver: %s, /dev/nvhost-sched-gpu and /dev/kfd are missing; see gpuseg doctor", path);
		return -ENODEV;
	}
	read_version(text, m);
	m->gpus = read_gpus(proc, text, sizeof(text));
	if (m->gpus == 0) {
		snprintf(why, size, "no GPU: the driver %s lists none in %s/gpus", m->driver, proc);
		return -ENODEV;
	}
	machine_line(text, "Model:", m->model, sizeof(m->model));
	machine_line(text, "GPU Firmware:", m->gsp, sizeof(m->gsp));
	return 0;
}

const struct driver driver_nvidia = {
	.mechanism = "nvidia",
	.number = GPUSEG_MECHANISM_NVIDIA,
	.found = "their channels are found",
	.gsp = true,
	.long_us = 4000,
	.short_us = 500,
	.whole_us = 1000000,
	.notes_slices = true,
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
