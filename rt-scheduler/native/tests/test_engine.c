/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline, without a clock. All expected times are computed by hand, or by a naive model tick by tick. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "tests/check.h"
#include "vgpu/audit.h"
#include "vgpu/engine.h"

enum { RECORDED_MAX = 65536 };

static struct recorder {
	struct gpuseg_sim_span spans[RECORDED_MAX];
	size_t span_count;
	int64_t completed_ns[16][512]; /* by stream and fence */
	struct operation operations[1024];
	size_t operation_count;
	struct audit audit;
	unsigned dropped;
} recorder;

static void on_span(void *argument, const struct gpuseg_sim_span *span)
{
	(void)argument;
	audit_span(&recorder.audit, span);
	if (recorder.span_count < RECORDED_MAX)
		recorder.spans[recorder.span_count++] = *span;
}

static void on_completed(void *argument, uint32_t stream, uint64_t fence, int64_t time_ns)
{
	(void)argument;
	recorder.completed_ns[stream][fence] = time_ns;
}

static void on_operated(void *argument, const struct operation *operation)
{
	(void)argument;
	audit_operated(&recorder.audit, operation);
	recorder.operations[recorder.operation_count++] = *operation;
}

static struct engine *engine; /* of the running test */

static int on_unknown_pid(void *argument, int32_t pid)
{
	(void)argument;
	return pid < 1000 ? engine_add_context(engine, pid) : -1; /* 1000 and above do not exist */
}

static void on_dropped(void *argument, int context, int32_t pid)
{
	(void)argument;
	(void)context;
	audit_dropped(&recorder.audit, pid);
	recorder.dropped++;
}

static void start(int64_t timeslice, int64_t switch_cost, int64_t disable, int64_t enable)
{
	static const struct engine_sink sink = {on_span, on_completed, on_operated, on_unknown_pid, on_dropped, NULL};
	const struct engine_config config = {timeslice, switch_cost, disable, enable};

	memset(&recorder, 0, sizeof(recorder));
	engine_destroy(engine);
	engine = engine_create(&config, &sink);
	if (!engine)
		abort();
}

static int context(int32_t pid)
{
	const int c = engine_add_context(engine, pid);

	engine_open_stream(engine, c);
	return c;
}

static void operate(uint32_t op, int64_t time, uint32_t count, int32_t first, int32_t second)
{
	const struct operation o = {.op = op, .count = count, .pids = {first, second}};

	if (engine_operate(engine, &o, time) != 0)
		abort();
}

#define CHECK_SPAN(i, s, e, p, f)                                                                                      \
	do {                                                                                                           \
		const struct gpuseg_sim_span *const x = &recorder.spans[i];                                            \
		CHECK((size_t)(i) < recorder.span_count && x->start_ns == (s) && x->end_ns == (e) && x->pid == (p) &&  \
			      x->flags == (f),                                                                         \
		      "span %d of %zu: [%" PRId64 ", %" PRId64 ") pid %d flags %u", i, recorder.span_count,            \
		      x->start_ns, x->end_ns, x->pid, x->flags);                                                       \
	} while (0)

TEST(should_give_contexts_their_turns_and_charge_every_switch)
{
	start(100, 10, 0, 0);
	const int a = context(1), b = context(2);

	engine_submit(engine, a, 0, 1, 250, 1000);
	engine_submit(engine, b, 1, 1, 150, 1000);
	engine_advance(engine, 5000);
	CHECK_SPAN(0, 1010, 1110, 1, SPAN_SLICE);
	CHECK_SPAN(1, 1120, 1220, 2, SPAN_SLICE);
	CHECK_SPAN(2, 1230, 1330, 1, SPAN_SLICE);
	CHECK_SPAN(3, 1340, 1390, 2, SPAN_COMPLETED);
	CHECK_SPAN(4, 1400, 1450, 1, SPAN_COMPLETED);
	CHECK_EQ(recorder.span_count, 5);
	CHECK_EQ(recorder.completed_ns[0][1], 1450);
	CHECK_EQ(recorder.completed_ns[1][1], 1390);
	CHECK_EQ(engine_counters(engine)->switches, 5);
	CHECK_EQ(engine_counters(engine)->kernels_completed, 2);
}

TEST(should_renew_a_lone_turn_without_an_event_and_end_it_on_its_boundary)
{
	start(100, 10, 0, 0);
	const int a = context(1), b = context(2);

	engine_submit(engine, a, 0, 1, 1000, 0);
	engine_advance(engine, 10);
	CHECK_EQ(engine_next_event(engine), 1010); /* nothing but the completion */
	engine_submit(engine, b, 1, 1, 50, 345);
	engine_advance(engine, 5000);
	CHECK_SPAN(0, 10, 410, 1, SPAN_SLICE); /* the fourth turn ends at 10 + 4 * 100 */
	CHECK_SPAN(1, 420, 470, 2, SPAN_COMPLETED);
	CHECK_SPAN(2, 480, 1080, 1, SPAN_COMPLETED);
}

TEST(should_run_kernels_of_a_context_in_order_within_its_turn)
{
	start(100, 10, 0, 0);
	const int a = context(1), b = context(2);

	engine_open_stream(engine, a); /* a second connection of the same process */
	engine_submit(engine, a, 0, 1, 30, 0);
	engine_submit(engine, a, 2, 1, 30, 0);
	engine_submit(engine, a, 0, 2, 80, 0);
	engine_submit(engine, b, 1, 1, 10, 0);
	engine_advance(engine, 5000);
	CHECK_SPAN(0, 10, 40, 1, SPAN_COMPLETED);
	CHECK_SPAN(1, 40, 70, 1, SPAN_COMPLETED);
	CHECK_SPAN(2, 70, 110, 1, SPAN_SLICE);
	CHECK_SPAN(3, 120, 130, 2, SPAN_COMPLETED);
	CHECK_SPAN(4, 140, 180, 1, SPAN_COMPLETED);
}

TEST(should_preempt_when_the_disable_takes_effect_and_keep_the_rest)
{
	start(1000, 10, 30, 20);
	const int a = context(1);

	engine_submit(engine, a, 0, 1, 500, 0);
	operate(GPUSEG_SIM_DISABLE, 100, 1, 1, 0);
	engine_advance(engine, 2000);
	CHECK_SPAN(0, 10, 130, 1, SPAN_PREEMPTED);
	CHECK_EQ(recorder.operations[0].effect_ns, 130);
	CHECK_EQ(engine_next_event(engine), INT64_MAX);
	CHECK_EQ(engine_disabled_count(engine), 1);
	operate(GPUSEG_SIM_ENABLE, 2000, 1, 1, 0);
	engine_advance(engine, 9000);
	CHECK_SPAN(1, 2020, 2400, 1, SPAN_COMPLETED); /* no other context was on the engine: no switch */
	CHECK_EQ(engine_counters(engine)->preemptions, 1);
	CHECK_EQ(recorder.audit.ran_while_disabled, 0);
}

TEST(should_finish_a_kernel_that_ends_when_the_disable_takes_effect)
{
	start(1000, 10, 30, 20);
	const int a = context(1);

	engine_submit(engine, a, 0, 1, 120, 0);
	operate(GPUSEG_SIM_DISABLE, 100, 1, 1, 0);
	engine_advance(engine, 2000);
	CHECK_SPAN(0, 10, 130, 1, SPAN_COMPLETED);
	CHECK_EQ(engine_counters(engine)->preemptions, 0);
}

TEST(should_abandon_a_switch_to_a_context_that_goes_off)
{
	start(100, 50, 30, 20);
	const int a = context(1), b = context(2);

	engine_submit(engine, a, 0, 1, 100, 0); /* switch 0..50, runs 50..150 */
	engine_submit(engine, b, 1, 1, 100, 0); /* its switch would be 150..200 */
	operate(GPUSEG_SIM_DISABLE, 140, 1, 2, 0);
	engine_advance(engine, 180);
	engine_submit(engine, a, 0, 2, 10, 180);
	engine_advance(engine, 1000);
	CHECK_SPAN(0, 50, 150, 1, SPAN_COMPLETED);
	CHECK_SPAN(1, 230, 240, 1, SPAN_COMPLETED); /* pays a switch: the other context was being loaded */
	CHECK_EQ(recorder.span_count, 2);
}

TEST(should_serve_operations_one_after_the_other)
{
	start(100, 10, 30, 20);
	context(1);
	context(2);
	operate(GPUSEG_SIM_DISABLE, 100, 1, 1, 0);
	operate(GPUSEG_SIM_DISABLE, 110, 1, 2, 0);
	operate(GPUSEG_SIM_ENABLE, 120, 2, 1, 2);
	operate(GPUSEG_SIM_TIMESLICE, 125, 1, 1, 0);
	engine_advance(engine, 1000);
	CHECK_EQ(recorder.operation_count, 4);
	CHECK_EQ(recorder.operations[0].effect_ns, 130);
	CHECK_EQ(recorder.operations[1].effect_ns, 160);
	CHECK_EQ(recorder.operations[2].effect_ns, 180);
	CHECK_EQ(recorder.operations[3].effect_ns, 180);
	CHECK_EQ(engine_disabled_count(engine), 0);
}

TEST(should_not_turn_to_a_context_that_goes_off_in_the_same_batch)
{
	start(1000, 10, 30, 20);
	const int a = context(1), b = context(2), c = context(3);

	engine_submit(engine, a, 0, 1, 500, 0);
	engine_submit(engine, b, 1, 1, 500, 0);
	engine_submit(engine, c, 2, 1, 50, 0);
	operate(GPUSEG_SIM_DISABLE, 70, 2, 1, 2);
	engine_advance(engine, 1000);
	CHECK_SPAN(0, 10, 100, 1, SPAN_PREEMPTED);
	CHECK_SPAN(1, 110, 160, 3, SPAN_COMPLETED);
	CHECK_EQ(engine_counters(engine)->switches, 2);
	CHECK_EQ(engine_counters(engine)->busy_ns, 160); /* idle from then on */
}

TEST(should_honour_the_timeslice_of_a_context)
{
	start(100, 10, 0, 0);
	const int a = context(1), b = context(2);
	const struct operation o = {.op = GPUSEG_SIM_TIMESLICE, .count = 1, .arg_ns = 300, .pids = {1}};

	engine_operate(engine, &o, 0);
	engine_submit(engine, a, 0, 1, 400, 0);
	engine_submit(engine, b, 1, 1, 150, 0);
	engine_advance(engine, 5000);
	CHECK_SPAN(0, 10, 310, 1, SPAN_SLICE);
	CHECK_SPAN(1, 320, 420, 2, SPAN_SLICE);
	CHECK_SPAN(2, 430, 530, 1, SPAN_COMPLETED);
}

TEST(should_remember_that_a_process_without_a_context_is_disabled)
{
	start(100, 10, 30, 20);
	operate(GPUSEG_SIM_DISABLE, 0, 2, 7, 1000);
	engine_advance(engine, 100);
	CHECK_EQ(recorder.operations[0].status, -3); /* -ESRCH */
	CHECK_EQ(recorder.operations[0].served, 1);
	CHECK_EQ(engine_context_count(engine), 0);
	CHECK_EQ(engine_disabled_count(engine), 1);
	const int c = engine_find_context(engine, 7);

	CHECK(c >= 0, "not remembered");
	engine_open_stream(engine, c);
	engine_submit(engine, c, 0, 1, 50, 100);
	engine_advance(engine, 1000);
	CHECK_EQ(recorder.span_count, 0);
	operate(GPUSEG_SIM_ENABLE, 1000, 1, 7, 0);
	engine_advance(engine, 2000);
	CHECK_SPAN(0, 1030, 1080, 7, SPAN_COMPLETED);
	CHECK_EQ(recorder.operations[1].status, 0);

	operate(GPUSEG_SIM_DISABLE, 3000, 1, 8, 0);
	operate(GPUSEG_SIM_ENABLE, 3000, 1, 8, 0);
	engine_advance(engine, 4000);
	CHECK_EQ(engine_find_context(engine, 8), -1); /* enabled again: the context is removed */
}

TEST(should_give_the_engine_on_when_the_running_process_dies)
{
	start(1000, 10, 0, 0);
	const int a = context(1), b = context(2);

	engine_submit(engine, a, 0, 1, 5000, 0);
	engine_submit(engine, b, 1, 1, 40, 0);
	engine_drop_context(engine, a, 110);
	engine_advance(engine, 1000);
	CHECK_SPAN(0, 10, 110, 1, 0);
	CHECK_SPAN(1, 120, 160, 2, SPAN_COMPLETED);
	CHECK_EQ(engine_context_count(engine), 1);
	CHECK_EQ(recorder.dropped, 1);
}

TEST(should_forget_only_the_kernels_of_a_closed_connection)
{
	start(1000, 10, 0, 0);
	const int a = context(1);

	engine_open_stream(engine, a);
	engine_submit(engine, a, 0, 1, 500, 0);
	engine_submit(engine, a, 1, 1, 40, 0);
	engine_submit(engine, a, 0, 2, 500, 0);
	engine_submit(engine, a, 1, 2, 30, 0);
	engine_close_stream(engine, a, 0, 60);
	engine_advance(engine, 1000);
	CHECK_SPAN(0, 10, 60, 1, 0);
	CHECK_SPAN(1, 60, 100, 1, SPAN_COMPLETED);
	CHECK_SPAN(2, 100, 130, 1, SPAN_COMPLETED);
	CHECK_EQ(recorder.span_count, 3);
}

/* Tests the audit itself: it must notice what the engine never does. */
TEST(should_notice_a_span_of_a_disabled_context)
{
	static struct audit audit;
	const struct operation off = {.op = GPUSEG_SIM_DISABLE, .count = 1, .pids = {5}, .served = 1, .effect_ns = 100};
	const struct operation on = {.op = GPUSEG_SIM_ENABLE, .count = 1, .pids = {5}, .served = 1, .effect_ns = 200};
	const struct gpuseg_sim_span before = {50, 100, 5, 0, 1}, into = {90, 101, 5, 0, 1},
				     within = {120, 130, 5, 0, 1}, out = {199, 250, 5, 0, 1},
				     after = {200, 250, 5, 0, 1}, other = {120, 130, 6, 0, 1};

	audit_operated(&audit, &off);
	audit_span(&audit, &before);
	audit_span(&audit, &other);
	CHECK_EQ(audit.ran_while_disabled, 0);
	audit_span(&audit, &into);
	audit_span(&audit, &within);
	CHECK_EQ(audit.ran_while_disabled, 2);
	audit_operated(&audit, &on);
	audit_span(&audit, &after);
	CHECK_EQ(audit.ran_while_disabled, 2);
	audit_span(&audit, &out);
	CHECK_EQ(audit.ran_while_disabled, 3);
}

/*
 * A second model of the same rules, as simple as possible: it simulates every tick. Contexts 0..3 are added in order
 * and never removed. Kernels are queues of durations. Operations are a list with their times of effect.
 */
enum { MODEL_CONTEXTS = 4, MODEL_KERNELS = 64, MODEL_TICKS = 6000 };

struct model {
	int64_t slice, theta;
	int64_t queue[MODEL_CONTEXTS][MODEL_KERNELS];
	int head[MODEL_CONTEXTS], tail[MODEL_CONTEXTS];
	bool enabled[MODEL_CONTEXTS];
	int turn, loaded;    /* -1: none */
	int64_t switch_left; /* > 0 or pending: switching */
	int64_t slice_left;
	enum { MODEL_IDLE, MODEL_SWITCHING, MODEL_RUNNING } phase;
	int last;		   /* context of the last turn */
	int executed[MODEL_TICKS]; /* context per tick, -1 none */
};

static bool model_ready(const struct model *m, int c)
{
	return m->enabled[c] && m->head[c] < m->tail[c];
}

static void model_next(struct model *m)
{
	m->phase = MODEL_IDLE;
	for (int i = 1; i <= MODEL_CONTEXTS; i++) {
		const int c = (m->last + i + MODEL_CONTEXTS) % MODEL_CONTEXTS;

		if (!model_ready(m, c))
			continue;
		m->last = m->turn = c;
		m->slice_left = m->slice;
		m->phase = m->loaded == c ? MODEL_RUNNING : MODEL_SWITCHING;
		m->switch_left = m->theta;
		return;
	}
}

/* Events at the instant between two ticks, except submissions and operations. */
static void model_settle(struct model *m, bool another)
{
	if (m->phase == MODEL_SWITCHING && m->switch_left == 0) {
		m->loaded = m->turn;
		m->phase = MODEL_RUNNING;
	}
	if (m->phase == MODEL_RUNNING && m->slice_left == 0) {
		m->slice_left = m->slice;
		if (another)
			model_next(m);
	}
}

static bool model_another(const struct model *m)
{
	for (int c = 0; c < MODEL_CONTEXTS; c++)
		if (c != m->turn && model_ready(m, c))
			return true;
	return false;
}

struct model_event {
	int64_t time;
	int kind; /* 0 submit, 1 disable, 2 enable */
	int context;
	int64_t duration;
};

static void compare_with_model(unsigned seed)
{
	static struct model m;
	static int executed[MODEL_TICKS];
	struct model_event events[96];
	size_t count = 60, next = 0;
	int contexts[MODEL_CONTEXTS];
	uint64_t fences[MODEL_CONTEXTS] = {0};

	srand(seed);
	m = (struct model){.slice = 5 + rand() % 40, .theta = 1 + rand() % 9, .turn = -1, .loaded = -1, .last = -1};
	start(m.slice, m.theta, 0, 0);
	for (int c = 0; c < MODEL_CONTEXTS; c++) {
		contexts[c] = context(c + 1);
		m.enabled[c] = true;
	}
	int64_t time = 0;
	for (size_t i = 0; i < count; i++) {
		/*
		 * Steps of at least 1, so that no two outside events have the same time: their order is not tested
		 * here.
		 */
		time += 1 + rand() % 90;
		events[i] = (struct model_event){time, rand() % 5 < 3 ? 0 : 1 + rand() % 2, rand() % MODEL_CONTEXTS,
						 1 + rand() % 120};
	}
	for (int64_t t = 0; t < MODEL_TICKS; t++) {
		/* Completion of the tick before. */
		if (m.phase == MODEL_RUNNING && m.queue[m.turn][m.head[m.turn]] == 0) {
			m.head[m.turn]++;
			if (!model_ready(&m, m.turn) || (m.slice_left == 0 && model_another(&m)))
				model_next(&m);
		}
		/* The engine's own events of this time precede an outside event. */
		model_settle(&m, model_another(&m));
		while (next < count && events[next].time == t) {
			const struct model_event *e = &events[next++];

			if (e->kind == 0) {
				m.queue[e->context][m.tail[e->context]++] = e->duration;
				engine_submit(engine, contexts[e->context], (uint32_t)e->context, ++fences[e->context],
					      e->duration, t);
			} else {
				m.enabled[e->context] = e->kind == 2;
				operate(e->kind == 1 ? GPUSEG_SIM_DISABLE : GPUSEG_SIM_ENABLE, t, 1, e->context + 1, 0);
			}
			if (m.phase != MODEL_IDLE && !m.enabled[m.turn]) {
				if (m.phase == MODEL_SWITCHING)
					m.loaded = -1;
				m.phase = MODEL_IDLE;
			}
			if (m.phase == MODEL_IDLE)
				model_next(&m);
		}
		m.executed[t] = -1;
		if (m.phase == MODEL_RUNNING) {
			m.executed[t] = m.turn;
			m.queue[m.turn][m.head[m.turn]]--;
			m.slice_left--;
		} else if (m.phase == MODEL_SWITCHING) {
			m.switch_left--;
		}
	}
	engine_stop(engine, MODEL_TICKS);
	for (int t = 0; t < MODEL_TICKS; t++)
		executed[t] = -1;
	for (size_t i = 0; i < recorder.span_count; i++)
		for (int64_t t = recorder.spans[i].start_ns; t < recorder.spans[i].end_ns; t++) {
			CHECK(executed[t] == -1, "seed %u: two contexts at %" PRId64, seed, t);
			executed[t] = recorder.spans[i].pid - 1;
		}
	for (int t = 0; t < MODEL_TICKS; t++)
		CHECK(executed[t] == m.executed[t],
		      "seed %u: at %d the engine runs %d, the model %d (slice %" PRId64 ", switch %" PRId64 ")", seed,
		      t, executed[t], m.executed[t], m.slice, m.theta);
	CHECK_EQ(recorder.audit.ran_while_disabled, 0);
}

TEST(should_agree_with_a_naive_model_on_random_events)
{
	for (unsigned seed = 1; seed <= 2000; seed++)
		compare_with_model(seed);
}

static const struct check_case cases[] = {
	CASE(should_give_contexts_their_turns_and_charge_every_switch),
	CASE(should_renew_a_lone_turn_without_an_event_and_end_it_on_its_boundary),
	CASE(should_run_kernels_of_a_context_in_order_within_its_turn),
	CASE(should_preempt_when_the_disable_takes_effect_and_keep_the_rest),
	CASE(should_finish_a_kernel_that_ends_when_the_disable_takes_effect),
	CASE(should_abandon_a_switch_to_a_context_that_goes_off),
	CASE(should_serve_operations_one_after_the_other),
	CASE(should_not_turn_to_a_context_that_goes_off_in_the_same_batch),
	CASE(should_honour_the_timeslice_of_a_context),
	CASE(should_remember_that_a_process_without_a_context_is_disabled),
	CASE(should_give_the_engine_on_when_the_running_process_dies),
	CASE(should_forget_only_the_kernels_of_a_closed_connection),
	CASE(should_notice_a_span_of_a_disabled_context),
	CASE(should_agree_with_a_naive_model_on_random_events),
};
CHECK_MAIN_APART(cases)
