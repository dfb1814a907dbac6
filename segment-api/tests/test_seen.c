/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_seen.c - what gpuseg-exec says where there is nothing to schedule: one line at the end of the program that it
 * has become, none for each process of a script, none where any of them used CUDA or marks.
 */
#include "gpuseg.h"

#include "exec_rig.h"

#define LINE "no CUDA was seen in this program or in what it started: nothing to schedule."

#define MARKS "marks" /* argument of this program: be one with marks and without CUDA */

static struct fake_daemon d;

static void begin(void)
{
	fake_daemon_start(&d);
	prepare(&d);
	setenv("APP", APP, 1);
	setenv("EXEC", in_build("gpuseg-exec"), 1);
	setenv("HANDS", in_build("tests/test_seen"), 1);
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

#define SCRIPT(...) EXEC("--priority", "80", "--", "/bin/sh", "-c", __VA_ARGS__)

/* Is there shared memory that this process has made? */
static bool leaves_memory(pid_t pid)
{
	FILE *list = fopen("/proc/sysvipc/shm", "r");
	char line[512];
	bool left = false;

	if (!list)
		SKIP("no /proc/sysvipc/shm");
	while (fgets(line, sizeof(line), list)) {
		int creator = 0;

		if (sscanf(line, "%*d %*d %*o %*u %d", &creator) == 1)
			left |= creator == pid;
	}
	fclose(list);
	return left;
}

TEST(should_say_once_at_the_end_that_nothing_was_there_to_schedule)
{
	struct run r;

	begin();
	r = EXEC("--priority", "80", "--", "/bin/cat", "/dev/null");
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: cat[");
	r = EXEC("--best-effort", "--", "/bin/sh", "-c", "exit 7");
	says(&r, 1, 7);
	fake_daemon_stop(&d);
}

TEST(should_say_it_for_a_script_not_for_each_of_its_processes)
{
	struct run r;

	begin();
	r = SCRIPT("for i in 1 2 3 4 5; do cat /dev/null; (cat /dev/null | cat); done; x=$(cat /dev/null); true");
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: sh[");
	r = SCRIPT("exec nice -n 1 cat /dev/null");
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: cat[");
	fake_daemon_stop(&d);
}

TEST(should_say_nothing_where_any_process_uses_cuda)
{
	struct run r;

	begin();
	r = EXEC("--priority", "80", "--", APP, "jobs");
	says(&r, 0, 0);
	r = SCRIPT("cat /dev/null; \"$APP\" one-job > /dev/null; cat /dev/null");
	says(&r, 0, 0);
	r = SCRIPT("(cat /dev/null; (\"$APP\" one-job; true) > /dev/null); exec cat /dev/null");
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_say_nothing_where_a_program_marks_segments_by_hand)
{
	struct run r;

	begin();
	r = EXEC("--priority", "80", "--", APP, "by-hand");
	says(&r, 0, 0);
	r = SCRIPT("\"$HANDS\" " MARKS "; true");
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_leave_to_an_inner_exec_what_it_is_about)
{
	struct run r;

	begin();
	r = SCRIPT("\"$EXEC\" --best-effort -- cat /dev/null; true");
	says(&r, 1, 0);
	CHECK_CONTAINS(r.said, "gpuseg: cat[");
	fake_daemon_stop(&d);
}

/* What the child has seen went with the shell. */
TEST(should_not_speak_for_a_program_that_was_another_one_with_children)
{
	struct run r;

	begin();
	r = SCRIPT("cat /dev/null; exec cat /dev/null");
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_not_speak_for_processes_that_go_on)
{
	struct run r;

	begin();
	r = SCRIPT("sleep 3 > /dev/null 2>&1 & true");
	says(&r, 0, 0);
	fake_daemon_stop(&d);
}

TEST(should_not_write_to_a_file_of_the_program)
{
	struct run r;

	begin();
	r = SCRIPT("exec 2> \"$0\"; true", in_build("tests/seen.err"));
	says(&r, 0, 0);
	r = RUN("/bin/cat", in_build("tests/seen.err"));
	CHECK_EQ(r.text_size, 0);
	unlink(in_build("tests/seen.err"));
	fake_daemon_stop(&d);
}

TEST(should_say_without_a_daemon_only_that)
{
	struct run r;

	prepare(NULL);
	r = SCRIPT("cat /dev/null; true");
	CHECK_CONTAINS(r.said, "runs unmanaged");
	CHECK(!strstr(r.said, LINE), "it said: %s", r.said);
}

TEST(should_leave_no_memory_behind_when_it_is_killed)
{
	struct run r;

	begin();
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "--", "/bin/sh", "-c",
					"echo there; kill -STOP $$; true", NULL});
	follow(&r, "there");
	CHECK(leaves_memory(r.pid), "no memory is shared");
	kill(r.pid, SIGKILL);
	finish(&r);
	CHECK(!leaves_memory(r.pid));
	r = SCRIPT("true; true");
	CHECK(!leaves_memory(r.pid));
	fake_daemon_stop(&d);
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

static const struct check_case cases[] = {CASE(should_say_without_a_daemon_only_that),
					  CASE(should_say_once_at_the_end_that_nothing_was_there_to_schedule),
					  CASE(should_say_it_for_a_script_not_for_each_of_its_processes),
					  CASE(should_say_nothing_where_any_process_uses_cuda),
					  CASE(should_say_nothing_where_a_program_marks_segments_by_hand),
					  CASE(should_leave_to_an_inner_exec_what_it_is_about),
					  CASE(should_not_speak_for_a_program_that_was_another_one_with_children),
					  CASE(should_not_speak_for_processes_that_go_on),
					  CASE(should_not_write_to_a_file_of_the_program),
					  CASE(should_leave_no_memory_behind_when_it_is_killed)};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], MARKS) == 0)
		return marks();
	return check_main_apart(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
