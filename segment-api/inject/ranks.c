/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - streams that work for a task of the program. */
#include <errno.h>

#include "flight.h"
#include "inject.h"
#include "ranks.h"
#include "streams.h"

#define RANK_FIRST (-100) /* of priority 1: beyond any that CUDA has */
#define RANKS_MAX 64

/* A stream that works for a task of the program. */
struct rank {
	uintptr_t handle;
	int priority; /* compares with those of CUDA: lower goes first */
};

static struct rank ranks[RANKS_MAX];
static unsigned int rank_count;

bool rank_of(uintptr_t handle, int *priority)
{
	for (unsigned int i = 0; i < rank_count; i++) {
		if (ranks[i].handle == handle) {
			*priority = ranks[i].priority;
			return true;
		}
	}
	return false;
}

/* The priorities of streams are looked up anew at their next launch; those with work keep their place until then. */
static void ranks_changed(uintptr_t handle)
{
	int top = 0;

	for (size_t i = 0; i < STREAMS_MAX; i++) {
		struct stream *s = &tracked.streams[i];
		int priority = 0;

		if (s->uid && s->handle == handle) {
			s->priority_known = rank_of(handle, &priority);
			s->priority = priority;
		}
		if (s->uid && s->priority < top)
			top = s->priority;
	}
	for (unsigned int i = 0; i < rank_count; i++) {
		if (ranks[i].priority < top)
			top = ranks[i].priority;
	}
	flight_set_top(top);
}

int rank_set(uintptr_t handle, int rank)
{
	const uintptr_t named = handle ? handle : STREAM_LEGACY;
	const int priority = rank > 0 ? RANK_FIRST - rank : 0;
	unsigned int i = 0;

	if (named == STREAM_PER_THREAD)
		return -EINVAL;
	while (i < rank_count && ranks[i].handle != named)
		i++;
	if (rank < 0) {
		if (i == rank_count)
			return 0;
		ranks[i] = ranks[--rank_count];
	} else {
		if (i == RANKS_MAX)
			return -ENOSPC;
		ranks[i] = (struct rank){.handle = named, .priority = priority};
		if (i == rank_count)
			rank_count++;
		if (inject.settings.flight_ns == 0)
			inject.settings.flight_ns = inject.settings.in_flight_ns;
	}
	ranks_changed(named);
	return 0;
}
