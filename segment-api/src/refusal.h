/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.h - what helps who may not or cannot reach a daemon, for the library and `gpuseg exec`. NoAnswer.java has the
 * same for the tools.
 */
#ifndef GPUSEG_REFUSAL_H
#define GPUSEG_REFUSAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "directory.h"

#define REFUSAL_BYTES (GPUSEG_TEXT_BYTES + 64)
#define USER_BYTES 33	    /* useradd(8) and groupadd(8) take 32 */
#define NO_GROUP_HERE 65534 /* what the kernel shows for a group that a user namespace does not have */

/*
 * The name of a user or group: the first field of the line of /etc/passwd or /etc/group whose third is `id`; its number
 * if there is none. Not getgrgid(3), which a static program cannot call.
 */
static inline const char *name_of(const char *file, unsigned int id, char name[USER_BYTES])
{
	FILE *lines = fopen(file, "re");
	char line[256];
	int begins = 1;

	snprintf(name, USER_BYTES, "%u", id);
	while (lines && fgets(line, sizeof(line), lines)) {
		char *password = begins ? strchr(line, ':') : NULL;
		char *number = password ? strchr(password + 1, ':') : NULL;
		char *end;

		begins = strchr(line, '\n') != NULL; /* else the next piece is of the same line */
		if (!number || strtoul(number + 1, &end, 10) != id || end == number + 1 || *end != ':')
			continue;
		*password = '\0';
		snprintf(name, USER_BYTES, "%.*s", USER_BYTES - 1, line);
		break;
	}
	if (lines)
		fclose(lines);
	return name;
}

/* Why connect(2) to the daemon's socket ended with EACCES, and what helps. */
static inline void say_no_permission(char text[REFUSAL_BYTES], const char *socket)
{
	char user[USER_BYTES], group[USER_BYTES];
	struct stat st;

	name_of("/etc/passwd", geteuid(), user);
	if (lstat(socket, &st) < 0)
		snprintf(text, REFUSAL_BYTES,
			 "no permission for %s: its directory is closed to user %s; name another with GPUSEG_DIR",
			 socket, user);
	else if (st.st_gid == NO_GROUP_HERE)
		snprintf(text, REFUSAL_BYTES,
			 "no permission for %s: its group is none of this container; run the container as a user "
			 "of that group",
			 socket);
	else if (st.st_gid == 0)
		snprintf(text, REFUSAL_BYTES,
			 "no permission for %s: `sudo groupadd -rf gpuseg && sudo usermod -aG gpuseg %s`, "
			 "restart the daemon, log in again",
			 socket, user);
	else
		snprintf(text, REFUSAL_BYTES, "no permission for %s: `sudo usermod -aG %s %s`, then log in again",
			 socket, name_of("/etc/group", st.st_gid, group), user);
}

/* No daemon listens at the socket in `dir`. `chosen` is GPUSEG_DIR or NULL, `xdg` XDG_RUNTIME_DIR or NULL. */
static inline void say_no_daemon(char text[REFUSAL_BYTES], const char *socket, const char *dir, const char *chosen,
				 const char *xdg, const char *otherwise)
{
	char other[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* longer is no daemon's */
	const int n = runtime_directory(other, sizeof(other), NULL, xdg, GPUSEG_SOCKET_NAME);

	if (chosen && strcmp(chosen, dir) == 0 && n > 0 && (size_t)n < sizeof(other) && strcmp(other, dir) != 0 &&
	    is_believed(other) && has_socket(other, GPUSEG_SOCKET_NAME))
		snprintf(text, REFUSAL_BYTES,
			 "no daemon at %s, which GPUSEG_DIR names; %s is in %s: `unset GPUSEG_DIR`", socket,
			 belongs_to(other, 0) ? "one of root" : "another one", other);
	else
		snprintf(text, REFUSAL_BYTES, "no daemon at %s%s", socket, otherwise);
}

#endif /* GPUSEG_REFUSAL_H */
