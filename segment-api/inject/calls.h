/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - what a call of the driver means for the streams of the program. */
#ifndef GPUSEG_INJECT_CALLS_H
#define GPUSEG_INJECT_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "driver_api.h"
#include "functions.h"

/* A call of a function that is followed. */
struct call {
	const struct function *function;
	const uintptr_t *arguments;
	CUcontext context;    /* current one of the thread, or NULL */
	uint32_t context_uid; /* never used again in the process */
	CUresult result;      /* at the exit */
	uint64_t *word;	      /* one for each call, kept from entry to exit */
};

/* Before the driver is called. False: the call is not followed. */
bool call_entered(const struct call *call);
/* The driver has returned. */
void call_left(const struct call *call);
/* The calls of this thread are never followed. */
void calls_are_our_own(void);
/* Is this library calling the driver? */
bool call_is_our_own(void);

#endif /* GPUSEG_INJECT_CALLS_H */
