/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.c - see descriptor.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "descriptor.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKS 64 /* signals; 0 is what files have that nobody marked */

void descriptor_take(struct descriptor *d, int number)
{
	static uint32_t taken;
	struct stat st = {0};

	/*
	 * A file that has a mark keeps it: a daemon may give the same one to two connections. Without a mark, where a
	 * kernel or a filter refuses it, device and inode have to do.
	 */
	if (fcntl(number, F_GETSIG) == 0)
		(void)fcntl(number, F_SETSIG, (int)(1 + __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED) % MARKS));
	(void)fstat(number, &st);
	d->mark = fcntl(number, F_GETSIG);
	d->device = st.st_dev;
	d->inode = st.st_ino;
	__atomic_store_n(&d->number, number, __ATOMIC_RELEASE);
}

bool descriptor_is_foreign(const struct descriptor *d)
{
	const int number = __atomic_load_n(&d->number, __ATOMIC_ACQUIRE);
	struct stat st;

	if (number < 0)
		return false;
	return fstat(number, &st) != 0 || st.st_dev != d->device || st.st_ino != d->inode ||
	       fcntl(number, F_GETSIG) != d->mark;
}

void descriptor_close(struct descriptor *d)
{
	const int number = __atomic_load_n(&d->number, __ATOMIC_RELAXED);
	const bool foreign = descriptor_is_foreign(d);

	if (number < 0)
		return;
	__atomic_store_n(&d->number, -1, __ATOMIC_RELAXED); /* R: client_lost() of any thread */
	if (!foreign)
		close(number);
}
