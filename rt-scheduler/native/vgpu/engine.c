/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MAX

enum { NONE = -1, KERNELS_MAX = ENGINE_STREAMS_MAX * ENGINE_KERNELS_PER_STREAM };

struct kernel {
	int64_t remaining_ns;
	uint64_t fence;
	uint32_t stream;
	int32_t next; /* in its context's queue, or in the free list */
};

struct context {
	int32_t pid; /* 0: free */
	uint32_t streams;
	bool enabled;
	bool ready; /* enabled and has a kernel; see update_ready() */
	int32_t head, tail;
	int64_t timeslice_ns; /* 0: the engine's default */
};

enum phase { PHASE_IDLE, PHASE_SWITCHING, PHASE_RUNNING };

struct engine {
	struct engine_config config;
	struct engine_sink sink;
	struct engine_counters counters;

	int64_t now_ns;
	enum phase phase;
	int current;	       /* context being loaded or running; meaningless while idle */
	int loaded;	       /* context on the engine, or NONE */
	int64_t switch_end_ns; /* SWITCHING */
	int64_t span_start_ns; /* RUNNING: when the current span began */
	int64_t slice_end_ns;  /* RUNNING: may be in the past while there is no competitor, see update_ready() */
	int ready;	       /* contexts that are ready */

	int order[ENGINE_CONTEXTS_MAX]; /* the runlist: contexts in the order of their turns */
	int order_count;
	int cursor; /* position of the context that had the last turn, or NONE */

	struct operation operations[ENGINE_OPERATIONS_MAX];
	unsigned operation_head, operation_count;
	int64_t operations_free_ns; /* effect of the last operation accepted */

	struct context contexts[ENGINE_CONTEXTS_MAX];
	struct kernel kernels[KERNELS_MAX];
	int32_t free_kernel;
};

struct engine *engine_create(const struct engine_config *config, const struct engine_sink *sink)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->config = *config;
	e->sink = *sink;
	e->now_ns = INT64_MIN;
	e->operations_free_ns = INT64_MIN;
	e->loaded = NONE;
	e->cursor = NONE;
	for (int32_t i = 0; i < KERNELS_MAX; i++)
		e->kernels[i].next = i + 1 < KERNELS_MAX ? i + 1 : NONE;
	return e;
}

void engine_destroy(struct engine *e)
{
	free(e);
}

/*
 * Updates `ready`. While a context runs alone, its turn is renewed without an event. When a competitor appears inside a
 * renewed turn, the true end of the turn is computed here.
 */
static void update_ready(struct engine *e, struct context *c)
{
	const bool ready = c->pid != 0 && c->enabled && c->head != NONE;

	if (ready == c->ready)
		return;
	c->ready = ready;
	e->ready += ready ? 1 : -1;
	if (ready && e->ready == 2 && e->phase == PHASE_RUNNING && e->slice_end_ns <= e->now_ns) {
		const struct context *running = &e->contexts[e->current];
		const int64_t slice = running->timeslice_ns ? running->timeslice_ns : e->config.timeslice_ns;

		e->slice_end_ns += ((e->now_ns - e->slice_end_ns) / slice + 1) * slice;
	}
}

static void pop_kernel(struct engine *e, struct context *c)
{
	const int32_t k = c->head;

	c->head = e->kernels[k].next;
	if (c->head == NONE)
		c->tail = NONE;
	e->kernels[k].next = e->free_kernel;
	e->free_kernel = k;
}

static void emit_span(struct engine *e, uint32_t flags)
{
	const struct context *c = &e->contexts[e->current];
	const struct kernel *k = &e->kernels[c->head];
	const struct gpuseg_sim_span span = {
		.start_ns = e->span_start_ns,
		.end_ns = e->now_ns,
		.pid = c->pid,
		.flags = flags,
		.fence = k->fence,
	};

	/* A kernel that is stopped at the instant of its start has not executed. */
	if (span.end_ns > span.start_ns || (flags & SPAN_COMPLETED))
		e->sink.span(e->sink.argument, &span);
}

/* The current context keeps its turn and its next kernel starts now. */
static void start_kernel(struct engine *e)
{
	e->phase = PHASE_RUNNING;
	e->span_start_ns = e->now_ns;
}

static void start_turn(struct engine *e)
{
	const struct context *c = &e->contexts[e->current];

	e->loaded = e->current;
	e->slice_end_ns = e->now_ns + (c->timeslice_ns ? c->timeslice_ns : e->config.timeslice_ns);
	start_kernel(e);
}

/* Gives the turn to the next ready context of the runlist. */
static void dispatch(struct engine *e)
{
	e->phase = PHASE_IDLE;
	for (int i = 1; i <= e->order_count; i++) {
		const int position = (e->cursor + i) % e->order_count;

		if (!e->contexts[e->order[position]].ready)
			continue;
		e->cursor = position;
		e->current = e->order[position];
		if (e->current == e->loaded) {
			start_turn(e);
			return;
		}
		e->phase = PHASE_SWITCHING;
		e->switch_end_ns = e->now_ns + e->config.switch_cost_ns;
		e->counters.switches++;
		return;
	}
}

/* Removes the current context from the engine, in any state; `flags` says why. The rest of a kernel is kept. */
static void take_off(struct engine *e, uint32_t flags)
{
	if (e->phase == PHASE_RUNNING) {
		struct context *c = &e->contexts[e->current];

		emit_span(e, flags);
		e->kernels[c->head].remaining_ns -= e->now_ns - e->span_start_ns;
	} else if (e->phase == PHASE_SWITCHING) {
		e->loaded = NONE;
	}
	e->phase = PHASE_IDLE;
}

static bool is_current(const struct engine *e, int context)
{
	return e->phase != PHASE_IDLE && e->current == context;
}

static void complete(struct engine *e)
{
	struct context *c = &e->contexts[e->current];
	const uint64_t fence = e->kernels[c->head].fence;
	const uint32_t stream = e->kernels[c->head].stream;

	emit_span(e, SPAN_COMPLETED);
	pop_kernel(e, c);
	update_ready(e, c);
	e->counters.kernels_completed++;
	e->sink.completed(e->sink.argument, stream, fence, e->now_ns);
	if (c->ready && (e->ready == 1 || e->slice_end_ns > e->now_ns))
		start_kernel(e);
	else
		dispatch(e);
}

static void remove_context(struct engine *e, int context)
{
	struct context *c = &e->contexts[context];
	const int32_t pid = c->pid;
	const bool was_current = is_current(e, context);

	if (was_current)
		take_off(e, 0);
	while (c->head != NONE)
		pop_kernel(e, c);
	c->pid = 0;
	c->streams = 0;
	update_ready(e, c);
	if (e->loaded == context)
		e->loaded = NONE;
	for (int i = 0; i < e->order_count; i++) {
		if (e->order[i] != context)
			continue;
		memmove(&e->order[i], &e->order[i + 1], (size_t)(e->order_count - i - 1) * sizeof(e->order[0]));
		e->order_count--;
		/* The next turn belongs to the successor of the context that was removed. */
		if (e->cursor >= i)
			e->cursor--;
		break;
	}
	e->sink.dropped(e->sink.argument, context, pid);
	if (was_current)
		dispatch(e);
}

static void apply_to(struct engine *e, struct operation *o, unsigned i)
{
	const int32_t pid = o->pids[i];
	int context = engine_find_context(e, pid);
	struct context *c;

	if (context < 0 || e->contexts[context].streams == 0)
		o->status = -ESRCH;
	if (context < 0 && o->op == GPUSEG_SIM_DISABLE)
		context = e->sink.unknown_pid(e->sink.argument, pid);
	if (context < 0)
		return;
	o->served |= UINT64_C(1) << i;
	c = &e->contexts[context];
	switch (o->op) {
	case GPUSEG_SIM_DISABLE:
		c->enabled = false;
		update_ready(e, c);
		break;
	case GPUSEG_SIM_ENABLE:
		c->enabled = true;
		update_ready(e, c);
		if (c->streams == 0) /* it was only remembered */
			remove_context(e, context);
		break;
	default:
		c->timeslice_ns = o->arg_ns;
		break;
	}
}

static void operate(struct engine *e)
{
	struct operation *o = &e->operations[e->operation_head];

	for (unsigned i = 0; i < o->count; i++)
		apply_to(e, o, i);
	/*
	 * Only after the whole batch, so that the engine does not switch to a context that is disabled at the same
	 * instant.
	 */
	if (e->phase != PHASE_IDLE && !e->contexts[e->current].enabled) {
		if (e->phase == PHASE_RUNNING)
			e->counters.preemptions++;
		take_off(e, SPAN_PREEMPTED);
	}
	if (e->phase == PHASE_IDLE)
		dispatch(e);
	e->counters.operations++;
	e->sink.operated(e->sink.argument, o);
	e->operation_head = (e->operation_head + 1) % ENGINE_OPERATIONS_MAX;
	e->operation_count--;
}

static int64_t completion_time(const struct engine *e)
{
	if (e->phase != PHASE_RUNNING)
		return NEVER;
	return e->span_start_ns + e->kernels[e->contexts[e->current].head].remaining_ns;
}

static int64_t operation_time(const struct engine *e)
{
	return e->operation_count ? e->operations[e->operation_head].effect_ns : NEVER;
}

static int64_t turn_time(const struct engine *e)
{
	if (e->phase == PHASE_SWITCHING)
		return e->switch_end_ns;
	return e->phase == PHASE_RUNNING && e->ready > 1 ? e->slice_end_ns : NEVER;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t engine_next_event(const struct engine *e)
{
	return earlier(completion_time(e), earlier(operation_time(e), turn_time(e)));
}

static void move_to(struct engine *e, int64_t time_ns)
{
	if (e->phase != PHASE_IDLE)
		e->counters.busy_ns += time_ns - e->now_ns;
	e->now_ns = time_ns;
}

void engine_advance(struct engine *e, int64_t until_ns)
{
	for (;;) {
		const int64_t completion = completion_time(e);
		const int64_t operation = operation_time(e);
		const int64_t next = earlier(completion, earlier(operation, turn_time(e)));

		if (next > until_ns || next == NEVER)
			break;
		move_to(e, next);
		if (next == completion) {
			complete(e);
		} else if (next == operation) {
			operate(e);
		} else if (e->phase == PHASE_SWITCHING) {
			start_turn(e);
		} else {
			take_off(e, SPAN_SLICE);
			dispatch(e);
		}
	}
	if (until_ns > e->now_ns)
		move_to(e, until_ns);
}

int engine_add_context(struct engine *e, int32_t pid)
{
	for (int i = 0; i < ENGINE_CONTEXTS_MAX; i++) {
		struct context *c = &e->contexts[i];

		if (c->pid != 0)
			continue;
		*c = (struct context){.pid = pid, .enabled = true, .head = NONE, .tail = NONE};
		e->order[e->order_count++] = i;
		return i;
	}
	return -ENOSPC;
}

void engine_forget_context(struct engine *e, int context)
{
	e->contexts[context].pid = 0;
	e->order_count--;
}

int engine_find_context(const struct engine *e, int32_t pid)
{
	for (int i = 0; i < e->order_count; i++)
		if (e->contexts[e->order[i]].pid == pid)
			return e->order[i];
	return NONE;
}

void engine_open_stream(struct engine *e, int context)
{
	e->contexts[context].streams++;
}

void engine_close_stream(struct engine *e, int context, uint32_t stream, int64_t time_ns)
{
	struct context *c = &e->contexts[context];
	int32_t previous = NONE;

	engine_advance(e, time_ns);
	if (--c->streams == 0) {
		remove_context(e, context);
		return;
	}
	const bool interrupted = is_current(e, context) && e->kernels[c->head].stream == stream;

	/*
	 * A running kernel of this stream ends here. The context keeps its turn for the kernels of its other streams.
	 */
	const enum phase phase = e->phase;
	if (interrupted && phase == PHASE_RUNNING)
		emit_span(e, 0);
	for (int32_t k = c->head; k != NONE;) {
		const int32_t next = e->kernels[k].next;

		if (e->kernels[k].stream != stream) {
			previous = k;
		} else {
			if (previous == NONE)
				c->head = next;
			else
				e->kernels[previous].next = next;
			if (c->tail == k)
				c->tail = previous;
			e->kernels[k].next = e->free_kernel;
			e->free_kernel = k;
		}
		k = next;
	}
	update_ready(e, c);
	if (!interrupted)
		return;
	if (c->ready) {
		if (phase == PHASE_RUNNING)
			start_kernel(e);
		return;
	}
	if (phase == PHASE_SWITCHING)
		e->loaded = NONE;
	dispatch(e);
}

void engine_drop_context(struct engine *e, int context, int64_t time_ns)
{
	engine_advance(e, time_ns);
	remove_context(e, context);
}

int engine_submit(struct engine *e, int context, uint32_t stream, uint64_t fence, int64_t duration_ns, int64_t time_ns)
{
	struct context *c = &e->contexts[context];
	int32_t k;

	engine_advance(e, time_ns);
	k = e->free_kernel;
	if (k == NONE)
		return -ENOSPC;
	e->free_kernel = e->kernels[k].next;
	e->kernels[k] = (struct kernel){duration_ns, fence, stream, NONE};
	if (c->tail == NONE)
		c->head = k;
	else
		e->kernels[c->tail].next = k;
	c->tail = k;
	update_ready(e, c);
	if (e->phase == PHASE_IDLE)
		dispatch(e);
	engine_advance(e, time_ns); /* a kernel of length 0 is complete */
	return 0;
}

int engine_operate(struct engine *e, const struct operation *operation, int64_t time_ns)
{
	int64_t begin, cost;
	struct operation *o;

	engine_advance(e, time_ns);
	if (e->operation_count == ENGINE_OPERATIONS_MAX)
		return -EBUSY;
	begin = e->operations_free_ns > time_ns ? e->operations_free_ns : time_ns;
	cost = operation->op == GPUSEG_SIM_DISABLE  ? e->config.disable_cost_ns
	       : operation->op == GPUSEG_SIM_ENABLE ? e->config.enable_cost_ns
						    : 0;
	o = &e->operations[(e->operation_head + e->operation_count) % ENGINE_OPERATIONS_MAX];
	*o = *operation;
	o->effect_ns = begin + cost;
	o->served = 0;
	o->status = 0;
	e->operation_count++;
	e->operations_free_ns = o->effect_ns;
	engine_advance(e, time_ns); /* an operation without a cost has taken effect */
	return 0;
}

void engine_stop(struct engine *e, int64_t time_ns)
{
	engine_advance(e, time_ns);
	if (e->phase == PHASE_RUNNING)
		take_off(e, 0);
	e->phase = PHASE_IDLE;
}

uint32_t engine_context_count(const struct engine *e)
{
	uint32_t count = 0;

	for (int i = 0; i < e->order_count; i++)
		count += e->contexts[e->order[i]].streams > 0;
	return count;
}

uint32_t engine_disabled_count(const struct engine *e)
{
	uint32_t count = 0;

	for (int i = 0; i < e->order_count; i++)
		count += !e->contexts[e->order[i]].enabled;
	return count;
}

const struct engine_counters *engine_counters(const struct engine *e)
{
	return &e->counters;
}
