/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - what libgpuseg-wrap.so, which is preloaded into the program, and libgpuseg-inject.so know of each other.
 * Both are of one build.
 */
#ifndef GPUSEG_INJECT_WRAP_H
#define GPUSEG_INJECT_WRAP_H

#include <stdint.h>

#include "../functions.h"

/* A call of a wrapped function, on the stack of its caller. */
struct wrapped_call {
	enum function_index function;
	const uintptr_t *arguments;
	int result; /* at the exit */
	/* Of the follower, from the entry to the exit. */
	void *context;
	uint32_t context_uid;
	bool followed;
	uint64_t word;
};

struct follower {
	void (*entered)(struct wrapped_call *call); /* call->followed is false */
	void (*left)(struct wrapped_call *call);
};

/* The one object that libgpuseg-wrap.so exports for it, found by name: gpuseg_wrap. */
struct wrap {
	uint32_t count; /* FUNCTION_COUNT of that library */
	/* NULL, or why calls can pass the wrappers by: a line without a full stop. */
	const char *(*passed_by)(void);
	/* Is the calling thread inside of a wrapper of cuInit, or of any? */
	bool (*in_init)(void);
	bool (*in_call)(void);
	/* As dlsym(), but never a wrapper. */
	void *(*symbol)(void *handle, const char *name);
	/* From now on calls are reported; NULL: no more. */
	void (*follow)(const struct follower *follower);
	/* CUDA is used, or the program marks segments itself, whatever the wrappers see (last.h). */
	void (*used)(void);
};

#endif /* GPUSEG_INJECT_WRAP_H */
