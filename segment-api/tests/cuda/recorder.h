/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - what the driver of test_wrap has noted. */
#ifndef RECORDER_H
#define RECORDER_H

#include <stddef.h>

#include "../../inject/functions.h"

#define RECORDER __attribute__((visibility("default")))
#define RECORDED_ARGUMENTS 11
#define RECORDED_RESULT 1000 /* a function returns this and its index */

struct recorded {
	enum function_index function;
	size_t count;
	uintptr_t arguments[RECORDED_ARGUMENTS];
};

RECORDER extern struct recorded recorded;			/* the latest call */
RECORDER extern void *const recorder_functions[FUNCTION_COUNT]; /* addresses of the functions themselves */
RECORDER int cuDriverGetVersion(int *version);
RECORDER int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
RECORDER int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status);

#endif /* RECORDER_H */
