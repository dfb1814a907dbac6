/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c - many threads on one client, rolls at the same time, a storm of all calls while daemons are
 * replaced, a reader on the same memory. Meant for ThreadSanitizer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cq.h"
#include "fixture.h"
#include "gpuseg.h"
#include "platform.h"

#define THREADS 4
#define SEGMENTS 300

static gpuseg_client *client;
static struct fake_daemon daemon_;

static void *work(void *arg)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;
	(void)arg;

	attr.name = "worker";
	attr.priority = 50;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	for (int i = 0; i < SEGMENTS; i++) {
		int ret;

		/* The daemon of the test may hold the queue for a long time under emulation. */
		while ((ret = gpuseg_begin(task)) == -EBUSY || ret == -ENOSPC)
			;
		CHECK_EQ(ret, 0);
		ret = gpuseg_end(task);
		while (ret == -EBUSY || ret == -ENOSPC)
			ret = gpuseg_end(task);
		CHECK_EQ(ret, 0);
	}
	CHECK_EQ(gpuseg_task_close(task), 0);
	return NULL;
}

TEST(should_keep_every_record_of_every_thread_across_rolls)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	uint64_t last_ticket[THREADS + 1] = {0};
	pthread_t threads[THREADS];

	fake_daemon_start(&daemon_);
	attr.dir = daemon_.dir;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 4; i++) {
		usleep(2000);
		fake_daemon_roll(&daemon_, i % 2 == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(fake_daemon_wait(&daemon_, 2 * THREADS * SEGMENTS, NULL));
	CHECK(!daemon_.sequence_broken);
	for (size_t i = 0; i < 2 * THREADS * SEGMENTS; i++) {
		struct gpuseg_record r = fake_daemon_record(&daemon_, i);

		CHECK(r.task_id >= 1 && r.task_id <= THREADS);
		if (r.kind == GPUSEG_RECORD_BEGIN)
			last_ticket[r.task_id]++;
		CHECK_EQ(r.ticket, last_ticket[r.task_id]);
	}
	for (int i = 1; i <= THREADS; i++)
		CHECK_EQ(last_ticket[i], SEGMENTS);
	gpuseg_disconnect(client);
	fake_daemon_stop(&daemon_);
}

static void *reconnect(void *arg)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *own;

	attr.dir = arg;
	attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(gpuseg_connect(&attr, &own), 0);
		CHECK_EQ(gpuseg_is_managed(own), 0);
		gpuseg_disconnect(own);
	}
	return NULL;
}

TEST(should_connect_from_several_threads_at_once)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, reconnect, "/nonexistent"), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A daemon in another process: nothing that it does orders the threads of this one. */
static FILE *start_apart(pid_t *pid, int *commands)
{
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	posix_spawn_file_actions_t files;
	char runner[256], *argv[8], *rest = NULL;
	int words = 0, in[2], out[2];

	CHECK(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, "serve_fixture");
	/* What runs this program, and its options: an emulator for another architecture, or nothing. */
	snprintf(runner, sizeof(runner), "%s", getenv("RUNNER") ? getenv("RUNNER") : "");
	for (char *word = strtok_r(runner, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		CHECK(words < 6);
		argv[words++] = word;
	}
	argv[words++] = path;
	argv[words] = NULL;
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	CHECK_EQ(posix_spawnp(pid, argv[0], &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	*commands = in[1];
	return fdopen(out[0], "r");
}

/* The roll thread may replace and unmap a connection that gpuseg_connect() has just made. */
TEST(should_connect_while_the_daemon_is_replaced)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	char dir[128], answer[16];
	gpuseg_client *own;
	int commands;
	pid_t pid;
	FILE *said = start_apart(&pid, &commands);

	CHECK(said && fgets(dir, sizeof(dir), said));
	dir[strcspn(dir, "\n")] = 0;
	attr.dir = dir;
	CHECK_EQ(gpuseg_connect(&attr, &own), 0);
	CHECK(write(commands, "f", 1) == 1 && fgets(answer, sizeof(answer), said));
	/* time to follow, and to unmap the former connection, which no task uses; looking would touch the same words */
	usleep(1000000);
	for (int i = 0; i < 300 && !gpuseg_is_managed(own); i++)
		usleep(100000);
	CHECK(gpuseg_is_managed(own));
	gpuseg_disconnect(own);
	close(commands);
	fclose(said);
	waitpid(pid, NULL, 0);
}

/* A reader on the appender's own mapping, so that the sanitizer sees both sides. */
#define STREAM 10000

static void *read_stream(void *arg)
{
	const uint8_t *base = arg;
	size_t position = FIXTURE_FIRST_DATA;

	for (uint64_t i = 1; i <= STREAM; i++, position += 68) {
		struct gpuseg_record r;

		while (__atomic_load_n((const uint32_t *)(const void *)(base + position), __ATOMIC_ACQUIRE) != 64)
			sched_yield();
		memcpy(&r, base + position + 4, sizeof(r));
		CHECK_EQ(r.seq, i);
		CHECK_EQ(r.ticket, i * 3);
		CHECK_EQ(r.arg_ns, ~i);
	}
	return NULL;
}

TEST(should_publish_whole_records_only)
{
	char dir[64], text[CQ_TEXT_BYTES];
	pthread_t reader;
	struct cq q;

	fixture_directory(dir);
	fixture_queue_create(dir, FIXTURE_CYCLE_BYTES);
	CHECK_EQ(cq_attach(&q, dir, NULL, text), 0);
	CHECK_EQ(pthread_create(&reader, NULL, read_stream, q.cur.base), 0);
	for (uint64_t i = 1; i <= STREAM; i++) {
		struct gpuseg_record r = {.kind = 1, .seq = i, .ticket = i * 3, .arg_ns = (int64_t)~i};

		CHECK_EQ(cq_append(&q, &r), 0);
	}
	pthread_join(reader, NULL);
	cq_detach(&q);
	fixture_remove(dir);
}

/* Opens tasks while the roll thread of the connection replaces and unmaps it. */
static void *open_tasks(void *arg)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	const bool *stop = arg;
	gpuseg_task *task;

	attr.name = "late";
	attr.priority = 100; /* invalid, so the connection has no task that would keep it mapped */
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		int ret = gpuseg_task_open(client, &attr, &task);

		CHECK(ret == -EINVAL || ret == -ENOTCONN);
		CHECK(task == NULL);
	}
	return NULL;
}

TEST(should_open_tasks_while_a_connection_is_left_behind)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	pthread_t opener;
	bool stop = false;

	fake_daemon_start(&daemon_);
	attr.dir = daemon_.dir;
	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	CHECK_EQ(pthread_create(&opener, NULL, open_tasks, &stop), 0);
	for (int i = 0; i < 5; i++) {
		int64_t limit_ns = now_ns() + 30 * NS_PER_S;

		fake_daemon_kill(&daemon_);
		while (gpuseg_is_managed(client)) /* until the loss is noticed */
			CHECK(now_ns() - limit_ns < 0);
		fake_daemon_follow(&daemon_);
		while (!gpuseg_is_managed(client)) {
			CHECK(now_ns() - limit_ns < 0);
			usleep(1000);
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(opener, NULL);
	gpuseg_disconnect(client);
	fake_daemon_stop(&daemon_);
}

/* What a call may say while its daemon rolls queues, dies and is replaced. */
static bool is_usual(int ret)
{
	return ret >= 0 || ret == -EBUSY || ret == -ENOSPC || ret == -ENOTCONN || ret == -ETIMEDOUT ||
	       ret == -ECANCELED || ret == -EAGAIN;
}

#define STORM_SEGMENTS 20
#define STORM_TURNS 3
#define STORM_DAEMONS 3

#define STORM_PATIENCE 2000 /* of 0.1 ms */

static long storm_begun;  /* atomic */
static int storm_threads; /* atomic */

/*
 * Opens, begins, ends, announces and closes without a pause, whatever becomes of the connection. Every second thread
 * keeps its task until there is another daemon: else no task would be left when a connection is replaced.
 */
static void *storm(void *arg)
{
	const bool keeps = __atomic_fetch_add(&storm_threads, 1, __ATOMIC_RELAXED) % 2 == 0;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	const bool *stop = arg;

	attr.name = "storm";
	attr.priority = 50;
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		gpuseg_task *task;
		int ret = gpuseg_task_open(client, &attr, &task);

		CHECK(is_usual(ret), "open: %d", ret);
		if (ret < 0)
			continue;
		for (int i = 0, waited = 0; i < STORM_SEGMENTS; i++) {
			CHECK(is_usual(gpuseg_hint(task, gpuseg_now_ns() + NS_PER_MS)));
			CHECK(is_usual(gpuseg_job_release(task, 0)));
			ret = gpuseg_begin_timed(task, NS_PER_MS);
			CHECK(is_usual(ret), "begin: %d", ret);
			if (ret >= 0) {
				__atomic_fetch_add(&storm_begun, 1, __ATOMIC_RELAXED);
				CHECK(is_usual(gpuseg_end(task)));
			}
			CHECK(is_usual(gpuseg_job_end(task)));
			if (!gpuseg_is_managed(client) && keeps && waited++ < STORM_PATIENCE &&
			    !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
				usleep(100);
				i--;
			}
		}
		CHECK(is_usual(gpuseg_task_close(task)));
	}
	return NULL;
}

static void await_managed(bool wanted)
{
	const int64_t limit_ns = now_ns() + 30 * NS_PER_S;

	while (gpuseg_is_managed(client) != wanted) {
		CHECK(now_ns() - limit_ns < 0);
		usleep(1000);
	}
}

/* Every entry of the library on all threads, while queues are rolled and daemons die and are replaced. */
TEST(should_survive_a_storm_of_connections_tasks_segments_and_rolls)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	pthread_t threads[THREADS];

	fake_daemon_start(&daemon_);
	attr.dir = daemon_.dir;
	for (int turn = 0; turn < STORM_TURNS; turn++) {
		bool stop = false;

		attr.flags = turn % 2 ? GPUSEG_CONNECT_FAIL_IF_LOST : 0;
		CHECK_EQ(gpuseg_connect(&attr, &client), 0);
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, storm, &stop), 0);
		for (int i = 0; i < STORM_DAEMONS; i++) {
			fake_daemon_roll(&daemon_, i % 2 == 0);
			fake_daemon_kill(&daemon_);
			await_managed(false);
			fake_daemon_follow(&daemon_);
			await_managed(true);
		}
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		gpuseg_disconnect(client);
		/* the next one gets a queue of its own, as from the real daemon */
		fake_daemon_kill(&daemon_);
		fake_daemon_follow(&daemon_);
	}
	CHECK(storm_begun > 0);
	fake_daemon_stop(&daemon_);
}

static const struct check_case cases[] = {
	CASE(should_keep_every_record_of_every_thread_across_rolls),
	CASE(should_connect_from_several_threads_at_once),
	CASE(should_connect_while_the_daemon_is_replaced),
	CASE(should_publish_whole_records_only),
	CASE(should_open_tasks_while_a_connection_is_left_behind),
	CASE(should_survive_a_storm_of_connections_tasks_segments_and_rolls),
};
CHECK_MAIN(cases)
