/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 150 }; /* several bounded waits, and all that a busy machine adds */

static int run_one(const struct test *test)
{
	int status;
	const pid_t child = fork();

	if (child < 0) {
		perror("fork");
		return TEST_FAILED;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		alarm(LIMIT_SECONDS);
		exit(test->run());
	}
	if (waitpid(child, &status, 0) != child)
		return TEST_FAILED;
	/* Whatever a failed test left behind goes with it, and so do its copies of our stdout. */
	kill(-child, SIGKILL);
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "%s: ended by %s%s\n", test->name, strsignal(WTERMSIG(status)),
			WTERMSIG(status) == SIGALRM ? " (time limit)" : "");
		return TEST_FAILED;
	}
	return WEXITSTATUS(status);
}

int run_tests(const struct test *tests, size_t count)
{
	unsigned passed = 0, failed = 0, skipped = 0;

	for (size_t i = 0; i < count; i++) {
		fflush(stdout);
		const int result = run_one(&tests[i]);

		if (result == TEST_PASSED)
			passed++;
		else if (result == TEST_SKIPPED)
			skipped++;
		else
			failed++;
		printf("%s %s\n",
		       result == TEST_PASSED	? "ok     "
		       : result == TEST_SKIPPED ? "skipped"
						: "FAILED ",
		       tests[i].name);
	}
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	if (failed)
		return TEST_FAILED;
	return passed ? TEST_PASSED : TEST_SKIPPED;
}
