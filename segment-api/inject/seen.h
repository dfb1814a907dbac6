/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.h - whether any process under one `gpuseg exec` had something to schedule.
 *
 * The first process is the one that gpuseg-exec becomes. Shared memory without a name and without a descriptor
 * tells it what those that it started have seen; it goes with the last process that has it.
 */
#ifndef GPUSEG_INJECT_SEEN_H
#define GPUSEG_INJECT_SEEN_H

#include <stdbool.h>

/* gpuseg-exec: this process will be the first one. False: it cannot be told apart, and nothing is set. */
bool seen_begin(void);

/* gpuseg-exec: what it starts belongs to no first process. */
void seen_none(void);

/* When a library is loaded: get the word; the first process makes it. Returns whether this is the first process. */
bool seen_load(void);

/* CUDA is used here, or the program marks segments itself. From any process, loaded or not. */
void seen_mark(void);

/* The first process, at its end: nothing was seen, and none of those that it started is left to see something. */
bool seen_nothing(void);

#endif /* GPUSEG_INJECT_SEEN_H */
