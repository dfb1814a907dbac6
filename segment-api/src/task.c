/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - tasks, begin and end. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "internal.h"
#include "registration.h"

#define RESERVE_MAX 100 /* percent */
#define FLAGS_KNOWN (GPUSEG_TASK_ALWAYS_WAIT | GPUSEG_TASK_BOOST_IF_PERMITTED)

static struct gpuseg_record record_of(const struct gpuseg_task *task, enum gpuseg_record_kind kind, int64_t at_ns)
{
	return (struct gpuseg_record){
		.kind = (uint16_t)kind, .task_id = task->task_id, .time_ns = at_ns, .tid = thread_id()};
}

/* Write the END that an earlier call could not write. */
static int flush_pending(struct gpuseg_task *task)
{
	int ret;

	if (likely(!task->end_pending))
		return 0;
	ret = client_append(task->client, &task->pending);
	if (ret == 0)
		task->end_pending = false;
	return ret;
}

/* Switch to the connection that replaced the lost one. Never waits. False: there is none, or it is not ready yet. */
static bool reconnect(struct gpuseg_task *task)
{
	struct gpuseg_client *lost = task->client, *root = lost->root, *next;

	if (__atomic_load_n(&root->newest, __ATOMIC_ACQUIRE) == lost ||
	    pthread_mutex_trylock(&root->request_mutex) != 0)
		return false;
	next = root->newest;
	if (task->next_slot) {
		task->client = next;
		task->slot = task->next_slot;
		task->task_id = task->next_id;
		task->tickets_before += task->ticket;
		task->ticket = 0;
		task->end_pending = false; /* the new daemon does not know that segment */
		lost->users--;
		next->users++;
	}
	pthread_mutex_unlock(&root->request_mutex);
	if (task->client == lost)
		fail_with(lost, -ENOTCONN, "task \"%s\" was refused by the new daemon; open it again", task->name);
	return task->client == next;
}

/* client_check(), and between segments switch to a new daemon if the old one is lost. */
static int task_check(struct gpuseg_task *task, int64_t at_ns)
{
	int ret = client_check(task->client, at_ns);

	if (likely(ret != -ENOTCONN) || task->segment != SEGMENT_NONE || !reconnect(task))
		return ret;
	return client_check(task->client, at_ns);
}

/* Append an END for the task's ticket. It is kept for later if it cannot be written now. */
static int append_end(struct gpuseg_task *task, int64_t at_ns, uint16_t flags, int64_t device_ns)
{
	struct gpuseg_record r = record_of(task, GPUSEG_RECORD_END, at_ns);
	int ret;

	r.flags = flags;
	r.ticket = task->ticket;
	r.arg_ns = device_ns;
	ret = client_append(task->client, &r);
	if (unlikely(ret < 0)) {
		task->pending = r;
		task->end_pending = true;
	}
	return ret;
}

/* ---- waiting for a grant ---- */

/* The verdict on `ticket`; GPUSEG_VERDICT_NONE while there is none. */
static unsigned int verdict_on(const struct gpuseg_slot *slot, uint64_t ticket)
{
	/* acquire; pairs with the daemon's release: lower contexts were disabled before the grant */
	uint64_t grant = __atomic_load_n(&slot->grant, __ATOMIC_ACQUIRE);

	return grant >> GPUSEG_GRANT_SHIFT == ticket ? (unsigned int)(grant & 0xff) : GPUSEG_VERDICT_NONE;
}

static unsigned int spin_for_grant(const struct gpuseg_slot *slot, uint64_t ticket, uint32_t spins)
{
	unsigned int verdict = verdict_on(slot, ticket);

	while (verdict == GPUSEG_VERDICT_NONE && spins-- > 0) {
		cpu_relax();
		verdict = verdict_on(slot, ticket);
	}
	return verdict;
}

/* The half of the grant word that is the futex. Its byte order is fixed: little-endian. */
static const uint32_t *grant_futex(const struct gpuseg_slot *slot)
{
	return (const uint32_t *)(const void *)&slot->grant;
}

/*
 * Sleep until there is a verdict or deadline_ns passes (-ETIMEDOUT). Sleeps in slices, because there is no wake-up when
 * the daemon dies; the result is then -ENOTCONN or -EPROTO.
 */
static int sleep_for_grant(struct gpuseg_task *task, int64_t deadline_ns, unsigned int *verdict)
{
	struct gpuseg_slot *slot = task->slot;
	int ret = 0;

	count(&task->client->counters.slept);
	/*
	 * Store, then look (ADR 30). The client stores `waiting`, then loads the grant; the daemon stores the
	 * grant, then loads `waiting`; each has a full fence between. So one of the two sees the other's store. A grant
	 * that comes between the load and the sleep changes the futex word, and the kernel does not let us sleep.
	 */
	__atomic_store_n(&slot->waiting, 1, __ATOMIC_SEQ_CST);
	full_fence();
	for (;;) {
		uint32_t seen = __atomic_load_n(grant_futex(slot), __ATOMIC_RELAXED);
		int64_t at_ns, slice_ns;

		*verdict = verdict_on(slot, task->ticket);
		if (*verdict != GPUSEG_VERDICT_NONE)
			break;
		/*
		 * acquire; pairs with the release in Session.poison. A client that is dropped is woken by a change of
		 * the grant word that leaves the ticket as it was, which is no verdict on a ticket that still waits.
		 */
		if (__atomic_load_n(&task->client->session->poisoned, __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&task->client->lost, __ATOMIC_RELAXED)) {
			ret = client_check(task->client, now_ns());
			break;
		}
		at_ns = now_ns();
		if (at_ns - deadline_ns >= 0) {
			ret = -ETIMEDOUT;
			break;
		}
		slice_ns = at_ns + LIVENESS_SLICE_NS;
		if (futex_wait(grant_futex(slot), seen, slice_ns - deadline_ns < 0 ? slice_ns : deadline_ns) !=
		    -ETIMEDOUT)
			continue;
		/* Look at the socket: the heartbeat of a stopped daemon is stale, too, but such a daemon resumes. */
		client_lost(task->client);
		ret = client_check(task->client, now_ns());
		if (ret < 0)
			break;
	}
	__atomic_store_n(&slot->waiting, 0, __ATOMIC_RELEASE);
	return ret;
}

/* ---- begin ---- */

/* How a begin behaves when there is no grant. */
struct patience {
	bool may_sleep;
	bool proceed;
	int64_t timeout_ns; /* 0 = no limit */
};

static int begun(struct gpuseg_task *task, enum segment segment)
{
	task->segment = segment;
	count(&task->client->counters.begins);
	return segment == SEGMENT_PROCEEDED ? GPUSEG_PROCEEDED : 0;
}

static int already_begun(const struct gpuseg_task *task)
{
	return fail_with(task->client, -EALREADY, "segment %llu of task %u is begun; call gpuseg_end() first",
			 (unsigned long long)task->ticket, task->task_id);
}

/* Without a daemon. The segment has been counted if its ticket is not `before` any more. */
static int begin_unmanaged(struct gpuseg_task *task, uint64_t before)
{
	if (unlikely(task->segment != SEGMENT_NONE))
		return already_begun(task);
	if (task->ticket == before)
		task->ticket++;
	count(&task->client->counters.unmanaged);
	return begun(task, SEGMENT_BEGUN);
}

/* Give up waiting, and tell the daemon, which may be granting at this moment, that the ticket is void. */
static int withdraw(struct gpuseg_task *task, int result)
{
	(void)append_end(task, now_ns(), GPUSEG_FLAG_CANCELLED,
			 0); /* if it cannot be written, it is kept, and the next call reports that */
	return fail_segment(task->client, result, task->ticket, task->task_id);
}

static int conclude(struct gpuseg_task *task, unsigned int verdict)
{
	switch (verdict) {
	case GPUSEG_VERDICT_GRANTED:
		return begun(task, SEGMENT_BEGUN);
	case GPUSEG_VERDICT_REFUSED:
		count(&task->client->counters.refused);
		return fail_segment(task->client, -ECANCELED, task->ticket, task->task_id);
	default: {
		int ret = client_check(task->client, now_ns());

		return ret < 0 ? ret
			       : fail_with(task->client, -EPROTO,
					   "the daemon's verdict on segment %llu of task %u is %u",
					   (unsigned long long)task->ticket, task->task_id, verdict);
	}
	}
}

static int wait_for_grant(struct gpuseg_task *task, struct patience patience, int64_t begin_ns)
{
	struct gpuseg_counters *counters = &task->client->counters;
	unsigned int verdict =
		spin_for_grant(task->slot, task->ticket, patience.may_sleep ? task->spin_count : SPIN_TRY);
	int64_t deadline_ns = INT64_MAX;
	int ret;

	if (verdict != GPUSEG_VERDICT_NONE)
		return conclude(task, verdict);
	if (!patience.may_sleep) {
		count(&counters->try_failures);
		return withdraw(task, -EAGAIN);
	}
	if (patience.timeout_ns && patience.timeout_ns < INT64_MAX - begin_ns)
		deadline_ns = begin_ns + patience.timeout_ns;
	ret = sleep_for_grant(task, deadline_ns, &verdict);
	if (ret == 0)
		return conclude(task, verdict);
	if (ret != -ETIMEDOUT)
		return ret;
	count(&counters->timeouts);
	if (!patience.proceed)
		return withdraw(task, -ETIMEDOUT);
	count(&counters->proceeded);
	return begun(task, SEGMENT_PROCEEDED);
}

/* Before the BEGIN is written, so that the thread precedes the others of its processor when the grant comes. */
static int raise_for_window(struct gpuseg_task *task)
{
	struct gpuseg_counters *counters = &task->client->counters;
	int ret = boost_raise(task);

	if (likely(ret == 0)) {
		count(&counters->boosts);
		return 0;
	}
	count(&counters->boost_failures);
	if (task->boost_optional)
		return 0;
	return fail_with(task->client, ret,
			 "task \"%s\": its thread may not run at SCHED_FIFO %u any more (%s); the segment is not begun",
			 task->name, task->boost, strerror(-ret));
}

static int lower_after_window(struct gpuseg_task *task, int result)
{
	int ret = boost_drop(task);

	if (likely(ret == 0))
		return result;
	count(&task->client->counters.boost_failures);
	return fail_with(task->client, ret, "task \"%s\": its thread stays at SCHED_FIFO %u, it cannot be lowered: %s",
			 task->name, task->boost, strerror(-ret));
}

static int begin_window(struct gpuseg_task *task, struct patience patience)
{
	struct gpuseg_client *client;
	int64_t at_ns = now_ns();
	struct gpuseg_record r;
	bool optimistic;
	int ret;

	ret = task_check(task, at_ns);
	if (unlikely(ret < 0))
		return ret;
	client = task->client;
	if (unlikely(task->segment != SEGMENT_NONE))
		return already_begun(task);
	if (!client->managed)
		return begin_unmanaged(task, task->ticket);
	ret = flush_pending(task);
	if (unlikely(ret < 0))
		return ret;
	if (unlikely(task->boost)) {
		ret = raise_for_window(task);
		if (ret < 0)
			return ret;
	}
	/*
	 * acquire; before the append: if the pre-grant is withdrawn later, the daemon handles it, since it sees the
	 * flag
	 */
	optimistic = !task->always_wait && __atomic_load_n(&task->slot->pregrant, __ATOMIC_ACQUIRE) == 1;
	r = record_of(task, GPUSEG_RECORD_BEGIN, at_ns);
	r.flags = optimistic ? GPUSEG_FLAG_OPTIMISTIC : 0;
	r.ticket = task->ticket + 1;
	r.release_ns = task->release_ns;
	ret = client_append(client, &r);
	if (unlikely(ret < 0))
		return ret;
	task->ticket = r.ticket;
	__atomic_store_n(&task->slot->ticket, r.ticket, __ATOMIC_RELAXED);
	if (optimistic) {
		count(&client->counters.optimistic);
		return begun(task, SEGMENT_BEGUN);
	}
	return wait_for_grant(task, patience, at_ns);
}

static int begin(struct gpuseg_task *task, struct patience patience)
{
	const uint64_t before = task->ticket;
	int ret = begin_window(task, patience);

	if (unlikely(goes_on_after(task->fails_if_lost, ret)))
		ret = begin_unmanaged(task, before);
	/* -EALREADY: the window that is open keeps its boost. */
	if (unlikely(ret < 0 && task->boost && task->segment == SEGMENT_NONE))
		return lower_after_window(task, ret);
	return ret;
}

int gpuseg_begin(gpuseg_task *task)
{
	return begin(task,
		     (struct patience){.may_sleep = true, .proceed = task->proceed, .timeout_ns = task->timeout_ns});
}

int gpuseg_begin_try(gpuseg_task *task)
{
	return begin(task, (struct patience){.may_sleep = false});
}

int gpuseg_begin_timed(gpuseg_task *task, int64_t timeout_ns)
{
	if (timeout_ns <= 0)
		return fail_with(task->client, -EINVAL, "timeout is %lld ns; give a positive time",
				 (long long)timeout_ns);
	return begin(task, (struct patience){.may_sleep = true, .timeout_ns = timeout_ns});
}

/* ---- end and the other marks ---- */

static int tell_end(struct gpuseg_task *task, int64_t at_ns, int64_t end_ns, int64_t device_ns)
{
	struct gpuseg_client *client = task->client;
	enum segment segment = task->segment;
	int ret;

	if (unlikely(!__atomic_load_n(client->own_process, __ATOMIC_RELAXED)))
		return client_check(client, at_ns);
	if (unlikely(device_ns < 0))
		return fail_with(client, -EINVAL, "device time is %lld ns; give 0 if it is unknown",
				 (long long)device_ns);
	if (unlikely(segment == SEGMENT_NONE)) {
		if (task->end_pending)
			return (ret = client_check(client, at_ns)) < 0 ? ret : flush_pending(task);
		return fail_with(client, -EINVAL, "task %u has no segment to end; call gpuseg_begin() first",
				 task->task_id);
	}
	task->segment = SEGMENT_NONE; /* in any case: the caller is done with the GPU */
	if (!client->managed)
		return 0;
	ret = client_check(client, at_ns);
	if (unlikely(ret < 0))
		return ret;
	return append_end(task, end_ns, segment == SEGMENT_PROCEEDED ? GPUSEG_FLAG_PROCEEDED : 0, device_ns);
}

static int end_window(struct gpuseg_task *task, int64_t at_ns, int64_t end_ns, int64_t device_ns)
{
	int ret = tell_end(task, at_ns, end_ns, device_ns);

	return unlikely(goes_on_after(task->fails_if_lost, ret)) ? 0 : ret;
}

int task_end_at(struct gpuseg_task *task, int64_t end_ns, int64_t device_ns)
{
	return end_window(task, now_ns(), end_ns, device_ns);
}

int gpuseg_end_measured(gpuseg_task *task, int64_t device_ns)
{
	bool boosted = task->boost && task->segment != SEGMENT_NONE;
	const int64_t at_ns = now_ns();
	int ret = end_window(task, at_ns, at_ns, device_ns);

	/* In a forked child, and after an invalid argument, the segment is still open. */
	if (unlikely(boosted && task->segment == SEGMENT_NONE))
		return lower_after_window(task, ret);
	return ret;
}

int gpuseg_end(gpuseg_task *task)
{
	return gpuseg_end_measured(task, 0);
}

#define SAMPLE_SINCE_MINOR 11
#define JOB_CANCEL_SINCE_MINOR 12

/* A daemon that does not know a field or a flag would drop the client. */
static bool knows(const struct gpuseg_client *client, uint32_t since_minor)
{
	return (__atomic_load_n(&client->session->version, __ATOMIC_ACQUIRE) & 0xffff) >= since_minor;
}

/* A record that is neither begin nor end: with kind, flags, times and sample. */
static int tell(struct gpuseg_task *task, const struct gpuseg_record *what, int64_t at_ns)
{
	struct gpuseg_record r;
	int ret = task_check(task, at_ns);

	if (ret < 0 || !task->client->managed)
		return ret;
	ret = flush_pending(task);
	if (ret < 0)
		return ret;
	if (what->flags && !knows(task->client, JOB_CANCEL_SINCE_MINOR))
		return 0;
	r = record_of(task, what->kind, at_ns);
	r.flags = what->flags;
	r.release_ns = what->release_ns;
	r.arg_ns = what->arg_ns;
	if (what->sample && knows(task->client, SAMPLE_SINCE_MINOR))
		r.sample = what->sample;
	return client_append(task->client, &r);
}

static int mark(struct gpuseg_task *task, const struct gpuseg_record *what, int64_t at_ns)
{
	int ret = tell(task, what, at_ns);

	return unlikely(goes_on_after(task->fails_if_lost, ret)) ? 0 : ret;
}

static int check_time(const struct gpuseg_task *task, const char *what, int64_t time_ns, int64_t at_ns)
{
	if (time_ns >= 0 && time_ns - at_ns <= FUTURE_MAX_NS)
		return 0;
	return fail_with(task->client, -EINVAL,
			 "%s is %lld ns, now is %lld; give a CLOCK_MONOTONIC time at most 10 s ahead", what,
			 (long long)time_ns, (long long)at_ns);
}

int gpuseg_job_release_sample(gpuseg_task *task, int64_t release_ns, int64_t stamp_ns, uint64_t sample)
{
	int64_t at_ns = now_ns();
	int ret;

	if (release_ns == 0)
		release_ns = at_ns;
	ret = check_time(task, "release", release_ns, at_ns);
	if (ret == 0)
		ret = check_time(task, "stamp", stamp_ns, at_ns);
	if (ret == 0)
		ret = mark(task,
			   &(struct gpuseg_record){.kind = GPUSEG_RECORD_RELEASE,
						   .release_ns = release_ns,
						   .arg_ns = stamp_ns,
						   .sample = sample},
			   at_ns);
	if (ret == 0)
		task->release_ns = release_ns;
	return ret;
}

int gpuseg_job_release_stamped(gpuseg_task *task, int64_t release_ns, int64_t stamp_ns)
{
	return gpuseg_job_release_sample(task, release_ns, stamp_ns, 0);
}

int gpuseg_job_release(gpuseg_task *task, int64_t release_ns)
{
	return gpuseg_job_release_sample(task, release_ns, 0, 0);
}

static int end_job(struct gpuseg_task *task, uint16_t flags)
{
	int ret = mark(task, &(struct gpuseg_record){.kind = GPUSEG_RECORD_JOB_END, .flags = flags}, now_ns());

	if (ret == 0)
		task->release_ns = 0;
	return ret;
}

int gpuseg_job_end(gpuseg_task *task)
{
	return end_job(task, 0);
}

int gpuseg_job_cancel(gpuseg_task *task)
{
	if (unlikely(task->segment != SEGMENT_NONE)) {
		int ret = client_check(task->client, now_ns());

		return ret < 0 && !goes_on_after(task->fails_if_lost, ret) ? ret : already_begun(task);
	}
	return end_job(task, GPUSEG_FLAG_CANCELLED);
}

int gpuseg_hint(gpuseg_task *task, int64_t begin_at_ns)
{
	int64_t at_ns = now_ns();
	int ret = check_time(task, "expected begin", begin_at_ns, at_ns);

	return ret < 0 ? ret
		       : mark(task, &(struct gpuseg_record){.kind = GPUSEG_RECORD_HINT, .arg_ns = begin_at_ns}, at_ns);
}

/* ---- open and close ---- */

static int check_attr(const struct gpuseg_client *client, const struct gpuseg_task_attr *a)
{
	if (!a->name || !*a->name || strlen(a->name) >= GPUSEG_NAME_BYTES)
		return fail_with(client, -EINVAL, "task name has %zu bytes; give 1 to %d",
				 a->name ? strlen(a->name) : 0, GPUSEG_NAME_BYTES - 1);
	if (a->priority > GPUSEG_PRIORITY_MAX || a->gpu_priority > GPUSEG_PRIORITY_MAX)
		return fail_with(client, -EINVAL,
				 "task \"%s\": priority is %d, gpu_priority %d; give 0 to %d, 99 is highest", a->name,
				 (int)a->priority, (int)a->gpu_priority, GPUSEG_PRIORITY_MAX); /* -5 as it was given */
	if (a->priority == GPUSEG_PRIORITY_BEST_EFFORT && a->gpu_priority != 0)
		return fail_with(client, -EINVAL,
				 "task \"%s\": gpu_priority is %u but priority 0 is best effort; set both or none",
				 a->name, a->gpu_priority);
	if (a->gpu >= GPUSEG_GPUS_MAX)
		return fail_with(client, -EINVAL, "task \"%s\": gpu is %u; give 0 to %d", a->name, a->gpu,
				 GPUSEG_GPUS_MAX - 1);
	if (a->flags & ~(uint32_t)FLAGS_KNOWN)
		return fail_with(client, -EINVAL, "task \"%s\": flags are %#x; known are %#x", a->name, a->flags,
				 FLAGS_KNOWN);
	if (a->boost_priority > GPUSEG_PRIORITY_MAX)
		return fail_with(
			client, -EINVAL,
			"task \"%s\": boost_priority is %d; give a SCHED_FIFO priority of 1 to %d, or 0 for none",
			a->name, (int)a->boost_priority, GPUSEG_PRIORITY_MAX);
	if (a->boost_priority && a->priority == GPUSEG_PRIORITY_BEST_EFFORT)
		return fail_with(client, -EINVAL,
				 "task \"%s\": boost_priority is %u but priority 0 is best effort; such a task is not "
				 "boosted",
				 a->name, a->boost_priority);
	if (a->reserve > RESERVE_MAX || a->reserved)
		return fail_with(client, -EINVAL,
				 "task \"%s\": reserve is %u; give 1 to %d percent, or 0 for none, and 0 after it",
				 a->name, a->reserve, RESERVE_MAX);
	if (a->reserve && a->priority == GPUSEG_PRIORITY_BEST_EFFORT)
		return fail_with(client, -EINVAL,
				 "task \"%s\": reserve is %u but priority 0 is best effort; give it a priority, or no "
				 "reserve",
				 a->name, a->reserve);
	if (a->on_overrun > GPUSEG_ON_OVERRUN_SKIP_NEXT)
		return fail_with(client, -EINVAL,
				 "task \"%s\": on_overrun is %u; give one of GPUSEG_ON_OVERRUN_DEFAULT to _SKIP_NEXT",
				 a->name, a->on_overrun);
	if (a->partition > GPUSEG_PARTITION_MAX || a->weight > GPUSEG_WEIGHT_MAX)
		return fail_with(client, -EINVAL,
				 "task \"%s\": partition is %u, weight %u; give a partition of 0 to %d and a weight of "
				 "1 to %d, or 0 for as it is",
				 a->name, a->partition, a->weight, GPUSEG_PARTITION_MAX, GPUSEG_WEIGHT_MAX);
	if (a->window_ns < 0 || a->window_ns > WINDOW_MAX_NS)
		return fail_with(client, -EINVAL, "task \"%s\": window is %lld ns; give 0 (none) to %lld (one hour)",
				 a->name, (long long)a->window_ns, (long long)WINDOW_MAX_NS);
	if (a->period_ns < 0 || a->deadline_ns < 0 || a->budget_ns < 0 || a->timeout_ns < 0)
		return fail_with(
			client, -EINVAL,
			"task \"%s\": period %lld, deadline %lld, budget %lld, timeout %lld ns; none may be negative",
			a->name, (long long)a->period_ns, (long long)a->deadline_ns, (long long)a->budget_ns,
			(long long)a->timeout_ns);
	if (a->period_ns && a->deadline_ns > a->period_ns)
		return fail_with(client, -EINVAL,
				 "task \"%s\": deadline is %lld ns; give at most the period, %lld ns, or 0 for that",
				 a->name, (long long)a->deadline_ns, (long long)a->period_ns);
	if (a->on_timeout > GPUSEG_ON_TIMEOUT_PROCEED)
		return fail_with(client, -EINVAL,
				 "task \"%s\": on_timeout is %u; give GPUSEG_ON_TIMEOUT_FAIL or _PROCEED", a->name,
				 a->on_timeout);
	return 0;
}

/* Find out at open, and not at the first begin, whether the boost is permitted. */
static int permit_boost(const struct gpuseg_client *client, struct gpuseg_task *task)
{
	int ret = boost_probe(task->attr.boost_priority);

	if (ret == 0) {
		task->boost = task->attr.boost_priority;
		return 0;
	}
	if (task->boost_optional) {
		count(&task->client->counters.boost_failures);
		return 0;
	}
	return fail_with(
		client, ret,
		"task \"%s\": this thread may not run at SCHED_FIFO %u (%s); raise RLIMIT_RTPRIO to %u, give it "
		"CAP_SYS_NICE, or set GPUSEG_TASK_BOOST_IF_PERMITTED",
		task->name, task->attr.boost_priority, strerror(-ret), task->attr.boost_priority);
}

/*
 * client_check() of the newest connection. Under the mutex, because the roll thread of a connection that no task uses
 * unmaps it, under the same mutex, as soon as another connection has replaced it.
 */
static int newest_check(gpuseg_client *root)
{
	int ret;

	if (!__atomic_load_n(root->own_process, __ATOMIC_RELAXED))
		return client_check(root, 0); /* in a forked child the mutex may be in any state */
	pthread_mutex_lock(&root->request_mutex);
	ret = client_check(root->newest, now_ns());
	pthread_mutex_unlock(&root->request_mutex);
	return ret;
}

/* Is there a processor for the daemon while this thread polls for its answer? */
static bool daemon_runs_beside(const struct gpuseg_client *client)
{
	cpu_set_t ours, daemons;

	if (get_nprocs() == 1)
		return false;
	if (sched_getaffinity(0, sizeof(ours), &ours) != 0 || CPU_COUNT(&ours) > 1)
		return true;
	return !client->managed || client->queue.foreign_pids ||
	       sched_getaffinity(client->status->daemon_pid, sizeof(daemons), &daemons) != 0 ||
	       !CPU_EQUAL(&ours, &daemons);
}

int gpuseg_task_open(gpuseg_client *handle, const struct gpuseg_task_attr *user_attr, gpuseg_task **out)
{
	struct gpuseg_client *root = handle->root, *client;
	struct gpuseg_task_attr attr;
	struct gpuseg_task *task;
	int ret;

	if (!out)
		return fail_with(root, -EINVAL, "gpuseg_task_open: no place for the task");
	*out = NULL;
	if (!user_attr)
		return fail_with(root, -EINVAL, "gpuseg_task_open: attributes are required, a task has a name");
	ret = copy_attr(&attr, sizeof(attr), sizeof(attr), user_attr);
	if (ret < 0)
		return fail_with(root, ret, "task attributes have size %zu, this library knows %zu", user_attr->size,
				 sizeof(attr));
	ret = newest_check(root);
	if (ret == 0 || goes_on_after(handle->fails_if_lost, ret))
		ret = check_attr(root, &attr);
	if (ret < 0)
		return ret;
	task = aligned_alloc(GPUSEG_CACHE_LINE,
			     (sizeof(*task) + GPUSEG_CACHE_LINE - 1) & ~(size_t)(GPUSEG_CACHE_LINE - 1));
	if (!task)
		return fail_with(root, -ENOMEM, "task \"%s\": out of memory", attr.name);
	memset(task, 0, sizeof(*task));
	task->root = root;
	task->handle = handle;
	task->fails_if_lost = handle->fails_if_lost;
	task->attr = attr;
	task->attr.name = strcpy(task->name, attr.name);
	task->always_wait = attr.flags & GPUSEG_TASK_ALWAYS_WAIT;
	task->proceed = attr.on_timeout == GPUSEG_ON_TIMEOUT_PROCEED;
	task->boost_optional = attr.flags & GPUSEG_TASK_BOOST_IF_PERMITTED;
	task->timeout_ns = attr.timeout_ns;
	task->spin_count = attr.spin_count;
	if (attr.spin_count == GPUSEG_SPIN_NONE)
		task->spin_count = 0;

	pthread_mutex_lock(&root->request_mutex);
	client = root->newest; /* cannot be replaced while we hold the mutex */
	task->client = client;
	if (attr.spin_count == GPUSEG_SPIN_DEFAULT)
		task->spin_count = daemon_runs_beside(client) ? SPIN_DEFAULT : 0;
	if (!client->managed && !plain_name(attr.name)) /* as the next daemon would; a daemon says it itself */
		ret = fail_with(root, -EINVAL,
				"task name is blank or has characters that cannot be printed; give 1 to %d bytes of "
				"printable UTF-8",
				GPUSEG_NAME_BYTES - 1);
	if (client->managed && attr.boost_priority)
		ret = permit_boost(client, task);
	if (client->managed && ret == 0) {
		ret = client_check(client, now_ns());
		if (ret == 0)
			ret = task_register(client, task, &task->slot, &task->task_id);
		/* The next daemon gets it. Until then no call may take this connection for one that lives. */
		if (goes_on_after(task->fails_if_lost, ret) && client_lost(client))
			ret = 0;
	}
	if (ret == 0) {
		task->next = root->tasks;
		root->tasks = task;
		client->users++;
	}
	pthread_mutex_unlock(&root->request_mutex);
	if (ret < 0) {
		free(task);
		return ret;
	}
	tell_injection();
	*out = task;
	return 0;
}

int task_close_locked(struct gpuseg_task *task)
{
	struct gpuseg_client *client = task->client, *root = client->root, *next = root->newest;
	struct gpuseg_msg_task_close request = {.msg.type = GPUSEG_MSG_TASK_CLOSE, .task_id = task->task_id};
	struct gpuseg_msg_task_reply reply;
	struct gpuseg_task **link = &root->tasks;
	int ret = 0;

	if (client->managed) {
		if (task->segment != SEGMENT_NONE)
			(void)gpuseg_end(task); /* closing the task ends its segment in any case */
		(void)flush_pending(task);
		ret = client_check(client, now_ns());
		if (ret == -ENOTCONN && next != client && task->next_slot) { /* not reconnected yet */
			request.task_id = task->next_id;
			ret = client_check(next, now_ns());
		} else {
			next = client;
		}
		if (ret == 0)
			ret = client_request(next, &request, sizeof(request), &reply, sizeof(reply));
	}
	if (task->boost)
		(void)boost_drop(task); /* a second try if gpuseg_end() failed to */
	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	client->users--;
	free(task);
	return ret;
}

int gpuseg_task_close(gpuseg_task *task)
{
	struct gpuseg_client *client;
	bool fails_if_lost;
	int ret;

	if (!task)
		return 0;
	client = task->root;
	fails_if_lost = task->fails_if_lost;
	if (!__atomic_load_n(client->own_process, __ATOMIC_RELAXED))
		return client_check(client, 0);
	pthread_mutex_lock(&client->request_mutex);
	ret = task_close_locked(task);
	pthread_mutex_unlock(&client->request_mutex);
	return goes_on_after(fails_if_lost, ret) ? 0 : ret;
}

int gpuseg_get_task_status(const gpuseg_task *task, struct gpuseg_task_status *out)
{
	struct gpuseg_task_status copy = {.task_id = task->task_id, .tickets = task->tickets_before + task->ticket};
	const struct gpuseg_slot *slot = task->slot;

	if (!out || out->size < offsetof(struct gpuseg_task_status, tickets) || out->size > sizeof(copy))
		return fail_with(task->client, -EINVAL,
				 "status.size is %zu; set it to sizeof(struct gpuseg_task_status)",
				 out ? out->size : 0);
	if (!__atomic_load_n(task->client->own_process, __ATOMIC_RELAXED))
		return client_check(task->client, 0);
	if (task->client->managed && client_lost(task->client))
		copy.task_id = 0; /* the daemon of that number is gone, or the next one has refused the task */
	if (slot) {
		copy.state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
		copy.preemptions = __atomic_load_n(&slot->preemptions, __ATOMIC_RELAXED);
		copy.overruns = __atomic_load_n(&slot->overruns, __ATOMIC_RELAXED);
		copy.misses = __atomic_load_n(&slot->misses, __ATOMIC_RELAXED);
	}
	copy.size = out->size;
	memcpy(out, &copy, out->size);
	return 0;
}
