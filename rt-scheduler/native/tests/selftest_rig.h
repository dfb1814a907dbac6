/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest_rig.h - runs gpuseg-selftest on stand-ins, each time with one planted fault, in a directory of its own. All
 * functions end the test when they fail.
 */
#ifndef GPUSEG_TESTS_SELFTEST_RIG_H
#define GPUSEG_TESTS_SELFTEST_RIG_H

#include <stddef.h>
#include <sys/types.h>

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
/* From the build's directory. */
void copy_program(const char *name);
void remove_directory(void);
/* Its output goes to a file in the directory. */
pid_t start(const char *program, const char *const arguments[], const char *output);
/* Exit status, or 128 + signal. */
int wait_for(pid_t pid);
/* Several at once, in processes of their own: they wait more than they compute. GPUSEG_TEST_EVERY=N: every Nth only. */
void run_all(size_t count, void (*run)(size_t index), const char *(*name)(size_t index));

#endif /* GPUSEG_TESTS_SELFTEST_RIG_H */
