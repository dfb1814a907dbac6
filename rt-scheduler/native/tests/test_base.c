/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "demo/segments.h"
#include "tests/check.h"

TEST(should_read_durations_with_units)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"1024us", 1024000}, {"1.5ms", 1500000}, {"2s", 2000000000}, {"0ns", 0},
		    {"0.000001ms", 1},	 {"7ns", 7},	     {"0.5us", 500},	 {"9223372036854775807ns", INT64_MAX}};

	for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
		int64_t ns = -1;

		CHECK(parse_duration(good[i].text, &ns) == 0, "%s", good[i].text);
		CHECK(ns == good[i].ns, "%s is %" PRId64, good[i].text, ns);
	}
}

TEST(should_refuse_what_is_no_duration)
{
	static const struct {
		const char *text;
		int error;
	} bad[] = {{"5", -EINVAL},	     {"", -EINVAL},
		   {"ms", -EINVAL},	     {"-1ms", -EINVAL},
		   {"1 ms", -EINVAL},	     {"1.ms", -EINVAL},
		   {".5ms", -EINVAL},	     {"1h", -EINVAL},
		   {"1msx", -EINVAL},	     {"0.5ns", -ERANGE},
		   {"0.0001us", -ERANGE},    {"9223372036854775808ns", -ERANGE},
		   {"9223372037s", -ERANGE}, {"0.1234567891s", -ERANGE}};

	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		int64_t ns = 42;
		const int rc = parse_duration(bad[i].text, &ns);

		CHECK(rc == bad[i].error, "\"%s\" gives %d", bad[i].text, rc);
		CHECK(ns == 42, "\"%s\" wrote %" PRId64, bad[i].text, ns);
	}
}

TEST(should_read_segments)
{
	struct segment s[SEGMENTS_MAX];
	char error[256];

	CHECK_EQ(parse_segments("cpu:2ms,gpu:1ms+4ms,cpu:3ms", s, error, sizeof(error)), 3);
	CHECK(s[0].kind == SEGMENT_CPU && s[0].cpu_ns == 2 * NS_PER_MS && s[0].device_ns == 0, "first segment");
	CHECK(s[1].kind == SEGMENT_GPU && s[1].cpu_ns == NS_PER_MS && s[1].device_ns == 4 * NS_PER_MS,
	      "second segment");
	CHECK(s[2].kind == SEGMENT_CPU && s[2].cpu_ns == 3 * NS_PER_MS, "third segment");
}

TEST(should_name_the_segment_it_refuses)
{
	static const char *const bad[] = {"cpu:2", "gpu:1ms",	"npu:1ms", "cpu:1ms,,cpu:1ms",
					  "",	   "gpu:1ms+4", "cpu:1ms,"};
	struct segment s[SEGMENTS_MAX];

	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		char error[256] = "";

		CHECK(parse_segments(bad[i], s, error, sizeof(error)) == -EINVAL, "\"%s\" was taken", bad[i]);
		CHECK(strchr(error, '"'), "\"%s\": \"%s\"", bad[i], error);
	}
}

TEST(should_tell_start_ticks_of_a_process)
{
	const uint64_t mine = process_start_ticks(getpid());

	CHECK(mine != 0 && mine == process_start_ticks(getpid()), "own start ticks %" PRIu64, mine);
	/* Above every pid_max that Linux allows. */
	CHECK_EQ(process_start_ticks(1 << 23), 0);
}

static pid_t child_that(bool runs)
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!runs)
			pause();
		for (;;)
			continue;
	}
	CHECK(pid > 0);
	return pid;
}

TEST(should_tell_whether_a_process_advances)
{
	const pid_t waits = child_that(false), runs = child_that(true);
	uint64_t waited_ns = 0, ran_ns = 0;

	/* it waits as soon as two looks say so; on a busy machine it may not have come to it yet */
	while (process_advances(waits, &waited_ns))
		sleep_until(now_ns() + 10 * NS_PER_MS, NULL);
	for (int i = 0; i < 100; i++)
		CHECK(process_advances(runs, &ran_ns), "look %d", i);
	CHECK(!process_advances(waits, &waited_ns), "it has nothing to do");
	kill(waits, SIGKILL);
	kill(runs, SIGKILL);
	CHECK_EQ(waitpid(waits, NULL, 0), waits);
	CHECK_EQ(waitpid(runs, NULL, 0), runs);
	CHECK(!process_advances(runs, &ran_ns), "it is gone");
}

static const struct check_case cases[] = {
	CASE(should_read_durations_with_units),
	CASE(should_refuse_what_is_no_duration),
	CASE(should_read_segments),
	CASE(should_name_the_segment_it_refuses),
	CASE(should_tell_start_ticks_of_a_process),
	CASE(should_tell_whether_a_process_advances),
};
CHECK_MAIN_APART(cases)
