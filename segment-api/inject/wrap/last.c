/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last.c - what the program that gpuseg-exec has become says at its end, if it used no CUDA: one line. Of one that had
 * children nothing is said, since they may have; so a script is silent, and so are its processes.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/say.h"
#include "last.h"

/* 0: gpuseg-exec has become another process than this. A child that is forked has the parent's number here. */
static pid_t first;
static bool used; /* atomic; any thread sets it */

__attribute__((constructor)) static void load(void)
{
	const char *pid = secure_getenv(EXEC_FIRST_ENV);

	if (pid && strtol(pid, NULL, 10) == getpid())
		first = getpid();
}

void last_used(void)
{
	__atomic_store_n(&used, true, __ATOMIC_RELAXED);
}

static bool has_had_children(void)
{
	struct rusage of_ended;
	siginfo_t info;

	return getrusage(RUSAGE_CHILDREN, &of_ended) != 0 || of_ended.ru_maxrss != 0 ||
	       waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

__attribute__((destructor)) static void say_that_nothing_was_used(void)
{
	if (first == 0 || first != getpid() || __atomic_load_n(&used, __ATOMIC_RELAXED) || has_had_children())
		return;
	say("no CUDA was seen in this program: nothing to schedule. If it uses a GPU by other means, mark its segments "
	    "(gpuseg.h); in a container, type gpuseg exec inside; linked statically, link it dynamically; else all is "
	    "well");
}
