/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - see space.h. */
#include "space.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gpuseg_abi.h"

#define NAME_BYTES (PATH_MAX + 32)
#define RESERVE_LEAST 1
#define RESERVE_MOST 90
#define PLACES_MOST 64
#define DESCRIPTOR_LEAST 100 /* scripts and shells use the low ones for themselves */

bool space_read(const char *directory, struct space *space)
{
	char name[NAME_BYTES], line[NAME_BYTES];
	unsigned long uid = 0;
	int found = 0;
	FILE *file;

	*space = (struct space){.places = 0};
	snprintf(name, sizeof(name), "%s/" GPUSEG_SPACE_NAME, directory);
	file = fopen(name, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "pipe /", 6) == 0 && strlen(line + 5) < sizeof(space->pipe)) {
			strcpy(space->pipe, line + 5);
			found |= 1;
		} else if (sscanf(line, "reserve %u", &space->reserve) == 1) {
			found |= 2;
		} else if (sscanf(line, "places %u", &space->places) == 1) {
			found |= 4;
		} else if (sscanf(line, "uid %lu", &uid) == 1) {
			found |= 8;
		}
	}
	fclose(file);
	space->uid = (uid_t)uid;
	return found == 15 && space->reserve >= RESERVE_LEAST && space->reserve <= RESERVE_MOST && space->places > 0 &&
	       space->places <= PLACES_MOST;
}

bool space_take_place(const char *directory, const struct space *space)
{
	char name[NAME_BYTES];

	for (unsigned int i = 0; i < space->places; i++) {
		bool taken;
		int fd;

		snprintf(name, sizeof(name), "%s/" GPUSEG_PLACE_NAME "%u", directory, i);
		fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		taken = flock(fd, LOCK_EX | LOCK_NB) == 0 && fcntl(fd, F_DUPFD, DESCRIPTOR_LEAST) >= 0; /* inherited */
		close(fd);
		if (taken)
			return true;
	}
	return false;
}
