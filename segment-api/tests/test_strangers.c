/* SPDX-License-Identifier: Apache-2.0 */
/* test_strangers.c - a directory, a socket and a session that somebody else has made are not the daemon's. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

enum { USER = 65532, STRANGER = 65531 };

/* XDG_RUNTIME_DIR with a directory of `owner`, in which STRANGER listens. */
static int strangers_socket(char base[64], uid_t owner)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char dir[80];

	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	if (access(GPUSEG_INSTALLED_DIR, F_OK) == 0)
		SKIP("gpuseg is installed here: its directory precedes all others");
	fixture_directory(base);
	CHECK_EQ(chmod(base, 0755), 0);
	snprintf(dir, sizeof(dir), "%s/gpuseg", base);
	CHECK_EQ(mkdir(dir, 0755), 0);
	CHECK_EQ(chown(dir, owner, owner), 0);
	CHECK_EQ(chmod(dir, 0777), 0);
	unsetenv("GPUSEG_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, GPUSEG_SOCKET_NAME);
	CHECK_EQ(seteuid(STRANGER), 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(listener, 8), 0);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(chmod(address.sun_path, 0666), 0);
	return listener;
}

static void check_is_not_believed(uid_t owner, const char *why)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client = NULL;
	char base[64];
	const int listener = strangers_socket(base, owner);

	CHECK_EQ(seteuid(USER), 0);
	CHECK_EQ(gpuseg_connect(&attr, &client), -ENOTCONN);
	CHECK(strstr(gpuseg_last_message(NULL), why) != NULL);
	attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	CHECK(!gpuseg_is_managed(client));
	gpuseg_disconnect(client);
	CHECK_EQ(seteuid(0), 0);
	close(listener);
	fixture_remove(base);
}

TEST(should_not_believe_a_directory_of_another_user)
{
	check_is_not_believed(STRANGER, "belongs to another one");
}

TEST(should_not_believe_a_socket_of_another_user)
{
	check_is_not_believed(USER, "no daemon of root or this user listens at");
}

/* SIGBUS awaits whoever maps a file that its maker can cut off. */
TEST(should_refuse_a_session_that_can_be_made_shorter)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client = NULL;
	struct fake_daemon d;

	fake_daemon_start(&d);
	pthread_mutex_lock(&d.mutex);
	d.unsealed = true;
	pthread_mutex_unlock(&d.mutex);
	attr.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EPROTO);
	CHECK(strstr(gpuseg_last_message(NULL), "can be made shorter") != NULL);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_not_believe_a_directory_of_another_user),
	CASE(should_not_believe_a_socket_of_another_user),
	CASE(should_refuse_a_session_that_can_be_made_shorter),
};
CHECK_MAIN(cases)
