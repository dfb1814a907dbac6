/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - a plug-in with a copy of the library of its own, for test_shared.c. */
#include "gpuseg.h"

int plugin_connect(const struct gpuseg_connect_attr *attr, gpuseg_client **client);
int plugin_disconnect(gpuseg_client *client);
int plugin_open(gpuseg_client *client, const struct gpuseg_task_attr *attr, gpuseg_task **task);
int plugin_segment(gpuseg_task *task);

int plugin_connect(const struct gpuseg_connect_attr *attr, gpuseg_client **client)
{
	return gpuseg_connect_shared(attr, client);
}

int plugin_disconnect(gpuseg_client *client)
{
	return gpuseg_disconnect(client);
}

int plugin_open(gpuseg_client *client, const struct gpuseg_task_attr *attr, gpuseg_task **task)
{
	return gpuseg_task_open(client, attr, task);
}

int plugin_segment(gpuseg_task *task)
{
	int ret = gpuseg_begin(task);

	return ret < 0 ? ret : gpuseg_end(task);
}
