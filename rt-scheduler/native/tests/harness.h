/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - each test runs in a process of its own with a time limit; 0 passed, 1 failed, 77 skipped.
 */
#ifndef GPUSEG_TESTS_HARNESS_H
#define GPUSEG_TESTS_HARNESS_H

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { TEST_PASSED = 0, TEST_FAILED = 1, TEST_SKIPPED = 77 };

struct test {
	const char *name; /* says the behaviour */
	int (*run)(void);
};

/* Prints one line per test and "N passed, N failed, N skipped"; returns the exit status of the program. */
int run_tests(const struct test *tests, size_t count);

/* On failure says where and what and leaves the test. */
#define CHECK(condition, ...)                                                                                          \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n    ", __FILE__, __LINE__, #condition);                            \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fputc('\n', stderr);                                                                           \
			return TEST_FAILED;                                                                            \
		}                                                                                                      \
	} while (0)

/* Evaluates each once. */
#define CHECK_EQ(actual, expected)                                                                                     \
	do {                                                                                                           \
		const int64_t check_actual = (int64_t)(actual), check_expected = (int64_t)(expected);                  \
		CHECK(check_actual == check_expected, "%s is %" PRId64 ", expected %" PRId64, #actual, check_actual,   \
		      check_expected);                                                                                 \
	} while (0)

#endif /* GPUSEG_TESTS_HARNESS_H */
