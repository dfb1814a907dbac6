/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - calls of the driver, one at a time. */
#ifndef GPUSEG_INJECT_DEVICE_H
#define GPUSEG_INJECT_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

/* True if device_lock was had within its limit. */
bool device_lock(void);
/* The same, at once. */
bool device_try_lock(void);
void device_unlock(void);
int device_init(const pthread_mutexattr_t *attr);

/* Follow no call any more. The open segments end. Any thread. */
void deactivate(void);

#endif /* GPUSEG_INJECT_DEVICE_H */
