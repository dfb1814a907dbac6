/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor.h - descriptors of ours in the process of others.
 *
 * A program may close numbers that it does not know: closefrom(3), a loop before it goes to the background, a number
 * closed twice. The kernel then gives them to the files that it opens next. So each use of a number is preceded by a
 * look whether it still stands for our file. Another thread can close it between the two; no more can be done about
 * that.
 *
 * Device and inode tell a file, but not an eventfd, because all of them share one inode, and the program may have some,
 * too. So each file of ours also has a mark: the signal of fcntl(F_SETSIG), which the kernel keeps with the open file
 * and sends only with O_ASYNC, which none of them has. The marks of a connection and of its successor, which often gets
 * the same numbers, differ.
 */
#ifndef GPUSEG_DESCRIPTOR_H
#define GPUSEG_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct descriptor {
	int number; /* atomic; -1 = none */
	int mark;
	dev_t device;
	ino_t inode;
};

/* The number stands for a file of ours from here on. */
void descriptor_take(struct descriptor *d, int number);

/* Does the number not stand for our file any more? False if there is none. */
bool descriptor_is_foreign(const struct descriptor *d);

/* Close it, unless the number stands for another file. */
void descriptor_close(struct descriptor *d);

#endif /* GPUSEG_DESCRIPTOR_H */
