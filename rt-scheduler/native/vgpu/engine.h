/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the execution engine of the virtual GPU as a pure timeline.
 *
 * It opens no file, reads no clock and allocates only in engine_create(). The caller passes each outside event with its
 * time; times never decrease. engine_advance() simulates everything that the engine does up to a given time. All
 * resulting times are exact: a caller that is scheduled late advances late, and the timeline is the same.
 *
 *            submit                                      DISABLE takes effect
 *              |                                              v
 *   context A  [== slice L ==]        [== slice L ==]         (preempted, the rest is kept)
 *   context B                 θ[= L =]               θ[== ... ==============>
 *
 * Rules
 *   - One kernel runs at a time. Kernels of a context run in the order of submission.
 *   - Contexts take turns in the order in which they were added. One that is disabled or has no work is skipped.
 *   - A turn lasts for the timeslice of the context, measured from the end of the switch. Without a competitor it is
 *     renewed. A context that runs out of work ends its turn.
 *   - When the context on the engine changes, the switch cost passes first, also for the first context of all. An
 *     abandoned switch leaves no context on the engine.
 *   - Operations are served one after the other. One that arrives at time a begins at max(a, end of the one before) and
 *     takes effect after its cost (TIMESLICE: none). The cost does not depend on the number of contexts.
 *   - At equal times: completion, then operation, then end of switch or slice.
 */
#ifndef GPUSEG_VGPU_ENGINE_H
#define GPUSEG_VGPU_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuseg_abi.h"

enum {
	ENGINE_CONTEXTS_MAX = 512,
	ENGINE_STREAMS_MAX = 512,	 /* connections of applications */
	ENGINE_KERNELS_PER_STREAM = 128, /* submitted and not finished; the caller delays further ones */
	ENGINE_OPERATIONS_MAX = 256
};

/* gpuseg_sim_span.flags */
enum { SPAN_COMPLETED = 1, SPAN_PREEMPTED = 2, SPAN_SLICE = 4 };

struct engine_config {
	int64_t timeslice_ns;
	int64_t switch_cost_ns;
	int64_t disable_cost_ns;
	int64_t enable_cost_ns;
};

struct operation {
	uint32_t op; /* GPUSEG_SIM_ENABLE, _DISABLE or _TIMESLICE */
	uint32_t count;
	int64_t arg_ns;
	int64_t effect_ns; /* set by engine_operate() */
	uint64_t token;	   /* of the caller; returned unchanged */
	uint64_t served;   /* bit i: pids[i] named a context and was changed (or remembered) */
	int32_t status;	   /* 0, or -ESRCH: some pid had no context */
	int32_t pids[GPUSEG_SIM_BATCH_MAX];
};

/*
 * Callbacks, made during the call that caused the event. They must not call the engine, with one exception:
 * unknown_pid() may call engine_add_context() and engine_forget_context().
 */
struct engine_sink {
	void (*span)(void *argument, const struct gpuseg_sim_span *span);
	void (*completed)(void *argument, uint32_t stream, uint64_t fence, int64_t time_ns);
	void (*operated)(void *argument, const struct operation *operation);
	/*
	 * A DISABLE names a pid without a context. Returns the index of a new context, which stays disabled until the
	 * process opens it; or -1.
	 */
	int (*unknown_pid)(void *argument, int32_t pid);
	/* The context is removed and its index is free. */
	void (*dropped)(void *argument, int context, int32_t pid);
	void *argument;
};

struct engine_counters {
	uint64_t kernels_completed;
	uint64_t switches;
	uint64_t preemptions;
	uint64_t operations;
	int64_t busy_ns; /* a kernel ran, or the engine switched */
};

struct engine;

/* NULL: no memory. The only call that allocates. */
struct engine *engine_create(const struct engine_config *config, const struct engine_sink *sink);
void engine_destroy(struct engine *engine);

/* Time of the engine's next own event; INT64_MAX: none before an outside event. */
int64_t engine_next_event(const struct engine *engine);

/* Simulates up to and including `until_ns`. A time in the past is ignored. */
void engine_advance(struct engine *engine, int64_t until_ns);

/* The calls below first advance to `time_ns`. */

int engine_add_context(struct engine *engine, int32_t pid); /* index, or -ENOSPC; without a stream it is "remembered" */
void engine_forget_context(struct engine *engine, int context);	   /* undoes the newest engine_add_context() */
int engine_find_context(const struct engine *engine, int32_t pid); /* index, or -1 */
void engine_open_stream(struct engine *engine, int context);
/* Removes the kernels of the stream. The last stream of a context removes the context. */
void engine_close_stream(struct engine *engine, int context, uint32_t stream, int64_t time_ns);
/* The process died: removes its context with all streams. */
void engine_drop_context(struct engine *engine, int context, int64_t time_ns);
int engine_submit(struct engine *engine, int context, uint32_t stream, uint64_t fence, int64_t duration_ns,
		  int64_t time_ns);							       /* 0, or -ENOSPC */
int engine_operate(struct engine *engine, const struct operation *operation, int64_t time_ns); /* 0, or -EBUSY */
/* Ends the timeline: emits the part of the running kernel that was executed. */
void engine_stop(struct engine *engine, int64_t time_ns);

uint32_t engine_context_count(const struct engine *engine);  /* with at least one stream */
uint32_t engine_disabled_count(const struct engine *engine); /* remembered ones included */
const struct engine_counters *engine_counters(const struct engine *engine);

#endif /* GPUSEG_VGPU_ENGINE_H */
