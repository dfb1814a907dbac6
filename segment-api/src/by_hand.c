/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand.c - a program that marks its segments itself tells libgpuseg-inject.so, which then begins none for it. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define INJECTED "libgpuseg-inject.so"

/* Weak, so that a static program, which has no dlopen(), can be linked; the CUDA driver loads no library into it. */
extern __typeof__(dlopen) dlopen __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

void tell_injection(void)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH"), *name;
	void (*by_hand)(void);
	void *library;

	if (likely(!path) || !dlopen || !dlsym)
		return;
	name = strrchr(path, '/');
	if (strcmp(name ? name + 1 : path, INJECTED) != 0)
		return;
	/* The driver may not have loaded it yet. It is the same copy then, and loading it alone does nothing. */
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	*(void **)&by_hand = dlsym(library, "gpuseg_inject_by_hand");
	if (by_hand)
		by_hand();
}
