/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - connections, of which shared.c makes what an application holds. */
#ifndef GPUSEG_CLIENT_H
#define GPUSEG_CLIENT_H

#include <limits.h>

#include "internal.h"

/* Where to connect, and how: attributes that were looked through. The name is the caller's. */
struct destination {
	struct gpuseg_connect_attr attr;
	char dir[PATH_MAX];
	bool dir_named; /* the application or its user has said which directory */
};

/* 0 or -errno. user_attr may be NULL. */
int client_destination(struct destination *to, const struct gpuseg_connect_attr *user_attr);

/* Must be called before the one below, by each copy of the library that is to use a client. 0 or -ENOMEM. */
int client_prepare(void);

/* As gpuseg_connect() of a connection of its own. */
int client_connect(const struct destination *to, struct gpuseg_client **out);

/* Close every task, then the connection, and free them. In a forked child: the copies of the parent's. Returns 0. */
int client_disconnect(struct gpuseg_client *root);

/* Free the tasks that were opened with a handle. In a forked child only. */
void client_forget_tasks(struct gpuseg_client *root, const struct gpuseg_client *handle);

#endif /* GPUSEG_CLIENT_H */
