/* SPDX-License-Identifier: Apache-2.0 */
/* directory.h - where the daemon is, for the library and for the client side of the virtual GPU. */
#ifndef GPUSEG_DIRECTORY_H
#define GPUSEG_DIRECTORY_H

#include <stdio.h>
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
static inline int belongs_to_root(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0;
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
	if (n > 0 && (size_t)n < size && !has_socket(buf, socket) && belongs_to_root(ROOTS_DIR) &&
	    has_socket(ROOTS_DIR, socket))
		n = snprintf(buf, size, ROOTS_DIR);
	return n;
}

#endif /* GPUSEG_DIRECTORY_H */
