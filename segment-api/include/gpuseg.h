/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg.h - mark GPU segments for the gpuseg scheduler.
 *
 *   gpuseg_client *client;
 *   gpuseg_task *task;
 *   struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
 *
 *   attr.name = "camera";
 *   attr.priority = 70;
 *   gpuseg_connect(NULL, &client);
 *   gpuseg_task_open(client, &attr, &task);
 *   for (;;) {
 *           gpuseg_begin(task);       // waits until this task may use the GPU
 *           launch_and_synchronise();
 *           gpuseg_end(task);         // never waits
 *   }
 *
 * Results. Every function that returns int or int64_t returns a value >= 0 on success and a negative errno on failure
 * (never errno itself). gpuseg_strerror() explains a code, gpuseg_last_message() the particular case.
 *
 * Units. Every time is in nanoseconds of CLOCK_MONOTONIC, every name of a time ends in _ns. Priorities are 1..99, 99
 * highest, 0 = best effort.
 *
 * Threads. A gpuseg_client may be used by any number of threads at once. A gpuseg_task belongs to one thread at a time:
 * calls on one task must be ordered by the caller, calls on different tasks need not be. No function may be called from
 * a signal handler, and none of begin, end, hint, job_release and job_end is a cancellation point.
 *
 * fork(). A child must not use what its parent opened: every call on it returns -EOWNERDEAD and changes nothing, except
 * gpuseg_disconnect(), which frees the child's copy. A child may connect for itself.
 *
 * Cost. gpuseg_begin() and gpuseg_end() allocate nothing, hold no lock while user code runs and make no system call but
 * to ring the daemon's doorbell when it sleeps, to sleep on the grant (begin), and, when something is out of the
 * ordinary, to look whether the daemon still lives or a dead one left its lock. A task with a boost_priority pays for
 * it: three system calls more for a window (look, raise, restore), some 2.5 us at begin and as much at end.
 *
 * Trust. The daemon does not trust the client; the client trusts the daemon, which created the memory they share.
 */
#ifndef GPUSEG_H
#define GPUSEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSEG_VERSION_MAJOR 0
#define GPUSEG_VERSION_MINOR 1
#define GPUSEG_VERSION_PATCH 0

#if defined(__GNUC__)
#define GPUSEG_API __attribute__((visibility("default")))
#define GPUSEG_CHECKED __attribute__((warn_unused_result))
#else
#define GPUSEG_API
#define GPUSEG_CHECKED
#endif

typedef struct gpuseg_client gpuseg_client; /* one connection to the daemon; has its own queue */
typedef struct gpuseg_task gpuseg_task;	    /* one schedulable activity that has GPU segments */

/*
 * Attribute structures begin with their own size, so that a newer library serves an older program and the reverse:
 * fields the caller does not know take their default; fields the library does not know must be 0, else -E2BIG. Fill
 * them from the _INIT macro, then set what differs. Strings are copied.
 */

enum gpuseg_connect_flag {
	GPUSEG_CONNECT_UNMANAGED_OK = 1 << 0, /* no daemon is no error: begin and end become no-ops */
	GPUSEG_CONNECT_ONCE = 1 << 1	      /* when the daemon is gone, stay unconnected */
};

struct gpuseg_connect_attr {
	size_t size;
	const char *dir;  /* runtime directory; NULL = gpuseg_runtime_dir() */
	const char *name; /* of this application, 1..63 bytes of UTF-8; NULL = the name of the program */
	uint32_t flags;	  /* enum gpuseg_connect_flag */
	uint32_t reserved;
};
/* clang-format off */
#define GPUSEG_CONNECT_ATTR_INIT {sizeof(struct gpuseg_connect_attr), NULL, NULL, 0, 0}
/* clang-format on */

enum gpuseg_on_timeout {
	GPUSEG_ON_TIMEOUT_FAIL = 0,   /* gpuseg_begin() returns -ETIMEDOUT, the segment is not begun */
	GPUSEG_ON_TIMEOUT_PROCEED = 1 /* gpuseg_begin() returns GPUSEG_PROCEEDED, the segment runs without its grant */
};

enum gpuseg_on_overrun {
	GPUSEG_ON_OVERRUN_DEFAULT = 0,	/* the daemon's choice: demote */
	GPUSEG_ON_OVERRUN_NOTIFY = 1,	/* counted, nothing else */
	GPUSEG_ON_OVERRUN_DEMOTE = 2,	/* best effort until the segment ends */
	GPUSEG_ON_OVERRUN_SUSPEND = 3,	/* this process is off the GPU until the segment ends; others go on */
	GPUSEG_ON_OVERRUN_SKIP_NEXT = 4 /* demote, and the next gpuseg_begin() fails with -ECANCELED: skip that job */
};

enum gpuseg_task_attr_flag {
	GPUSEG_TASK_ALWAYS_WAIT = 1 << 0,	/* no optimistic begin: wait until all other work is off the hardware */
	GPUSEG_TASK_BOOST_IF_PERMITTED = 1 << 1 /* boost_priority: go on without it where it is not permitted */
};

/* How segments get the GPU from work of lower rank; real-time tasks only. Measured: ./gpuseg bench gpu */
enum gpuseg_strategy {
	GPUSEG_STRATEGY_DEFAULT = 0,   /* the daemon's: interrupt, unless it was told otherwise */
	GPUSEG_STRATEGY_INTERRUPT = 1, /* other work is off the hardware from begin to end */
	GPUSEG_STRATEGY_SLICE = 2,     /* it stays on; this process has a long time slice. No bound on the response */
	GPUSEG_STRATEGY_INTERRUPT_SLICE = 3 /* both */
};

#define GPUSEG_SPIN_DEFAULT 0	    /* the library's choice: 200, or none on a single processor */
#define GPUSEG_SPIN_NONE UINT32_MAX /* sleep at once */

struct gpuseg_task_attr {
	size_t size;
	const char *name;      /* 1..63 bytes of UTF-8, required */
	uint32_t priority;     /* 0 best effort, 1..99 real time */
	uint32_t gpu_priority; /* 0 = same as priority */
	uint32_t gpu;	       /* index of the GPU, from 0 */
	uint32_t flags;	       /* enum gpuseg_task_attr_flag */
	int64_t period_ns;     /* 0 = not periodic */
	int64_t deadline_ns;   /* relative to the release; 0 = period */
	int64_t budget_ns;     /* longest time one segment may hold the GPU, preempted time excluded; 0 = none */
	int64_t timeout_ns;    /* longest wait of gpuseg_begin(); 0 = no limit */
	uint32_t on_timeout;   /* enum gpuseg_on_timeout */
	uint32_t spin_count;   /* polls of the grant before sleeping, GPUSEG_SPIN_DEFAULT, GPUSEG_SPIN_NONE */
	int64_t window_ns;     /* longest time from grant to end, preempted time included, up to 1 h; 0 = none */
	uint32_t on_overrun;   /* enum gpuseg_on_overrun: what follows when budget or window is used up */
	uint32_t partition;    /* time partition, 1..255; 0 = none; the same for all tasks of a process */
	uint32_t weight;       /* share of this process in best-effort time, 1..10000; 0 = as it is (100 at first) */
	/*
	 * Window boost: 1..99 = from begin to end the calling thread runs at SCHED_FIFO of this priority; 0 = as it is.
	 * Real-time tasks only. See gpuseg_begin().
	 */
	uint32_t boost_priority;
	uint32_t strategy; /* enum gpuseg_strategy; the process has a long slice while one of its tasks asks for it */
	uint32_t reserved; /* 0 */
};
/* clang-format off */
#define GPUSEG_TASK_ATTR_INIT {sizeof(struct gpuseg_task_attr), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/*
 * The runtime directory: $GPUSEG_DIR if set and not empty; else /run/gpuseg where it exists (an installed daemon's);
 * else /dev/shm/gpuseg for root; else $XDG_RUNTIME_DIR/gpuseg; else /dev/shm/gpuseg-<uid>. Environment variables are
 * ignored in a set-user-ID program.
 * Returns the length without the NUL, or -ENAMETOOLONG (buf then holds nothing useful), -EINVAL (buf NULL).
 * Thread-safe as getenv(3) is.
 */
GPUSEG_API int gpuseg_runtime_dir(char *buf, size_t size);

/*
 * Connect to the daemon: registers this process, maps its queue and pre-faults it (up to some tens of milliseconds:
 * call it before the real-time phase), starts one thread of normal priority that follows the queue's rolls.
 *
 * When the daemon is gone (killed, stopped, upgraded), that thread looks for the one that follows, 20 times a second at
 * first, once a second later, and registers the client and its tasks there: handles stay valid. Until then begin and
 * the other marks return -ENOTCONN at once; the first call after it, with no segment begun, goes over. A segment that
 * was begun when the daemon went ends with -ENOTCONN. A task that the new daemon refuses (admission) keeps returning
 * -ENOTCONN; gpuseg_last_message() says so. A client that the daemon dropped as faulty (-EPROTO) does not come back by
 * itself. With GPUSEG_CONNECT_ONCE nothing of this happens: disconnect and connect again.
 *
 * attr may be NULL. *client is owned by the caller: gpuseg_disconnect() frees it. Each call makes a connection of its
 * own; one per process is enough. Thread-safe.
 *
 * No daemon: -ENOTCONN, unless flag GPUSEG_CONNECT_UNMANAGED_OK or environment GPUSEG_UNMANAGED=1 asks for a client
 * that schedules nothing (gpuseg_is_managed() then says 0). -EACCES (not in the socket's group), -EPROTONOSUPPORT
 * (daemon or queue of another version), -ETIMEDOUT (no answer within 5 s), -EPROTO (nonsense from the daemon), -ENOSPC
 * (the file system of the runtime directory is full), -EINVAL, -E2BIG, -ENAMETOOLONG, -ENOMEM, or what the daemon
 * refused with. *client is NULL then; gpuseg_last_message(NULL) tells more.
 */
GPUSEG_API GPUSEG_CHECKED int gpuseg_connect(const struct gpuseg_connect_attr *attr, gpuseg_client **client);

/*
 * Close every task of the client, then the client, and free them. No other thread may be using them. A segment that is
 * begun ends. NULL is allowed. Returns 0.
 */
GPUSEG_API int gpuseg_disconnect(gpuseg_client *client);

/*
 * 1: a daemon schedules this client. 0: none did at connect, or it is gone and none has followed yet, or this is a
 * forked child. Thread-safe.
 */
GPUSEG_API int gpuseg_is_managed(const gpuseg_client *client);

/*
 * Register a task; the daemon may refuse it (admission). Talks to the daemon: not for the real-time phase.
 * *task is owned by the client and freed by gpuseg_task_close() or gpuseg_disconnect(). Thread-safe.
 * -EINVAL (an attribute out of range: gpuseg_last_message() names it), -E2BIG, -ENOMEM, -ENOTCONN, -ETIMEDOUT, -EPROTO,
 * -EOWNERDEAD, or what the daemon refused with (text in gpuseg_last_message()). With a boost_priority also -EPERM: the
 * calling thread was not allowed to raise itself so far, which is tried for a moment here (needs RLIMIT_RTPRIO of at
 * least boost_priority, or CAP_SYS_NICE). GPUSEG_TASK_BOOST_IF_PERMITTED: no error, the task is opened without a boost,
 * and counted in boost_failures.
 */
GPUSEG_API GPUSEG_CHECKED int gpuseg_task_open(gpuseg_client *client, const struct gpuseg_task_attr *attr,
					       gpuseg_task **task);

/*
 * Unregister a task and free it, whatever is returned. A begun segment ends first. No other thread may be using it;
 * NULL is allowed. 0, or why the daemon was not told: -ENOTCONN, -ETIMEDOUT, -EPROTO, -EOWNERDEAD (not freed in that
 * case).
 */
GPUSEG_API int gpuseg_task_close(gpuseg_task *task);

/*
 * Mark the release of a job (at release_ns, 0 = now): its deadline counts from here and the job's segments carry it.
 * Without this call a segment is released at its begin. Errors as gpuseg_hint().
 */
GPUSEG_API int gpuseg_job_release(gpuseg_task *task, int64_t release_ns);

/* Mark the end of the job: its response time ends here. Errors as gpuseg_hint(). */
GPUSEG_API int gpuseg_job_end(gpuseg_task *task);

#define GPUSEG_PROCEEDED 1 /* gpuseg_begin(): timed out, the segment runs without its grant */

/*
 * Begin a segment: wait until the task may use the GPU. Returns at once, without waiting for the daemon, while the
 * daemon has announced that nothing running could outrank the task (optimistic begin).
 *
 *   0                 granted: use the GPU, then call gpuseg_end()
 *   GPUSEG_PROCEEDED  not granted in timeout_ns, on_timeout is PROCEED: use the GPU unprotected, then call gpuseg_end()
 *   -ETIMEDOUT        not granted in timeout_ns, on_timeout is FAIL: the segment is withdrawn
 *   -ECANCELED        the daemon refused this segment: the one before overran, and the task skips the next
 *   -EALREADY         a segment of this task is begun: call gpuseg_end() first
 *   -ENOTCONN         the daemon is gone (noticed within 50 ms): go on without it, or try later (gpuseg_connect())
 *   -EPROTO           the daemon dropped this client as faulty; gpuseg_last_message() gives the reason
 *   -EBUSY, -ENOSPC   nothing was recorded: the daemon held the queue for longer than 20 ms, or the queue's quota is
 *                     used up; counted in drops
 *   -EOWNERDEAD       the task belongs to the parent process
 *
 * On any negative result no segment is begun. The task's thread only.
 *
 * Window boost. With a boost_priority the calling thread raises itself to SCHED_FIFO of that priority before the begin
 * is recorded, so that it is above the other threads of its core when the grant comes, and has again what it had
 * before (policy, priority, nice value, deadline parameters) when gpuseg_end() or a begin that fails returns. Only this
 * thread. Windows of several tasks on one thread: the highest boost of the open ones counts, and what the thread had
 * before the first one comes back after the last. A thread that has more already (a higher priority, SCHED_DEADLINE)
 * stays as it is.
 * An end on another thread lowers the thread that began; a thread that ends leaves nothing behind. Do not change the
 * thread's policy inside a window: it would be undone. A forked child starts without the boost; a thread created inside
 * a window inherits it, as any created thread does, unless its attributes say otherwise, and keeps it.
 *   -EPERM            the thread may not raise itself any more; no segment is begun. With
 *                     GPUSEG_TASK_BOOST_IF_PERMITTED the segment is begun without, and counted in boost_failures.
 * The budget bounds GPU time, not the time that a boosted thread keeps its core: only the kernel's throttling of
 * real-time threads and RLIMIT_RTTIME do that. A client without a daemon boosts nothing.
 */
GPUSEG_API int gpuseg_begin(gpuseg_task *task);

/*
 * As gpuseg_begin(), but never sleeps: -EAGAIN if the grant is not there after a short spin; the segment is withdrawn.
 */
GPUSEG_API int gpuseg_begin_try(gpuseg_task *task);

/*
 * As gpuseg_begin() with a limit of its own: waits timeout_ns (> 0) at most, then fails with -ETIMEDOUT whatever the
 * task's on_timeout says. -EINVAL: timeout_ns is not positive.
 */
GPUSEG_API int gpuseg_begin_timed(gpuseg_task *task, int64_t timeout_ns);

/*
 * End the segment. Never waits for a grant or an answer. The caller must have synchronised with the GPU: work still
 * queued there would run unprotected.
 *
 *   0
 *   -EINVAL           no segment is begun
 *   -EBUSY, -ENOSPC   could not be recorded now (see gpuseg_begin()). The segment is over for this task, and the record
 *                     is kept and written by the next call on the task, gpuseg_end() included (which then returns 0)
 *   -ENOTCONN, -EPROTO, -EOWNERDEAD   as gpuseg_begin(); the segment is over all the same
 *   -EPERM            with a boost_priority: the thread could not be lowered again and stays as it is; the message says
 *                     so. The segment is over.
 *
 * The task's thread only.
 */
GPUSEG_API int gpuseg_end(gpuseg_task *task);

/*
 * As gpuseg_end(), and report how long the GPU worked for this segment (for traces and budgets), >= 0, 0 = unknown.
 * -EINVAL also for a negative device_ns.
 */
GPUSEG_API int gpuseg_end_measured(gpuseg_task *task, int64_t device_ns);

/*
 * Announce that the next begin is expected at begin_at_ns, so that lower work can be taken off in time. Advice only.
 * 0, -EINVAL (negative, or more than 10 s ahead), -EBUSY, -ENOSPC, -ENOTCONN, -EPROTO, -EOWNERDEAD as gpuseg_begin().
 * The task's thread only.
 */
GPUSEG_API int gpuseg_hint(gpuseg_task *task, int64_t begin_at_ns);

/* CLOCK_MONOTONIC in nanoseconds. Async-signal-safe. */
GPUSEG_API int64_t gpuseg_now_ns(void);

/*
 * What a result of this library means, with its remedy. Accepts the negative code or its absolute value. The text is
 * static or belongs to libc; do not free. Thread-safe for every code a function above can return.
 */
GPUSEG_API const char *gpuseg_strerror(int result);

/*
 * One line about the latest failure that the calling thread met on this client (NULL: in gpuseg_connect()): the
 * daemon's own text where it refused something. "" if there was none. Valid until the thread's next failing call.
 */
GPUSEG_API const char *gpuseg_last_message(const gpuseg_client *client);

/* "major.minor.patch" of the library in use; static. */
GPUSEG_API const char *gpuseg_version(void);

/* Version of the shared memory layout, (major << 16) | minor. */
GPUSEG_API uint32_t gpuseg_abi_version(void);

/* Since connect, over all tasks of the client and all daemons it has had. Times in ns. */
struct gpuseg_counters {
	size_t size;
	uint64_t records;	   /* appended to the queue */
	uint64_t drops;		   /* refused: quota used up or lock not obtained in time */
	uint64_t bells;		   /* doorbell rung: the daemon slept */
	uint64_t rolls;		   /* cycles of the queue followed */
	uint64_t remaps_inline;	   /* of these, mapped on the caller's thread because the roll thread was late */
	uint64_t locks_taken_over; /* queue locks taken over from a dead daemon */
	uint64_t begins;	   /* segments begun: granted, optimistic or proceeded */
	uint64_t optimistic;	   /* of these, without waiting */
	uint64_t slept;		   /* begins that slept */
	uint64_t timeouts;	   /* begins that ended in -ETIMEDOUT or GPUSEG_PROCEEDED */
	uint64_t proceeded;	   /* of these, GPUSEG_PROCEEDED */
	uint64_t refused;	   /* -ECANCELED */
	uint64_t try_failures;	   /* -EAGAIN */
	uint64_t boosts;	   /* begins that raised their thread, or found it raised by another window */
	uint64_t boost_failures;   /* boosts not permitted at open or at begin, and threads that could not be lowered */
};

/*
 * Fill the first counters->size bytes of *counters. Values are read one by one, not as a snapshot. Thread-safe.
 * -EINVAL: size is 0, too small for one counter, or larger than the library knows.
 */
GPUSEG_API int gpuseg_get_counters(const gpuseg_client *client, struct gpuseg_counters *counters);

/* What the daemon counted for a task, and what it is doing. */
struct gpuseg_task_status {
	size_t size;
	uint32_t task_id; /* the daemon's; 0 = unmanaged */
	uint32_t state;	  /* 0 idle, 1 waiting, 2 running, 3 preempted */
	uint64_t tickets; /* segments begun or tried */
	uint64_t preemptions;
	uint64_t overruns;
	uint64_t misses;
};

/* As gpuseg_get_counters(), for one task. The task's thread only. */
GPUSEG_API int gpuseg_get_task_status(const gpuseg_task *task, struct gpuseg_task_status *status);

/*
 * Marks that a build can leave out: with GPUSEG_NO_MARKS defined they are the constant 0 and the program needs neither
 * library nor daemon for them.
 */
#ifdef GPUSEG_NO_MARKS
#define GPUSEG_BEGIN(task) ((void)(task), 0)
#define GPUSEG_END(task) ((void)(task), 0)
#else
#define GPUSEG_BEGIN(task) gpuseg_begin(task)
#define GPUSEG_END(task) gpuseg_end(task)
#endif

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_H */
