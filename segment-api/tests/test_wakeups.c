/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wakeups.c - no wake-up is lost: the functions of the library against a daemon that stores and looks as the real
 * one does.
 *
 * Every sleep is stretched to 20 s, where the library or the daemon would look again after some milliseconds. So a lost
 * wake-up is a sleep that runs out, however slow the machine is. See ADR 30 in rt-scheduler/docs/adr.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "../src/internal.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "intercept.h"

#define STRETCHED_NS (20 * NS_PER_S)
#define ROUNDS 100000
#define TASKS 12 /* the i-th polls i times before it sleeps, so grants meet it before, in and after that step */
#define LIMIT_NS (2 * NS_PER_S) /* of one test; a slow machine makes fewer rounds */
#define QUEUE_BYTES (16 << 20)	/* room for 2 * ROUNDS records */

/* ---- waits of the library, stretched ---- */

static __thread bool stretched;	      /* the calling thread's waits for a futex */
static __thread unsigned int ran_out; /* of these, without a wake-up */

static long intercept(long number, const long a[6])
{
	struct timespec until;
	long result;

	if (number != SYS_futex || !stretched || a[1] != FUTEX_WAIT_BITSET)
		return to_libc(number, a);
	until = timespec_of(now_ns() + STRETCHED_NS);
	result = libc_syscall(number, a[0], a[1], a[2], &until, a[4], a[5]);
	if (result < 0 && errno == ETIMEDOUT)
		ran_out++;
	return result;
}

/* ---- cases ---- */

static struct fake_daemon d;
static cpu_set_t all; /* processors that this program may use */
static gpuseg_client *client;
static gpuseg_task *tasks[TASKS];

/* Give each side a processor of its own if there are two: on one processor the sides take turns and never overlap. */
static void spread(void)
{
	cpu_set_t one;
	int used = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && used < 2; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CHECK_EQ(pthread_setaffinity_np(used++ == 0 ? pthread_self() : d.thread, sizeof(one), &one), 0);
	}
}

static void start(bool busy_poll)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;

	fake_daemon_start_sized(&d, QUEUE_BYTES, busy_poll);
	spread();
	connect_attr.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&connect_attr, &client), 0);
	attr.name = "sleeper";
	attr.priority = 50;
	for (uint32_t i = 0; i < TASKS; i++) {
		attr.spin_count = i == 0 ? GPUSEG_SPIN_NONE : i;
		CHECK_EQ(gpuseg_task_open(client, &attr, &tasks[i]), 0);
	}
}

static void stop(void)
{
	stretched = false;
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
	CHECK_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* Until the daemon has read n records, so that it polls again, and then up to some microseconds more. */
static void meet(size_t n, uint32_t *random)
{
	for (unsigned int spins = 0; fake_daemon_peek(&d) < n; spins++) {
		cpu_relax();
		if (spins % 128 == 127)
			sched_yield();
	}
	*random = *random * 1664525 + 1013904223;
	for (uint32_t i = *random >> 25; i > 0; i--)
		cpu_relax();
}

/* client_append(): publishes a record, then looks whether the daemon sleeps. */
TEST(should_ring_whenever_the_daemon_goes_to_sleep)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	struct gpuseg_counters counters = {.size = sizeof(counters)};
	uint32_t random = 1;
	size_t n = 0;

	start(false);
	pthread_mutex_lock(&d.mutex);
	d.sleeps = true;
	d.sleep_ns = STRETCHED_NS;
	pthread_mutex_unlock(&d.mutex);
	while (n < ROUNDS && (now_ns() - limit_ns < 0 || counters.bells == 0)) {
		CHECK_EQ(gpuseg_job_end(tasks[0]), 0);
		n++;
		meet(n, &random); /* it looks once more before it sleeps: there the next record shall find it */
		if (now_ns() - limit_ns >= 0) { /* a busy machine kept it from sleeping: give it time to */
			usleep(10000);
			CHECK_EQ(gpuseg_get_counters(client, &counters), 0);
		}
	}
	pthread_mutex_lock(&d.mutex);
	CHECK_EQ(d.slept_over, 0);
	pthread_mutex_unlock(&d.mutex);
	CHECK_EQ(gpuseg_get_counters(client, &counters), 0);
	CHECK(counters.bells > 0); /* it did sleep: else this proves nothing */
	printf("    %zu records, %llu rings, none lost\n", n, (unsigned long long)counters.bells);
	stop();
}

/* sleep_for_grant(): says that it waits, then looks for the grant. */
TEST(should_wake_whenever_the_grant_comes)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	struct gpuseg_counters counters = {.size = sizeof(counters)};
	uint32_t random = 1;
	size_t n = 0;

	start(true);
	stretched = true;
	for (; n < ROUNDS && now_ns() - limit_ns < 0; n++) {
		CHECK_EQ(gpuseg_begin(tasks[n % TASKS]), 0);
		CHECK_EQ(gpuseg_end(tasks[n % TASKS]), 0);
		CHECK_EQ(ran_out, 0);
		meet(2 * (n + 1), &random);
	}
	CHECK_EQ(gpuseg_get_counters(client, &counters), 0);
	CHECK(counters.slept > 0); /* else this proves nothing */
	printf("    %zu grants, %llu slept, %llu wake-ups, none lost\n", n, (unsigned long long)counters.slept,
	       (unsigned long long)fake_daemon_wakes(&d));
	stop();
}

static void *drop_the_waiter(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&d.slots[0].waiting, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep(20000); /* now it sleeps, most likely; if it does not, it must see the code before it does */
	fake_daemon_drop(&d, GPUSEG_POISON_QUOTA);
	return NULL;
}

/* sleep_for_grant(): the wake-up of a client that is dropped is no verdict on the ticket that waits. */
TEST(should_heed_the_wake_up_of_a_dropped_client)
{
	pthread_t dropper;

	start(false);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	CHECK_EQ(pthread_create(&dropper, NULL, drop_the_waiter, NULL), 0);
	stretched = true;
	CHECK_EQ(gpuseg_begin(tasks[0]), -EPROTO);
	CHECK_CONTAINS(gpuseg_last_message(client), "quota");
	CHECK_EQ(ran_out, 0);
	pthread_join(dropper, NULL);
	stop();
}

/* How often a task polls that this thread has opened. */
static uint32_t default_spins(void)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;
	uint32_t spins;

	attr.name = "spins";
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	spins = task->spin_count;
	CHECK_EQ(gpuseg_task_close(task), 0);
	return spins;
}

static void *spins_of_a_thread(void *spins)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	*(uint32_t *)spins = default_spins();
	return NULL;
}

/* The daemon of this process may run where its main thread may, which is this one. */
TEST(should_not_poll_on_the_one_processor_that_the_daemon_has)
{
	uint32_t spins = 0;
	pthread_t thread;

	start(false);
	spins_of_a_thread(&spins);
	CHECK_EQ(spins, 0);
	CHECK_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
	CHECK_EQ(default_spins(), CPU_COUNT(&all) > 1 ? SPIN_DEFAULT : 0);
	CHECK_EQ(pthread_create(&thread, NULL, spins_of_a_thread, &spins), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(spins, CPU_COUNT(&all) > 1 ? SPIN_DEFAULT : 0);
	stop();
}

static const struct check_case cases[] = {
	CASE(should_ring_whenever_the_daemon_goes_to_sleep),
	CASE(should_wake_whenever_the_grant_comes),
	CASE(should_heed_the_wake_up_of_a_dropped_client),
	CASE(should_not_poll_on_the_one_processor_that_the_daemon_has),
};
CHECK_MAIN(cases)
