/* SPDX-License-Identifier: Apache-2.0 */
#include "segments.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

enum { TOKEN_BYTES = 96 };

static int parse_one(char *token, struct segment *segment, char *error, size_t error_size)
{
	char whole[TOKEN_BYTES];
	char *device;
	int rc;

	snprintf(whole, sizeof(whole), "%s", token);
	*segment = (struct segment){0};
	if (strncmp(token, "cpu:", 4) == 0) {
		segment->kind = SEGMENT_CPU;
		rc = parse_duration(token + 4, &segment->cpu_ns);
	} else if (strncmp(token, "gpu:", 4) == 0) {
		segment->kind = SEGMENT_GPU;
		device = strchr(token, '+');
		rc = device ? 0 : -EINVAL;
		if (device) {
			*device++ = '\0';
			rc = parse_duration(token + 4, &segment->cpu_ns);
			if (rc == 0)
				rc = parse_duration(device, &segment->device_ns);
		}
	} else {
		rc = -EINVAL;
	}
	if (rc != 0)
		snprintf(error, error_size,
			 "segment \"%s\" is not understood; write cpu:2ms or gpu:1ms+4ms (host + device), each with a "
			 "unit",
			 whole);
	return rc == 0 ? 0 : -EINVAL;
}

int parse_segments(const char *text, struct segment segments[SEGMENTS_MAX], char *error, size_t error_size)
{
	int count = 0;

	for (const char *p = text;;) {
		const size_t length = strcspn(p, ",");
		char token[TOKEN_BYTES];

		if (length >= sizeof(token) || count == SEGMENTS_MAX) {
			snprintf(error, error_size, "\"%.32s...\": %s", p,
				 count == SEGMENTS_MAX ? "more than 64 segments" : "segment too long");
			return -EINVAL;
		}
		memcpy(token, p, length);
		token[length] = '\0';
		if (parse_one(token, &segments[count], error, error_size) != 0)
			return -EINVAL;
		count++;
		if (p[length] == '\0')
			return count;
		p += length + 1;
	}
}
