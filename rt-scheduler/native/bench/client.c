/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bench/client.h"

#include <string.h>

enum { SPIN_LONG = 0x7fffffff };

bool take_client_option(int option, const char *value, struct client_options *options)
{
	switch (option) {
	case CLIENT_DIRECTORY:
		options->directory = value;
		return true;
	case CLIENT_PRIORITY:
		options->priority = (int)option_integer("--priority", value, 0, 99);
		return true;
	case CLIENT_GPU:
		options->gpu = (int)option_integer("--gpu", value, 0, 63);
		return true;
	case CLIENT_WAIT:
		if (strcmp(value, "sleep") != 0 && strcmp(value, "spin") != 0)
			usage_error("--wait: \"%s\" is unknown; use spin or sleep", value);
		options->spin = strcmp(value, "spin") == 0;
		return true;
	case CLIENT_SCHEDULING:
		options->scheduling = option_scheduling("--scheduling", value);
		return true;
	default:
		return false;
	}
}

int open_client(const char *who, const char *name, const struct client_options *options, struct gpuseg_task_attr *attr,
		gpuseg_client **client, gpuseg_task **task)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	int rc;

	connect_attr.dir = options->directory;
	connect_attr.name = attr->name = name;
	connect_attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST; /* what runs unmanaged is not to be measured */
	attr->priority = (uint32_t)options->priority;
	attr->gpu = (uint32_t)options->gpu;
	attr->spin_count = options->spin ? SPIN_LONG : GPUSEG_SPIN_NONE;
	rc = gpuseg_connect(&connect_attr, client);
	if (rc < 0) {
		message("%s: connect: %s", who, gpuseg_last_message(NULL));
		return rc;
	}
	rc = gpuseg_task_open(*client, attr, task);
	if (rc < 0)
		message("%s: %s", who, gpuseg_last_message(*client));
	return rc;
}

void try_scheduling(struct scheduling scheduling)
{
	const int rc = scheduling.fifo ? apply_scheduling(scheduling) : 0;

	if (rc != 0)
		message("--scheduling fifo:%d: %s; going on as other", scheduling.priority, strerror(-rc));
}
