/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"

static int file_path(char *path, size_t size, const char *directory, const char *name)
{
	const int length = snprintf(path, size, "%s/%s", directory, name);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static size_t file_size(uint32_t entries)
{
	return sizeof(struct gpuseg_held) + (size_t)entries * sizeof(struct gpuseg_held_entry);
}

void held_unmap(struct held_file *held)
{
	if (held->header)
		munmap(held->header, file_size(held->count));
	*held = (struct held_file){0};
}

static int map_open_file(struct held_file *held, int fd, const struct stat *file)
{
	struct gpuseg_held header;
	void *map;
	const ssize_t length = pread(fd, &header, sizeof(header), 0);

	if (length < 0)
		return -errno;
	if ((size_t)length < sizeof(header) || header.version == 0)
		return -EAGAIN;
	if (header.magic != GPUSEG_HELD_MAGIC || header.version >> 16 != GPUSEG_ABI_MAJOR ||
	    header.entry_size != sizeof(struct gpuseg_held_entry) || header.entry_count > GPUSEG_HELD_MAX)
		return -EPROTO;
	if ((uint64_t)file->st_size < file_size(header.entry_count))
		return -EAGAIN;
	map = mmap(NULL, file_size(header.entry_count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	held->header = map;
	held->entries = (struct gpuseg_held_entry *)((char *)map + sizeof(struct gpuseg_held));
	held->count = header.entry_count;
	held->device = file->st_dev;
	held->inode = file->st_ino;
	return 0;
}

int held_map(struct held_file *held, const char *directory)
{
	char path[PATH_MAX];
	struct stat file;
	int fd, rc = file_path(path, sizeof(path), directory, GPUSEG_HELD_NAME);

	if (rc != 0)
		return rc;
	if (stat(path, &file) != 0) {
		rc = -errno;
		held_unmap(held);
		return rc;
	}
	if (held->header && held->device == file.st_dev && held->inode == file.st_ino)
		return 0;
	held_unmap(held);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fstat(fd, &file) == 0 ? map_open_file(held, fd, &file) : -errno;
	close(fd);
	return rc;
}

static bool is_in(const struct gpuseg_held_entry *entry, uint32_t state)
{
	/* acquire; pairs with the enforcer's release store: the rest of the entry was written before */
	return __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == state;
}

static bool is_held(const struct gpuseg_held_entry *entry)
{
	return is_in(entry, GPUSEG_HELD_DISABLED);
}

unsigned held_timeslices(const struct held_file *held)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < held->count; i++)
		count += is_in(&held->entries[i], GPUSEG_HELD_TIMESLICE);
	return count;
}

unsigned held_count(const struct held_file *held)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < held->count; i++)
		count += is_held(&held->entries[i]);
	return count;
}

/* Clears an entry, unless it has been reused since it was read. */
static void clear(struct held_file *held, const struct held_context *context, uint32_t state)
{
	struct gpuseg_held_entry *entry = &held->entries[context->index];
	uint32_t expected = state;

	if (entry->since_ns == context->since_ns && entry->pid == context->pid)
		__atomic_compare_exchange_n(&entry->state, &expected, GPUSEG_HELD_FREE, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

static void settle(struct held_file *held, const struct release_rule *rule, struct release_report *report,
		   const struct held_context *context, enum release_outcome outcome)
{
	report->count[outcome]++;
	if (outcome == RELEASE_FAILED && report->first_error == 0)
		report->first_error = context->result;
	if (rule->note)
		rule->note(context, outcome);
	if (rule->clear && outcome != RELEASE_UNKNOWN && outcome != RELEASE_FAILED)
		clear(held, context, GPUSEG_HELD_DISABLED);
}

static struct held_context context_of(const struct held_file *held, uint32_t index)
{
	const struct gpuseg_held_entry *entry = &held->entries[index];

	return (struct held_context){
		.index = index,
		.mechanism = entry->mechanism,
		.pid = entry->pid,
		.gpu = entry->gpu,
		.since_ns = entry->since_ns,
		.payload = entry->payload,
		.payload_size = entry->payload_size,
	};
}

static void restore_timeslices(struct held_file *held, const struct release_rule *rule, struct release_report *report)
{
	for (uint32_t i = 0; i < held->count; i++) {
		const struct gpuseg_held_entry *entry = &held->entries[i];
		const struct mechanism *m;
		struct held_context c;
		uint64_t ticks;
		int result = -ESRCH;

		if (!is_in(entry, GPUSEG_HELD_TIMESLICE) || entry->since_ns > rule->not_after_ns)
			continue;
		c = context_of(held, i);
		m = mechanism_find(c.mechanism);
		ticks = process_start_ticks(c.pid);
		if (ticks != 0 && (entry->pid_start_ticks == 0 || entry->pid_start_ticks == ticks))
			result = !m || !m->restore_timeslices || c.payload_size > GPUSEG_HELD_PAYLOAD
					 ? -EINVAL
					 : m->restore_timeslices(&c);
		if (result == 0)
			report->timeslices++;
		else if (result != -ESRCH)
			report->timeslices_failed++;
		if (result != 0 && result != -ESRCH && report->first_error == 0)
			report->first_error = result;
		if (result == 0 || result == -ESRCH)
			clear(held, &c, GPUSEG_HELD_TIMESLICE);
	}
}

struct release_report held_release(struct held_file *held, const struct release_rule *rule)
{
	struct release_report report = {0};
	struct held_context contexts[GPUSEG_HELD_MAX];
	struct held_context *todo[GPUSEG_HELD_MAX];
	unsigned left = 0;

	for (uint32_t i = 0; i < held->count; i++) {
		const struct gpuseg_held_entry *entry = &held->entries[i];
		struct held_context *c = &contexts[left];
		uint64_t ticks;

		if (!is_held(entry) || entry->since_ns > rule->not_after_ns)
			continue;
		*c = context_of(held, i);
		ticks = process_start_ticks(entry->pid);
		if (ticks == 0) {
			settle(held, rule, &report, c, RELEASE_GONE);
		} else if (entry->pid_start_ticks != 0 && entry->pid_start_ticks != ticks) {
			settle(held, rule, &report, c, RELEASE_REUSED);
		} else if (!mechanism_find(entry->mechanism)) {
			settle(held, rule, &report, c, RELEASE_UNKNOWN);
		} else if (entry->payload_size > GPUSEG_HELD_PAYLOAD) {
			c->result = -EINVAL;
			settle(held, rule, &report, c, RELEASE_FAILED);
		} else {
			todo[left] = c;
			left++;
		}
	}
	while (left > 0) {
		struct held_context *same[GPUSEG_HELD_MAX];
		const uint32_t id = todo[0]->mechanism;
		unsigned count = 0, others = 0;

		for (unsigned i = 0; i < left; i++) {
			if (todo[i]->mechanism == id)
				same[count++] = todo[i];
			else
				todo[others++] = todo[i];
		}
		left = others;
		report.tried += count;
		mechanism_find(id)->release(same, count, rule->deadline_ns);
		for (unsigned i = 0; i < count; i++)
			settle(held, rule, &report, same[i],
			       same[i]->result == 0	   ? RELEASE_ENABLED
			       : same[i]->result == -ESRCH ? RELEASE_GONE
							   : RELEASE_FAILED);
	}
	if (rule->clear)
		restore_timeslices(held, rule, &report);
	return report;
}
