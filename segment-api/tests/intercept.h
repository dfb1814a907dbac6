/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intercept.h - replaces syscall(2) of libc in a test program: the library calls it for each futex, each bell and each
 * line that it says. The test defines intercept() and passes on to libc_syscall() what it leaves alone.
 */
#ifndef INTERCEPT_H
#define INTERCEPT_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static long (*libc_syscall)(long, ...);

/* a: as many arguments as there can be. Returns what syscall(2) returns. */
static long intercept(long number, const long a[6]);

__attribute__((constructor)) static void find_syscall(void)
{
	libc_syscall = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
}

static inline long to_libc(long number, const long a[6])
{
	return libc_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return intercept(number, a);
}

#endif /* INTERCEPT_H */
