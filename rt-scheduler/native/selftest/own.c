/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "selftest.h"

#include <string.h>

bool is_child_of(pid_t pid, pid_t parent)
{
	char path[64], line[512], state;
	int of;
	FILE *file;
	const char *name_end;
	size_t n;

	if (pid <= 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	name_end = strrchr(line, ')');
	return name_end && sscanf(name_end, ") %c %d", &state, &of) == 2 && of == parent;
}
