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
 * Results. Every function that returns int or int64_t returns a value >= 0 on success and a negative errno on failure.
 * errno itself is not set. gpuseg_strerror() explains a code, gpuseg_last_message() explains the particular failure.
 *
 * Units. All times are in nanoseconds of CLOCK_MONOTONIC, and the name of each ends in _ns. Priorities are 1..99, where
 * 99 is the highest. 0 is best effort.
 *
 * Threads. Any number of threads may use a gpuseg_client at once. A gpuseg_task belongs to one thread at a time: the
 * caller must order the calls on one task; calls on different tasks need no order. No function may be called from a
 * signal handler, except where its comment says so. begin, end, hint, job_release and job_end are not cancellation
 * points.
 *
 * fork(). A child must not use what its parent opened. Every call on it returns -EOWNERDEAD and changes nothing, except
 * gpuseg_disconnect(), which frees the child's copy. The child may open a connection of its own.
 *
 * Cost. gpuseg_begin() and gpuseg_end() allocate nothing and hold no lock while user code runs. They make a system call
 * only to wake a sleeping daemon, to sleep until the grant (begin), and, in unusual situations, to check whether the
 * daemon or the owner of a lock is still alive. A task with a boost_priority makes three more system calls per window:
 * about 2.5 us at begin and as much at end.
 *
 * Trust. The daemon does not trust the client. The client trusts the daemon, which created the memory that they share.
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
 * Attribute structures begin with their own size, so that a newer library can serve an older program, and the reverse.
 * Fields that the caller does not know take their default. Fields that the library does not know must be 0, otherwise
 * the call fails with -E2BIG. Fill a structure from its _INIT macro, then set what differs. Strings are copied.
 */

enum gpuseg_connect_flag {
	GPUSEG_CONNECT_UNMANAGED_OK = 1 << 0, /* a missing daemon is not an error: begin and end do nothing then */
	GPUSEG_CONNECT_ONCE = 1 << 1,	      /* do not reconnect when the daemon is lost */
	GPUSEG_CONNECT_FAIL_IF_LOST = 1 << 2  /* while the daemon is lost, marks fail instead of going on unmanaged */
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
	GPUSEG_ON_TIMEOUT_FAIL = 0,   /* gpuseg_begin() returns -ETIMEDOUT; no segment is begun */
	GPUSEG_ON_TIMEOUT_PROCEED = 1 /* gpuseg_begin() returns GPUSEG_PROCEEDED; the segment runs without a grant */
};

enum gpuseg_on_overrun {
	GPUSEG_ON_OVERRUN_DEFAULT = 0,	/* the daemon's setting: demote */
	GPUSEG_ON_OVERRUN_NOTIFY = 1,	/* count the overrun, change nothing */
	GPUSEG_ON_OVERRUN_DEMOTE = 2,	/* best effort until the segment ends */
	GPUSEG_ON_OVERRUN_SUSPEND = 3,	/* disable this process's context until the segment ends */
	GPUSEG_ON_OVERRUN_SKIP_NEXT = 4 /* demote, and refuse the next gpuseg_begin() with -ECANCELED: skip that job */
};

enum gpuseg_task_attr_flag {
	GPUSEG_TASK_ALWAYS_WAIT = 1 << 0,	/* no optimistic begin: wait until all lower work is preempted */
	GPUSEG_TASK_BOOST_IF_PERMITTED = 1 << 1 /* boost_priority: without permission, run without a boost */
};

#define GPUSEG_SPIN_DEFAULT 0	    /* the library's choice: 200, or none on one processor with the daemon */
#define GPUSEG_SPIN_NONE UINT32_MAX /* sleep at once */

struct gpuseg_task_attr {
	size_t size;
	const char *name;      /* 1..63 bytes of UTF-8, required */
	uint32_t priority;     /* 0 best effort, 1..99 real time */
	uint32_t gpu_priority; /* 0 = same as priority */
	uint32_t gpu;	       /* index of the GPU, from 0 */
	uint32_t flags;	       /* enum gpuseg_task_attr_flag */
	int64_t period_ns;     /* 0 = not periodic */
	int64_t deadline_ns;   /* relative to the release, at most the period if there is one; 0 = period */
	int64_t budget_ns;     /* longest time that a segment may hold the GPU, without preempted time; 0 = no limit */
	int64_t timeout_ns;    /* longest wait of gpuseg_begin(); 0 = no limit */
	uint32_t on_timeout;   /* enum gpuseg_on_timeout */
	uint32_t spin_count;   /* polls of the grant before sleeping, GPUSEG_SPIN_DEFAULT, GPUSEG_SPIN_NONE */
	int64_t window_ns;     /* longest time from grant to end, with preempted time, up to 1 h; 0 = no limit */
	uint32_t on_overrun;   /* enum gpuseg_on_overrun: what happens when budget or window is used up */
	uint32_t partition;    /* time partition, 1..255; 0 = none; the same for all tasks of a process */
	uint32_t weight;       /* share of this process in best-effort time, 1..10000; 0 = unchanged (100 at first) */
	/*
	 * Window boost: with 1..99 the calling thread runs at SCHED_FIFO of this priority from begin to end. 0 = no
	 * boost. Real-time tasks only. See gpuseg_begin().
	 */
	uint32_t boost_priority;
	/*
	 * The part of the GPU's multiprocessors that the task has for itself, 1..100 percent of all; 0 = none. Its
	 * segments then wait for nobody, and nobody for them. Real-time tasks of a daemon with --space only, in
	 * programs that `gpuseg exec --reserve` started; of a process all tasks or none.
	 */
	uint32_t reserve;
	uint32_t reserved; /* 0 */
};
/* clang-format off */
#define GPUSEG_TASK_ATTR_INIT {sizeof(struct gpuseg_task_attr), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/*
 * gpuseg_task_open() returns minus this where admission refused the task: with it, its own deadline or that of an
 * admitted task could be missed. gpuseg_last_message() names task, bound and deadline. No errno has this value.
 */
#define GPUSEG_EADMISSION 4000

/*
 * Write the path of the runtime directory into buf. It is the first of these that applies:
 *
 *   $GPUSEG_DIR                if it is set and not empty
 *   /run/gpuseg                if it exists (an installed daemon creates it)
 *   /dev/shm/gpuseg            if the effective user is root
 *   $XDG_RUNTIME_DIR/gpuseg    if XDG_RUNTIME_DIR is set and not empty
 *   /dev/shm/gpuseg-<uid>
 *
 * An ordinary user whose own directory (the last two) has no daemon's socket gets /dev/shm/gpuseg where root's daemon
 * has one: a directory that root owns, with the socket in it. So does one whose own directory belongs to neither root
 * nor this user. A set-user-ID program ignores the environment variables. Unless the directory was named, by
 * $GPUSEG_DIR or by the program, gpuseg_connect() believes a daemon of root, of this user, or of the owner of
 * /run/gpuseg alone.
 * Returns the length without the NUL; -ENAMETOOLONG (the content of buf is then undefined); -EINVAL (buf is NULL).
 * Thread-safe as getenv(3) is.
 */
GPUSEG_API int gpuseg_runtime_dir(char *buf, size_t size);

/*
 * Connect to the daemon: register this process, map its queue and pre-fault it, and start one thread of normal priority
 * that follows the rolls of the queue. Takes up to some tens of milliseconds, so call it before the real-time phase.
 *
 * When the daemon is lost (killed, stopped, upgraded), the program goes on unmanaged: begin and the other marks return
 * 0 at once and do nothing, as without a daemon, and a begin that waits for its grant returns 0 within 50 ms. That
 * thread says so on stderr, once for each loss, and `unmanaged` of gpuseg_get_counters() counts the segments. With
 * GPUSEG_CONNECT_FAIL_IF_LOST the marks return -ENOTCONN instead, also the end of a segment that was begun before.
 *
 * Reconnecting. That thread looks for a new daemon, at first 20 times a second, later once a second, and registers the
 * client and its tasks there. Handles stay valid. The first call on a task that has no segment begun uses the new
 * daemon. A task that the new daemon refuses (admission) stays unmanaged, and a line on stderr says so; with
 * GPUSEG_CONNECT_FAIL_IF_LOST it keeps returning -ENOTCONN, and gpuseg_last_message() says so. A client that the daemon
 * dropped as faulty (-EPROTO) neither goes on nor reconnects. GPUSEG_CONNECT_ONCE disables reconnecting: disconnect and
 * connect again.
 *
 * attr may be NULL. The caller owns *client and frees it with gpuseg_disconnect(). Each call makes a connection of its
 * own, and the daemon takes one per process; but where the process has a client that is shared, it joins that, as
 * gpuseg_connect_shared() does, unless it has GPUSEG_CONNECT_ONCE. Thread-safe.
 *
 *   0
 *   -ENOTCONN         no daemon is running. With GPUSEG_CONNECT_UNMANAGED_OK or GPUSEG_UNMANAGED=1 in the environment
 *                     this is no error: the client schedules nothing, and gpuseg_is_managed() returns 0
 *   -EACCES           the daemon does not serve this user; gpuseg_last_message() has the command that helps
 *   -EROFS            the runtime directory is mounted read-only, and the daemon is too old to lend the queue's files
 *   -EPROTONOSUPPORT  the daemon or its queue is of another version
 *   -ETIMEDOUT        no answer within 5 s
 *   -EPROTO           the daemon's answer makes no sense
 *   -ENOSPC           the file system of the runtime directory is full
 *   -EINVAL, -E2BIG, -ENAMETOOLONG, -ENOMEM
 *   others            the daemon refused the client
 *
 * After a failure *client is NULL, and gpuseg_last_message(NULL) tells more.
 */
GPUSEG_API GPUSEG_CHECKED int gpuseg_connect(const struct gpuseg_connect_attr *attr, gpuseg_client **client);

/*
 * The client that the parts of a process share, such as the components of a container, plug-ins, or a program that
 * marks segments and runs under `gpuseg exec`. The first call connects; every further one returns another handle of
 * that connection, which ends with its last handle. The handles are independent: each has tasks and
 * GPUSEG_CONNECT_FAIL_IF_LOST of its own, and gpuseg_disconnect() closes the tasks of its handle alone. Name, counters
 * and, in a thread, gpuseg_last_message() are those of the connection; the first call names it.
 *
 * There is one for each runtime directory. Without a daemon (GPUSEG_CONNECT_UNMANAGED_OK) the client is the caller's
 * alone, so that a later call finds a daemon that has started meanwhile. A connection whose daemon is lost is joined,
 * too: it reconnects for all. One that was dropped (-EPROTO) is left to those that have it. A child of fork() has none
 * of its parent's.
 *
 * Copies of this library in one process, linked statically or not, find each other, also those loaded with RTLD_LOCAL,
 * if they are of one version. An object that has taken part stays loaded after dlclose(3). Copies of different versions
 * connect for themselves, and the daemon refuses the second (-EBUSY). So does a client that was connected before by
 * gpuseg_connect(), which is not shared.
 *
 * Thread-safe; waits for other threads that connect or disconnect. Results as gpuseg_connect(), and
 *
 *   -EINVAL           also with GPUSEG_CONNECT_ONCE
 */
GPUSEG_API GPUSEG_CHECKED int gpuseg_connect_shared(const struct gpuseg_connect_attr *attr, gpuseg_client **client);

/*
 * Close every task of the client, then the client, and free them. A segment that is begun ends. No other thread may be
 * using the client or its tasks; other handles of a shared client may be in use. NULL is allowed. Returns 0.
 */
GPUSEG_API int gpuseg_disconnect(gpuseg_client *client);

/*
 * 1: a daemon schedules this client. 0: there was no daemon at connect, or it is lost and no other one has been found
 * yet, or this is a forked child. Thread-safe.
 */
GPUSEG_API int gpuseg_is_managed(const gpuseg_client *client);

/*
 * Register a task. The daemon may refuse it (admission). Talks to the daemon, so not for the real-time phase.
 * The client owns *task; gpuseg_task_close() or gpuseg_disconnect() frees it. Thread-safe.
 *
 *   0
 *   -EINVAL           an attribute is out of range; gpuseg_last_message() names it
 *   -E2BIG, -ENOMEM, -ETIMEDOUT, -EPROTO, -EOWNERDEAD
 *   -ENOTCONN         the daemon is lost, with GPUSEG_CONNECT_FAIL_IF_LOST. Else the task is opened unmanaged, and the
 *                     next daemon gets it
 *   -EPERM            with a boost_priority: the calling thread may not raise itself to that priority, which the call
 *                     tries. It needs RLIMIT_RTPRIO of at least boost_priority, or CAP_SYS_NICE. With
 *                     GPUSEG_TASK_BOOST_IF_PERMITTED this is no error: the task is opened without a boost, which is
 *                     counted in boost_failures
 *   -GPUSEG_EADMISSION  admission refused the task; gpuseg_last_message() gives the reason. Not an errno
 *   others            the daemon refused the task; gpuseg_last_message() gives its reason
 */
GPUSEG_API GPUSEG_CHECKED int gpuseg_task_open(gpuseg_client *client, const struct gpuseg_task_attr *attr,
					       gpuseg_task **task);

/*
 * Unregister a task and free it, whatever the result. A segment that is begun ends first. No other thread may be using
 * the task. NULL is allowed. Returns 0, or why the daemon was not told: -ENOTCONN (with GPUSEG_CONNECT_FAIL_IF_LOST),
 * -ETIMEDOUT, -EPROTO, or -EOWNERDEAD (only then the task is not freed).
 */
GPUSEG_API int gpuseg_task_close(gpuseg_task *task);

/*
 * Mark the release of a job, at release_ns (0 = now). Its deadline counts from here, and the segments of the job carry
 * it. Without this call a segment is released at its begin. Errors as gpuseg_hint(). The task's thread only.
 */
GPUSEG_API int gpuseg_job_release(gpuseg_task *task, int64_t release_ns);

/*
 * The same for a task of a chain (camera, detect, plan, brake): the job works on data that come from a sample taken at
 * stamp_ns of CLOCK_MONOTONIC. The first task takes the time just before it samples, and hands that number on with its
 * data; every other task passes on the number that came with what it read. `gpuseg trace check` then measures reaction
 * time and data age of the chain. 0 = no stamp. Data of several samples: pass the oldest stamp. The daemon does not
 * decide by it. Errors as gpuseg_hint(); a daemon before ABI 1.5 ignores the stamp. The task's thread only.
 */
GPUSEG_API int gpuseg_job_release_stamped(gpuseg_task *task, int64_t release_ns, int64_t stamp_ns);

/*
 * The same for programs that cannot hand the stamp on and convert that of a message to CLOCK_MONOTONIC themselves: two
 * of them differ. sample says which sample it is, by what every process reads alike in the message: the raw stamp of
 * its header in ns, or source and sequence number in one word. It should differ from those of all other samples.
 * `gpuseg trace` goes by it, where first and last task of a chain give one, and by time otherwise. 0 = none. A daemon
 * before ABI 1.11 is not told. The task's thread only.
 */
GPUSEG_API int gpuseg_job_release_sample(gpuseg_task *task, int64_t release_ns, int64_t stamp_ns, uint64_t sample);

/* Mark the end of the job: its response time ends here. Errors as gpuseg_hint(). The task's thread only. */
GPUSEG_API int gpuseg_job_end(gpuseg_task *task);

/*
 * In place of gpuseg_job_end(): the job was released and is skipped, because it was not granted in time, say. It counts
 * as skipped: not as a job that was met, nor as one that missed, unless a deadline passed before, and it has no
 * response time. No segment may be begun. Without a release nothing is counted.
 *
 *   0
 *   -EALREADY         a segment of this task is begun: call gpuseg_end() first
 *   -EBUSY, -ENOSPC, -ENOTCONN, -EPROTO, -EOWNERDEAD   as gpuseg_begin()
 *
 * A daemon before ABI 1.12 is not told: it gives the job up at the next release. The task's thread only.
 */
GPUSEG_API int gpuseg_job_cancel(gpuseg_task *task);

#define GPUSEG_PROCEEDED 1 /* gpuseg_begin(): timed out, the segment runs without its grant */

/*
 * Begin a segment: wait until the task may use the GPU. Does not wait while the daemon has announced that no running
 * segment could outrank the task (optimistic begin).
 *
 *   0                 granted, or unmanaged: use the GPU, then call gpuseg_end()
 *   GPUSEG_PROCEEDED  not granted in timeout_ns, on_timeout is PROCEED: use the GPU unprotected, then call gpuseg_end()
 *   -ETIMEDOUT        not granted in timeout_ns, on_timeout is FAIL: the segment is withdrawn
 *   -ECANCELED        the daemon refused this segment: the one before overran, and the task skips the next
 *   -EALREADY         a segment of this task is begun: call gpuseg_end() first
 *   -ENOTCONN         the daemon is lost, with GPUSEG_CONNECT_FAIL_IF_LOST. Noticed within 50 ms
 *   -EPROTO           the daemon dropped this client as faulty; gpuseg_last_message() gives the reason
 *   -EBUSY, -ENOSPC   nothing was recorded: the daemon held the queue for more than 20 ms, or the quota of the queue is
 *                     used up. Counted in drops
 *   -EPERM            with a boost_priority: the thread may not raise itself any more. With
 *                     GPUSEG_TASK_BOOST_IF_PERMITTED this is no error: the segment is begun without a boost, which is
 *                     counted in boost_failures
 *   -EOWNERDEAD       the task belongs to the parent process
 *
 * After a negative result no segment is begun. The task's thread only.
 *
 * Window boost. With a boost_priority the calling thread raises itself to SCHED_FIFO of that priority before it records
 * the begin, so that it precedes the other threads of its processor when the grant comes. When gpuseg_end() returns, or
 * a begin that fails, the thread has its former policy, priority, nice value and deadline parameters again. Only this
 * thread is raised.
 *
 * - If windows of several tasks are open on one thread, the highest boost counts. The former state is restored after
 *   the last window.
 * - A thread that has a higher priority already, or SCHED_DEADLINE, is left as it is.
 * - An end on another thread lowers the thread that began. A thread that ends inside a window leaves nothing behind.
 * - Do not change the policy of the thread inside a window: gpuseg_end() would undo it.
 * - A forked child starts without the boost. A thread that is created inside a window inherits it, as any created
 *   thread does unless its attributes say otherwise, and keeps it.
 * - The budget limits GPU time. It does not limit how long a boosted thread keeps its processor; only RLIMIT_RTTIME and
 *   the kernel's throttling of real-time threads do.
 * - A client without a daemon boosts nothing.
 */
GPUSEG_API int gpuseg_begin(gpuseg_task *task);

/*
 * As gpuseg_begin(), but never sleeps: returns -EAGAIN and withdraws the segment if there is no grant after a short
 * spin. The task's thread only.
 */
GPUSEG_API int gpuseg_begin_try(gpuseg_task *task);

/*
 * As gpuseg_begin(), but waits at most timeout_ns (> 0) and then fails with -ETIMEDOUT, whatever the task's on_timeout
 * says. -EINVAL: timeout_ns is not positive. The task's thread only.
 */
GPUSEG_API int gpuseg_begin_timed(gpuseg_task *task, int64_t timeout_ns);

/*
 * End the segment. Never waits for a grant or an answer. The caller must have synchronised with the GPU: work that is
 * still queued there would run unprotected.
 *
 *   0
 *   -EINVAL           no segment is begun
 *   -EBUSY, -ENOSPC   the end could not be recorded now, as in gpuseg_begin(). The segment is over for this task. The
 *                     record is kept and written by the next call on the task; if that is gpuseg_end(), it returns 0
 *   -ENOTCONN, -EPROTO, -EOWNERDEAD   as gpuseg_begin(). The segment is over
 *   -EPERM            with a boost_priority: the thread could not be lowered and keeps its raised priority, as the
 *                     message says. The segment is over
 *
 * The task's thread only.
 */
GPUSEG_API int gpuseg_end(gpuseg_task *task);

/*
 * As gpuseg_end(), and report for how long the GPU worked for this segment: device_ns >= 0, 0 = unknown. Used for
 * traces and budgets. -EINVAL also for a negative device_ns. The task's thread only.
 */
GPUSEG_API int gpuseg_end_measured(gpuseg_task *task, int64_t device_ns);

/*
 * Give a hint that the next begin is expected at begin_at_ns, so that the daemon can disable lower work in time. Advice
 * only: the begin may come earlier, later or never. Where the user has a limited share of the GPU, the time for which
 * the GPU is reserved counts. The task's thread only.
 *
 *   0
 *   -EINVAL           begin_at_ns is negative or more than 10 s ahead
 *   -EBUSY, -ENOSPC, -ENOTCONN, -EPROTO, -EOWNERDEAD   as gpuseg_begin()
 */
GPUSEG_API int gpuseg_hint(gpuseg_task *task, int64_t begin_at_ns);

/*
 * Wait until the daemon expects the next begin of the task: it is about to disable lower work for it, and, with the
 * next change, has. Tasks with a period, with begins that it has learned, and hints are expected (`gpuseg run
 * --anticipate`). The GPU has then to switch to this program's context, which the first kernel after others had the GPU
 * waits for. A kernel that does nothing, launched here, moves that before the begin: gpuseg_cuda.h does it
 * (GPUSEG_CUDA_TOUCH). Launch nothing else: other work outside segments is best effort.
 *
 * *seen is what the call before stored there, 0 at first. The first call may return at once, and so may one after
 * another daemon took over.
 *
 *   0                 expected now; *seen is updated
 *   -ETIMEDOUT        not within timeout_ns (0: look only). Always, if no daemon ever says so: none is there, it is
 *                     older than ABI 1.10, anticipates nothing, or admits tasks by proof (`--admission enforce`)
 *   -EINVAL           timeout_ns is negative
 *   -EOWNERDEAD       the task belongs to the parent process
 *
 * Any thread, usually not the task's, which need not wait for its own begins. It must have returned before the task is
 * closed and the client disconnected. While another call of the client, or the library itself, asks the daemon for
 * something (5 s at most), this waits, too, whatever timeout_ns is.
 */
GPUSEG_API int gpuseg_expected(const gpuseg_task *task, uint32_t *seen, int64_t timeout_ns);

/*
 * Give the work of a CUDA stream the priority of a task, among the streams of this process. For a process under
 * `gpuseg exec` whose streams work for different tasks: tasks of one process share a GPU context, so the driver cannot
 * preempt one for the other. While work on a stream is outstanding, launches on streams of lower priority wait at
 * their entry, and the work in flight on those is bounded (`GPUSEG_EXEC_IN_FLIGHT`). Streams without a task count as
 * best effort.
 *
 * stream is a cudaStream_t or CUstream; NULL means the default stream of the context. task NULL: the stream has no task
 * any more. Destroying the stream has the same effect. The priority is the one that the task was opened with, on the
 * GPU. It orders launches only: segments are marked by gpuseg_begin() and gpuseg_end(), or by `gpuseg exec`.
 *
 * Call it after CUDA was initialised. Any thread.
 *
 *   0
 *   -ENOTSUP     launches are not followed: the process was not started by `gpuseg exec`, or runs unmanaged, or CUDA is
 *                not initialised yet. The program can go on; its streams are ordered by CUDA alone
 *   -EINVAL      stream is the default stream of a thread, which cannot be named from another one
 *   -ENOSPC      64 streams have a task already
 */
GPUSEG_API int gpuseg_stream(void *stream, const gpuseg_task *task);

/* CLOCK_MONOTONIC in nanoseconds. Thread-safe and async-signal-safe. */
GPUSEG_API int64_t gpuseg_now_ns(void);

/*
 * The meaning of a result of this library, with a remedy. Accepts the negative code or its absolute value. The text is
 * static or belongs to libc; do not free it. Thread-safe for every code that a function of this header can return.
 */
GPUSEG_API const char *gpuseg_strerror(int result);

/*
 * One line about the latest failure that the calling thread had with this client; NULL asks for failures of
 * gpuseg_connect(). It is the daemon's own text if the daemon refused something. "" if there was no failure. Valid
 * until the next failing call of the thread. Thread-safe.
 */
GPUSEG_API const char *gpuseg_last_message(const gpuseg_client *client);

/* Version of the library in use, "major.minor.patch"; static. Thread-safe. */
GPUSEG_API const char *gpuseg_version(void);

/* Version of the shared memory layout, (major << 16) | minor. Thread-safe. */
GPUSEG_API uint32_t gpuseg_abi_version(void);

/* Counted since connect, over all tasks of the client and all daemons that it has used. */
struct gpuseg_counters {
	size_t size;
	uint64_t records;	   /* appended to the queue */
	uint64_t drops;		   /* records refused: quota used up, or lock not obtained in time */
	uint64_t bells;		   /* system calls that woke a sleeping daemon */
	uint64_t rolls;		   /* cycles of the queue followed */
	uint64_t remaps_inline;	   /* of these, mapped or waited for by the caller because the roll thread was late */
	uint64_t locks_taken_over; /* queue locks taken over from a dead daemon */
	uint64_t begins;	   /* segments begun: granted, optimistic or proceeded */
	uint64_t optimistic;	   /* of these, without waiting */
	uint64_t slept;		   /* begins that slept */
	uint64_t timeouts;	   /* begins that ended in -ETIMEDOUT or GPUSEG_PROCEEDED */
	uint64_t proceeded;	   /* of these, GPUSEG_PROCEEDED */
	uint64_t refused;	   /* begins that ended in -ECANCELED */
	uint64_t try_failures;	   /* begins that ended in -EAGAIN */
	uint64_t boosts;	   /* begins that raised their thread, or found it raised by another window */
	uint64_t boost_failures;   /* boosts not permitted at open or begin, and threads that could not be lowered */
	uint64_t unmanaged;	   /* of the begins, those without a daemon: the segment ran unprotected */
};

/*
 * Fill the first counters->size bytes of *counters. The values are read one by one, not as a snapshot. Thread-safe.
 * -EINVAL: size is 0, too small for one counter, or larger than the library knows.
 */
GPUSEG_API int gpuseg_get_counters(const gpuseg_client *client, struct gpuseg_counters *counters);

/* What the daemon has counted for a task, and the state of the task. */
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
 * Marks that a build can leave out. With GPUSEG_NO_MARKS defined they are the constant 0, and the program needs neither
 * the library nor the daemon for them.
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
