/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_inject.c - programs as they are under gpuseg-exec, on the stand-ins of libcuda and libcupti, with a daemon in a
 * thread. Refusals first.
 */
#include <errno.h>
#include <signal.h>

#include "exec_rig.h"

/*
 * Run the scenario under these options with a daemon of its own. On a busy machine the library's thread may not run for
 * a while, and two segments become one; so the number of segments may be too small, but must be right once in some
 * attempts. All else must hold each time.
 */
#define ATTEMPTS 10

static struct gpuseg_msg_task_open opened; /* the latest task */
static unsigned int opens;

static struct tally attempt(const char *scenario, unsigned int least, unsigned int most,
			    void (*adjust)(struct fake_daemon *), const char *const *options)
{
	struct tally t = {0};

	for (int i = 0; i < ATTEMPTS && t.begins < least; i++) {
		const char *arguments[ARGUMENTS] = {NULL};
		struct fake_daemon d;
		struct run r;
		size_t n = 0;

		fake_daemon_start(&d);
		prepare(&d);
		if (adjust)
			adjust(&d);
		arguments[n++] = in_build("gpuseg-exec");
		for (; *options && n < ARGUMENTS - 4; options++)
			arguments[n++] = *options;
		options -= n - 1;
		arguments[n++] = "--";
		arguments[n++] = APP;
		arguments[n++] = scenario;
		r = run(arguments);
		same_as_alone(&r, scenario);
		CHECK_EQ(r.said_size, 0);
		t = tally_of(&d);
		CHECK_EQ(t.open, 0);
		CHECK(t.begins <= most, "%s: %u segments", scenario, t.begins);
		opened = d.last_open;
		opens = d.opens;
		fake_daemon_stop(&d);
	}
	CHECK(t.begins >= least, "%s: %u segments", scenario, t.begins);
	return t;
}

#define SEGMENTS(scenario, least, most, adjust, ...)                                                                   \
	attempt(scenario, least, most, adjust, (const char *const[]){__VA_ARGS__, NULL})

/* ---- without what it needs the program runs as it is ---- */

TEST(should_run_the_program_unmanaged_without_a_daemon_and_say_so_in_one_line)
{
	struct run r;

	prepare(NULL);
	r = EXEC("--priority", "80", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "no daemon at /nonexistent/gpuseg.sock");
	CHECK_CONTAINS(r.said, "runs unmanaged");
	CHECK(strchr(r.said, '\n') == r.said + r.said_size - 1, "more than one line: %s", r.said);
}

/* What is wrong; what the line says. */
static void unmanaged_with(struct fake_daemon *d, const char *variable, const char *value, const char *line)
{
	struct run r;
	const size_t records = fake_daemon_records(d);

	setenv(variable, value, 1);
	r = EXEC("GPUSEG_EXEC_CALLS=cupti", "--priority", "80", "--", APP, "jobs");
	if (strcmp(variable, "GPUSEG_CUPTI") == 0)
		setenv(variable, in_build("tests/cuda/libcupti.so.13"), 1);
	else
		unsetenv(variable);
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, line);
	CHECK_CONTAINS(r.said, "runs unmanaged");
	CHECK(strchr(r.said, '\n') == r.said + r.said_size - 1, "more than one line: %s", r.said);
	CHECK_EQ(fake_daemon_records(d), records);
}

TEST(should_run_the_program_unmanaged_if_anything_is_missing)
{
	struct fake_daemon d;

	fake_daemon_start(&d);
	prepare(&d);
	unmanaged_with(&d, "GPUSEG_CUPTI", "/nonexistent/libcupti.so", "GPUSEG_CUPTI is /nonexistent/libcupti.so");
	unmanaged_with(&d, "STANDIN_CUPTI_BUSY", "1", "a profiler is attached already");
	unmanaged_with(&d, "CUDA_INJECTION64_PATH", in_build("libgpuseg.so"), "left as it is");
	fake_daemon_stop(&d);
}

TEST(should_not_use_a_libcupti_of_another_version)
{
	struct fake_daemon d;
	struct run r;
	char directory[PATH_MAX + 16];

	fake_daemon_start(&d);
	prepare(&d);
	/* Found as in a toolkit. */
	snprintf(directory, sizeof(directory), "%s", in_build("tests/cuda/toolkit"));
	unsetenv("GPUSEG_CUPTI");
	setenv("CUDA_HOME", directory, 1);
	r = EXEC("GPUSEG_EXEC_CALLS=cupti", "--priority", "80", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK(tally_of(&d).begins > 0);
	unmanaged_with(&d, "STANDIN_CUPTI_VERSION", "18", "");
	unsetenv("CUDA_HOME");
	fake_daemon_stop(&d);
}

TEST(should_pass_on_the_refusal_of_a_task)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	pthread_mutex_lock(&d.mutex);
	d.refuse_type = GPUSEG_MSG_TASK_OPEN;
	d.refuse_status = -EDQUOT;
	pthread_mutex_unlock(&d.mutex);
	r = EXEC("--priority", "80", "--name", "camera", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "task \"camera\": not admitted; runs unmanaged");
	fake_daemon_stop(&d);
}

TEST(should_refuse_wrong_options_in_one_line)
{
	static const struct {
		const char *option, *value, *line;
	} cases[] = {{"--priority", "0", "--priority is \"0\"; give a number of 1 to 99"},
		     {"--priority", "100", "1 to 99"},
		     {"--priority", "7x", "--priority is \"7x\""},
		     {"--priority", "010", "--priority is \"010\"; write it without leading zeros"},
		     {"--best-effort", "GPUSEG_EXEC_HOLD_OFF=200",
		      "GPUSEG_EXEC_HOLD_OFF is \"200\"; give a time such as 200us"},
		     {"--best-effort", "GPUSEG_EXEC_HOLD_OFF=2h", "at most an hour"},
		     {"--best-effort", "GPUSEG_EXEC_SLICE=5", "GPUSEG_EXEC_SLICE is \"5\""},
		     {"--best-effort", "GPUSEG_EXEC_IN_FLIGHT=5", "GPUSEG_EXEC_IN_FLIGHT is \"5\""},
		     {"--budget", "-1ms", "--budget"},
		     {"--weight", "10001", "1 to 10000"},
		     {"--best-effort", "GPUSEG_EXEC_WAIT=0", "GPUSEG_EXEC_WAIT is \"0\"; give at least 1ms"},
		     {"--best-effort", "GPUSEG_EXEC_STREAMS=all", "give none or priority"},
		     {"--best-effort", "GPUSEG_EXEC_SEGMENTS=kernel", "give auto, graph or process"},
		     {"--best-effort", "GPUSEG_EXEC_CALLS=all", "give auto, cupti or check"},
		     {"--period", "10ms", "--period needs --priority"},
		     {"--cap", "25ms/100ms", "--cap needs --name"},
		     {"--cap", "25/100", "such as 25ms/100ms"},
		     {"--name", "", "1 to 63"},
		     {"--name", "  ", "--name is blank"},
		     {"--name", "a\xff", "printable UTF-8"},
		     {"--name", "a\tb", "printable UTF-8"},
		     {"--name",
		      "a\xe2\x80\xae"
		      "b",
		      "printable UTF-8"}};
	struct run r;

	prepare(NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r = EXEC(cases[i].option, cases[i].value, "--", "/bin/true");
		CHECK(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 2, "%s %s: status %#x", cases[i].option,
		      cases[i].value, (unsigned int)r.status);
		CHECK_CONTAINS(r.said, cases[i].line);
	}
	r = EXEC("--priority", "5", "--best-effort", "--", "/bin/true");
	CHECK_EQ(WEXITSTATUS(r.status), 2);
	r = EXEC("--priority", "5", "--deadline", "20ms", "--period", "10ms", "--", "/bin/true");
	CHECK_EQ(WEXITSTATUS(r.status), 2);
	CHECK_CONTAINS(r.said, "--deadline is longer than --period; give at most the period");
	r = EXEC("--priority", "5");
	CHECK_EQ(WEXITSTATUS(r.status), 2);
	CHECK_CONTAINS(r.said, "no command given");
	r = EXEC("--", "/nonexistent/program");
	CHECK_EQ(WEXITSTATUS(r.status), 127);
	r = EXEC("--", "/bin/sh", "-c", "exit 9");
	CHECK_EQ(WEXITSTATUS(r.status), 9);
}

TEST(should_print_the_environment_for_a_service)
{
	struct run r;

	prepare(NULL);
	r = EXEC("--priority", "70", "GPUSEG_EXEC_HOLD_OFF=1ms", "--print-environment");
	passed(&r);
	CHECK_CONTAINS(r.text, "CUDA_INJECTION64_PATH=/");
	CHECK_CONTAINS(r.text, "libgpuseg-inject.so\n");
	CHECK_CONTAINS(r.text, "LD_PRELOAD=/");
	CHECK_CONTAINS(r.text, "libgpuseg-wrap.so\n");
	CHECK_CONTAINS(r.text, "GPUSEG_EXEC_PRIORITY=70\n");
	CHECK_CONTAINS(r.text, "GPUSEG_EXEC_HOLD_OFF=1ms\n");
}

/* ---- segments ---- */

TEST(should_begin_at_the_first_launch_and_end_at_the_synchronisation)
{
	SEGMENTS("jobs", 10, 10, NULL, "--priority", "80", "--name", "camera", "--period", "20ms", "--budget", "5ms");
	CHECK_EQ(opened.priority, 80);
	CHECK_EQ(opened.period_ns, 20 * NS_PER_MS);
	CHECK_EQ(opened.budget_ns, 5 * NS_PER_MS + 200 * NS_PER_US); /* the hold-off is reserved, too */
	CHECK(strcmp(opened.name, "camera") == 0, "%s", opened.name);
}

TEST(should_make_one_segment_of_launches_within_the_hold_off)
{
	SEGMENTS("one-job", 1, 1, NULL, "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=60s");
}

TEST(should_end_each_synchronised_burst_without_a_hold_off)
{
	/* More, where work was done before the next launch. */
	SEGMENTS("one-job", 20, 200, NULL, "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=0");
}

/* 20 jobs of five parts; the first two jobs are learned from. */
TEST(should_learn_a_hold_off_that_covers_the_pauses_within_a_job)
{
	unsigned int begins = UINT32_MAX;

	SEGMENTS("pauses", 90, 100, NULL, "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=200us");
	SEGMENTS("pauses", 80, 100, NULL, "--priority", "80", "--budget", "5ms");
	/* A pause may take longer than it should; on a machine that is left alone once in some attempts it does not. */
	for (int i = 0; i < ATTEMPTS && begins > 40; i++)
		begins = SEGMENTS("pauses", 20, 100, NULL, "--priority", "80").begins;
	CHECK(begins <= 40, "%u segments", begins);
}

TEST(should_keep_the_shortest_hold_off_where_there_are_no_pauses_within_a_job)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "GPUSEG_EXEC_VERBOSE=1", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "hold-off 200 us");
	fake_daemon_stop(&d);
}

TEST(should_end_by_a_marker_if_the_program_does_not_synchronise)
{
	SEGMENTS("no-sync", 3, 12, NULL, "--priority", "80");
}

TEST(should_ask_for_the_default_stream)
{
	SEGMENTS("default-stream", 3, 12, NULL, "--priority", "80");
}

TEST(should_ask_if_the_driver_refuses_markers)
{
	setenv("STANDIN_NO_MARKERS", "1", 1);
	SEGMENTS("no-sync", 3, 12, NULL, "--priority", "80");
	unsetenv("STANDIN_NO_MARKERS");
}

TEST(should_not_call_the_driver_while_the_program_waits_for_the_stream)
{
	bool none = false;

	/* Between launch and wait the program may stand still for longer than the hold-off. */
	for (int i = 0; i < ATTEMPTS && !none; i++) {
		struct fake_daemon d;
		struct run r;

		fake_daemon_start(&d);
		prepare(&d);
		r = EXEC("--priority", "80", "GPUSEG_EXEC_HOLD_OFF=2ms", "--", APP, "long-waits");
		same_as_alone(&r, "long-waits");
		none = strstr(r.said, "markers 0 queries 0\n");
		CHECK_EQ(tally_of(&d).open, 0);
		fake_daemon_stop(&d);
	}
	CHECK(none);
}

TEST(should_report_how_long_there_was_work_and_when_the_last_was_done)
{
	const struct tally t = SEGMENTS("jobs", 1, 1, NULL, "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=60s");
	const int64_t at_ns = now_ns();

	/* Ten jobs of five kernels of 50 us. 20 ms of rest follow each, the last one as well. */
	CHECK(t.device_ns >= 10 * 5 * 50 * NS_PER_US, "device time %lld ns", (long long)t.device_ns);
	CHECK(t.device_ns <= t.length_ns - 9 * 20 * NS_PER_MS, "device time %lld ns of %lld", (long long)t.device_ns,
	      (long long)t.length_ns);
	CHECK(t.end_ns <= at_ns - 20 * NS_PER_MS, "ended %lld ns ago", (long long)(at_ns - t.end_ns));
}

TEST(should_report_how_long_there_was_work_that_ends_by_a_marker)
{
	const struct tally t = SEGMENTS("no-sync", 3, 12, NULL, "--priority", "80");

	CHECK(t.device_ns >= 12 * NS_PER_MS && t.device_ns <= t.length_ns, "device time %lld ns of %lld",
	      (long long)t.device_ns, (long long)t.length_ns);
}

TEST(should_make_one_segment_of_a_process)
{
	SEGMENTS("jobs", 1, 1, NULL, "--priority", "80", "GPUSEG_EXEC_SEGMENTS=process"); /* it ends at the exit */
}

TEST(should_begin_at_graphs_only_if_told_so)
{
	SEGMENTS("graphs", 10, 10, NULL, "--priority", "80", "GPUSEG_EXEC_SEGMENTS=graph");
	SEGMENTS("jobs", 0, 0, NULL, "--priority", "80", "GPUSEG_EXEC_SEGMENTS=graph");
}

/* ---- programs of all kinds: same result, no violation, each begin has its end ---- */

static void whole(const char *scenario, unsigned int least)
{
	SEGMENTS(scenario, least, UINT32_MAX, NULL, "--priority", "80");
}

TEST(should_follow_every_kind_of_launch)
{
	whole("kinds", 5);
}

TEST(should_follow_functions_however_the_program_finds_them)
{
	whole("found", 3);
}

/* The program under these options; what it said. */
static struct run verbosely(const char *calls, const char *scenario)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC(calls, "GPUSEG_EXEC_VERBOSE=1", "--priority", "80", "--", APP, scenario);
	same_as_alone(&r, scenario);
	CHECK(tally_of(&d).begins >= 1);
	fake_daemon_stop(&d);
	return r;
}

TEST(should_follow_by_wrappers_unless_calls_can_pass_them_by)
{
	struct run r = verbosely("GPUSEG_EXEC_CALLS=auto", "found");

	CHECK_CONTAINS(r.said, "by wrappers");
	CHECK(!strstr(r.said, "CUPTI"), "it said: %s", r.said);
	r = verbosely("GPUSEG_EXEC_CALLS=cupti", "found");
	CHECK_CONTAINS(r.said, "by CUPTI");
	setenv("GPUSEG_INJECT_LIBRARY", in_build("tests/cuda/toolkit/libgpuseg-inject.so"), 1); /* no wrappers there */
	r = verbosely("GPUSEG_EXEC_CALLS=auto", "found");
	unsetenv("GPUSEG_INJECT_LIBRARY");
	CHECK_CONTAINS(r.said, "by CUPTI");
}

/* Where the text stands for the last time; NULL if nowhere. */
static const char *last_of(const char *said, const char *text)
{
	const char *last = NULL;

	for (const char *at = said; (at = strstr(at, text)); at++)
		last = at;
	return last;
}

TEST(should_count_calls_that_pass_the_wrappers_by)
{
	struct run r = verbosely("GPUSEG_EXEC_CALLS=check", "found");

	CHECK_CONTAINS(r.said, " calls came by the wrappers");
	r = verbosely("GPUSEG_EXEC_CALLS=check", "passes-by");
	CHECK_CONTAINS(r.said, "1 calls of cuLaunchKernel came by no wrapper");
	CHECK_CONTAINS(r.said, "set GPUSEG_EXEC_CALLS=cupti for this program");
	r = verbosely("GPUSEG_EXEC_CALLS=check", "forks");
	CHECK(strstr(r.said, "came by") == last_of(r.said, "came by"), "a child speaks, too: %s", r.said);
	/* Where the wrappers can't be relied on, nothing is checked, and nothing else is said. */
	setenv("GPUSEG_INJECT_LIBRARY", in_build("tests/cuda/toolkit/libgpuseg-inject.so"), 1);
	r = verbosely("GPUSEG_EXEC_CALLS=check", "found");
	unsetenv("GPUSEG_INJECT_LIBRARY");
	CHECK_CONTAINS(r.said, "nothing is checked");
	CHECK(!strstr(r.said, "came by"), "it said: %s", r.said);
}

TEST(should_keep_what_else_is_preloaded)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	setenv("LD_PRELOAD", "libc.so.6 libm.so.6", 1);
	r = EXEC("GPUSEG_EXEC_CALLS=auto", "--", in_build("gpuseg-exec"), "--", "/bin/sh", "-c", "echo $LD_PRELOAD");
	CHECK(strcmp(r.text + strlen(build), "/libgpuseg-wrap.so:libc.so.6:libm.so.6\n") == 0, "it is %s", r.text);
	r = EXEC("GPUSEG_EXEC_CALLS=cupti", "--", "/bin/sh", "-c", "echo $LD_PRELOAD");
	CHECK(strcmp(r.text, "libc.so.6:libm.so.6\n") == 0, "it is %s", r.text);
	unsetenv("LD_PRELOAD");
	fake_daemon_stop(&d);
}

TEST(should_leave_errors_as_they_are)
{
	whole("failing", 1);
}

TEST(should_put_nothing_into_a_graph_that_is_captured)
{
	whole("graphs", 10);
}

TEST(should_follow_streams_of_many_threads)
{
	whole("threads", 1);
}

TEST(should_follow_default_streams_of_threads)
{
	whole("per-thread", 1);
}

TEST(should_follow_work_of_a_stream_that_was_destroyed)
{
	whole("streams-end", 1);
}

TEST(should_follow_several_contexts_and_gpus)
{
	whole("contexts", 1);
	CHECK_EQ(opens, 2); /* a task for each GPU */
}

TEST(should_leave_forked_children_alone)
{
	whole("forks", 1);
}

TEST(should_start_anew_after_exec)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "exec");
	same_as_alone(&r, "jobs");
	fake_daemon_stop(&d);
}

TEST(should_end_segments_when_the_program_ends_with_work_under_way)
{
	whole("exit", 1);
}

TEST(should_not_connect_for_a_program_that_launches_nothing)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "nothing");
	passed(&r);
	CHECK_EQ(d.opens, 0);
	fake_daemon_stop(&d);
}

TEST(should_allocate_nothing_for_a_launch)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "soak");
	same_as_alone(&r, "soak");
	CHECK_CONTAINS(r.said, "heap grew by 0\n"); /* the sanitizers' heap says 0 always */
	CHECK(tally_of(&d).begins >= 1);
	fake_daemon_stop(&d);
}

TEST(should_yield_to_marks_in_the_program)
{
	struct fake_daemon d;
	struct run r;
	struct tally t;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "by-hand");
	passed(&r);
	t = tally_of(&d);
	CHECK_EQ(t.begins, 5);
	CHECK_EQ(t.ends, 5);
	CHECK_EQ(d.opens, 1);
	CHECK_EQ(d.last_open.priority, 40);
	fake_daemon_stop(&d);
}

/* The fixture serves one connection at a time, as the daemon takes one of a process. */
TEST(should_share_its_connection_with_a_program_that_marks_later)
{
	struct fake_daemon d;
	struct run r;
	struct tally t;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "by-hand-late");
	passed(&r);
	t = tally_of(&d);
	CHECK_EQ(t.begins, 6);
	CHECK_EQ(t.ends, 6);
	CHECK_EQ(d.opens, 2);
	CHECK_EQ(d.last_open.priority, 40);
	CHECK(!d.sequence_broken);
	fake_daemon_stop(&d);
}

/* ---- best effort ---- */

static void level_1(struct fake_daemon *d)
{
	d->status->mechanism_level = 1;
}

static void level_2(struct fake_daemon *d)
{
	d->status->mechanism_level = 2;
}

TEST(should_split_best_effort_where_the_mechanism_waits_for_segments)
{
	SEGMENTS("training", 5, 400, level_1, "--best-effort", "--weight", "300", "GPUSEG_EXEC_HOLD_OFF=60s");
	CHECK_EQ(opened.priority, 0);
	CHECK_EQ(opened.weight, 300);
	SEGMENTS("training", 1, 1, level_2, "--best-effort", "GPUSEG_EXEC_HOLD_OFF=60s");
}

/* ---- streams of one process ---- */

static void two_streams(const char *low_stream, const char *kind)
{
	unsigned int most, launched, beside;
	struct fake_daemon d;
	struct run r;
	const char *at;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", kind, "--", APP, "two-streams", low_stream);
	passed(&r);
	at = strstr(r.said, "in flight");
	CHECK(at && sscanf(at, "in flight %u launched %u beside %u", &most, &launched, &beside) == 3, "%s", r.said);
	/* Kernels of 1.5 ms: one at a time. One may overlap the begin of a job of the other stream, one its end. */
	CHECK(most <= 2, "%s", r.said);
	CHECK(launched >= 20, "%s", r.said);
	CHECK(beside <= 40, "%s", r.said);
	CHECK(!strstr(r.said, "gpuseg_stream"), "%s", r.said);
	if (strcmp(kind, "GPUSEG_EXEC_STREAMS=none") == 0)
		r = RUN(APP, "two-streams", low_stream);
	else
		r = EXEC("--priority", "80", "--", APP, "two-streams", low_stream);
	passed(&r);
	at = strstr(r.said, "in flight");
	CHECK(at && sscanf(at, "in flight %u", &most) == 1 && most > 50, "without the option: %s", r.said);
	fake_daemon_stop(&d);
}

TEST(should_let_lower_streams_wait_and_bound_their_work_in_flight)
{
	two_streams("0", "GPUSEG_EXEC_STREAMS=priority");
}

TEST(should_bound_the_default_stream_below_another_one)
{
	two_streams("1", "GPUSEG_EXEC_STREAMS=priority");
}

TEST(should_order_streams_by_their_tasks)
{
	two_streams("2", "GPUSEG_EXEC_STREAMS=none");
}

TEST(should_order_the_default_stream_by_its_task)
{
	two_streams("3", "GPUSEG_EXEC_STREAMS=none");
}

TEST(should_say_which_streams_can_have_a_task)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = EXEC("--priority", "80", "--", APP, "ranks");
	passed(&r);
	CHECK(strcmp(r.said,
		     "thread -22\nstreams 64 result -28\nafter destroy 0\nagain 0\nfull -28\ntaken 0 unknown 0\n"
		     "default 0\n") == 0,
	      "%s", r.said);
	r = RUN(APP, "ranks"); /* not under exec: the program can go on */
	passed(&r);
	CHECK_CONTAINS(r.said, "thread -95\nstreams 0 result -95\n");
	fake_daemon_stop(&d);
}

/* ---- daemons that are slow, hang, or die ---- */

static void delay_grants(struct fake_daemon *d)
{
	fake_daemon_grants(d, FAKE_DELAY, 20 * NS_PER_MS);
}

TEST(should_wait_for_the_grant)
{
	SEGMENTS("jobs", 10, 10, delay_grants, "--priority", "80");
}

TEST(should_not_wait_longer_than_told)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	r = EXEC("--priority", "80", "GPUSEG_EXEC_WAIT=300ms", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "no grant came within 300 ms");
	CHECK_EQ(tally_of(&d).begins, 1); /* it does not wait again for a minute */
	fake_daemon_stop(&d);
}

TEST(should_run_on_if_the_daemon_does_not_answer)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	pthread_mutex_lock(&d.mutex);
	d.mute = true;
	pthread_mutex_unlock(&d.mutex);
	r = EXEC("--priority", "80", "GPUSEG_EXEC_WAIT=300ms", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "runs unmanaged");
	fake_daemon_stop(&d);
}

TEST(should_run_on_if_every_segment_is_refused)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	fake_daemon_grants(&d, FAKE_REFUSE, 0);
	r = EXEC("--priority", "80", "--", APP, "jobs");
	same_as_alone(&r, "jobs");
	CHECK_CONTAINS(r.said, "segment 1 of task 1: the daemon refused this segment; this segment runs unmanaged");
	fake_daemon_stop(&d);
}

TEST(should_say_why_the_daemon_dropped_it)
{
	struct fake_daemon d;
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=200us", "--",
					APP, "while", "60000", NULL});
	CHECK(fake_daemon_wait(&d, 20, NULL));
	fake_daemon_drop(&d, GPUSEG_POISON_QUOTA);
	for (const int64_t limit_ns = now_ns() + 30 * NS_PER_S; !r.said_size && now_ns() - limit_ns < 0;)
		follow_for(&r, 10 * NS_PER_MS);
	kill(r.pid, SIGTERM);
	finish(&r);
	passed(&r);
	CHECK_CONTAINS(r.said, "the daemon dropped this client for a queue filled faster than its quota allows");
	CHECK(!strstr(r.said, "gpuseg_last_message()"), "%s", r.said);
	fake_daemon_stop(&d);
}

TEST(should_use_the_daemon_that_follows)
{
	struct fake_daemon d;
	struct run r;
	size_t before;
	bool follows;

	fake_daemon_start(&d);
	prepare(&d);
	/* A hold-off that is learned would cover the program's pauses, and all of it would be one segment. */
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=200us", "--",
					APP, "while", "60000", NULL});
	CHECK(fake_daemon_wait(&d, 20, NULL));
	fake_daemon_kill(&d);
	sleep_ns(100 * NS_PER_MS);
	fake_daemon_follow(&d);
	before = fake_daemon_records(&d);
	follows = fake_daemon_wait(&d, before + 20, NULL);
	kill(r.pid, SIGTERM);
	finish(&r);
	CHECK(follows, "%zu records after %zu; it said: %s", fake_daemon_records(&d), before, r.said);
	passed(&r);
	CHECK_EQ(tally_of(&d).open, 0);
	fake_daemon_stop(&d);
}

/* As a training whose queue never runs empty: the daemon that follows must know that it works. */
TEST(should_begin_a_segment_without_an_end_anew_for_the_daemon_that_follows)
{
	struct fake_daemon d;
	struct run r;
	size_t before;
	bool follows;

	fake_daemon_start(&d);
	prepare(&d);
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "GPUSEG_EXEC_SEGMENTS=process",
					"--", APP, "while", "60000", NULL});
	CHECK(fake_daemon_wait(&d, 1, NULL));
	fake_daemon_kill(&d);
	sleep_ns(100 * NS_PER_MS);
	fake_daemon_follow(&d);
	before = fake_daemon_records(&d);
	follows = fake_daemon_wait(&d, before + 1, NULL);
	kill(r.pid, SIGTERM);
	finish(&r);
	CHECK(follows, "%zu records after %zu; it said: %s", fake_daemon_records(&d), before, r.said);
	passed(&r);
	CHECK_EQ(tally_of(&d).begins, 1); /* of those that the second one saw */
	CHECK_EQ(tally_of(&d).open, 0);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_pass_on_the_refusal_of_a_task),
	CASE(should_begin_at_the_first_launch_and_end_at_the_synchronisation),
	CASE(should_end_by_a_marker_if_the_program_does_not_synchronise),
	CASE(should_ask_for_the_default_stream),
	CASE(should_make_one_segment_of_a_process),
	CASE(should_begin_at_graphs_only_if_told_so),
	CASE(should_follow_every_kind_of_launch),
	CASE(should_follow_functions_however_the_program_finds_them),
	CASE(should_leave_errors_as_they_are),
	CASE(should_put_nothing_into_a_graph_that_is_captured),
	CASE(should_follow_streams_of_many_threads),
	CASE(should_follow_default_streams_of_threads),
	CASE(should_follow_work_of_a_stream_that_was_destroyed),
	CASE(should_follow_several_contexts_and_gpus),
	CASE(should_leave_forked_children_alone),
	CASE(should_start_anew_after_exec),
	CASE(should_allocate_nothing_for_a_launch),
	CASE(should_yield_to_marks_in_the_program),
	CASE(should_share_its_connection_with_a_program_that_marks_later),
#ifndef ONLY_HOW_CALLS_ARE_SEEN
	CASE(should_run_the_program_unmanaged_without_a_daemon_and_say_so_in_one_line),
	CASE(should_run_the_program_unmanaged_if_anything_is_missing),
	CASE(should_not_use_a_libcupti_of_another_version),
	CASE(should_refuse_wrong_options_in_one_line),
	CASE(should_print_the_environment_for_a_service),
	CASE(should_follow_by_wrappers_unless_calls_can_pass_them_by),
	CASE(should_count_calls_that_pass_the_wrappers_by),
	CASE(should_keep_what_else_is_preloaded),
	CASE(should_make_one_segment_of_launches_within_the_hold_off),
	CASE(should_learn_a_hold_off_that_covers_the_pauses_within_a_job),
	CASE(should_keep_the_shortest_hold_off_where_there_are_no_pauses_within_a_job),
	CASE(should_end_each_synchronised_burst_without_a_hold_off),
	CASE(should_ask_if_the_driver_refuses_markers),
	CASE(should_not_call_the_driver_while_the_program_waits_for_the_stream),
	CASE(should_report_how_long_there_was_work_and_when_the_last_was_done),
	CASE(should_report_how_long_there_was_work_that_ends_by_a_marker),
	CASE(should_end_segments_when_the_program_ends_with_work_under_way),
	CASE(should_not_connect_for_a_program_that_launches_nothing),
	CASE(should_split_best_effort_where_the_mechanism_waits_for_segments),
	CASE(should_let_lower_streams_wait_and_bound_their_work_in_flight),
	CASE(should_bound_the_default_stream_below_another_one),
	CASE(should_order_streams_by_their_tasks),
	CASE(should_order_the_default_stream_by_its_task),
	CASE(should_say_which_streams_can_have_a_task),
	CASE(should_wait_for_the_grant),
	CASE(should_not_wait_longer_than_told),
	CASE(should_run_on_if_the_daemon_does_not_answer),
	CASE(should_run_on_if_every_segment_is_refused),
	CASE(should_say_why_the_daemon_dropped_it),
	CASE(should_use_the_daemon_that_follows),
	CASE(should_begin_a_segment_without_an_end_anew_for_the_daemon_that_follows),
#endif
};

CHECK_MAIN(cases)
