/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - the functions of libcuda. */
#ifndef GPUSEG_INJECT_DRIVER_H
#define GPUSEG_INJECT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include "driver_api.h"

/* driver_load() fills them. */
extern struct driver driver;
extern struct occupancy occupancy; /* NULL where the driver has none */
extern struct identity identity;   /* the same */
extern struct touching touching;   /* the same */

struct wrap;
/* The preloaded wrappers of the driver's functions, if they are there and of the same build; else NULL. */
const struct wrap *wrappers(void);

/* Fill the table of functions. The name of one that is missing, or NULL. */
const char *resolve(void *library, void *table, const char *const *names, size_t count);
/* Find libcuda's functions. False: one line has said why not. */
bool driver_load(void);

#endif /* GPUSEG_INJECT_DRIVER_H */
