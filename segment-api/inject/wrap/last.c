/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last.c - what the first process under `gpuseg exec` says at its end, if there was nothing to schedule: one line, not
 * one for each process of a script.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "../../src/say.h"
#include "../seen.h"
#include "wrap.h"

#define API __attribute__((visibility("default")))
#define KEPT_LEAST 100 /* far from the numbers that programs count on */

static pid_t first;   /* 0: another process is it. A child that is forked has the parent's number here. */
static int kept = -1; /* what number 2 stood for when the program closed it */

__attribute__((constructor)) static void load(void)
{
	if (seen_load())
		first = getpid();
}

/* That of the C library. Constructors of other libraries come earlier, so load() is too late for it. */
static void *next(void **function, const char *name)
{
	if (!__atomic_load_n(function, __ATOMIC_RELAXED))
		__atomic_store_n(function, gpuseg_wrap.symbol(RTLD_NEXT, name), __ATOMIC_RELAXED);
	return __atomic_load_n(function, __ATOMIC_RELAXED);
}

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0;
}

__attribute__((destructor)) static void say_what_is_missing(void)
{
	bool again;

	if (!first || first != getpid() || !seen_nothing())
		return;
	again = kept >= 0 && is_closed(STDERR_FILENO) && dup2(kept, STDERR_FILENO) >= 0;
	first = 0;
	say("no CUDA was seen in this program or in what it started: nothing to schedule. If it uses a GPU by other "
	    "means, "
	    "mark its segments (gpuseg.h); in a container, type gpuseg exec inside; linked statically, link it "
	    "dynamically; else all is well");
	if (again)
		close(STDERR_FILENO);
}

API int fclose(FILE *file);

/* Some programs close stderr at their end, to learn whether all was written. */
int fclose(FILE *file)
{
	static void *function;
	int (*const next_fclose)(FILE *) = (int (*)(FILE *))next(&function, "fclose");

	if (file == stderr && first && first == getpid() && kept < 0)
		kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, KEPT_LEAST);
	return next_fclose(file);
}

API __attribute__((noreturn)) void _exit(int status);

/* Some shells end so, past destructors. */
void _exit(int status)
{
	static void *function;
	void (*const next_exit)(int) = (void (*)(int))next(&function, "_exit");

	say_what_is_missing();
	next_exit(status);
	__builtin_unreachable();
}
