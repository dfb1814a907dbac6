/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_strangers.c - a directory, a socket and a session that somebody else has made are not the daemon's; and what
 * helps a user whom the daemon does not serve.
 */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "refusal.h"

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

/* What USER is told by a connect that ends with `result`. */
static const char *told(const char *dir, int result)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client = NULL;

	attr.dir = dir;
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setegid(USER), 0);
	CHECK_EQ(seteuid(USER), 0);
	CHECK_EQ(gpuseg_connect(&attr, &client), result);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(setegid(0), 0);
	return gpuseg_last_message(NULL);
}

TEST(should_name_the_command_by_which_a_user_gets_the_right_to_connect)
{
	const struct group *daemon = getgrnam("daemon");
	char base[64], dir[80], path[200], expected[400];
	const int listener = strangers_socket(base, 0);

	if (!daemon)
		SKIP("this machine has no group daemon");
	snprintf(dir, sizeof(dir), "%s/gpuseg", base);
	snprintf(path, sizeof(path), "%s/%s", dir, GPUSEG_SOCKET_NAME);
	CHECK_EQ(chmod(path, 0660), 0);
	CHECK_EQ(chown(path, 0, daemon->gr_gid), 0);
	snprintf(expected, sizeof(expected), "no permission for %s: `sudo usermod -aG daemon %d`, then log in again",
		 path, USER);
	CHECK_CONTAINS(told(dir, -EACCES), expected);
	CHECK_EQ(chown(path, 0, 4711), 0);
	CHECK_CONTAINS(told(dir, -EACCES), "`sudo usermod -aG 4711 65532`");
	CHECK_EQ(chown(path, 0, 0), 0);
	snprintf(expected, sizeof(expected),
		 "no permission for %s: `sudo groupadd -rf gpuseg && sudo usermod -aG gpuseg %d`, restart the "
		 "daemon, log in again",
		 path, USER);
	CHECK_CONTAINS(told(dir, -EACCES), expected);
	CHECK_EQ(chown(path, 0, NO_GROUP_HERE), 0);
	CHECK_CONTAINS(told(dir, -EACCES), "none of this container");
	CHECK_EQ(chmod(dir, 0700), 0);
	CHECK_CONTAINS(told(dir, -EACCES), "its directory is closed to user 65532");
	close(listener);
	fixture_remove(base);
}

#define CHECK_NAME(id, expected) CHECK_EQ(strcmp(name_of(path, id, name), expected), 0)

TEST(should_tell_a_name_from_the_lines_of_a_file)
{
	char path[] = "/tmp/gpuseg-names-XXXXXX", name[USER_BYTES];
	const int fd = mkstemp(path);
	FILE *lines = fdopen(fd, "w");

	CHECK(lines != NULL);
	fprintf(lines, "# 7:7:8:\nempty::70:\nno:number:x:7:\nshort:7\n");
	fprintf(lines, "many:x:71:");
	for (int i = 0; i < 200; i++)
		fprintf(lines, "a:x:7:"); /* members of a line that is longer than a piece */
	fprintf(lines, "\nright:x:7:\nlater:x:7:\nlast:x:72:");
	CHECK_EQ(fclose(lines), 0);
	CHECK_NAME(7, "right");
	CHECK_NAME(70, "empty");
	CHECK_NAME(71, "many");
	CHECK_NAME(72, "last");
	CHECK_NAME(73, "73");
	CHECK_EQ(unlink(path), 0);
	CHECK_NAME(7, "7");
}

TEST(should_tell_a_variable_that_is_left_over_from_a_daemon_that_does_not_run)
{
	char base[64], dir[80], expected[400];
	const int listener = strangers_socket(base, 0);

	setenv("GPUSEG_DIR", base, 1);
	snprintf(dir, sizeof(dir), "%s/gpuseg", base);
	snprintf(expected, sizeof(expected),
		 "no daemon at %s/%s, which GPUSEG_DIR names; one of root is in %s: `unset GPUSEG_DIR`", base,
		 GPUSEG_SOCKET_NAME, dir);
	CHECK_CONTAINS(told(NULL, -ENOTCONN), expected);
	CHECK(strstr(told("/nonexistent", -ENOTCONN), "unset") == NULL); /* the program says where */
	CHECK_EQ(chown(dir, STRANGER, STRANGER), 0);
	CHECK_CONTAINS(told(NULL, -ENOTCONN), "start `gpuseg run`");
	close(listener);
	fixture_remove(base);
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
	CASE(should_name_the_command_by_which_a_user_gets_the_right_to_connect),
	CASE(should_tell_a_name_from_the_lines_of_a_file),
	CASE(should_tell_a_variable_that_is_left_over_from_a_daemon_that_does_not_run),
};
CHECK_MAIN(cases)
