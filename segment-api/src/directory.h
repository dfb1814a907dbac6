/* SPDX-License-Identifier: Apache-2.0 */
/* directory.h - where the daemon is, for the library and for the client side of the virtual GPU. */
#ifndef GPUSEG_DIRECTORY_H
#define GPUSEG_DIRECTORY_H

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuseg_abi.h"

#define ROOTS_DIR "/dev/shm/gpuseg" /* of a daemon that root started by hand */

static inline int is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static inline int has_socket(const char *directory, const char *name)
{
	char path[GPUSEG_PATH_BYTES + 64];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s", directory, name);

	return n > 0 && (size_t)n < sizeof(path) && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Every user can create names in /dev/shm: only what root owns there speaks for root. */
static inline int belongs_to(const char *path, uid_t uid)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

/*
 * Whether a directory that was found by rule, not named, can be that of a daemon of root or of this user. Only root can
 * make the installed one, which may belong to the daemon's own user.
 */
static inline int is_believed(const char *directory)
{
	return strcmp(directory, GPUSEG_INSTALLED_DIR) == 0 || belongs_to(directory, geteuid()) ||
	       belongs_to(directory, 0);
}

/* Whether the process that listens at the other end of a connection is the daemon of such a directory. */
static inline int is_daemon_of(int fd, const char *directory)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct stat st;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return peer.uid == 0 || peer.uid == geteuid() ||
	       (strcmp(directory, GPUSEG_INSTALLED_DIR) == 0 && stat(directory, &st) == 0 && st.st_uid == peer.uid);
}

/*
 * The rule of gpuseg_runtime_dir(3); RuntimeDirectory.java has the same. `chosen` is GPUSEG_DIR or NULL, `xdg`
 * XDG_RUNTIME_DIR or NULL; `socket` is the name of the socket that a directory in use contains. Returns what snprintf
 * returns.
 */
static inline int runtime_directory(char *buf, size_t size, const char *chosen, const char *xdg, const char *socket)
{
	int n;

	if (chosen && *chosen)
		return snprintf(buf, size, "%s", chosen);
	if (is_directory(GPUSEG_INSTALLED_DIR)) /* only root can make it */
		return snprintf(buf, size, "%s", GPUSEG_INSTALLED_DIR);
	if (geteuid() == 0)
		return snprintf(buf, size, ROOTS_DIR);
	if (xdg && *xdg)
		n = snprintf(buf, size, "%s/gpuseg", xdg);
	else
		n = snprintf(buf, size, "/dev/shm/gpuseg-%u", (unsigned int)geteuid());
	if (n > 0 && (size_t)n < size && !(is_believed(buf) && has_socket(buf, socket)) && belongs_to(ROOTS_DIR, 0) &&
	    has_socket(ROOTS_DIR, socket))
		n = snprintf(buf, size, ROOTS_DIR);
	return n;
}

#endif /* GPUSEG_DIRECTORY_H */
