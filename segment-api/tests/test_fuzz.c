/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library against a daemon that sends invalid answers: every call returns at once with a documented result, and
 * nothing leaks. The seed is fixed; GPUSEG_FUZZ_ROUNDS=100000 GPUSEG_FUZZ_SEED=7 is a long run with another seed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define ROUNDS 600

static uint32_t number(const char *variable, uint32_t otherwise)
{
	const char *text = getenv(variable);

	return text != NULL && atoi(text) > 0 ? (uint32_t)atoi(text) : otherwise;
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* A descriptor that the library must not close. */
static void check_strangers(int stranger)
{
	CHECK(fcntl(stranger, F_GETFD) >= 0);
	CHECK(fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0);
}

static void check_result(int rc, const gpuseg_client *client)
{
	CHECK(rc <= 0 && rc > -4096);
	CHECK(strlen(gpuseg_last_message(client)) < 1024);
	CHECK(rc == 0 || strlen(gpuseg_strerror(rc)) > 0);
	CHECK(rc != -ETIMEDOUT); /* the connection had ended, so there was nothing to wait for */
}

TEST(should_survive_garbled_answers)
{
	struct fake_daemon d;
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;
	const uint32_t rounds = number("GPUSEG_FUZZ_ROUNDS", ROUNDS);
	uint32_t accepted = 0, refused = 0;
	int descriptors = 0;
	const int stranger = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (rounds > ROUNDS)
		alarm(0);
	fake_daemon_start(&d);
	attr.dir = d.dir;
	attr.name = "fuzz";
	task_attr.name = "task";
	task_attr.priority = 7;
	pthread_mutex_lock(&d.mutex);
	d.fuzz = number("GPUSEG_FUZZ_SEED", 20261121);
	pthread_mutex_unlock(&d.mutex);
	for (uint32_t i = 0; i < rounds; i++) {
		gpuseg_client *client = NULL;
		gpuseg_task *task = NULL;
		int rc;

		pthread_mutex_lock(&d.mutex);
		d.fuzz_type = i % 2 == 0 ? GPUSEG_MSG_HELLO : GPUSEG_MSG_TASK_OPEN;
		pthread_mutex_unlock(&d.mutex);
		rc = gpuseg_connect(&attr, &client);
		check_result(rc, NULL);
		CHECK((rc == 0) == (client != NULL));
		if (rc == 0) {
			rc = gpuseg_task_open(client, &task_attr, &task);
			check_result(rc, client);
			CHECK((rc == 0) == (task != NULL));
		}
		accepted += rc == 0;
		refused += rc != 0;
		CHECK_EQ(gpuseg_disconnect(client), 0);
		check_strangers(stranger);
		if (i == 50)
			descriptors = open_descriptors();
	}
	/* one may be left: the daemon has not noticed yet that it was closed */
	CHECK(rounds <= 50 || open_descriptors() <= descriptors + 1);
	printf("    %u rounds, %u answers accepted, %u refused\n", rounds, accepted, refused);
	CHECK(refused > rounds / 4);
	close(stranger);
	fake_daemon_stop(&d);
}

/* The session is written by the daemon: what it says is looked at again at every use. */
TEST(should_survive_a_session_full_of_nonsense)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;
	const uint32_t rounds = number("GPUSEG_FUZZ_ROUNDS", ROUNDS);
	const int stranger = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uint32_t begun = 0, refused = 0;
	gpuseg_client *client = NULL;
	gpuseg_task *task = NULL;
	struct fake_daemon d;

	srand48(number("GPUSEG_FUZZ_SEED", 20261121));
	fake_daemon_start(&d);
	attr.dir = d.dir;
	attr.name = "fuzz";
	task_attr.name = "task";
	task_attr.priority = 7;
	task_attr.timeout_ns = 1000000;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), 0);
	for (uint32_t i = 0; i < rounds; i++) {
		unsigned char *bytes = (unsigned char *)d.session;
		int rc;

		for (long n = lrand48() % 64; n > 0; n--) {
			/* mostly where it matters: the header, and the slot of the task */
			const long reach = lrand48() % 2 == 0 ? (long)sizeof(*d.session) + 256 : GPUSEG_SESSION_BYTES;

			__atomic_store_n(&bytes[lrand48() % reach], (unsigned char)lrand48(), __ATOMIC_RELAXED);
		}
		if (lrand48() % 4 != 0) /* else the client takes itself for dropped, and all ends there */
			__atomic_store_n(&d.session->poisoned, 0, __ATOMIC_RELEASE);
		rc = lrand48() % 2 == 0 ? gpuseg_begin(task) : gpuseg_begin_try(task);
		CHECK(rc <= GPUSEG_PROCEEDED && rc > -4096);
		CHECK(strlen(gpuseg_last_message(client)) < 1024);
		begun += rc >= 0;
		refused += rc < 0;
		(void)gpuseg_hint(task, gpuseg_now_ns());
		rc = gpuseg_end(task);
		CHECK(rc <= 0 && rc > -4096);
		CHECK(gpuseg_is_managed(client) == 0 || gpuseg_is_managed(client) == 1);
		check_strangers(stranger);
	}
	__atomic_store_n(&d.session->poisoned, 0, __ATOMIC_RELEASE);
	CHECK_EQ(gpuseg_disconnect(client), 0);
	printf("    %u rounds, %u segments begun, %u refused\n", rounds, begun, refused);
	CHECK(refused > 0);
	close(stranger);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {CASE(should_survive_garbled_answers),
					  CASE(should_survive_a_session_full_of_nonsense)};
CHECK_MAIN(cases)
