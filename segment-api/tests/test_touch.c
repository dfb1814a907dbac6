/* SPDX-License-Identifier: Apache-2.0 */
/* test_touch.c - touches before begins that the daemon expects. Refusals first. */
#include "exec_rig.h"

#define ATTEMPTS 10
#define OLD_MINOR 9
#define EXPECTED_MOST 5 /* of a run: one that stands still in a pause of 30 ms is played again */
#define WARM_RECORDS 4	/* two segments: what is needed for touches is there */

#define PERIODIC "--priority", "80", "--period", "30ms", "GPUSEG_EXEC_HOLD_OFF=200us", "GPUSEG_EXEC_VERBOSE=1"

struct touched {
	unsigned int expected; /* times that the daemon said so */
	unsigned int touches;  /* as the library says */
	unsigned int memsets;  /* as the driver says: one more, the first */
};

static bool running(const struct run *r)
{
	return r->out >= 0 || r->err >= 0;
}

static unsigned int number_after(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	CHECK(at, "no \"%s\" in: %s", label, text);
	return (unsigned int)strtoul(at + strlen(label), NULL, 10);
}

static unsigned int touches_said(const char *said)
{
	const char *at = strstr(said, " touches before");

	if (!at)
		return 0;
	while (at > said && at[-1] != ' ')
		at--;
	return (unsigned int)strtoul(at, NULL, 10);
}

/* Expect the begins after the first two, `times` each: between segments, or while one is open. */
static struct touched follow_jobs(struct fake_daemon *d, struct run *r, bool open, unsigned int times)
{
	struct touched t = {0};
	size_t seen = WARM_RECORDS - 1;

	while (running(r)) {
		const size_t records = fake_daemon_records(d);

		follow_for(r, NS_PER_MS);
		if (records <= seen || records % 2 != open || t.expected >= EXPECTED_MOST)
			continue;
		seen = records;
		for (unsigned int i = 0; i < times; i++) {
			t.expected += fake_daemon_expect(d, 0);
			sleep_ns(2 * NS_PER_MS);
		}
	}
	finish(r);
	passed(r);
	t.memsets = number_after(r->said, "memsets ");
	t.touches = touches_said(r->said);
	CHECK_EQ(t.memsets, t.touches + (t.memsets > 0));
	return t;
}

static struct touched jobs(void (*adjust)(struct fake_daemon *), bool open, unsigned int times, const char *us,
			   const char *const *options)
{
	const char *arguments[ARGUMENTS] = {in_build("gpuseg-exec")};
	const struct run alone = RUN(APP, "far-apart", us);
	struct fake_daemon d;
	struct touched t;
	struct run r;
	size_t n = 1;

	fake_daemon_start(&d);
	prepare(&d);
	if (adjust)
		adjust(&d);
	for (; *options; options++)
		arguments[n++] = *options;
	arguments[n++] = "--";
	arguments[n++] = APP;
	arguments[n++] = "far-apart";
	arguments[n++] = us;
	r = start(arguments);
	t = follow_jobs(&d, &r, open, times);
	CHECK(strcmp(alone.text, r.text) == 0, "alone: %s, with gpuseg: %s", alone.text, r.text);
	fake_daemon_stop(&d);
	return t;
}

#define JOBS(adjust, open, times, us, ...) jobs(adjust, open, times, us, (const char *const[]){__VA_ARGS__, NULL})

/* ---- no touch ---- */

static void never_asked(void (*adjust)(struct fake_daemon *), const char *const *options)
{
	const struct touched t = jobs(adjust, false, 1, "300", options);

	CHECK_EQ(t.expected, 0);
	CHECK_EQ(t.memsets, 0);
}

#define NEVER_ASKED(adjust, ...) never_asked(adjust, (const char *const[]){__VA_ARGS__, NULL})

TEST(should_not_touch_where_it_is_switched_off)
{
	prepare(NULL);
	NEVER_ASKED(NULL, PERIODIC, "GPUSEG_EXEC_TOUCH=off");
}

TEST(should_not_touch_for_best_effort)
{
	prepare(NULL);
	NEVER_ASKED(NULL, "--best-effort", "GPUSEG_EXEC_TOUCH=on");
}

static void is_old(struct fake_daemon *d)
{
	__atomic_store_n(&d->session->version, GPUSEG_ABI_MAJOR << 16 | OLD_MINOR, __ATOMIC_RELEASE);
}

TEST(should_not_ask_a_daemon_that_does_not_say_what_it_expects)
{
	prepare(NULL);
	NEVER_ASKED(is_old, PERIODIC);
}

TEST(should_refuse_another_word_than_on_or_off)
{
	struct run r;

	prepare(NULL);
	r = EXEC("--priority", "80", "GPUSEG_EXEC_TOUCH=yes", "--", "/bin/true");
	CHECK_EQ(WEXITSTATUS(r.status), 2);
	CHECK_CONTAINS(r.said, "GPUSEG_EXEC_TOUCH is \"yes\"; give on or off");
	r = EXEC("--priority", "80", "GPUSEG_EXEC_TOUCH=on", "--print-environment");
	CHECK_CONTAINS(r.text, "GPUSEG_EXEC_TOUCH=on\n");
}

/* On a busy machine a segment may have ended before the test has seen its begin. */
TEST(should_not_touch_while_the_program_has_a_segment)
{
	struct touched t = {.touches = 1};

	prepare(NULL);
	for (int i = 0; i < ATTEMPTS && (t.touches > 0 || t.expected == 0); i++)
		t = JOBS(NULL, true, 1, "20000", PERIODIC);
	CHECK(t.expected > 0);
	CHECK_EQ(t.touches, 0);
}

TEST(should_not_touch_during_a_capture)
{
	struct fake_daemon d;
	unsigned int expected = 0;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = start((const char *const[]){in_build("gpuseg-exec"), PERIODIC, "--", APP, "long-capture", NULL});
	follow(&r, "captures\n");
	while (running(&r) && !strstr(r.said, "memsets")) {
		expected += fake_daemon_expect(&d, 0);
		follow_for(&r, 5 * NS_PER_MS);
	}
	finish(&r);
	passed(&r); /* no violation */
	CHECK(expected > 0);
	CHECK(number_after(r.said, "memsets ") <= 1, "%s", r.said);
	fake_daemon_stop(&d);
}

TEST(should_go_on_without_touches_if_the_driver_refuses_one)
{
	struct touched t;

	prepare(NULL);
	setenv("STANDIN_NO_TOUCHES", "1", 1);
	t = JOBS(NULL, false, 1, "300", PERIODIC);
	unsetenv("STANDIN_NO_TOUCHES");
	CHECK(t.expected > 0);
	CHECK_EQ(t.memsets, 0);
}

/* A touch that is still to be done is what the GPU will switch to. */
TEST(should_not_touch_again_before_the_touch_is_done)
{
	struct touched t = {0};

	prepare(NULL);
	setenv("STANDIN_TOUCH_US", "15000", 1);
	for (int i = 0; i < ATTEMPTS && (t.touches == 0 || t.touches > t.expected / 2); i++)
		t = JOBS(NULL, false, 2, "300", PERIODIC);
	unsetenv("STANDIN_TOUCH_US");
	CHECK(t.touches > 0 && t.touches <= t.expected / 2, "%u touches for %u", t.touches, t.expected);
}

/* ---- touched ---- */

/* After the first expected begin the library makes what a touch needs. */
static void once_each(const char *const *options)
{
	struct touched t = {0};

	for (int i = 0; i < ATTEMPTS && (t.touches == 0 || t.touches + 1 < t.expected); i++) {
		t = jobs(NULL, false, 1, "300", options);
		CHECK(t.touches < t.expected, "%u touches for %u", t.touches, t.expected);
	}
	CHECK(t.expected > 1);
	CHECK_EQ(t.touches + 1, t.expected);
}

TEST(should_touch_once_for_each_expected_begin)
{
	prepare(NULL);
	once_each((const char *const[]){PERIODIC, NULL});
}

/* Its period may be learned. */
TEST(should_touch_without_a_declared_period)
{
	prepare(NULL);
	once_each(
		(const char *const[]){"--priority", "80", "GPUSEG_EXEC_HOLD_OFF=200us", "GPUSEG_EXEC_VERBOSE=1", NULL});
}

/* ---- under load and faults ---- */

struct storm {
	struct fake_daemon *d;
	uint32_t over; /* atomic */
	unsigned int expected;
};

/* Expects begins at all times, of all tasks. */
static void *rage(void *arg)
{
	struct storm *storm = arg;

	while (!__atomic_load_n(&storm->over, __ATOMIC_ACQUIRE)) {
		for (unsigned int slot = 0; slot < 4; slot++)
			storm->expected += fake_daemon_expect(storm->d, slot);
		sleep_ns(300 * NS_PER_US);
	}
	return NULL;
}

/* How often a begin was expected; a program that is short may end before its thread runs. */
static unsigned int unchanged(const char *scenario, const char *alone, unsigned int clients)
{
	struct storm storm = {0};
	struct fake_daemon d;
	pthread_t thread;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	storm.d = &d;
	CHECK_EQ(pthread_create(&thread, NULL, rage, &storm), 0);
	r = EXEC("--priority", "80", "--period", "20ms", "--", APP, scenario);
	__atomic_store_n(&storm.over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	same_as_alone(&r, alone); /* no violation either */
	if (clients == 1)
		CHECK_EQ(tally_of(&d).open, 0);
	fake_daemon_stop(&d);
	return storm.expected;
}

TEST(should_change_no_result_of_the_program)
{
	static const char *const scenarios[] = {"jobs",	    "no-sync", "default-stream", "per-thread",
						"threads",  "graphs",  "kinds",		 "streams-end",
						"contexts", "forks",   "failing"};
	unsigned int expected = 0;

	prepare(NULL);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		expected += unchanged(scenarios[i], scenarios[i], 1);
	expected += unchanged("exec", "jobs", 2);
	expected += unchanged("by-hand", "by-hand", 2);
	CHECK(expected > 0);
}

TEST(should_run_on_if_the_daemon_dies_and_touch_for_the_next_one)
{
	const int64_t limit_ns = now_ns() + HANG_NS;
	unsigned int expected = 0;
	struct fake_daemon d;
	size_t before;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "--period", "10ms",
					"GPUSEG_EXEC_HOLD_OFF=200us", "GPUSEG_EXEC_VERBOSE=1", "--", APP, "while",
					"60000", NULL});
	CHECK(fake_daemon_wait(&d, 20, NULL));
	CHECK(fake_daemon_expect(&d, 0), "it does not wait for expected begins");
	fake_daemon_kill(&d);
	sleep_ns(100 * NS_PER_MS);
	fake_daemon_follow(&d);
	before = fake_daemon_records(&d);
	CHECK(fake_daemon_wait(&d, before + 20, NULL));
	while (expected == 0 && now_ns() - limit_ns < 0) {
		expected += fake_daemon_expect(&d, 0);
		sleep_ns(NS_PER_MS);
	}
	kill(r.pid, SIGTERM);
	finish(&r);
	passed(&r);
	CHECK(expected > 0, "it does not ask the next daemon; it said: %s", r.said);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_not_touch_where_it_is_switched_off),
	CASE(should_not_touch_for_best_effort),
	CASE(should_not_ask_a_daemon_that_does_not_say_what_it_expects),
	CASE(should_refuse_another_word_than_on_or_off),
	CASE(should_not_touch_while_the_program_has_a_segment),
	CASE(should_not_touch_during_a_capture),
	CASE(should_go_on_without_touches_if_the_driver_refuses_one),
	CASE(should_not_touch_again_before_the_touch_is_done),
	CASE(should_touch_once_for_each_expected_begin),
	CASE(should_touch_without_a_declared_period),
	CASE(should_change_no_result_of_the_program),
	CASE(should_run_on_if_the_daemon_dies_and_touch_for_the_next_one),
};
CHECK_MAIN(cases)
