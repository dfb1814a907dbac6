/* SPDX-License-Identifier: Apache-2.0 */
/* test_cq.c - the appender against queue files: format checks, damage, crash repair, locks, rolls. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "cq.h"
#include "fixture.h"
#include "platform.h"

static struct gpuseg_record numbered(uint64_t seq)
{
	return (struct gpuseg_record){
		.kind = GPUSEG_RECORD_BEGIN, .task_id = 7, .seq = seq, .ticket = seq * 3, .arg_ns = (int64_t)~seq};
}

static void append_n(struct cq *q, uint64_t from, uint64_t n)
{
	for (uint64_t i = from; i < from + n; i++) {
		struct gpuseg_record r = numbered(i);

		CHECK_EQ(cq_append(q, &r), 0);
	}
}

/* Exactly the records from..from+n-1 come next, then nothing. */
static void expect_n(struct fixture_tail *tail, uint64_t from, uint64_t n)
{
	struct gpuseg_record r, expected;

	for (uint64_t i = from; i < from + n; i++) {
		expected = numbered(i);
		CHECK_EQ(fixture_tail_next(tail, &r), 1);
		CHECK_EQ(r.seq, i);
		CHECK(memcmp(&r, &expected, sizeof(r)) == 0);
	}
	CHECK_EQ(fixture_tail_next(tail, &r), 0);
}

static void new_queue(char dir[64])
{
	fixture_directory(dir);
	fixture_queue_create(dir, FIXTURE_CYCLE_BYTES);
}

static void attach(struct cq *q, const char *dir)
{
	char text[CQ_TEXT_BYTES];
	int ret = cq_attach(q, dir, NULL, text);

	if (ret < 0)
		fprintf(stderr, "    %s\n", text);
	CHECK_EQ(ret, 0);
}

/* ---- refusals ---- */

TEST(should_refuse_what_is_not_a_queue)
{
	char dir[64], text[CQ_TEXT_BYTES];
	struct cq q;
	int fd;

	CHECK_EQ(cq_attach(&q, "/nonexistent/queue", NULL, text), -ENOENT);
	CHECK_CONTAINS(text, "/nonexistent/queue");
	fixture_directory(dir);
	CHECK_EQ(cq_attach(&q, dir, NULL, text), -ENOENT);
	CHECK_CONTAINS(text, "metadata.cq4t");
	{
		char path[128];

		fixture_path(dir, -1, path);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		CHECK(fd >= 0);
		CHECK_EQ(cq_attach(&q, dir, NULL, text), -EBADMSG);
		CHECK_EQ(ftruncate(fd, 131072), 0);
		CHECK_EQ(cq_attach(&q, dir, NULL, text), -EPROTONOSUPPORT);
		close(fd);
	}
	fixture_remove(dir);
}

/*
 * Replace `from` by `to` (same length) in a file of the queue, expect a refusal that contains `complaint`, then restore
 * it.
 */
static void refuse_changed(const char *dir, int64_t file, const char *from, const char *to, size_t n, int error,
			   const char *complaint)
{
	char text[CQ_TEXT_BYTES];
	struct cq q;
	size_t size;
	uint8_t *base = fixture_map(dir, file, &size), *at = memmem(base, size, from, n);
	int ret;

	CHECK(at != NULL);
	memcpy(at, to, n);
	ret = cq_attach(&q, dir, NULL, text);
	if (ret != error)
		fprintf(stderr, "    for \"%s\": %s\n", complaint, text);
	CHECK_EQ(ret, error);
	CHECK_CONTAINS(text, complaint);
	memcpy(at, from, n);
	munmap(base, size);
}

TEST(should_refuse_other_formats_by_name_and_value)
{
	char dir[64];
	struct cq q;

	new_queue(dir);
	refuse_changed(dir, -1, "BINARY_LIGHT", "BINARY_HEAVY", 12, -EPROTONOSUPPORT, "wireType");
	refuse_changed(dir, -1, "yyyyMMdd'F'", "yyyyMMdd'X'", 11, -EPROTONOSUPPORT, "roll format");
	refuse_changed(dir, -1, "\xc6length\xa6\x00\x5c\x26\x05", "\xc6length\xa6\x80\xee\x36\x00", 12,
		       -EPROTONOSUPPORT, "length is 3600000");
	refuse_changed(dir, -1, "epoch\xa1\x00", "epoch\xa1\x05", 7, -EPROTONOSUPPORT, "epoch is 5");
	refuse_changed(dir, -1, "write.lock", "write.luck", 10, -EPROTONOSUPPORT, "chronicle.write.lock");
	refuse_changed(dir, -1, "highestCycle", "biggestCycle", 12, -EPROTONOSUPPORT, "listing.highestCycle");
	refuse_changed(dir, -1, "SCQSRoll\x82", "SCQSRoll\x83", 9, -EPROTONOSUPPORT, "roll settings");
	refuse_changed(dir, 0, "dataFormat\xa1\x01", "dataFormat\xa1\x02", 12, -EPROTONOSUPPORT, "dataFormat is 2");
	refuse_changed(dir, 0, "indexCount\xa5\x00\x10", "indexCount\xa5\x00\x20", 13, -EPROTONOSUPPORT,
		       "indexCount is 8192");
	refuse_changed(dir, 0, "indexSpacing\xa5\x00\x01", "indexSpacing\xa5\x40\x00", 15, -EPROTONOSUPPORT,
		       "indexSpacing is 64");
	refuse_changed(dir, 0, "writePosition", "writePosItion", 13, -EPROTONOSUPPORT, "writePosition");
	refuse_changed(dir, 0, "\xc1\x00\x00\x40", "\xc1\x00\x00\xc0", 4, -EBADMSG, "no complete header");
	refuse_changed(dir, 0, "\xc1\x00\x00\x40", "\xc1\xff\xff\x7f", 4, -EBADMSG, "no complete header");
	attach(&q, dir); /* everything is restored: the format is right again */
	cq_detach(&q);
	fixture_remove(dir);
}

TEST(should_refuse_every_damaged_byte_or_stay_within_the_file)
{
	char dir[64], text[CQ_TEXT_BYTES];
	uint64_t rng = 88172645463325252u;
	size_t meta_size, cycle_size, refused = 0;
	uint8_t *meta, *cycle;

	new_queue(dir);
	meta = fixture_map(dir, -1, &meta_size);
	cycle = fixture_map(dir, 0, &cycle_size);
	for (int i = 0; i < 3000; i++) {
		bool in_meta = i & 1;
		size_t at;
		uint8_t *p, old;
		struct cq q;

		rng ^= rng << 13;
		rng ^= rng >> 7;
		rng ^= rng << 17;
		at = (rng >> 8) % (in_meta ? 0x1f0 : 0xd0);
		p = (in_meta ? meta : cycle) + at;
		old = *p;
		*p = (uint8_t)rng;
		if (cq_attach(&q, dir, NULL, text) == 0) {
			struct gpuseg_record r = numbered(1);

			q.lock_timeout_ns = 1000;
			/*
			 * Any result is allowed, but no access outside the mappings. The appended record is erased
			 * again.
			 */
			(void)cq_append(&q, &r);
			if (q.cur.base && q.cur.tail <= cycle_size && q.cur.tail >= FIXTURE_FIRST_DATA)
				memset(cycle + FIXTURE_FIRST_DATA, 0, 256);
			cq_detach(&q);
		} else {
			CHECK(text[0] != '\0');
			refused++;
		}
		*p = old;
		memset(cycle + 0x40, 0, 16);
		*fixture_write_lock(meta, meta_size) = INT64_MIN;
	}
	CHECK(refused > 500);
	munmap(meta, meta_size);
	munmap(cycle, cycle_size);
	fixture_remove(dir);
}

TEST(should_refuse_a_forged_length_instead_of_following_it)
{
	struct gpuseg_record r = numbered(1);
	char dir[64];
	uint8_t *cycle;
	struct cq q;
	size_t size;

	new_queue(dir);
	cycle = fixture_map(dir, 0, &size);
	attach(&q, dir);
	*(uint32_t *)(void *)(cycle + FIXTURE_FIRST_DATA) = 0x3ffffffc;
	CHECK_EQ(cq_append(&q, &r), -EBADMSG);
	CHECK_EQ(*q.write_lock, INT64_MIN);
	cq_detach(&q);
	munmap(cycle, size);
	fixture_remove(dir);
}

/* ---- appending ---- */

TEST(should_append_what_a_tailer_reads)
{
	struct fixture_tail tail;
	char dir[64];
	struct cq q;

	new_queue(dir);
	attach(&q, dir);
	fixture_tail_open(&tail, dir, 0);
	append_n(&q, 1, 1000);
	expect_n(&tail, 1, 1000);
	CHECK_EQ(q.cur.write_position[0], (int64_t)(FIXTURE_FIRST_DATA + 999 * 68));
	CHECK_EQ(q.cur.write_position[1], (int64_t)(FIXTURE_FIRST_DATA + 999 * 68) << 32 | 999);
	cq_detach(&q);
	attach(&q, dir); /* a second writer finds the end by itself */
	append_n(&q, 1001, 10);
	expect_n(&tail, 1001, 10);
	CHECK_EQ(q.cur.write_position[1] & UINT32_MAX, 1009);
	cq_detach(&q);
	fixture_tail_close(&tail);
	fixture_remove(dir);
}

TEST(should_ignore_a_write_position_left_half_written)
{
	struct fixture_tail tail;
	char dir[64];
	struct cq q;

	new_queue(dir);
	attach(&q, dir);
	fixture_tail_open(&tail, dir, 0);
	append_n(&q, 1, 5);
	q.cur.write_position[1] = 0;
	q.cur.write_position[0] = 64;
	cq_detach(&q);
	attach(&q, dir);
	append_n(&q, 6, 1);
	expect_n(&tail, 1, 6);
	CHECK_EQ(q.cur.write_position[1], (int64_t)(FIXTURE_FIRST_DATA + 5 * 68) << 32 | 5);
	cq_detach(&q);
	fixture_tail_close(&tail);
	fixture_remove(dir);
}

TEST(should_overwrite_an_unfinished_document)
{
	struct fixture_tail tail;
	char dir[64];
	struct cq q;

	new_queue(dir);
	attach(&q, dir);
	fixture_tail_open(&tail, dir, 0);
	append_n(&q, 1, 2);
	*(uint32_t *)(void *)(tail.base + FIXTURE_FIRST_DATA + 2 * 68) = 0x80000000u | 64;
	append_n(&q, 3, 1);
	CHECK_EQ(q.overwritten, 1);
	expect_n(&tail, 1, 3);
	cq_detach(&q);
	fixture_tail_close(&tail);
	fixture_remove(dir);
}

TEST(should_stop_before_the_end_of_the_file_and_leave_room_to_end_the_cycle)
{
	struct gpuseg_record r = numbered(1);
	struct fixture_tail tail;
	char dir[64];
	struct cq q;
	uint64_t n = 0;

	fixture_directory(dir);
	fixture_queue_create(dir, FIXTURE_FIRST_DATA + 1000);
	attach(&q, dir);
	fixture_tail_open(&tail, dir, 0);
	while (cq_append(&q, &r) == 0)
		r = numbered(++n + 1);
	CHECK_EQ(n, (1000 - 72) / 68);
	CHECK_EQ(cq_append(&q, &r), -ENOSPC);
	expect_n(&tail, 1, n);
	fixture_roll(dir, 0, FIXTURE_CYCLE_BYTES);
	CHECK_EQ(cq_append(&q, &r), 0);
	CHECK_EQ(q.rolls, 1);
	cq_detach(&q);
	fixture_tail_close(&tail);
	fixture_remove(dir);
}

/* ---- the lock ---- */

TEST(should_give_up_on_a_lock_that_is_held_and_drop_nothing_else)
{
	struct gpuseg_record r = numbered(1);
	char dir[64];
	struct cq q;
	int64_t started;

	new_queue(dir);
	attach(&q, dir);
	*q.write_lock = getppid() > 0 ? getppid() : 1; /* alive */
	q.lock_timeout_ns = 5 * NS_PER_MS;
	started = now_ns();
	CHECK_EQ(cq_append(&q, &r), -EBUSY);
	CHECK(now_ns() - started >= 5 * NS_PER_MS);
	CHECK_EQ(q.steals, 0);
	*q.write_lock = INT64_MIN;
	CHECK_EQ(cq_append(&q, &r), 0);
	cq_detach(&q);
	fixture_remove(dir);
}

static pid_t dead_pid(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	return child;
}

/* The holder lives in another PID namespace: its pid is nobody's here, which proves nothing. */
TEST(should_leave_the_lock_to_a_holder_whose_pid_says_nothing)
{
	struct gpuseg_record r = numbered(1);
	char dir[64];
	struct cq q;

	new_queue(dir);
	attach(&q, dir);
	q.foreign_pids = true;
	q.lock_timeout_ns = 5 * NS_PER_MS;
	*q.write_lock = dead_pid();
	CHECK_EQ(cq_append(&q, &r), -EBUSY);
	CHECK_EQ(q.steals, 0);
	q.foreign_pids = false;
	CHECK_EQ(cq_append(&q, &r), 0);
	CHECK_EQ(q.steals, 1);
	cq_detach(&q);
	fixture_remove(dir);
}

TEST(should_take_over_the_lock_of_a_dead_process)
{
	struct gpuseg_record r = numbered(1);
	char dir[64];
	struct cq q;

	new_queue(dir);
	attach(&q, dir);
	*q.write_lock = dead_pid();
	CHECK_EQ(cq_append(&q, &r), 0);
	*q.write_lock =
		(int64_t)0x1234 << 32 | dead_pid(); /* with a thread id in the upper half, as in older releases */
	CHECK_EQ(cq_append(&q, &r), 0);
	CHECK_EQ(q.steals, 2);
	CHECK_EQ(*q.write_lock, INT64_MIN);
	*q.write_lock = getpid(); /* left by a process that had our pid */
	cq_detach(&q);
	attach(&q, dir);
	CHECK_EQ(cq_append(&q, &r), 0);
	cq_detach(&q);
	fixture_remove(dir);
}

/* ---- rolls ---- */

TEST(should_wait_a_bounded_time_for_a_cycle_that_does_not_come)
{
	struct gpuseg_record r = numbered(1);
	char dir[64];
	uint8_t *cycle;
	struct cq q;
	size_t size;

	new_queue(dir);
	attach(&q, dir);
	cycle = fixture_map(dir, 0, &size);
	*(uint32_t *)(void *)(cycle + FIXTURE_FIRST_DATA) = 0xC0000000u;
	CHECK_EQ(cq_append(&q, &r), -EBUSY);
	CHECK_EQ(*q.write_lock, INT64_MIN);
	fixture_cycle_create(dir, 3, FIXTURE_CYCLE_BYTES); /* 1 and 2 were deleted already */
	CHECK_EQ(cq_append(&q, &r), -EBUSY);
	fixture_cycle_announce(dir, 3);
	CHECK_EQ(cq_append(&q, &r), 0);
	CHECK_EQ(q.cur.cycle, 3);
	CHECK_EQ(q.remaps_inline, 1);
	munmap(cycle, size);
	cq_detach(&q);
	fixture_remove(dir);
}

TEST(should_use_the_cycle_mapped_ahead_and_release_the_old_one)
{
	struct gpuseg_record r = numbered(1);
	int64_t prepared = 0;
	char dir[64], text[CQ_TEXT_BYTES];
	struct cq q;

	new_queue(dir);
	CHECK_EQ(cq_attach(&q, dir, &prepared, text), 0);
	CHECK_EQ(cq_service(&q), 0);
	CHECK(q.ahead.base == NULL);
	for (int64_t c = 0; c < 4; c++) {
		fixture_cycle_create(dir, c + 1, FIXTURE_CYCLE_BYTES);
		prepared = c + 1;
		CHECK_EQ(cq_service(&q), 0);
		CHECK_EQ(q.ahead.cycle, c + 1);
		CHECK(q.retired.base == NULL);
		CHECK_EQ(cq_append(&q, &r), 0);
		CHECK_EQ(q.cur.cycle, c);
		fixture_roll(dir, c, FIXTURE_CYCLE_BYTES);
		CHECK_EQ(cq_append(&q, &r), 0);
		CHECK_EQ(q.cur.cycle, c + 1);
		CHECK(q.ahead.base == NULL);
		CHECK(q.retired.base != NULL);
	}
	CHECK_EQ(q.rolls, 4);
	CHECK_EQ(q.remaps_inline, 0);
	CHECK_EQ(cq_service(&q), 0);
	CHECK(q.retired.base == NULL);
	cq_detach(&q);
	fixture_remove(dir);
}

TEST(should_drop_a_cycle_mapped_ahead_that_came_too_late)
{
	struct gpuseg_record r = numbered(1);
	int64_t prepared = 1;
	char dir[64], text[CQ_TEXT_BYTES];
	struct cq q;

	new_queue(dir);
	CHECK_EQ(cq_attach(&q, dir, &prepared, text), 0);
	fixture_roll(dir, 0, FIXTURE_CYCLE_BYTES);
	CHECK_EQ(cq_append(&q, &r), 0); /* mapped inline: there is no roll thread */
	CHECK_EQ(q.remaps_inline, 1);
	prepared = 2;
	fixture_cycle_create(dir, 2, FIXTURE_CYCLE_BYTES);
	CHECK_EQ(cq_service(&q), 0);
	CHECK_EQ(q.ahead.cycle, 2);
	fixture_roll(dir, 1, FIXTURE_CYCLE_BYTES);
	CHECK_EQ(cq_append(&q, &r), 0);
	CHECK_EQ(q.remaps_inline, 1);
	cq_detach(&q);
	fixture_remove(dir);
}

static const struct check_case cases[] = {
	CASE(should_refuse_what_is_not_a_queue),
	CASE(should_refuse_other_formats_by_name_and_value),
	CASE(should_refuse_every_damaged_byte_or_stay_within_the_file),
	CASE(should_refuse_a_forged_length_instead_of_following_it),
	CASE(should_append_what_a_tailer_reads),
	CASE(should_ignore_a_write_position_left_half_written),
	CASE(should_overwrite_an_unfinished_document),
	CASE(should_stop_before_the_end_of_the_file_and_leave_room_to_end_the_cycle),
	CASE(should_give_up_on_a_lock_that_is_held_and_drop_nothing_else),
	CASE(should_leave_the_lock_to_a_holder_whose_pid_says_nothing),
	CASE(should_take_over_the_lock_of_a_dead_process),
	CASE(should_wait_a_bounded_time_for_a_cycle_that_does_not_come),
	CASE(should_use_the_cycle_mapped_ahead_and_release_the_old_one),
	CASE(should_drop_a_cycle_mapped_ahead_that_came_too_late),
};
CHECK_MAIN(cases)
