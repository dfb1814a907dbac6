/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shared.c - the client that the parts of a process share. The fixture serves one client at a time, so a second
 * connection is not answered while the first one lives.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../src/internal.h"
#include "check.h"
#include "fixture.h"

#define THREADS 4
#define ROUNDS 30
#define LIMIT_NS (20 * NS_PER_S)

static struct fake_daemon d;

static int connect_with(uint32_t flags, gpuseg_client **client)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	attr.dir = d.dir;
	attr.flags = flags;
	return gpuseg_connect_shared(&attr, client);
}

static gpuseg_client *shared(void)
{
	gpuseg_client *client;
	int ret = connect_with(0, &client);

	CHECK(ret == 0, "%s", gpuseg_last_message(NULL));
	return client;
}

static gpuseg_task *task_of(gpuseg_client *client, const char *name)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;

	attr.name = name;
	attr.priority = 10;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	return task;
}

static int begin_and_end(gpuseg_task *task)
{
	int ret = gpuseg_begin(task);

	return ret < 0 ? ret : gpuseg_end(task);
}

static void segment(gpuseg_task *task)
{
	CHECK_EQ(begin_and_end(task), 0);
}

/* A begin does not wait for the thread that has just connected again, but goes on unmanaged: until it is recorded. */
static void segment_at_next_daemon(int (*segment_of)(gpuseg_task *task), gpuseg_task *task)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	const size_t before = fake_daemon_records(&d);

	while (fake_daemon_records(&d) < before + 2) {
		CHECK(now_ns() - limit_ns < 0);
		CHECK_EQ(segment_of(task), 0);
		sleep_ns(NS_PER_MS);
	}
}

static unsigned int closes(void)
{
	unsigned int n;

	pthread_mutex_lock(&d.mutex);
	n = d.closes;
	pthread_mutex_unlock(&d.mutex);
	return n;
}

static void wait_until_unmanaged(const gpuseg_client *client)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;

	while (gpuseg_is_managed(client) && now_ns() - limit_ns < 0)
		sleep_ns(NS_PER_MS);
	CHECK(!gpuseg_is_managed(client));
}

TEST(should_give_handles_of_one_connection)
{
	gpuseg_client *first, *second;
	gpuseg_task *one, *two;
	struct gpuseg_record last;

	fake_daemon_start(&d);
	first = shared();
	second = shared();
	CHECK(first != second);
	CHECK(gpuseg_is_managed(first) && gpuseg_is_managed(second));
	one = task_of(first, "one");
	two = task_of(second, "two");
	segment(one);
	segment(two);
	CHECK(fake_daemon_wait(&d, 4, &last));
	CHECK_EQ(last.seq, 4); /* one queue */
	CHECK_EQ(gpuseg_disconnect(first), 0);
	CHECK_EQ(gpuseg_disconnect(second), 0);
	fake_daemon_stop(&d);
}

TEST(should_close_the_tasks_of_the_handle_alone)
{
	gpuseg_client *first, *second, *third;
	gpuseg_task *two;

	fake_daemon_start(&d);
	first = shared();
	second = shared();
	task_of(first, "one");
	task_of(first, "one more");
	two = task_of(second, "two");
	CHECK_EQ(gpuseg_disconnect(first), 0); /* the one that connected */
	CHECK_EQ(closes(), 2);
	segment(two);
	third = shared();
	segment(task_of(third, "three"));
	CHECK_EQ(gpuseg_disconnect(second), 0);
	CHECK_EQ(closes(), 3);
	CHECK(gpuseg_is_managed(third));
	CHECK_EQ(gpuseg_disconnect(third), 0);
	fake_daemon_stop(&d);
}

TEST(should_end_the_connection_with_its_last_handle)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *first, *second, *own;

	fake_daemon_start(&d);
	first = shared();
	second = shared();
	CHECK_EQ(gpuseg_disconnect(second), 0);
	CHECK_EQ(gpuseg_disconnect(first), 0);
	attr.dir = d.dir;
	attr.flags = GPUSEG_CONNECT_ONCE; /* never shared: answered because the other connection has ended */
	CHECK_EQ(gpuseg_connect(&attr, &own), 0);
	CHECK_EQ(gpuseg_disconnect(own), 0);
	fake_daemon_stop(&d);
}

TEST(should_let_a_plain_connect_join)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *first, *plain;

	fake_daemon_start(&d);
	first = shared();
	attr.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&attr, &plain), 0);
	CHECK_EQ(gpuseg_disconnect(first), 0);
	segment(task_of(plain, "plain"));
	CHECK_EQ(gpuseg_disconnect(plain), 0);
	fake_daemon_stop(&d);
}

TEST(should_refuse_once)
{
	gpuseg_client *client = (gpuseg_client *)&d;

	fake_daemon_start(&d);
	CHECK_EQ(connect_with(GPUSEG_CONNECT_ONCE, &client), -EINVAL);
	CHECK(!client);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "gpuseg_connect()");
	fake_daemon_stop(&d);
}

TEST(should_fail_or_go_on_by_handle_when_the_daemon_is_lost)
{
	gpuseg_client *going_on, *failing, *late;
	gpuseg_task *one, *two;

	fake_daemon_start(&d);
	CHECK_EQ(connect_with(GPUSEG_CONNECT_FAIL_IF_LOST, &failing), 0);
	going_on = shared();
	one = task_of(failing, "one");
	two = task_of(going_on, "two");
	fake_daemon_kill(&d);
	wait_until_unmanaged(failing);
	CHECK_EQ(gpuseg_begin(one), -ENOTCONN);
	CHECK_CONTAINS(gpuseg_last_message(failing), "is gone");
	segment(two);
	late = shared(); /* reconnects for all */
	segment(task_of(late, "late"));
	CHECK_EQ(gpuseg_disconnect(late), 0);
	CHECK_EQ(gpuseg_disconnect(going_on), 0);
	CHECK_EQ(gpuseg_begin(one), -ENOTCONN);
	CHECK_EQ(gpuseg_disconnect(failing), 0);
	fake_daemon_stop(&d);
}

TEST(should_reconnect_for_every_handle)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	gpuseg_client *first, *second;
	gpuseg_task *one, *two;

	fake_daemon_start(&d);
	first = shared();
	second = shared();
	one = task_of(first, "one");
	two = task_of(second, "two");
	fake_daemon_kill(&d);
	wait_until_unmanaged(second);
	fake_daemon_follow(&d);
	while (!gpuseg_is_managed(second) && now_ns() - limit_ns < 0)
		sleep_ns(NS_PER_MS);
	CHECK(gpuseg_is_managed(first) && gpuseg_is_managed(second));
	segment_at_next_daemon(begin_and_end, one);
	segment_at_next_daemon(begin_and_end, two);
	CHECK_EQ(gpuseg_disconnect(first), 0);
	CHECK_EQ(gpuseg_disconnect(second), 0);
	fake_daemon_stop(&d);
}

TEST(should_not_join_a_connection_that_was_dropped)
{
	gpuseg_client *dropped, *next;

	fake_daemon_start(&d);
	dropped = shared();
	fake_daemon_drop(&d, GPUSEG_POISON_TICKET);
	fake_daemon_kill(&d); /* as the daemon closes the connection of a client that it drops */
	fake_daemon_follow(&d);
	next = shared();
	segment(task_of(next, "next"));
	CHECK_EQ(gpuseg_disconnect(dropped), 0);
	CHECK(gpuseg_is_managed(next));
	CHECK_EQ(gpuseg_disconnect(next), 0);
	fake_daemon_stop(&d);
}

TEST(should_share_nothing_without_a_daemon)
{
	gpuseg_client *alone, *managed;

	fake_daemon_start(&d);
	fake_daemon_kill(&d);
	CHECK_EQ(connect_with(GPUSEG_CONNECT_UNMANAGED_OK, &alone), 0);
	CHECK(!gpuseg_is_managed(alone));
	CHECK_EQ(connect_with(0, &managed), -ENOTCONN);
	fake_daemon_follow(&d);
	managed = shared();
	CHECK(gpuseg_is_managed(managed));
	CHECK(!gpuseg_is_managed(alone));
	CHECK_EQ(gpuseg_disconnect(alone), 0);
	segment(task_of(managed, "managed"));
	CHECK_EQ(gpuseg_disconnect(managed), 0);
	fake_daemon_stop(&d);
}

/* In the child of a process whose daemon is gone: 0, or the line of the check that fails. */
static int in_child(gpuseg_client *first, gpuseg_client *second, gpuseg_task *task)
{
	gpuseg_client *own;

	if (gpuseg_begin(task) != -EOWNERDEAD || gpuseg_is_managed(second))
		return __LINE__;
	if (connect_with(0, &own) != -ENOTCONN) /* it would have joined the lost connection of its parent */
		return __LINE__;
	if (gpuseg_disconnect(first) != 0 || gpuseg_begin(task) != -EOWNERDEAD || gpuseg_disconnect(second) != 0)
		return __LINE__;
	return connect_with(GPUSEG_CONNECT_UNMANAGED_OK, &own) == 0 && gpuseg_disconnect(own) == 0 ? 0 : __LINE__;
}

TEST(should_share_nothing_with_a_forked_child)
{
	gpuseg_client *first, *second;
	gpuseg_task *task;
	int status;
	pid_t pid;

	fake_daemon_start(&d);
	first = shared();
	second = shared();
	task_of(first, "one");
	task = task_of(second, "two");
	fake_daemon_kill(&d);
	wait_until_unmanaged(first);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(60);
		_exit(in_child(first, second, task) & 0xff);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: line %d modulo 256", status,
	      WEXITSTATUS(status));
	segment(task);
	CHECK_EQ(gpuseg_disconnect(first), 0);
	CHECK_EQ(gpuseg_disconnect(second), 0);
	fake_daemon_stop(&d);
}

static void *come_and_go(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		gpuseg_client *client = shared();

		segment(task_of(client, "guest"));
		CHECK(gpuseg_is_managed(client));
		CHECK_EQ(gpuseg_disconnect(client), 0);
	}
	return NULL;
}

TEST(should_serve_threads_that_come_and_go)
{
	pthread_t threads[THREADS];

	fake_daemon_start(&d);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(!d.sequence_broken);
	fake_daemon_stop(&d);
}

/* ---- copies of the library ---- */

struct plugin {
	void *object;
	int (*connect)(const struct gpuseg_connect_attr *attr, gpuseg_client **client);
	int (*disconnect)(gpuseg_client *client);
	int (*open)(gpuseg_client *client, const struct gpuseg_task_attr *attr, gpuseg_task **task);
	int (*segment)(gpuseg_task *task);
};

static struct plugin load(const char *name)
{
	char path[PATH_MAX];
	struct plugin p;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK(n > 0);
	path[n] = '\0';
	CHECK((size_t)(strrchr(path, '/') + 1 - path) + strlen(name) + 10 < sizeof(path));
	sprintf(strrchr(path, '/') + 1, "shared/%s", name);
	p.object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(p.object, "%s", dlerror());
	*(void **)&p.connect = dlsym(p.object, "plugin_connect");
	*(void **)&p.disconnect = dlsym(p.object, "plugin_disconnect");
	*(void **)&p.open = dlsym(p.object, "plugin_open");
	*(void **)&p.segment = dlsym(p.object, "plugin_segment");
	CHECK(p.connect && p.disconnect && p.open && p.segment);
	return p;
}

TEST(should_be_found_by_other_copies_of_the_library)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;
	struct plugin a = load("liba.so"), b = load("libb.so");
	gpuseg_client *of_a, *of_b, *ours;
	gpuseg_task *task;

	CHECK(a.connect != b.connect);
	fake_daemon_start(&d);
	attr.dir = d.dir;
	task_attr.name = "b";
	CHECK_EQ(a.connect(&attr, &of_a), 0);
	CHECK_EQ(b.connect(&attr, &of_b), 0);
	ours = shared();
	CHECK_EQ(b.open(of_b, &task_attr, &task), 0);
	CHECK_EQ(b.segment(task), 0);
	CHECK_EQ(a.disconnect(of_a), 0);
	CHECK_EQ(dlclose(a.object), 0); /* its code made the connection, which goes on, also with another daemon */
	fake_daemon_kill(&d);
	wait_until_unmanaged(ours);
	fake_daemon_follow(&d);
	for (int64_t limit_ns = now_ns() + LIMIT_NS; !gpuseg_is_managed(ours) && now_ns() - limit_ns < 0;)
		sleep_ns(NS_PER_MS);
	CHECK(gpuseg_is_managed(ours));
	segment_at_next_daemon(b.segment, task);
	CHECK_EQ(b.disconnect(of_b), 0);
	CHECK_EQ(dlclose(b.object), 0);
	segment(task_of(ours, "ours"));
	CHECK_EQ(gpuseg_disconnect(ours), 0);
	fake_daemon_stop(&d);
}

TEST(should_not_be_shared_with_a_copy_of_another_layout)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct plugin a = load("liba.so"), other = load("libother.so");
	gpuseg_client *ours, *of_a, *of_other;

	fake_daemon_start(&d);
	attr.dir = d.dir;
	ours = shared();
	fake_daemon_kill(&d);
	wait_until_unmanaged(ours);
	CHECK_EQ(a.connect(&attr, &of_a), 0); /* joins a connection that is lost; one of its own could not be made */
	CHECK_EQ(other.connect(&attr, &of_other), -ENOTCONN);
	CHECK_EQ(a.disconnect(of_a), 0);
	CHECK_EQ(gpuseg_disconnect(ours), 0);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_give_handles_of_one_connection),
	CASE(should_close_the_tasks_of_the_handle_alone),
	CASE(should_end_the_connection_with_its_last_handle),
	CASE(should_let_a_plain_connect_join),
	CASE(should_refuse_once),
	CASE(should_fail_or_go_on_by_handle_when_the_daemon_is_lost),
	CASE(should_reconnect_for_every_handle),
	CASE(should_not_join_a_connection_that_was_dropped),
	CASE(should_share_nothing_without_a_daemon),
	CASE(should_share_nothing_with_a_forked_child),
	CASE(should_serve_threads_that_come_and_go),
	CASE(should_be_found_by_other_copies_of_the_library),
	CASE(should_not_be_shared_with_a_copy_of_another_layout),
};

CHECK_MAIN(cases)
