/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the part of the GPU that a daemon keeps free, as exec sees it. */
#ifndef GPUSEG_INJECT_SPACE_H
#define GPUSEG_INJECT_SPACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define SPACE_PLACES_MOST 64
#define SPACE_LIMIT_BYTES 8

struct space {
	char pipe[PATH_MAX];  /* where clients find the MPS server */
	unsigned int reserve; /* percent of the multiprocessors that best effort and long work leave free */
	unsigned int places;  /* for best-effort programs */
	char limit[SPACE_PLACES_MOST][SPACE_LIMIT_BYTES]; /* what each may use, percent, as MPS takes it */
	uid_t uid;					  /* whom the MPS server serves */
};

/* What the daemon of this directory says. False: it keeps nothing free, or says it in a way that is not understood. */
bool space_read(const char *directory, struct space *space);

/*
 * Take a place. The lock stays with this process, the program that it becomes, and all that inherit the descriptor, and
 * ends with the last of them. Returns its number; -1: all are taken.
 */
int space_take_place(const char *directory, const struct space *space);

#endif
