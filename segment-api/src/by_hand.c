/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_hand.c - what a program tells libgpuseg-inject.so, which is loaded into it under `gpuseg exec`: that it marks its
 * segments itself, so that the library begins none for it, and which stream works for which task.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define INJECTED "libgpuseg-inject.so"

/* Weak, so that a static program, which has no dlopen(), can be linked; the CUDA driver loads no library into it. */
extern __typeof__(dlopen) dlopen __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

static int fail_stream(int result)
{
	switch (result) {
	case -ENOTSUP:
		return fail_with(NULL, result,
				 "launches of this process are not followed: CUDA is not initialised "
				 "yet, or gpuseg has said on stderr why the process runs unmanaged");
	case -EINVAL:
		return fail_with(NULL, result, "the default stream of a thread cannot have a task; create a stream");
	case -ENOSPC:
		return fail_with(NULL, result,
				 "too many streams have a task; take it from one with gpuseg_stream(stream, NULL)");
	default:
		return result;
	}
}

/* A function of the injected library; NULL: there is none. */
static void *injected(const char *function)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH"), *name;
	void *library;

	if (likely(!path) || !dlopen || !dlsym)
		return NULL;
	name = strrchr(path, '/');
	if (strcmp(name ? name + 1 : path, INJECTED) != 0)
		return NULL;
	/* The driver may not have loaded it yet. It is the same copy then, and loading it alone does nothing. */
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, function) : NULL;
}

void tell_injection(void)
{
	void (*by_hand)(void);

	*(void **)&by_hand = injected("gpuseg_inject_by_hand");
	if (by_hand)
		by_hand();
}

void tell_disowned(void)
{
	/* The next call of the program returns -ENOTCONN, with a message. */
}

int gpuseg_stream(void *stream, const gpuseg_task *task)
{
	int (*set_rank)(uintptr_t handle, int rank);
	int rank = -1;

	*(void **)&set_rank = injected("gpuseg_inject_stream");
	if (!set_rank)
		return fail_with(NULL, -ENOTSUP,
				 "launches of this process are not followed; start it by `gpuseg exec`");
	if (task)
		rank = (int)(task->attr.gpu_priority ? task->attr.gpu_priority : task->attr.priority);
	return fail_stream(set_rank((uintptr_t)stream, rank));
}
