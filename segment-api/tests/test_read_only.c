/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_read_only.c - the runtime directory is mounted read-only where the client sees it, as in a container: the daemon
 * hands out the files of the queue as descriptors. Refusals first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define FUZZ_ROUNDS 300
#define FORMER_VERSION ((GPUSEG_ABI_MAJOR << 16) | 8)

/* Of this process, while the daemon's thread does nothing. */
static int open_descriptors(struct fake_daemon *d)
{
	DIR *dir;
	int n = 0;

	pthread_mutex_lock(&d->mutex);
	dir = opendir("/proc/self/fd");
	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	pthread_mutex_unlock(&d->mutex);
	return n;
}

/* Mappings of queue files in this process: the library's, and one of the reader in the fixture. */
static int mapped_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	CHECK(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, ".cq4") != NULL;
	fclose(maps);
	return n;
}

static void write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* A mount namespace of our own, so that what is mounted here is seen nowhere else. */
static void leave_namespaces(void)
{
	const int uid = (int)geteuid(), gid = (int)getegid();
	char text[64];

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
		SKIP("a mount namespace is not permitted here: %s", strerror(errno));
	if (uid != 0) {
		write_file("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "%d %d 1", uid, uid);
		write_file("/proc/self/uid_map", text);
		snprintf(text, sizeof(text), "%d %d 1", gid, gid);
		write_file("/proc/self/gid_map", text);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("mounts are not permitted here: %s", strerror(errno));
}

/* A daemon whose clients find its directory at another place, mounted read-only. */
static void start(struct fake_daemon *d)
{
	unsigned long kept = 0;
	struct statvfs st;

	fake_daemon_start(d);
	pthread_mutex_lock(&d->mutex);
	fixture_directory(d->shown);
	pthread_mutex_unlock(&d->mutex);
	CHECK_EQ(statvfs(d->dir, &st), 0);
	/* In a user namespace these may not be dropped. */
	kept |= st.f_flag & ST_NOSUID ? MS_NOSUID : 0;
	kept |= st.f_flag & ST_NODEV ? MS_NODEV : 0;
	kept |= st.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
	kept |= st.f_flag & ST_NOATIME ? MS_NOATIME : 0;
	kept |= st.f_flag & ST_RELATIME ? MS_RELATIME : 0;
	if (mount(d->dir, d->shown, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, d->shown, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, NULL) < 0)
		SKIP("a read-only mount is not permitted here: %s", strerror(errno));
}

static void stop(struct fake_daemon *d)
{
	CHECK_EQ(umount2(d->shown, MNT_DETACH), 0);
	CHECK_EQ(rmdir(d->shown), 0);
	fake_daemon_stop(d);
}

static int try_to_connect(struct fake_daemon *d, gpuseg_client **client)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST;
	attr.dir = d->shown[0] ? d->shown : d->dir;
	attr.name = "test";
	return gpuseg_connect(&attr, client);
}

static gpuseg_client *connect_to(struct fake_daemon *d)
{
	gpuseg_client *client;
	const int ret = try_to_connect(d, &client);

	CHECK(ret == 0, "%s", gpuseg_last_message(NULL));
	CHECK_EQ(gpuseg_is_managed(client), 1);
	return client;
}

static gpuseg_task *open_task(gpuseg_client *client)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;

	attr.name = "camera";
	attr.priority = 70;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	return task;
}

static struct gpuseg_counters counters_of(gpuseg_client *client)
{
	struct gpuseg_counters c = {.size = sizeof(c)};

	CHECK_EQ(gpuseg_get_counters(client, &c), 0);
	return c;
}

/* -EBUSY: the next cycle is not mapped yet. On a busy machine that may take long, so try again for some seconds. */
static void segment(gpuseg_task *task)
{
	const int64_t until_ns = gpuseg_now_ns() + INT64_C(30000000000);
	int ret;

	while ((ret = gpuseg_begin(task)) == -EBUSY && gpuseg_now_ns() < until_ns)
		;
	CHECK_EQ(ret, 0);
	while ((ret = gpuseg_end(task)) == -EBUSY && gpuseg_now_ns() < until_ns)
		;
	CHECK_EQ(ret, 0);
}

TEST(should_refuse_a_read_only_directory_of_a_daemon_that_gives_no_files)
{
	gpuseg_client *client;
	struct fake_daemon d;

	start(&d);
	pthread_mutex_lock(&d.mutex);
	d.wrong_version = FORMER_VERSION;
	pthread_mutex_unlock(&d.mutex);
	CHECK_EQ(try_to_connect(&d, &client), -EROFS);
	CHECK(client == NULL);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "/q is read-only");
	CHECK_CONTAINS(gpuseg_last_message(NULL), "too old");
	CHECK_EQ(fake_daemon_files_asked(&d), 0); /* it would drop the client */
	stop(&d);
}

TEST(should_say_what_is_wrong_with_an_answer)
{
	static const struct {
		enum fake_files files;
		int result;
		const char *text;
	} answers[] = {
		{FAKE_FILE_NONE, -EPROTO, "not one writable file of cycle -1"},
		{FAKE_FILE_TWICE, -EPROTO, "not one writable file of cycle -1"},
		{FAKE_FILE_READ_ONLY, -EPROTO, "not one writable file of cycle -1"},
		{FAKE_FILE_MISLABELED, -EPROTO, "not one writable file of cycle -1"},
		{FAKE_FILE_SHORT, -EBADMSG, "metadata.cq4t: impossible size"},
		{FAKE_FILE_NO_FILE, -EBADMSG, "metadata.cq4t: impossible size"},
		{FAKE_FILE_OTHER, -EPROTONOSUPPORT, "19700101F.cq4: no readable"},
	};
	gpuseg_client *client;
	struct fake_daemon d;
	int before = 0;

	start(&d);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
			fake_daemon_files(&d, answers[i].files);
			CHECK_EQ(try_to_connect(&d, &client), answers[i].result);
			CHECK_CONTAINS(gpuseg_last_message(NULL), answers[i].text);
		}
		fake_daemon_refuse(&d, GPUSEG_MSG_QUEUE_FILE, -EAGAIN);
		CHECK_EQ(try_to_connect(&d, &client), -EAGAIN);
		CHECK_CONTAINS(gpuseg_last_message(NULL), "refused by the test");
		fake_daemon_refuse(&d, GPUSEG_MSG_QUEUE_FILE, 0);
		if (round == 0)
			before = open_descriptors(&d);
	}
	/* One may be left: the daemon has not noticed yet that a connection was closed. */
	CHECK(open_descriptors(&d) <= before + 1, "%d, before %d", open_descriptors(&d), before);
	CHECK(mapped_files() <= 1);
	fake_daemon_files(&d, FAKE_FILE);
	CHECK_EQ(gpuseg_disconnect(connect_to(&d)), 0);
	stop(&d);
}

TEST(should_survive_garbled_answers)
{
	const char *seed = getenv("GPUSEG_FUZZ_SEED"), *often = getenv("GPUSEG_FUZZ_ROUNDS");
	const int rounds = often ? atoi(often) : FUZZ_ROUNDS;
	const int stranger = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int accepted = 0, descriptors = 0;
	struct fake_daemon d;

	if (rounds > FUZZ_ROUNDS)
		alarm(0);
	start(&d);
	pthread_mutex_lock(&d.mutex);
	d.fuzz = seed ? (uint32_t)atoi(seed) : 20261125;
	d.fuzz_type = GPUSEG_MSG_QUEUE_FILE;
	pthread_mutex_unlock(&d.mutex);
	for (int i = 0; i < rounds; i++) {
		gpuseg_client *client;
		const int ret = try_to_connect(&d, &client);

		CHECK(ret <= 0 && ret > -4096);
		CHECK((ret == 0) == (client != NULL));
		CHECK(strlen(gpuseg_last_message(NULL)) < 1024);
		CHECK(ret != -ETIMEDOUT);
		accepted += ret == 0;
		CHECK_EQ(gpuseg_disconnect(client), 0);
		CHECK(fcntl(stranger, F_GETFD) >= 0 && fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0);
		if (i == 50)
			descriptors = open_descriptors(&d);
	}
	CHECK(rounds <= 50 || open_descriptors(&d) <= descriptors + 1);
	CHECK_EQ(accepted, 0); /* the first answer ends the connection, and two are needed */
	close(stranger);
	stop(&d);
}

TEST(should_ask_for_no_file_where_the_directory_is_writable)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client);
	for (int i = 0; i < 2; i++) {
		segment(task);
		fake_daemon_roll(&d, true);
		segment(task);
	}
	CHECK_EQ(counters_of(client).rolls, 2);
	CHECK_EQ(fake_daemon_files_asked(&d), 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_follow_rolls_announced_ahead_without_a_path)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	int descriptors;
	size_t n = 0;

	start(&d);
	client = connect_to(&d);
	task = open_task(client);
	CHECK_EQ(fake_daemon_files_asked(&d), 2); /* the metadata and the first cycle */
	descriptors = open_descriptors(&d);
	for (int cycle = 0; cycle < 6; cycle++) {
		for (int i = 0; i < 10; i++, n += 2)
			segment(task);
		CHECK(fake_daemon_wait(&d, n, NULL));
		fake_daemon_roll(&d, true);
	}
	segment(task);
	CHECK(fake_daemon_wait(&d, n + 2, NULL));
	CHECK(!d.sequence_broken);
	CHECK_EQ(counters_of(client).rolls, 6);
	CHECK_EQ(open_descriptors(&d), descriptors);
	CHECK(mapped_files() <= 4, "%d", mapped_files()); /* metadata, the reader's cycle, ours and the one before */
	gpuseg_disconnect(client);
	CHECK(mapped_files() <= 1, "%d", mapped_files());
	stop(&d);
}

TEST(should_wait_for_the_roll_thread_when_a_roll_was_not_announced)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	uint64_t rolls = 0;

	start(&d);
	client = connect_to(&d);
	task = open_task(client);
	/* On a busy machine the roll thread may look by itself before the segment begins. */
	while (rolls < 3 || (rolls < 50 && counters_of(client).remaps_inline == 0)) {
		segment(task);
		CHECK(fake_daemon_wait(&d, (size_t)(2 * (rolls + 1)), NULL));
		fake_daemon_roll(&d, false); /* the roll thread is not woken */
		rolls++;
	}
	segment(task);
	CHECK_EQ(counters_of(client).rolls, rolls);
	CHECK(counters_of(client).remaps_inline > 0);
	gpuseg_disconnect(client);
	stop(&d);
}

TEST(should_refuse_marks_while_the_next_cycle_is_refused_and_lose_none)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	start(&d);
	client = connect_to(&d);
	task = open_task(client);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK(fake_daemon_wait(&d, 1, NULL));
	fake_daemon_refuse(&d, GPUSEG_MSG_QUEUE_FILE, -EAGAIN);
	fake_daemon_roll(&d, false);
	CHECK_EQ(gpuseg_end(task), -EBUSY); /* and is kept */
	CHECK_EQ(gpuseg_begin(task), -EBUSY);
	while (fake_daemon_files_asked(&d) == 2) /* the roll thread asks at least ten times a second */
		usleep(1000);
	CHECK_EQ(gpuseg_end(task), -EBUSY);
	fake_daemon_refuse(&d, GPUSEG_MSG_QUEUE_FILE, 0);
	segment(task);
	CHECK(fake_daemon_wait(&d, 4, NULL));
	CHECK_EQ(fake_daemon_record(&d, 1).kind, GPUSEG_RECORD_END);
	CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_BEGIN);
	CHECK(!d.sequence_broken);
	gpuseg_disconnect(client);
	stop(&d);
}

TEST(should_ask_a_new_daemon_for_its_files)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	start(&d);
	client = connect_to(&d);
	task = open_task(client);
	for (int i = 0; i < 2; i++) {
		const int64_t until_ns = gpuseg_now_ns() + INT64_C(30000000000);

		segment(task);
		fake_daemon_kill(&d);
		fake_daemon_follow(&d);
		while (gpuseg_begin(task) < 0 && gpuseg_now_ns() < until_ns)
			usleep(1000);
		CHECK_EQ(gpuseg_end(task), 0);
		fake_daemon_roll(&d, true);
		segment(task);
		CHECK(fake_daemon_files_asked(&d) >= 3);
		CHECK(!d.sequence_broken);
	}
	gpuseg_disconnect(client);
	stop(&d);
}

TEST(should_leave_nothing_to_a_forked_child)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	int status;
	pid_t child;

	start(&d);
	client = connect_to(&d);
	task = open_task(client);
	segment(task);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(60);
		CHECK_EQ(gpuseg_begin(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_disconnect(client), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	fake_daemon_roll(&d, true);
	segment(task);
	CHECK_EQ(counters_of(client).rolls, 1);
	CHECK_EQ(fake_daemon_files_asked(&d), 3);
	gpuseg_disconnect(client);
	stop(&d);
}

#define THREADS 3
#define SEGMENTS 200

static gpuseg_client *shared;

/* Opens and closes tasks, so that the roll thread's requests and these share the connection. */
static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < SEGMENTS / 20; i++) {
		gpuseg_task *task = open_task(shared);

		for (int j = 0; j < 20; j++)
			segment(task);
		CHECK_EQ(gpuseg_task_close(task), 0);
	}
	return NULL;
}

TEST(should_keep_every_record_of_every_thread_across_rolls)
{
	pthread_t threads[THREADS];
	struct fake_daemon d;

	start(&d);
	shared = connect_to(&d);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 5; i++) {
		usleep(2000);
		fake_daemon_roll(&d, i % 2 == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(fake_daemon_wait(&d, 2 * THREADS * SEGMENTS, NULL));
	CHECK(!d.sequence_broken);
	gpuseg_disconnect(shared);
	stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_refuse_a_read_only_directory_of_a_daemon_that_gives_no_files),
	CASE(should_say_what_is_wrong_with_an_answer),
	CASE(should_survive_garbled_answers),
	CASE(should_ask_for_no_file_where_the_directory_is_writable),
	CASE(should_follow_rolls_announced_ahead_without_a_path),
	CASE(should_wait_for_the_roll_thread_when_a_roll_was_not_announced),
	CASE(should_refuse_marks_while_the_next_cycle_is_refused_and_lose_none),
	CASE(should_ask_a_new_daemon_for_its_files),
	CASE(should_leave_nothing_to_a_forked_child),
	CASE(should_keep_every_record_of_every_thread_across_rolls),
};

int main(int argc, char **argv)
{
	leave_namespaces();
	return check_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
