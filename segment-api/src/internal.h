/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the parts of libgpuseg share. */
#ifndef GPUSEG_INTERNAL_H
#define GPUSEG_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "cq.h"
#include "descriptor.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "platform.h"

#define REQUEST_TIMEOUT_NS (5 * NS_PER_S)
#define LIVENESS_SLICE_NS                                                                                              \
	(20 * NS_PER_MS) /* longest sleep before a check that the daemon is alive; the API promises 50 ms */
#define HEARTBEAT_STALE_NS (50 * NS_PER_MS)
#define FUTURE_MAX_NS (10 * NS_PER_S)	    /* the daemon poisons a client that sends a later time */
#define WINDOW_MAX_NS (3600 * NS_PER_S)	    /* longest window of a segment */
#define LOST_LOOK_NS (100 * NS_PER_MS)	    /* how often the roll thread checks that the daemon is alive */
#define RECONNECT_FIRST_NS (50 * NS_PER_MS) /* pause after the first failed attempt; it doubles ... */
#define RECONNECT_LAST_NS NS_PER_S	    /* ... up to this */
#define SPIN_DEFAULT 200
#define SPIN_TRY 200

#define TEXT_OF_VALUE(x) #x
#define TEXT_OF(x) TEXT_OF_VALUE(x)
#define VERSION_TEXT TEXT_OF(GPUSEG_VERSION_MAJOR) "." TEXT_OF(GPUSEG_VERSION_MINOR) "." TEXT_OF(GPUSEG_VERSION_PATCH)

enum segment { SEGMENT_NONE = 0, SEGMENT_BEGUN, SEGMENT_PROCEEDED };

/* Why a connection is of no use any more. */
enum lost { LOST_NOT = 0, LOST_DAEMON, LOST_DESCRIPTORS };

/*
 * A connection to one daemon. The application holds the first one (`root`). When its daemon is lost, its roll thread
 * makes a successor, which the application does not see, registers every task there and publishes it as root->newest.
 * Each task switches to it on its own thread, at its next call. A connection that no task uses any more is unmapped,
 * and freed by the roll thread of a later one. Who follows newest and former without being such a task holds
 * chain_mutex.
 */
struct gpuseg_client {
	/* Read on every call, written at connect. */
	const uint32_t *own_process; /* 1; 0 in a forked child */
	struct gpuseg_session *session;
	const struct gpuseg_status *status;
	struct descriptor socket;
	struct descriptor doorbell;
	bool managed;
	bool managed_at_connect; /* root's: a daemon was there */
	uint32_t lost;		 /* atomic: enum lost */

	/* Appender. The mutex inherits priority and is held for one append, never while user code runs. */
	_Alignas(GPUSEG_CACHE_LINE) pthread_mutex_t append_mutex;
	uint64_t seq;
	struct cq queue;
	struct gpuseg_counters counters; /* relaxed atomics */

	/* Cold. */
	struct gpuseg_client *root;    /* first connection of this chain, the one that the application holds */
	pthread_mutex_t request_mutex; /* root's: one request at a time; guards tasks, users, and newest as well */
	pthread_mutex_t chain_mutex;   /* root's: held for a moment; guards newest, former, counters_before */
	struct gpuseg_counters counters_before; /* root's: of connections that were freed */
	struct gpuseg_task *tasks;		/* root's: all of them, whichever connection they use */
	struct gpuseg_client *newest;		/* root's; release; pairs with the acquire in reconnect() of task.c */
	struct gpuseg_client *former;		/* the connection that this one replaced */
	unsigned int users;			/* tasks that use this connection */
	char *dir;				/* root's: where to reconnect; NULL = never */
	bool dir_named;				/* root's: somebody has said which directory */
	/* root's: marks fail while the daemon is lost; atomic, as that of a shared one changes: nobody goes on then */
	bool fails_if_lost;
	char name[GPUSEG_NAME_BYTES]; /* root's */
	uint32_t request_seq;
	pthread_t roll_thread;
	bool roll_thread_runs;
	const uint32_t *roll_word; /* session->roll_generation; after the loss only its address is used */
	uint32_t roll_stop;	   /* atomic */
	uint32_t roll_exited;

	/* Of the client that a process shares (shared.c); under the lock of that. */
	bool is_handle; /* no connection: what an application holds of root, with `fails_if_lost` of its own */
	struct gpuseg_client *next_shared; /* root's, as the two below */
	unsigned int handles;
	unsigned int going_on; /* handles whose marks go on while the daemon is lost */
};

struct gpuseg_task {
	struct gpuseg_client *client;
	struct gpuseg_client *root;   /* that of the client, which never changes; any thread */
	struct gpuseg_client *handle; /* with which it was opened */
	bool fails_if_lost;	      /* the handle's */
	struct gpuseg_slot *slot;     /* NULL = unmanaged */
	uint32_t task_id;
	uint32_t spin_count;
	bool always_wait;
	bool proceed;
	bool boost_optional; /* without permission, run without a boost */
	uint32_t boost;	     /* SCHED_FIFO priority inside its windows; 0 = not requested, or not permitted */
	enum segment segment;
	uint64_t ticket; /* last one used */
	int64_t timeout_ns;
	int64_t release_ns; /* of the current job; 0 = not marked */

	/* What it was opened with, for a new daemon; .name points to the member below. */
	struct gpuseg_task_attr attr;
	char name[GPUSEG_NAME_BYTES];
	struct gpuseg_slot *next_slot; /* with root->newest; NULL = refused there. root->request_mutex */
	uint32_t next_id;
	uint64_t tickets_before; /* of former connections */

	/* The thread that its window has raised, and the next window of that thread; boost_mutex. */
	struct booster *booster;
	struct gpuseg_task *boost_next;

	/* An END that could not be recorded yet; written before the next record of this task. */
	bool end_pending;
	struct gpuseg_record pending;

	struct gpuseg_task *next;
};

/* Count one event; any thread. */
static inline void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- text.c ---- */

/* Whether a daemon would take it as a name: UTF-8 that can be printed, not blank. As TaskName.java has it. */
bool plain_name(const char *text);
/* Remember a line for gpuseg_last_message(client) of this thread; returns `result`. */
int fail_with(const struct gpuseg_client *client, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * As fail_with(), about a segment that was not begun: "segment TICKET of task ID: " and what `result` means. Stores
 * only the numbers, because a program may poll; gpuseg_last_message() formats the text.
 */
int fail_segment(const struct gpuseg_client *client, int result, uint64_t ticket, uint32_t task_id);

/* Why the daemon dropped a client. */
const char *poison_text(uint32_t code);

/* Copy an attribute structure of another library version; see gpuseg.h. */
int copy_attr(void *to, size_t known_size, size_t smallest, const void *from);

/* ---- thread_id.c ---- */

/* The caller's thread id, without a system call per use. */
uint32_t thread_id(void);
/* In a forked child: its thread has another id. */
void thread_id_forked(void);

/* ---- append.c ---- */

/* 0, -EOWNERDEAD, -EPROTO or -ENOTCONN: may this client append? `at_ns` is the current time. */
int client_check(struct gpuseg_client *client, int64_t at_ns);

/* Is the daemon's end of the socket closed, or has the program closed ours? Remembers a yes. */
bool client_lost(struct gpuseg_client *client);

/*
 * The program has closed descriptors of the connection, so it is of no use any more. What is left of it ends now: the
 * daemon forgets its tasks before they are registered again. Any thread.
 */
void client_disown(struct gpuseg_client *client);

/* -ENOTCONN, with a line that says why the connection is lost. */
int client_fail_lost(const struct gpuseg_client *client);

/* Is this a result of a lost daemon, without which the program goes on? Then the mark has done all that it can. */
static inline bool goes_on_after(bool fails_if_lost, int result)
{
	return result == -ENOTCONN && !fails_if_lost;
}

/* The mechanism of the daemon as it is now: can it hold segments only at their begin? A client that is managed. */
bool client_gates(const struct gpuseg_client *client);

/* Number and append a record, and wake the daemon if it sleeps. Results as cq_append(). */
int client_append(struct gpuseg_client *client, struct gpuseg_record *record);

/* ---- task.c ---- */

/* End an open segment, tell the daemon, unlink and free the task. root->request_mutex held. */
int task_close_locked(struct gpuseg_task *task);

/*
 * As gpuseg_end_measured(), for a segment whose work was done at end_ns, which is not in the future. The task has no
 * boost.
 */
int task_end_at(struct gpuseg_task *task, int64_t end_ns, int64_t device_ns);

/* The connection to the daemon of today, to be compared: the segment may be one of a former daemon. Any thread. */
static inline const void *task_connection(const struct gpuseg_task *task)
{
	return __atomic_load_n(&task->root->newest, __ATOMIC_RELAXED);
}

/* ---- by_hand.c; another one is in libgpuseg-inject.so itself ---- */

/* The program has opened a task, so no automatic segments are wanted. */
void tell_injection(void);

/* The program has closed descriptors of this library. */
void tell_disowned(void);

/* ---- boost.c ---- */

/* May the calling thread run at SCHED_FIFO `ceiling`? Tries it. 0 or -errno. Must be called before the others below. */
int boost_probe(uint32_t ceiling);

/* Raise the calling thread for a window of the task, which must have a boost. 0, or -errno: not raised. */
int boost_raise(struct gpuseg_task *task);

/* Undo boost_raise(), if there was one. Any thread. 0, or -errno: the raised thread could not be lowered. */
int boost_drop(struct gpuseg_task *task);

/* In a forked child: restore what its thread had before the boost. */
void boost_forked(void);

#endif /* GPUSEG_INTERNAL_H */
