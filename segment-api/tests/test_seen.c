/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_seen.c - what is said under gpuseg-exec where there is nothing to schedule: one line at the end of the program
 * that it has become, none by a script or its processes, none where CUDA or marks were used.
 */
#include "gpuseg.h"

#include "exec_rig.h"

#define LINE "no CUDA was seen in this program: nothing to schedule."

/* Arguments of this program: be one without CUDA, one with marks, or one that has forked and waited. */
#define PLAIN "plain"
#define MARKS "marks"
#define FORKS "forks"

static struct fake_daemon d;

static void begin(void)
{
	fake_daemon_start(&d);
	prepare(&d);
	setenv("APP", APP, 1);
	setenv("EXEC", in_build("gpuseg-exec"), 1);
	setenv("SELF", in_build("tests/test_seen"), 1);
	/* it looks for leaks with a process of its own, which would be a child */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
}

/* All that is written to stderr is that line; 0: nothing is. */
static void says(const struct run *r, int lines, int status)
{
	const char *at = strstr(r->said, LINE);

	CHECK(WIFEXITED(r->status) && WEXITSTATUS(r->status) == status, "status %#x, it said: %s",
	      (unsigned int)r->status, r->said);
	CHECK((at != NULL) == (lines == 1), "it said: %s", r->said);
	if (lines)
		CHECK(strchr(r->said, '\n') == r->said + r->said_size - 1, "more than one line: %s", r->said);
	else
		CHECK_EQ(r->said_size, 0);
}

#define SELF(WORD) EXEC("--priority", "80", "--", in_build("tests/test_seen"), WORD)
#define SCRIPT(...) EXEC("--priority", "80", "--", "/bin/sh", "-c", __VA_ARGS__)

TEST(should_say_once_at_the_end_that_nothing_was_there_to_schedule)
{
	struct run r;

	begin();
	r = SELF(PLAIN);
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: test_seen[");
	r = EXEC("--best-effort", "--", in_build("tests/test_seen"), PLAIN);
	says(&r, 1, 0);
	r = SCRIPT("exec \"$SELF\" " PLAIN); /* the same process */
	says(&r, 1, 0);
	fake_daemon_stop(&d);
}

TEST(should_say_nothing_of_a_script_and_its_processes)
{
	struct run r;

	begin();
	r = SCRIPT("for i in 1 2 3; do \"$SELF\" " PLAIN "; (\"$SELF\" " PLAIN " | cat); done; exit 7");
	says(&r, 0, 7);
	r = SCRIPT("\"$SELF\" " PLAIN "; exec \"$SELF\" " PLAIN);
	says(&r, 0, 0);
	r = SCRIPT("sleep 1 > /dev/null 2>&1 & exec \"$SELF\" " PLAIN);
	says(&r, 0, 0);
	r = SELF(FORKS);
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_say_nothing_where_cuda_is_used)
{
	struct run r;

	begin();
	r = EXEC("--priority", "80", "--", APP, "jobs");
	says(&r, 0, 0);
	r = SCRIPT("exec \"$APP\" one-job > /dev/null");
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_say_nothing_where_a_program_marks_segments_by_hand)
{
	struct run r;

	begin();
	r = EXEC("--priority", "80", "--", APP, "by-hand");
	says(&r, 0, 0);
	r = SELF(MARKS);
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_leave_to_an_inner_exec_what_it_is_about)
{
	struct run r;

	begin();
	r = SCRIPT("\"$EXEC\" --best-effort -- \"$SELF\" " PLAIN "; true");
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: test_seen[");
	fake_daemon_stop(&d);
}

TEST(should_say_without_a_daemon_only_that)
{
	struct run r;

	prepare(NULL);
	r = SELF(PLAIN);
	CHECK_CONTAINS(r.said, "runs unmanaged");
	CHECK(!strstr(r.said, LINE), "it said: %s", r.said);
}

static int marks(void)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_client *client = NULL;
	gpuseg_task *task;

	attr.name = "hands";
	return gpuseg_connect(NULL, &client) < 0 || gpuseg_task_open(client, &attr, &task) < 0 ||
	       gpuseg_begin(task) < 0 || gpuseg_end(task) < 0 || gpuseg_disconnect(client) < 0;
}

static int forks(void)
{
	const pid_t child = fork();
	int status;

	if (child == 0)
		exit(EXIT_SUCCESS); /* its destructors run, too */
	return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static const struct check_case cases[] = {CASE(should_say_without_a_daemon_only_that),
					  CASE(should_say_once_at_the_end_that_nothing_was_there_to_schedule),
					  CASE(should_say_nothing_of_a_script_and_its_processes),
					  CASE(should_say_nothing_where_cuda_is_used),
					  CASE(should_say_nothing_where_a_program_marks_segments_by_hand),
					  CASE(should_leave_to_an_inner_exec_what_it_is_about)};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], PLAIN) == 0)
		return EXIT_SUCCESS;
	if (argc == 2 && strcmp(argv[1], MARKS) == 0)
		return marks();
	if (argc == 2 && strcmp(argv[1], FORKS) == 0)
		return forks();
	return check_main_apart(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
