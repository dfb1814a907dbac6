/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.h - the libcupti that belongs to the process. */
#ifndef GPUSEG_INJECT_CUPTI_H
#define GPUSEG_INJECT_CUPTI_H

#include <stdbool.h>
#include "driver_api.h"

extern struct cupti cupti; /* cupti_load() fills it */

/* Load a libcupti that fits. False: one line has said why not. */
bool cupti_load(void);

#endif /* GPUSEG_INJECT_CUPTI_H */
