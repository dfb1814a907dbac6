/* SPDX-License-Identifier: Apache-2.0 */
/* preload.h - the two sides of libgpuseg-preload.so. Private. */
#ifndef GPUSEG_PRELOAD_H
#define GPUSEG_PRELOAD_H

typedef int (*gpuseg_ioctl_fn)(int fd, unsigned long request, ...);

#define GPUSEG_KFD_TYPE 'K'

/*
 * An ioctl of type 'K': a call that concerns queues of /dev/kfd is made as the scheduler's holds
 * want it, every other one as it is. Takes mutexes: not for signal handlers. Result and errno are the kernel's.
 */
int gpuseg_kfd_ioctl(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument);

#endif /* GPUSEG_PRELOAD_H */
