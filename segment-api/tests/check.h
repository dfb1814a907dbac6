/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the test harness: CHECK macros, a table of cases, a limit in time.
 *
 *   TEST(should_do_this) { CHECK_EQ(f(), 3); }
 *   int main(int argc, char **argv) { return check_main(argc, argv, CASES(should_do_this, ...)); }
 *
 * A program exits 0 (all passed), 1 (a check failed), 77 (skipped, the reason is printed). A failed check prints where,
 * what and both values, then ends the program: what follows it would only confuse. Arguments select cases by name.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_SECONDS 300 /* for a whole program; SIGALRM ends it. Sanitizers, emulation and busy machines are slow */

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			check_fail(__FILE__, __LINE__, #cond);                                                         \
	} while (0)

#define CHECK_EQ(a, b)                                                                                                 \
	do {                                                                                                           \
		int64_t check_a = (int64_t)(a), check_b = (int64_t)(b);                                                \
		if (check_a != check_b) {                                                                              \
			fprintf(stderr, "    left %" PRId64 ", right %" PRId64 "\n", check_a, check_b);                \
			check_fail(__FILE__, __LINE__, #a " == " #b);                                                  \
		}                                                                                                      \
	} while (0)

#define CHECK_CONTAINS(text, part)                                                                                     \
	do {                                                                                                           \
		const char *check_text = (text);                                                                       \
		if (!strstr(check_text, part)) {                                                                       \
			fprintf(stderr, "    text \"%s\"\n", check_text);                                              \
			check_fail(__FILE__, __LINE__, #text " contains " #part);                                      \
		}                                                                                                      \
	} while (0)

#define SKIP(reason)                                                                                                   \
	do {                                                                                                           \
		printf("  skipped: %s\n", reason);                                                                     \
		exit(77);                                                                                              \
	} while (0)

struct check_case {
	const char *name;
	void (*run)(void);
};

#define TEST(name) static void name(void)
/* clang-format off */
#define CASE(name) {#name, name}
/* clang-format on */

__attribute__((noreturn)) static inline void check_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "  %s:%d: FAILED: %s\n", file, line, what);
	fflush(NULL);
	_exit(1);
}

static inline int check_main(int argc, char **argv, const struct check_case *cases, size_t count)
{
	alarm(CHECK_SECONDS);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		int wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= strcmp(argv[a], cases[i].name) == 0;
		if (!wanted)
			continue;
		printf("  %s\n", cases[i].name);
		cases[i].run();
	}
	return 0;
}
#define CHECK_MAIN(cases)                                                                                              \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		return check_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));                              \
	}

#endif /* CHECK_H */
