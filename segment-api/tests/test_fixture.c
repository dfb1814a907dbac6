/* SPDX-License-Identifier: Apache-2.0 */
/* test_fixture.c - a test leaves nothing in shared memory, whatever ends it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"

enum end { END_CHECK, END_ABORT, END_ALARM, END_TERM, END_KILL, END_CRASH, END_EXIT, END_RETURN };

__attribute__((noreturn)) static void end_by(enum end how, const char *dir)
{
	switch (how) {
	case END_CHECK:
		CHECK(how != END_CHECK, "as intended");
		break;
	case END_ABORT:
		abort();
	case END_ALARM:
		alarm(1);
		for (;;)
			pause();
	case END_TERM:
		raise(SIGTERM);
		break;
	case END_KILL:
		raise(SIGKILL);
		break;
	case END_CRASH:
		signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would report it */
		raise(SIGSEGV);
		break;
	case END_RETURN:
		fixture_remove(dir);
		break;
	default:
		break;
	}
	exit(CHECK_PASSED);
}

static bool is_empty(const char *directory)
{
	DIR *d = opendir(directory);
	int entries = 0;

	CHECK(d != NULL);
	while (readdir(d))
		entries++;
	closedir(d);
	return entries == 2;
}

/* Exit status of a test that ends so, or minus its signal. */
static int status_of(enum end how)
{
	const char *given = getenv("GPUSEG_TEST_BASE");
	const int64_t limit_ns = now_ns() + 60 * NS_PER_S;
	char base[64], dir[64];
	int status;
	pid_t child;

	snprintf(base, sizeof(base), "%s/XXXXXX", given ? given : "/dev/shm");
	CHECK(mkdtemp(base) != NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		const int nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, STDERR_FILENO);
		setenv("GPUSEG_TEST_BASE", base, 1);
		fixture_directory(dir);
		fixture_queue_create(dir, FIXTURE_CYCLE_BYTES);
		end_by(how, dir);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	while (!is_empty(base) && now_ns() - limit_ns < 0)
		sleep_ns(NS_PER_MS);
	CHECK(rmdir(base) == 0, "%s is not empty", base);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(should_leave_nothing_whatever_ends_the_test)
{
	CHECK_EQ(status_of(END_CHECK), CHECK_FAILED);
	CHECK_EQ(status_of(END_ABORT), -SIGABRT);
	CHECK_EQ(status_of(END_ALARM), -SIGALRM);
	CHECK_EQ(status_of(END_TERM), -SIGTERM);
	CHECK_EQ(status_of(END_KILL), -SIGKILL);
	CHECK_EQ(status_of(END_CRASH), -SIGSEGV);
}

TEST(should_fail_a_test_that_exits_and_leaves_something)
{
	CHECK_EQ(status_of(END_EXIT), CHECK_FAILED);
	CHECK_EQ(status_of(END_RETURN), CHECK_PASSED);
}

static const struct check_case cases[] = {
	CASE(should_leave_nothing_whatever_ends_the_test),
	CASE(should_fail_a_test_that_exits_and_leaves_something),
};

CHECK_MAIN(cases)
