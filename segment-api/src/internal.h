/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the parts of libgpuseg share. */
#ifndef GPUSEG_INTERNAL_H
#define GPUSEG_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "cq.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "platform.h"

#define REQUEST_TIMEOUT_NS (5 * NS_PER_S)
#define LIVENESS_SLICE_NS                                                                                              \
	(20 * NS_PER_MS) /* longest sleep before a look whether the daemon lives; the promise is 50 ms */
#define HEARTBEAT_STALE_NS (50 * NS_PER_MS)
#define FUTURE_MAX_NS (10 * NS_PER_S)	/* the daemon poisons a client that names a later time */
#define WINDOW_MAX_NS (3600 * NS_PER_S) /* longest window of a segment */
#define SPIN_DEFAULT 200
#define SPIN_TRY 200

enum segment { SEGMENT_NONE = 0, SEGMENT_BEGUN, SEGMENT_PROCEEDED };

struct gpuseg_client {
	/* Read on every call, written at connect. */
	const uint32_t *own_process; /* 1; 0 in a forked child */
	struct gpuseg_session *session;
	const struct gpuseg_status *status;
	int socket;
	int doorbell;
	bool managed;
	bool lost; /* atomic: the daemon is gone */

	/* Appender. The mutex inherits priority and is held for one append, never while user code runs. */
	_Alignas(GPUSEG_CACHE_LINE) pthread_mutex_t append_mutex;
	uint64_t seq;
	struct cq queue;
	struct gpuseg_counters counters; /* relaxed atomics */

	/* Cold. */
	pthread_mutex_t request_mutex; /* one request on the socket at a time; guards tasks and request_seq */
	struct gpuseg_task *tasks;
	uint32_t request_seq;
	pthread_t roll_thread;
	bool roll_thread_runs;
	uint32_t roll_stop; /* atomic */
	uint32_t roll_exited;
};

struct gpuseg_task {
	struct gpuseg_client *client;
	struct gpuseg_slot *slot; /* NULL = unmanaged */
	uint32_t task_id;
	uint32_t spin_count;
	bool always_wait;
	bool proceed;
	enum segment segment;
	uint64_t ticket; /* last one used */
	int64_t timeout_ns;
	int64_t release_ns; /* of the current job; 0 = not marked */

	/* An END that could not be recorded; goes before the next record of this task. */
	bool end_pending;
	struct gpuseg_record pending;

	struct gpuseg_task *next;
};

/* Count one event; any thread. */
static inline void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Remember a line for gpuseg_last_message(client) of this thread; returns `result`. */
int fail_with(const struct gpuseg_client *client, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Why the daemon dropped a client. */
const char *poison_text(uint32_t code);

/* The caller's thread id without a system call per use. */
uint32_t thread_id(void);

/* 0, -EOWNERDEAD, -EPROTO or -ENOTCONN: may this client append? `at_ns` is the current time. */
int client_check(struct gpuseg_client *client, int64_t at_ns);

/* The daemon's end of the socket is closed: look, remember, say so. */
bool client_lost(struct gpuseg_client *client);

/* Number and append a record, ring the doorbell if the daemon sleeps. Results of cq_append(). */
int client_append(struct gpuseg_client *client, struct gpuseg_record *record);

/* End what is begun, tell the daemon, unlink and free. */
int task_close_locked(struct gpuseg_task *task);

/* Send `request` (a struct gpuseg_msg_*) and receive its reply. request_mutex held. */
int client_request(struct gpuseg_client *client, void *request, size_t request_size, void *reply, size_t reply_size);

/* Copy an attribute structure of another library version; see gpuseg.h. */
int copy_attr(void *to, size_t known_size, size_t smallest, const void *from);

#endif /* GPUSEG_INTERNAL_H */
