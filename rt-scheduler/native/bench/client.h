/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - common to the clients of the benches: their options, and a task that is ready for its first begin. */
#ifndef GPUSEG_BENCH_CLIENT_H
#define GPUSEG_BENCH_CLIENT_H

#include <getopt.h>

#include "common/base.h"
#include "gpuseg.h"

struct client_options {
	const char *directory;
	int priority; /* of the task on the GPU */
	int gpu;      /* index */
	bool spin;    /* while waiting for grants, and in some benches between segments */
	struct scheduling scheduling;
};

enum { CLIENT_DIRECTORY = 256, CLIENT_PRIORITY, CLIENT_GPU, CLIENT_WAIT, CLIENT_SCHEDULING };

/* Entries for getopt_long, without has_arg other than required. */
#define CLIENT_OPTIONS                                                                                                 \
	{"dir", required_argument, NULL, CLIENT_DIRECTORY}, {"priority", required_argument, NULL, CLIENT_PRIORITY},    \
		{"gpu", required_argument, NULL, CLIENT_GPU}, {"wait", required_argument, NULL, CLIENT_WAIT},          \
	{                                                                                                              \
		"scheduling", required_argument, NULL, CLIENT_SCHEDULING                                               \
	}

/* Handles an option of CLIENT_OPTIONS; false: it is another option. Exits with EXIT_USAGE if the value is wrong. */
bool take_client_option(int option, const char *value, struct client_options *options);

/*
 * Connects and opens one task, both with that name. Sets name, priority and spin_count of attr; the caller sets the
 * rest. 0 or -errno, after a message that begins with `who`. *client is set if it connected.
 */
int open_client(const char *who, const char *name, const struct client_options *options, struct gpuseg_task_attr *attr,
		gpuseg_client **client, gpuseg_task **task);

/* --scheduling for the calling thread. If that is not permitted, prints a message and continues without. */
void try_scheduling(struct scheduling scheduling);

#endif /* GPUSEG_BENCH_CLIENT_H */
