/* SPDX-License-Identifier: Apache-2.0 */
/* append.c - may a connection be used, and the append path. */
#include <sys/socket.h>

#include "internal.h"

#define APPEND_SPIN 50

void client_disown(struct gpuseg_client *client)
{
	if (__atomic_exchange_n(&client->lost, LOST_DESCRIPTORS, __ATOMIC_RELAXED))
		return;
	if (!descriptor_is_foreign(&client->socket))
		shutdown(__atomic_load_n(&client->socket.number, __ATOMIC_RELAXED), SHUT_RDWR);
	if (client->roll_word) /* else it is being connected */
		futex_wake_all(client->roll_word);
	tell_disowned();
}

bool client_lost(struct gpuseg_client *client)
{
	if (__atomic_load_n(&client->lost, __ATOMIC_RELAXED))
		return true;
	if (descriptor_is_foreign(&client->socket) || descriptor_is_foreign(&client->doorbell) ||
	    descriptor_is_foreign(&client->queue.dir)) {
		client_disown(client);
		return true;
	}
	/* -1 or a stale number if the connection was replaced since it was read; then a newer connection is managed. */
	if (!socket_hung_up(__atomic_load_n(&client->socket.number, __ATOMIC_RELAXED)))
		return false;
	__atomic_store_n(&client->lost, LOST_DAEMON, __ATOMIC_RELAXED);
	return true;
}

bool client_gates(const struct gpuseg_client *client)
{
	struct gpuseg_client *root = client->root;
	const struct gpuseg_status *status;
	bool gates;

	/* The connection that was made first may have been replaced and unmapped meanwhile, under the same mutex. */
	pthread_mutex_lock(&root->request_mutex);
	status = root->newest->status;
	gates = status->mechanism_level == 1 && !status->holds_launches;
	pthread_mutex_unlock(&root->request_mutex);
	return gates;
}

int client_fail_lost(const struct gpuseg_client *client)
{
	const bool reconnects = client->root->dir != NULL;

	if (__atomic_load_n(&client->lost, __ATOMIC_RELAXED) == LOST_DESCRIPTORS)
		return fail_with(client, -ENOTCONN,
				 "the program has closed descriptors of the connection to the daemon, which it did not "
				 "open; %s",
				 reconnects ? "the client connects again" : "connect again");
	return fail_with(client, -ENOTCONN, "daemon %d is gone; %s", client->session->daemon_pid,
			 reconnects ? "the client reconnects when another one has started" : "connect again");
}

int client_check(struct gpuseg_client *client, int64_t at_ns)
{
	uint32_t poison;

	if (unlikely(!__atomic_load_n(client->own_process, __ATOMIC_RELAXED)))
		return fail_with(client, -EOWNERDEAD,
				 "process %d uses a client of its parent; connect again after fork()", (int)getpid());
	if (!client->managed)
		return 0;
	poison = __atomic_load_n(&client->session->poisoned, __ATOMIC_ACQUIRE);
	if (unlikely(poison))
		return fail_with(client, -EPROTO, "the daemon dropped this client for %s (code %u); connect again",
				 poison_text(poison), poison);
	/* A live daemon updates its heartbeat every 20 ms. Only a stale heartbeat justifies a system call. */
	if (unlikely(__atomic_load_n(&client->lost, __ATOMIC_RELAXED)) ||
	    (unlikely(at_ns - __atomic_load_n(&client->status->heartbeat_ns, __ATOMIC_RELAXED) > HEARTBEAT_STALE_NS) &&
	     client_lost(client)))
		return client_fail_lost(client);
	return 0;
}

/* Statistics that only the appender writes, copied to where tools can read them. append_mutex held. */
static void publish_counts(struct gpuseg_client *client)
{
	struct gpuseg_session *session = client->session;
	struct gpuseg_counters *counters = &client->counters;
	const struct cq *queue = &client->queue;

	if (unlikely(queue->rolls != counters->rolls || queue->steals != counters->locks_taken_over)) {
		__atomic_store_n(&counters->rolls, queue->rolls, __ATOMIC_RELAXED);
		__atomic_store_n(&counters->remaps_inline, queue->remaps_inline, __ATOMIC_RELAXED);
		__atomic_store_n(&counters->locks_taken_over, queue->steals, __ATOMIC_RELAXED);
		__atomic_store_n(&session->rolls, queue->rolls, __ATOMIC_RELAXED);
		__atomic_store_n(&session->remaps_inline, queue->remaps_inline, __ATOMIC_RELAXED);
	}
}

static void ring(struct gpuseg_client *client)
{
	const uint64_t one = 1;

	if (unlikely(descriptor_is_foreign(&client->doorbell))) {
		client_disown(client);
		return;
	}
	/*
	 * EAGAIN means that the counter of the eventfd is full, so the daemon is being woken already. Other errors
	 * cannot be handled here.
	 */
	if (syscall(SYS_write, client->doorbell.number, &one, sizeof(one)) == sizeof(one)) {
		count(&client->counters.bells);
		count(&client->session->bells);
	}
}

/*
 * A contended priority-inheritance mutex is passed on by the kernel, which takes about 10 us, but it is held for about
 * 50 ns. So spin first. A holder that was preempted inherits our priority once we block.
 */
static void append_lock(pthread_mutex_t *mutex)
{
	for (int i = 0; i < APPEND_SPIN; i++) {
		if (likely(pthread_mutex_trylock(mutex) == 0))
			return;
		cpu_relax();
	}
	pthread_mutex_lock(mutex);
}

int client_append(struct gpuseg_client *client, struct gpuseg_record *record)
{
	int ret;

	append_lock(&client->append_mutex);
	record->seq = client->seq + 1; /* used up only on success: a gap would mean a lost record */
	ret = cq_append(&client->queue, record);
	if (likely(ret == 0)) {
		client->seq = record->seq;
		__atomic_store_n(&client->counters.records, record->seq, __ATOMIC_RELAXED);
		__atomic_store_n(&client->session->records, record->seq, __ATOMIC_RELAXED);
	} else {
		count(&client->counters.drops);
		__atomic_store_n(&client->session->drops, client->counters.drops, __ATOMIC_RELAXED);
	}
	publish_counts(client);
	pthread_mutex_unlock(&client->append_mutex);
	if (unlikely(ret == -EBADF)) {
		client_disown(client); /* the directory of the queue, when a cycle was to be opened */
		return client_fail_lost(client);
	}
	if (unlikely(ret < 0))
		return fail_with(client, ret, "record %llu was not written: %s", (unsigned long long)record->seq,
				 gpuseg_strerror(ret));
	/*
	 * Store, then look (ADR 30). The client publishes its record, then loads `sleeping`; the daemon stores
	 * `sleeping`, then polls every queue; each has a full fence between. So one of the two sees the other's store.
	 */
	full_fence();
	if (__atomic_load_n(&client->status->sleeping, __ATOMIC_RELAXED))
		ring(client);
	return 0;
}
