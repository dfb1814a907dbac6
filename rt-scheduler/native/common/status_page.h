/* SPDX-License-Identifier: Apache-2.0 */
/* status_page.h - reads the page that a daemon keeps in its runtime directory. */
#ifndef GPUSEG_NATIVE_STATUS_PAGE_H
#define GPUSEG_NATIVE_STATUS_PAGE_H

#include <stdbool.h>

#include "gpuseg_abi.h"

/*
 * Copies <directory>/status with read(2), so that a page that a starting daemon truncates cannot cause a fault.
 * 0; -ENOENT: no such file; -EAGAIN: it is being created; -EPROTO: not a status page of this version; another -errno.
 */
int status_read(struct gpuseg_status *status, const char *directory);

/* Is the daemon that wrote the page still alive? */
bool status_owner_lives(const struct gpuseg_status *status);

#endif /* GPUSEG_NATIVE_STATUS_PAGE_H */
