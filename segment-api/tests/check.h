/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the test harness of the C parts: CHECK macros, a table of cases, a limit in time. One header, no library.
 *
 *   TEST(should_do_this)
 *   {
 *           CHECK_EQ(f(), 3);
 *           CHECK(g(), "g failed for %d", 7);        // the explanation may be left out
 *   }
 *   static const struct check_case cases[] = {CASE(should_do_this), ...};
 *   CHECK_MAIN(cases)
 *
 * A failed check prints where, what and both values to stderr, then ends the test. SKIP(reason) ends it as skipped.
 * Both may stand in any function of the test. Arguments of the program select cases by name.
 *
 * CHECK_MAIN        all cases in one process, which a failed check ends. Exit status 0 passed, 1 failed, 77 skipped.
 * CHECK_MAIN_APART  each case in a process and a process group of its own. Prints a line for each case, then
 *                   "N passed, N failed, N skipped". Exit status 0 passed, 1 some case failed, 77 all were skipped.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Limits in time; SIGALRM ends what exceeds them. Sanitizers and emulation are slow. A case that computes where others
 * have the processors is given the same time again.
 */
#define CHECK_SECONDS 300      /* a case of CHECK_MAIN, and a test without cases */
#define CHECK_CASE_SECONDS 150 /* a case of CHECK_MAIN_APART */
#define CHECK_AGAIN 5	       /* so often */
#define CHECK_COMPUTES 5       /* seconds of a processor, with the processes that it waited for */

enum { CHECK_PASSED = 0, CHECK_FAILED = 1, CHECK_SKIPPED = 77 };

#define CHECK(cond, ...)                                                                                               \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			check_fail(__FILE__, __LINE__, #cond, " " __VA_ARGS__);                                        \
	} while (0)

/* Evaluates each once. */
#define CHECK_EQ(a, b)                                                                                                 \
	do {                                                                                                           \
		const int64_t check_a = (int64_t)(a), check_b = (int64_t)(b);                                          \
		if (check_a != check_b)                                                                                \
			check_fail(__FILE__, __LINE__, #a " == " #b, "left %" PRId64 ", right %" PRId64, check_a,      \
				   check_b);                                                                           \
	} while (0)

#define CHECK_CONTAINS(text, part)                                                                                     \
	do {                                                                                                           \
		const char *const check_text = (text);                                                                 \
		if (!strstr(check_text, part))                                                                         \
			check_fail(__FILE__, __LINE__, #text " contains " #part, "text \"%s\"", check_text);           \
	} while (0)

#define SKIP(...)                                                                                                      \
	do {                                                                                                           \
		printf("  skipped: " __VA_ARGS__);                                                                     \
		putchar('\n');                                                                                         \
		exit(CHECK_SKIPPED);                                                                                   \
	} while (0)

struct check_case {
	const char *name; /* says the behaviour */
	void (*run)(void);
};

/* clang-format off */
#define TEST(name) static void name(void)
#define CASE(name) {#name, name}
/* clang-format on */

/* How a failed check ends its process: at once if other threads may run; through atexit(3) if the case is alone. */
static void (*check_exit)(int) = _exit;

__attribute__((noreturn, format(printf, 4, 5))) static inline void check_fail(const char *file, int line,
									      const char *what, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "  %s:%d: FAILED: %s\n", file, line, what);
	if (strcmp(format, " ") != 0) {
		fputs("    ", stderr);
		va_start(ap, format);
		vfprintf(stderr, format, ap);
		va_end(ap);
		fputc('\n', stderr);
	}
	fflush(NULL);
	check_exit(CHECK_FAILED);
	abort(); /* not reached */
}

static unsigned int check_seconds, check_again;
static int64_t check_used;

static inline int64_t check_used_seconds(void)
{
	struct rusage self, waited;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &waited);
	return (int64_t)self.ru_utime.tv_sec + self.ru_stime.tv_sec + waited.ru_utime.tv_sec + waited.ru_stime.tv_sec;
}

static inline void check_over(int sig)
{
	const int64_t used = check_used_seconds();

	if (check_again > 0 && used - check_used >= CHECK_COMPUTES) {
		check_again--;
		check_used = used;
		alarm(check_seconds);
		return;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Of this process, from now on. */
static inline void check_limit(unsigned int seconds)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = check_over;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	check_seconds = seconds;
	check_again = CHECK_AGAIN;
	check_used = check_used_seconds();
	alarm(seconds);
}

static inline int check_wanted(int argc, char **argv, const char *name)
{
	int wanted = argc < 2;

	for (int a = 1; a < argc; a++)
		wanted |= strcmp(argv[a], name) == 0;
	return wanted;
}

static inline int check_main(int argc, char **argv, const struct check_case *cases, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (!check_wanted(argc, argv, cases[i].name))
			continue;
		printf("  %s\n", cases[i].name);
		check_limit(CHECK_SECONDS);
		cases[i].run();
	}
	return CHECK_PASSED;
}

/* Exit status of the case. */
static inline int check_run_apart(const struct check_case *c)
{
	const pid_t child = fork();
	int status;

	if (child < 0) {
		perror("fork");
		return CHECK_FAILED;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		check_limit(CHECK_CASE_SECONDS);
		check_exit = exit;
		c->run();
		exit(CHECK_PASSED);
	}
	if (waitpid(child, &status, 0) != child)
		return CHECK_FAILED;
	/* Processes that a failed case left behind end with it, and so do their copies of our stdout. */
	kill(-child, SIGKILL);
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "%s: ended by %s%s\n", c->name, strsignal(WTERMSIG(status)),
			WTERMSIG(status) == SIGALRM ? " (time limit)" : "");
		return CHECK_FAILED;
	}
	return WEXITSTATUS(status);
}

static inline int check_main_apart(int argc, char **argv, const struct check_case *cases, size_t count)
{
	unsigned int passed = 0, failed = 0, skipped = 0;

	for (size_t i = 0; i < count; i++) {
		const char *verdict;
		int status;

		if (!check_wanted(argc, argv, cases[i].name))
			continue;
		fflush(stdout);
		status = check_run_apart(&cases[i]);
		passed += status == CHECK_PASSED;
		skipped += status == CHECK_SKIPPED;
		failed += status != CHECK_PASSED && status != CHECK_SKIPPED;
		verdict = status == CHECK_PASSED ? "ok     " : status == CHECK_SKIPPED ? "skipped" : "FAILED ";
		printf("%s %s\n", verdict, cases[i].name);
	}
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? CHECK_FAILED : passed ? CHECK_PASSED : CHECK_SKIPPED;
}

#define CHECK_MAIN(cases)                                                                                              \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		return check_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));                              \
	}

#define CHECK_MAIN_APART(cases)                                                                                        \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		return check_main_apart(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));                        \
	}

#endif /* CHECK_H */
