/* SPDX-License-Identifier: Apache-2.0 */
/* test_disconnect.c - gpuseg_disconnect() of a client whose daemon is replaced at that moment. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>

#include "../src/internal.h"
#include "check.h"
#include "fixture.h"
#include "intercept.h"

#define LIMIT_NS (20 * NS_PER_S)
#define REST_NS (300 * NS_PER_MS) /* for what should not happen */
#define TRIES 10

static struct fake_daemon d;
static gpuseg_client *client;  /* whose daemon is replaced ... */
static __thread bool replaces; /* ... by the thread that stops its roll thread */
static bool had_successor;

/* Until the roll thread has connected to another daemon, ended, and could be joined by that of the new connection. */
static void replace_daemon(void)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;

	fake_daemon_kill(&d);
	fake_daemon_follow(&d);
	while (!__atomic_load_n(&client->roll_exited, __ATOMIC_ACQUIRE) && now_ns() - limit_ns < 0)
		sleep_ns(NS_PER_MS);
	if (__atomic_load_n(&client->newest, __ATOMIC_ACQUIRE) == client)
		return; /* it saw first that it should stop */
	sleep_ns(REST_NS);
	had_successor = true;
	CHECK(client->roll_thread_runs, "another thread has joined it");
}

static long intercept(long number, const long a[6])
{
	if (number == SYS_futex && replaces && (uintptr_t)a[0] == (uintptr_t)&client->roll_stop) {
		replaces = false;
		replace_daemon();
	}
	return to_libc(number, a);
}

TEST(should_join_a_thread_once_that_ends_with_a_successor)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	fake_daemon_start(&d);
	attr.dir = d.dir;
	for (int i = 0; i < TRIES && !had_successor; i++) {
		CHECK_EQ(gpuseg_connect(&attr, &client), 0);
		sleep_ns(NS_PER_MS << i); /* its roll thread is to sleep, not to begin */
		replaces = true;
		CHECK_EQ(gpuseg_disconnect(client), 0);
		CHECK(!replaces);
	}
	CHECK(had_successor);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_join_a_thread_once_that_ends_with_a_successor),
};

CHECK_MAIN(cases)
