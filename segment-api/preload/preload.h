/* SPDX-License-Identifier: Apache-2.0 */
/* preload.h - the two sides of libgpuseg-preload.so. Private. */
#ifndef GPUSEG_PRELOAD_H
#define GPUSEG_PRELOAD_H

typedef int (*gpuseg_ioctl_fn)(int fd, unsigned long request, ...);

#define GPUSEG_KFD_TYPE 'K'

/*
 * An ioctl of type 'K'. A call about queues of /dev/kfd is changed as the holds of the scheduler require; any other
 * call is passed on unchanged. Takes mutexes, so it must not be called from signal handlers. Result and errno are the
 * kernel's.
 */
int gpuseg_kfd_ioctl(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument);

#endif /* GPUSEG_PRELOAD_H */
