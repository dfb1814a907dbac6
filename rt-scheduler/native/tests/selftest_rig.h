/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest_rig.h - runs gpuseg-selftest on stand-ins, each time with one planted fault, in a directory of its own. All
 * functions end the test when they fail.
 */
#ifndef GPUSEG_TESTS_SELFTEST_RIG_H
#define GPUSEG_TESTS_SELFTEST_RIG_H

#include <stddef.h>
#include <sys/types.h>

/* In what surroundings the self-test runs; a test has more of its own from AROUND_OWN. */
enum around {
	AS_EVER,
	NO_RUNTIME, /* no libcuda.so.1 or libamdhip64.so */
	NO_WATCHDOG,
	IDLE_WATCHDOG, /* ends at once with status 0 */
	DEAF_WATCHDOG, /* never does anything */
	NO_LIBRARY,    /* that its programs preload */
	AROUND_OWN
};

struct plant {
	const char *driver;  /* fault of the driver, as its stand-in reads it, or NULL */
	const char *runtime; /* GPUSEG_CUDA_FAULT, or NULL */
	int around;	     /* enum around, or the test's own */
	int status;
	const char *level; /* "" = none is printed */
	const char *row;   /* id, and the verdict that it has; "" = one line instead of a table */
	const char *verdict;
};

#define LIMIT_NS (140 * NS_PER_S)
#define TEXT_MAX 32768

extern char directory[64]; /* of this run */
extern const char *build;  /* where programs and stand-ins are */

void find_build(void);
/* Of a file in the directory; four at a time. */
const char *path_of(const char *name);
void write_file(const char *name, const char *text, mode_t mode);
/* Up to TEXT_MAX; "" if there is none. */
void read_file(const char *name, char *text);
void wait_for_text(const char *name, const char *text);
/* Makes it, and names it. */
void make_directory(void);
void remove_directory(void);
/* A file in it, of zeros if it is new; shared. */
void *map_file(const char *name, size_t size);
/* Its output goes to a file in the directory. */
pid_t start(const char *program, const char *const arguments[], const char *output);
/* Exit status, or 128 + signal. */
int wait_for(pid_t pid);
/* The self-test, a copy where something is missing beside it. library: that its programs preload; NULL = none. */
pid_t start_selftest(const struct plant *p, const char *library);
/* Its output, its evidence and its result are those of the plant. of: the result's lines from mechanism to gpu. */
void check_selftest(const struct plant *p, pid_t selftest, const char *of);
/*
 * Each in a process of its own, several at once: they wait more than they compute. GPUSEG_TEST_EVERY=N: every Nth only.
 */
void run_plants(const struct plant *plants, size_t count, void (*run)(const struct plant *p));

#endif /* GPUSEG_TESTS_SELFTEST_RIG_H */
