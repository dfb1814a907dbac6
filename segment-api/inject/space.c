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
#define DESCRIPTOR_LEAST 100 /* scripts and shells use the low ones for themselves */

/* Percentages with a space between them. */
static bool places_read(char *text, struct space *space)
{
	char *rest = NULL;

	space->places = 0;
	for (const char *limit = strtok_r(text, " ", &rest); limit; limit = strtok_r(NULL, " ", &rest)) {
		double percent = 0;
		int end = 0;

		if (space->places == SPACE_PLACES_MOST || strlen(limit) >= SPACE_LIMIT_BYTES ||
		    strspn(limit, "0123456789.") != strlen(limit) || sscanf(limit, "%lf%n", &percent, &end) != 1 ||
		    limit[end] || percent < 1 || percent > 100)
			return false;
		strcpy(space->limit[space->places++], limit);
	}
	return space->places > 0;
}

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
		} else if (strncmp(line, "places ", 7) == 0 && places_read(line + 7, space)) {
			found |= 4;
		} else if (sscanf(line, "uid %lu", &uid) == 1) {
			found |= 8;
		}
	}
	fclose(file);
	space->uid = (uid_t)uid;
	return found == 15 && space->reserve >= RESERVE_LEAST && space->reserve <= RESERVE_MOST;
}

int space_take_place(const char *directory, const struct space *space)
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
			return (int)i;
	}
	return -1;
}
