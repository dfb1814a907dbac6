/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-queue-writer - append self-checking records to a Chronicle queue through the library's own appender.
 *
 *   gpuseg-queue-writer DIR PRODUCER COUNT [ACKFILE] [CRASHPOINT AFTER_N] [--sim-session]
 *
 * A test tool: the interoperability tests read its records with Chronicle's Java tailer. It is built with
 * -DGPUSEG_CRASHPOINTS, so that it can kill itself with SIGKILL inside an append.
 *
 *   DIR            queue directory made by Java (FAST_DAILY; cycle files already there)
 *   PRODUCER       1 .. 2^32-1, names this writer in its records
 *   COUNT          records to append in this run
 *   ACKFILE        "-", or a file of one page with int64 words (see below), created if it does not exist
 *   CRASHPOINT     1 .. 8, step of the append as numbered in src/cq.h
 *   AFTER_N        the append of this run, counted from 0, in which to die
 *   --sim-session  run the library's roll thread on a simulated session, which announces the cycles whose file exists.
 *                  Without it the appender itself follows a roll, as listing.highestCycle says
 *
 * Record number i (from 1) of a producer, a struct gpuseg_record:
 *
 *   kind        1 (BEGIN)          seq         i
 *   flags       0                  ticket      PRODUCER
 *   task_id     PRODUCER           time_ns     CLOCK_MONOTONIC at the append
 *   tid         thread id          release_ns  i * 1000003 + PRODUCER
 *   reserved0   0                  sample      0
 *   arg_ns      checksum: FNV-1a, 64 bit, over the 64 bytes of the record with arg_ns itself taken as 0
 *               (offset basis 0xcbf29ce484222325, prime 0x100000001b3, bytes in memory order, result as signed int64)
 *
 * Ack file, native-endian int64 words, mapped shared so that they survive kill -9:
 *   [0] records acknowledged: appends that returned (crash point 8 lies between the return and this store)
 *   [1] records attempted: set to i before append i is called
 *   [2] write locks taken over from dead processes, [3] unfinished documents replaced, [4] cycles followed,
 *   [5] of these mapped inline: all four summed over the runs
 *
 * A run begins at record [0] + 1. A run that died at steps 1 to 3 left no record. A run that died at steps 4 to 8 left
 * one record, which the next run appends again. So the reader sees seq increase by one, or repeat once per death.
 *
 * A full cycle or a busy lock is tried again, up to 30 s without progress. Exit status 0 done, 1 error, 2 usage, 3 no
 * progress.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cq.h"
#include "platform.h"

#define PATIENCE_NS (30 * NS_PER_S)

static struct cq queue;
static struct gpuseg_session session;
static uint32_t stopping;

static int64_t checksum(const struct gpuseg_record *r)
{
	struct gpuseg_record copy = *r;
	const uint8_t *p = (const uint8_t *)&copy;
	uint64_t h = 0xcbf29ce484222325u;

	copy.arg_ns = 0;
	for (size_t i = 0; i < sizeof(copy); i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return (int64_t)h;
}

/* Plays the daemon, which announces a cycle as soon as its file exists, and the library's roll thread. */
static void *sim_session(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		int64_t highest = __atomic_load_n(queue.highest_cycle, __ATOMIC_ACQUIRE);

		if (highest > session.prepared_cycle)
			__atomic_store_n(&session.prepared_cycle, highest, __ATOMIC_RELEASE);
		cq_service(&queue);
		sleep_ns(200 * NS_PER_US);
	}
	return NULL;
}

static int64_t *map_ack(const char *path)
{
	void *p;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return NULL;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int64_t number(const char *what, const char *text, int64_t low, int64_t high)
{
	char *end;
	int64_t value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < low || value > high) {
		fprintf(stderr, "gpuseg-queue-writer: %s is \"%s\"; give a number from %" PRId64 " to %" PRId64 "\n",
			what, text, low, high);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	int64_t private_ack[6] = {0}, *ack = private_ack, base[4];
	int64_t producer, count, first, started_ns;
	char text[CQ_TEXT_BYTES];
	bool simulate = false;
	pthread_t thread;
	int ret, n = 1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--sim-session") == 0)
			simulate = true;
		else
			argv[n++] = argv[i];
	}
	if (n != 4 && n != 5 && n != 7) {
		fprintf(stderr, "usage: gpuseg-queue-writer DIR PRODUCER COUNT [ACKFILE] [CRASHPOINT AFTER_N] "
				"[--sim-session]\n");
		return 2;
	}
	producer = number("PRODUCER", argv[2], 1, UINT32_MAX);
	count = number("COUNT", argv[3], 0, INT64_MAX / 2);
	if (n >= 5 && strcmp(argv[4], "-") != 0) {
		ack = map_ack(argv[4]);
		if (!ack) {
			fprintf(stderr, "gpuseg-queue-writer: ack file %s: %s\n", argv[4], strerror(errno));
			return 1;
		}
	}
	if (n == 7) {
		cq_crash_step = (int)number("CRASHPOINT", argv[5], 1, 8);
		cq_crash_after = number("AFTER_N", argv[6], 0, INT64_MAX);
	}
	session.prepared_cycle = -1;
	ret = cq_attach(&queue, argv[1], simulate ? &session.prepared_cycle : NULL, text);
	if (ret < 0) {
		fprintf(stderr, "gpuseg-queue-writer: %s\n", text);
		return 1;
	}
	if (simulate && pthread_create(&thread, NULL, sim_session, NULL) != 0) {
		fprintf(stderr, "gpuseg-queue-writer: cannot start the roll thread\n");
		return 1;
	}
	memcpy(base, ack + 2, sizeof(base));
	first = ack[0] + 1;
	started_ns = now_ns();
	for (int64_t i = first; i < first + count; i++) {
		struct gpuseg_record r = {.kind = GPUSEG_RECORD_BEGIN,
					  .task_id = (uint32_t)producer,
					  .seq = (uint64_t)i,
					  .ticket = (uint64_t)producer,
					  .time_ns = now_ns(),
					  .release_ns = i * 1000003 + producer,
					  .tid = (uint32_t)syscall(SYS_gettid)};
		int64_t give_up_ns = r.time_ns + PATIENCE_NS;

		r.arg_ns = checksum(&r);
		__atomic_store_n(&ack[1], i, __ATOMIC_RELEASE);
		while ((ret = cq_append(&queue, &r)) == -EBUSY || ret == -ENOSPC) {
			if (now_ns() - give_up_ns >= 0)
				break;
			sleep_ns(100 * NS_PER_US);
		}
		if (ret < 0) {
			fprintf(stderr, "gpuseg-queue-writer: record %" PRId64 ": %s\n", i, strerror(-ret));
			return ret == -EBUSY || ret == -ENOSPC ? 3 : 1;
		}
		CQ_CRASHPOINT(8);
		ack[2] = base[0] + (int64_t)queue.steals;
		ack[3] = base[1] + (int64_t)queue.overwritten;
		ack[4] = base[2] + (int64_t)queue.rolls;
		ack[5] = base[3] + (int64_t)queue.remaps_inline;
		__atomic_store_n(&ack[0], i, __ATOMIC_RELEASE);
	}
	if (simulate) {
		__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	printf("producer %" PRId64 ": %" PRId64 " records, %.1f ns each, %" PRIu64 " rolls (%" PRIu64
	       " inline), %" PRIu64 " locks taken over\n",
	       producer, count, count ? (double)(now_ns() - started_ns) / (double)count : 0.0, queue.rolls,
	       queue.remaps_inline, queue.steals);
	cq_detach(&queue);
	return 0;
}
