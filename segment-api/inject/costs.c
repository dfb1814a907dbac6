/* SPDX-License-Identifier: Apache-2.0 */
/* costs.c - how long a kernel or a graph takes, by function. Functions share entries: the later one counts. */
#include "costs.h"
#include "inject.h"

#define COSTS_MAX 1024 /* 2^10: cost_of() */

static struct cost costs[COSTS_MAX];

int64_t flight_limit_ns(void)
{
	return inject.settings.flight_ns > 0 ? inject.settings.flight_ns : inject.settings.bound_ns;
}

struct cost *cost_of(uintptr_t function)
{
	struct cost *c = &costs[((uint64_t)function * 0x9e3779b97f4a7c15u) >> 54];

	if (c->function != function)
		*c = (struct cost){.function = function, .ns = flight_limit_ns()};
	return c;
}
