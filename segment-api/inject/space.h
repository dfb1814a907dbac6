/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the part of the GPU that a daemon keeps free, as exec sees it. */
#ifndef GPUSEG_INJECT_SPACE_H
#define GPUSEG_INJECT_SPACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct space {
	char pipe[PATH_MAX];  /* where clients find the MPS server */
	unsigned int reserve; /* percent of the multiprocessors that best effort and long work leave free */
	unsigned int places;  /* for best-effort programs, each with an equal share of the rest */
	uid_t uid;	      /* whom the MPS server serves */
};

/* What the daemon of this directory says. False: it keeps nothing free, or says it in a way that is not understood. */
bool space_read(const char *directory, struct space *space);

/*
 * Take a place. The lock stays with this process, the program that it becomes, and all that inherit the descriptor, and
 * ends with the last of them. False: all are taken.
 */
bool space_take_place(const char *directory, const struct space *space);

#endif
