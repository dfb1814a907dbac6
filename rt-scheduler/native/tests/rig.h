/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - starts and queries the real programs: virtual GPU, applications, controllers. A failure ends the test. */
#ifndef GPUSEG_TESTS_RIG_H
#define GPUSEG_TESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuseg_abi.h"

/* A fresh directory for this test, removed with its files at exit. */
const char *rig_directory(void);
/* rig_directory()/name in one of a few static buffers. */
const char *rig_path(const char *name);

/*
 * Starts <build>/<program> with NULL-terminated arguments. It dies with the test. output: stdout and stderr, or NULL.
 */
pid_t rig_start(const char *program, const char *const arguments[], int *output);
/* Waits, with a limit; exit status, or 128 + signal. */
int rig_wait(pid_t pid);
/* Reads until end of file into buffer, NUL-terminated. */
void rig_read_all(int fd, char *buffer, size_t size);
/* Runs to its end; exit status; stdout and stderr into buffer (may be NULL). */
int rig_run(const char *program, const char *const arguments[], char *buffer, size_t size);

/* A virtual GPU with --log spans and further arguments (NULL-terminated), ready when this returns. */
pid_t rig_vgpu(const char *const more[]);
/* SIGTERM, expects exit 0, reads its log. Returns the number of spans. */
size_t rig_stop_vgpu(pid_t vgpu, struct gpuseg_sim_span spans[], size_t capacity);

struct rig_application {
	pid_t pid;
	int events; /* one byte: 's' submitted, 'd' all complete, 'e' error */
	int orders; /* a byte here lets it open its context */
};

/* A process that opens a context, submits the kernels and waits for the last; then lives until it is killed. */
struct rig_application rig_application(const int64_t durations_ns[], size_t count);
/* The same, but opens only after rig_let_go(). */
struct rig_application rig_held_application(const int64_t durations_ns[], size_t count);
void rig_let_go(const struct rig_application *application);
/* Next event within 30 s, or 't'. */
char rig_event(const struct rig_application *application);

int rig_connect(const char *socket_name);
/*
 * As recv(2), with a limit of 30 s. Unlike recv(2) with a limit, it continues to wait after a stop of the process.
 */
ssize_t rig_receive(int fd, void *packet, size_t size);
struct gpuseg_sim_msg rig_message(uint32_t op);
/* Sends an operation and waits for its reply. */
struct gpuseg_sim_msg rig_operate(int control, uint32_t op, const pid_t pids[], uint32_t count, int64_t arg_ns);
struct gpuseg_sim_info rig_info(int control);

/* Polls until the condition holds, 30 s at most. */
bool rig_until(bool (*condition)(void *argument), void *argument);

#endif /* GPUSEG_TESTS_RIG_H */
