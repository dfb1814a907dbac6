/* SPDX-License-Identifier: Apache-2.0 */
/* registration.h - requests to the daemon. root->request_mutex held, or no other thread knows the connection yet. */
#ifndef GPUSEG_REGISTRATION_H
#define GPUSEG_REGISTRATION_H

#include "internal.h"

/*
 * Send one request and receive its reply, with up to two descriptors (-1 = none), which the caller closes in any case.
 * Replies to an earlier request, which had timed out, are skipped. A reply may be shorter than reply_size only if it
 * refuses.
 */
int client_exchange(struct gpuseg_client *client, struct gpuseg_msg *request, size_t request_size,
		    struct gpuseg_msg *reply, size_t reply_size, int descriptors[2]);
void close_descriptors(int descriptors[2]);

/* Send `request` (a struct gpuseg_msg_*) and receive its reply. */
int client_request(struct gpuseg_client *client, void *request, size_t request_size, void *reply, size_t reply_size);

/* Register the task with this connection; fills *slot and *task_id. */
int task_register(struct gpuseg_client *client, const struct gpuseg_task *task, struct gpuseg_slot **slot,
		  uint32_t *task_id);

/* A NUL-terminated, non-empty text in a fixed field? */
bool is_text(const char *field, size_t size);

#endif /* GPUSEG_REGISTRATION_H */
