/* SPDX-License-Identifier: Apache-2.0 */
/* test_held.c - launches that the daemon holds, and the bound on work in flight that goes with it. */
#include "exec_rig.h"

#define ATTEMPTS 10
#define HELD_MS 400
/* A program whose task is not open within this runs unmanaged for a minute: a busy machine must leave it time. */
#define WAIT "700ms"
#define WAIT_MS 700
#define SOME_RECORDS 1 /* a begin */

static void only_launches(struct fake_daemon *d)
{
	d->status->mechanism_level = 1;
	d->status->holds_launches = 1;
}

static void and_interrupts(struct fake_daemon *d)
{
	d->status->mechanism_level = 3;
	d->status->holds_launches = 1;
}

static void interrupts(struct fake_daemon *d)
{
	d->status->mechanism_level = 3;
}

static void hold(struct fake_daemon *d)
{
	__atomic_store_n(&d->session->hold[0], GPUSEG_HOLD_WAIT, __ATOMIC_RELEASE);
}

static void let_go(struct fake_daemon *d)
{
	__atomic_store_n(&d->session->hold[0], GPUSEG_HOLD_GO, __ATOMIC_RELEASE);
	futex_wake_all(&d->session->hold[0]);
}

static void wait_ms(int64_t ms)
{
	sleep_ns(ms * NS_PER_MS);
}

/* A program that launches kernels of so many blocks until it is told to end. */
static struct run launching_blocks(struct fake_daemon *d, const char *options, const char *blocks)
{
	char copy[256];
	const char *arguments[ARGUMENTS] = {in_build("gpuseg-exec")};
	size_t n = 1;
	struct run r;

	snprintf(copy, sizeof(copy), "%s", options);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		arguments[n++] = word;
	arguments[n++] = "--";
	arguments[n++] = APP;
	arguments[n++] = "without-end";
	arguments[n++] = blocks;
	r = start(arguments);
	follow(&r, "launches\n");
	CHECK(fake_daemon_wait(d, SOME_RECORDS, NULL), "it said: %s", r.said);
	return r;
}

static struct run launching(struct fake_daemon *d, const char *options)
{
	return launching_blocks(d, options, "1");
}

struct launches {
	unsigned int launched, in_flight;
	long longest_ms;
};

static struct launches ended(struct run *r)
{
	struct launches l = {0};
	const char *at;

	kill(r->pid, SIGTERM);
	finish(r);
	passed(r);
	at = strstr(r->said, "launched ");
	CHECK(at && sscanf(at, "launched %u in flight %u longest %ld", &l.launched, &l.in_flight, &l.longest_ms) == 3,
	      "%s", r->said);
	return l;
}

static void begin(struct fake_daemon *d, void (*adjust)(struct fake_daemon *))
{
	fake_daemon_start(d);
	prepare(d);
	adjust(d);
}

/* ---- refusals: when a hold does not count ---- */

static void not_held(void (*adjust)(struct fake_daemon *), const char *options)
{
	struct fake_daemon d;
	struct run r;

	begin(&d, adjust);
	hold(&d);
	r = launching(&d, options); /* held, it would say so after the wait */
	wait_ms(WAIT_MS + HELD_MS);
	ended(&r);
	CHECK(!strstr(r.said, "was not let go"), "%s", r.said);
	fake_daemon_stop(&d);
}

TEST(should_not_hold_real_time_work_where_something_else_preempts)
{
	not_held(and_interrupts, "--priority 80 GPUSEG_EXEC_WAIT=" WAIT);
}

TEST(should_run_unmanaged_after_the_longest_wait)
{
	struct fake_daemon d;
	struct run r;
	struct launches l;

	begin(&d, only_launches);
	hold(&d);
	r = launching(&d, "--best-effort GPUSEG_EXEC_WAIT=" WAIT);
	wait_ms(WAIT_MS + HELD_MS);
	l = ended(&r);
	CHECK_CONTAINS(r.said, "a launch was not let go within 700 ms; runs unmanaged");
	CHECK(l.longest_ms >= WAIT_MS - 1, "%s", r.said);
	fake_daemon_stop(&d);
}

/* The daemon falls silent while launches are held; the wait's own limit is far away. */
static void silent(void (*silence)(struct fake_daemon *))
{
	struct fake_daemon d;
	struct run r;
	struct launches l;

	begin(&d, only_launches);
	r = launching(&d, "--best-effort GPUSEG_EXEC_WAIT=1000s");
	hold(&d);
	wait_ms(50);
	silence(&d);
	wait_ms(3 * GPUSEG_HOLD_SILENCE_NS / NS_PER_MS);
	l = ended(&r);
	CHECK(l.launched >= 1, "%s", r.said);
	CHECK(!strstr(r.said, "was not let go"), "%s", r.said);
	fake_daemon_stop(&d);
}

static void hang(struct fake_daemon *d)
{
	pthread_mutex_lock(&d->mutex);
	d->beat = false;
	pthread_mutex_unlock(&d->mutex);
}

static void drop(struct fake_daemon *d)
{
	fake_daemon_drop(d, GPUSEG_POISON_QUOTA);
}

TEST(should_let_launches_go_if_the_daemon_dies)
{
	silent(fake_daemon_kill);
}

TEST(should_let_launches_go_if_the_daemon_hangs)
{
	silent(hang);
}

TEST(should_let_launches_go_if_the_daemon_drops_the_client)
{
	silent(drop);
}

/* ---- held ---- */

static void held(const char *options)
{
	bool kept = false;

	/* The program may stand still just when it is to be held. */
	for (int i = 0; i < ATTEMPTS && !kept; i++) {
		struct fake_daemon d;
		struct launches l;
		struct run r;
		size_t before;

		begin(&d, only_launches);
		r = launching(&d, options);
		wait_ms(50);
		hold(&d);
		wait_ms(HELD_MS / 2);
		before = fake_daemon_records(&d);
		wait_ms(HELD_MS / 2);
		kept = fake_daemon_records(&d) == before;
		let_go(&d);
		wait_ms(50);
		l = ended(&r);
		kept &= l.longest_ms >= HELD_MS / 2;
		CHECK_EQ(tally_of(&d).open, 0);
		fake_daemon_stop(&d);
	}
	CHECK(kept, "its launches were not held, or its segment ended meanwhile");
}

TEST(should_hold_best_effort_and_keep_its_segment_open)
{
	held("--best-effort GPUSEG_EXEC_HOLD_OFF=1ms");
}

TEST(should_hold_real_time_work_where_nothing_else_preempts)
{
	held("--priority 30 GPUSEG_EXEC_HOLD_OFF=1ms");
}

/* ---- the bound on work in flight ---- */

/* The most that the program saw. */
static unsigned int in_flight(void (*adjust)(struct fake_daemon *), const char *options)
{
	struct fake_daemon d;
	struct launches l;
	struct run r;

	begin(&d, adjust);
	r = launching(&d, options);
	wait_ms(HELD_MS);
	l = ended(&r);
	fake_daemon_stop(&d);
	return l.in_flight;
}

TEST(should_bound_what_best_effort_has_in_flight_where_nothing_else_preempts)
{
	/* Kernels of 1.5 ms: one at a time. The program looks after its launch: one may have ended by then. */
	CHECK(in_flight(only_launches, "--best-effort") <= 2);
}

/* On a busy machine the program may launch next to nothing for a while. */
static void unbounded(void (*adjust)(struct fake_daemon *), const char *options)
{
	unsigned int most = 0;

	for (int i = 0; i < ATTEMPTS && most <= 10; i++)
		most = in_flight(adjust, options);
	CHECK(most > 10, "%s: %u in flight", options, most);
}

TEST(should_not_bound_where_it_is_not_needed)
{
	unbounded(and_interrupts, "--best-effort");
	unbounded(interrupts, "--best-effort");
	unbounded(only_launches, "--priority 80");
	unbounded(only_launches, "--best-effort GPUSEG_EXEC_IN_FLIGHT=0");
}

static void nobody_waits(struct fake_daemon *d)
{
	only_launches(d);
	d->status->nobody_waits = 1;
}

/* The most that the program sees once tasks have opened or closed while it runs. */
static unsigned int in_flight_when(void (*adjust)(struct fake_daemon *), uint64_t nobody)
{
	struct fake_daemon d;
	struct launches l;
	struct run r;

	begin(&d, adjust);
	r = launching(&d, "--best-effort");
	wait_ms(HELD_MS / 2);
	__atomic_store_n(&d.status->nobody_waits, nobody, __ATOMIC_RELEASE);
	wait_ms(2 * HELD_MS); /* what was in flight ends */
	kill(r.pid, SIGUSR1); /* it counts anew */
	wait_ms(HELD_MS);
	l = ended(&r);
	fake_daemon_stop(&d);
	return l.in_flight;
}

TEST(should_bound_less_once_nobody_waits)
{
	unsigned int most = 0;

	for (int i = 0; i < ATTEMPTS && most <= 5; i++)
		most = in_flight_when(only_launches, 1);
	CHECK(most > 5, "%u in flight", most);
}

TEST(should_bound_more_once_somebody_waits)
{
	CHECK(in_flight_when(nobody_waits, 0) <= 2);
}

/* ---- what the daemon is told of the kernels ---- */

static const struct gpuseg_slot *slot_of(const struct fake_daemon *d)
{
	for (unsigned int i = 0; i < GPUSEG_SLOTS_MAX; i++) {
		if (__atomic_load_n(&d->slots[i].task_id, __ATOMIC_ACQUIRE))
			return &d->slots[i];
	}
	CHECK(false, "no task is open");
	return NULL;
}

/* A machine that is busy makes each kernel longer, but no block more of it. */
static void class_of(const char *blocks, enum gpuseg_kernel_class expected, unsigned int least, unsigned int most)
{
	const int64_t limit_ns = now_ns() + HANG_NS;
	const struct gpuseg_slot *slot;
	struct fake_daemon d;
	unsigned int percent;
	struct run r;

	begin(&d, only_launches);
	r = launching_blocks(&d, "--best-effort", blocks);
	slot = slot_of(&d);
	while (__atomic_load_n(&slot->kernel_class, __ATOMIC_RELAXED) != expected) {
		CHECK(now_ns() - limit_ns < 0, "class %u of %s blocks", slot->kernel_class, blocks);
		wait_ms(10);
	}
	percent = __atomic_load_n(&slot->kernel_percent, __ATOMIC_RELAXED);
	CHECK(percent >= least && percent <= most, "%u %%", percent);
	CHECK(__atomic_load_n(&slot->kernel_ns, __ATOMIC_RELAXED) > 0);
	ended(&r);
	fake_daemon_stop(&d);
}

TEST(should_tell_small_kernels_from_those_that_fill_the_gpu_for_long)
{
	class_of("1", GPUSEG_KERNELS_SMALL, 0, 0);
	class_of("5120", GPUSEG_KERNELS_SMALL, 50, 50);
	class_of("100000", GPUSEG_KERNELS_LONG, 100, 100);
}

/* Kernels of 1.5 ms are short where 10 ms may be in flight. */
TEST(should_call_kernels_long_by_the_bound_that_holds)
{
	const int64_t limit_ns = now_ns() + HANG_NS;
	const struct gpuseg_slot *slot;
	struct fake_daemon d;
	struct run r;

	begin(&d, only_launches);
	r = launching_blocks(&d, "--best-effort GPUSEG_EXEC_IN_FLIGHT=100ms", "100000");
	slot = slot_of(&d);
	while (__atomic_load_n(&slot->kernel_class, __ATOMIC_RELAXED) != GPUSEG_KERNELS_FILL) {
		CHECK(now_ns() - limit_ns < 0, "class %u", slot->kernel_class);
		wait_ms(10);
	}
	ended(&r);
	fake_daemon_stop(&d);
}

TEST(should_say_when_nothing_is_in_flight_after_launches_were_held)
{
	const int64_t limit_ns = now_ns() + HANG_NS;
	const struct gpuseg_slot *slot;
	struct fake_daemon d;
	int64_t held_ns;
	struct run r;

	begin(&d, only_launches);
	r = launching(&d, "--best-effort");
	slot = slot_of(&d);
	while (!__atomic_load_n(&slot->in_flight, __ATOMIC_ACQUIRE)) {
		CHECK(now_ns() - limit_ns < 0, "it never said that work is in flight");
		sleep_ns(100 * NS_PER_US);
	}
	hold(&d);
	held_ns = now_ns();
	/* A launch that had passed its entry may be told of later: held for so long, none is left. */
	wait_ms(20);
	while (__atomic_load_n(&slot->in_flight, __ATOMIC_ACQUIRE)) {
		CHECK(now_ns() - limit_ns < 0, "work stays in flight while launches are held");
		wait_ms(1);
	}
	CHECK(slot->drained_ns > 0 && slot->drained_ns <= now_ns(), "drained at %lld, held at %lld",
	      (long long)slot->drained_ns, (long long)held_ns);
	wait_ms(20);
	CHECK_EQ(__atomic_load_n(&slot->in_flight, __ATOMIC_ACQUIRE), 0);
	let_go(&d);
	while (!__atomic_load_n(&slot->in_flight, __ATOMIC_ACQUIRE)) {
		CHECK(now_ns() - limit_ns < 0, "nothing is launched after the hold");
		sleep_ns(100 * NS_PER_US);
	}
	ended(&r);
	fake_daemon_stop(&d);
}

/* ---- faults ---- */

TEST(should_not_hang_whenever_launches_are_held_and_the_daemon_is_killed)
{
	const int rounds = getenv("GPUSEG_TEST_ROUNDS") ? atoi(getenv("GPUSEG_TEST_ROUNDS")) : 8;
	unsigned int seed = 20261124;
	struct fake_daemon d;

	alarm((unsigned int)(CHECK_SECONDS + rounds));
	begin(&d, only_launches);
	for (int round = 0; round < rounds; round++) {
		struct run r = launching(&d, round % 2 ? "--best-effort GPUSEG_EXEC_WAIT=" WAIT
						       : "--priority 5 GPUSEG_EXEC_WAIT=1000s");

		for (int i = rand_r(&seed) % 20; i > 0; i--) {
			hold(&d);
			sleep_ns(rand_r(&seed) % 5 * NS_PER_MS);
			let_go(&d);
			sleep_ns(rand_r(&seed) % 3 * NS_PER_MS);
		}
		hold(&d);
		sleep_ns(rand_r(&seed) % 50 * NS_PER_MS);
		fake_daemon_kill(&d);
		ended(&r);
		fake_daemon_follow(&d);
		only_launches(&d);
	}
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_not_hold_real_time_work_where_something_else_preempts),
	CASE(should_run_unmanaged_after_the_longest_wait),
	CASE(should_let_launches_go_if_the_daemon_dies),
	CASE(should_let_launches_go_if_the_daemon_hangs),
	CASE(should_let_launches_go_if_the_daemon_drops_the_client),
	CASE(should_hold_best_effort_and_keep_its_segment_open),
	CASE(should_hold_real_time_work_where_nothing_else_preempts),
	CASE(should_bound_what_best_effort_has_in_flight_where_nothing_else_preempts),
	CASE(should_not_bound_where_it_is_not_needed),
	CASE(should_bound_less_once_nobody_waits),
	CASE(should_bound_more_once_somebody_waits),
	CASE(should_tell_small_kernels_from_those_that_fill_the_gpu_for_long),
	CASE(should_call_kernels_long_by_the_bound_that_holds),
	CASE(should_say_when_nothing_is_in_flight_after_launches_were_held),
	CASE(should_not_hang_whenever_launches_are_held_and_the_daemon_is_killed),
};

CHECK_MAIN(cases)
