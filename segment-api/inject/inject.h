/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - what the parts of libgpuseg-inject.so share.
 *
 *   a thread of the program                    the library's own thread ("gpuseg-inject")
 *   ------------------------------------       -----------------------------------------------
 *   cuLaunchKernel ... entry: note the         connects, opens tasks
 *     stream, begin a segment if none is       writes a marker after the work of a stream that
 *     open (may wait, with a limit)              has been silent, looks whether it is done
 *   ... exit: number the launch                ends the segment when all work is done
 *   cuStreamSynchronize ... exit: what was
 *     numbered before is done
 *
 * All state is guarded by one mutex (inject_lock), which is held for some tens of nanoseconds and never while the
 * driver or the daemon is called, except for gpuseg_end(). A second mutex (device_lock) is held by the library's own
 * thread around its calls of the driver, and by a thread of the program at the entry of calls after which a handle is
 * no longer valid. Order: device_lock, then inject_lock.
 *
 * Every wait has a limit. When it is reached the program runs on without being managed, and one line says so.
 */
#ifndef GPUSEG_INJECT_H
#define GPUSEG_INJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"
#include "functions.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "platform.h"

/* ---- settings.c ---- */

enum calls_mode {
	CALLS_AUTO, /* are followed by the preloaded wrappers if they are there, else by CUPTI */
	CALLS_BY_CUPTI,
	CALLS_CHECKED /* by the wrappers, while CUPTI watches whether any come another way */
};

enum segments_mode {
	SEGMENTS_AUTO,	 /* from the first launch while nothing is outstanding until all is done */
	SEGMENTS_GRAPH,	 /* as auto, but only launches of graphs begin one */
	SEGMENTS_PROCESS /* from the first launch to the end of the process */
};

struct settings {
	char name[GPUSEG_NAME_BYTES];
	uint32_t priority; /* 0 = best effort */
	uint32_t weight;   /* 0 = unchanged */
	int64_t period_ns;
	int64_t deadline_ns;
	int64_t budget_ns;
	int64_t hold_off_ns;	  /* the least */
	int64_t hold_off_most_ns; /* the same, unless it is learned */
	int64_t wait_ns;	  /* longest wait at one launch */
	int64_t slice_ns;	  /* best effort: longest segment; 0 = no limit, -1 = as the daemon's mechanism needs */
	int64_t flight_ns;	  /* most work in flight on streams of lower priority; 0 = streams are not told apart */
	int64_t in_flight_ns;	  /* what flight_ns becomes when they are */
	int64_t bound_ns;     /* best effort, where launches are all that can be held: most work in flight; 0 = any */
	bool cuda_priorities; /* they are by the priority that CUDA knows */
	enum segments_mode mode;
	enum calls_mode calls;
	bool touch; /* real time: have the GPU switch to the program before expected begins */
	bool verbose;
};

#define HOLD_OFF_LEAST_NS (200 * NS_PER_US)
#define HOLD_OFF_STEPS 4 /* each is twice the one before */
#define HOLD_OFF_MOST_NS (HOLD_OFF_LEAST_NS << (HOLD_OFF_STEPS - 1))
#define WAIT_DEFAULT_NS (10 * NS_PER_S)
#define WAIT_LEAST_NS NS_PER_MS
#define SLICE_GATE_NS (500 * NS_PER_US)
#define SLICE_BY_MECHANISM (-1)
#define FLIGHT_DEFAULT_NS (500 * NS_PER_US)

/* Read the environment. False: a variable is wrong, and a line has said which. */
bool settings_read(struct settings *settings);

/* "200us", "5ms", "1s", "250ns", "0" to nanoseconds. False if it is none of these or beyond an hour. */
bool duration_read(const char *text, int64_t *ns);

/* "on" or "off". False if it is neither. */
bool touch_read(const char *text, bool *touch);

/* One line on stderr: "gpuseg: NAME[PID]: ...". Thread-safe, allocates nothing. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- process.c: one instance for each process ---- */

#define GPUS_MAX GPUSEG_GPUS_MAX
#define CONTEXTS_MAX 64
#define STREAM_SETS 128
#define STREAM_WAYS 8
#define STREAMS_MAX (STREAM_SETS * STREAM_WAYS)
#define EVENTS_MAX 4096 /* 2^12: event_slot() */
#define CAPTURES_MAX 64
#define PAGE_WORDS (2 * STREAMS_MAX)
#define TOUCH_WORD STREAMS_MAX /* of the page; those before it are of streams */
#define AWAITED_NS (10 * NS_PER_S)
#define COSTS_MAX 1024 /* 2^10: cost_of() */
#define BATCH_MAX 64
#define KERNEL_CLASSES (GPUSEG_KERNELS_LONG + 1)
#define RANKS_MAX 64

enum segment_state { SEGMENT_NONE_OPEN, SEGMENT_BEGINNING, SEGMENT_OPEN };

enum task_state {
	TASK_UNKNOWN, /* not asked for yet */
	TASK_WANTED,  /* the library's thread is to open it */
	TASK_READY,
	TASK_REFUSED /* no daemon, or it refused: unmanaged for good */
};

/* Pauses of the program between the end of its work and the next launch, and what follows from them: hold_off.c. */
struct pauses {
	int64_t hold_off_ns; /* 0 = nothing learned yet */
	int64_t latest_ns;   /* begin of the latest one that was counted */
	unsigned int seen;
	unsigned int count[HOLD_OFF_STEPS + 1]; /* those that end before the hold-off of that step; last: later */
	int64_t sum_ns[HOLD_OFF_STEPS + 1];
};

/* Time of the latest batches by the class of their kernels: kernels.c. */
struct kernel_times {
	int64_t ns[KERNEL_CLASSES];
	int64_t percent_ns; /* of the GPU's room for blocks, times ns */
	int64_t longest_ns; /* of a single kernel; falls slowly */
};

/* A GPU that the program uses: one task, at most one open segment. */
struct gpu {
	int index; /* the daemon's; -1 = entry not in use */
	char pci[20];
	enum task_state task_state;
	gpuseg_task *task;
	enum segment_state segment;
	bool marked;	      /* gpuseg_begin() of the open segment succeeded, so it is to be ended */
	uint32_t generation;  /* futex: changes when `segment` or `task_state` does */
	unsigned int waiters; /* threads that wait for a change */
	unsigned int held;    /* launches that wait, for the daemon or for others: the segment stays open */
	int64_t bound_ns;     /* of the open segment: most work in flight on all streams; 0 = any */
	unsigned int busy;    /* streams with work */
	int64_t opened_ns;
	int64_t launch_ns;	    /* latest launch */
	int64_t idle_ns;	    /* since when no stream has work */
	int64_t busy_ns;	    /* since when one has */
	int64_t worked_ns;	    /* of the open segment: how long streams had work, until idle_ns */
	int64_t untracked_until_ns; /* work on streams that did not fit into the table is taken to be done by then */
	int64_t unmanaged_until_ns; /* after a wait that reached its limit */
	struct pauses pauses;
	uint64_t segments; /* begun so far */
	/* Segments of limited length: how many launches are taken to make up one, and how many it has. */
	unsigned int slice_launches;
	unsigned int launched;
	/* Work in flight on streams of lower priority: flight.c. */
	int64_t flight_ns; /* what it is thought to take */
	int64_t batch_ns;  /* when its first launch came */
	unsigned int batch_count;
	uintptr_t batch[BATCH_MAX];
	unsigned int batch_kernels; /* whose share of the GPU is known, and the sum of these shares */
	unsigned int batch_percent;
	bool batch_opaque; /* something else is in it, such as a graph */
	struct kernel_times kernels;
	bool draining; /* the slice is used up: launches wait until the work in flight is done */
	/* Touches before expected begins: touch.c. */
	struct context *used;	      /* of the latest launch */
	bool touch_runs;	      /* the thread */
	bool was_expected;	      /* the daemon has expected a begin */
	const uint32_t *touch_sleeps; /* futex that it sleeps on */
	uint64_t touches;
};

/* A context of CUDA, with the page into which the GPU writes markers. */
struct context {
	CUcontext handle;
	uint32_t uid; /* 0 = entry not in use */
	CUdevice device;
	struct gpu *gpu;
	uint32_t *page; /* PAGE_WORDS words, shared with the GPU; stays mapped for the life of the process */
	CUdeviceptr device_page;
	uint32_t syncing; /* threads that wait for all of its streams */
	bool page_tried;
	bool no_markers;       /* the driver refused one: ask by cuStreamQuery */
	CUstream touch_stream; /* NULL: not created yet */
	uint32_t touch_value;  /* that the latest touch writes */
	bool touch_off;	       /* a call of the driver for it failed */
};

/* A stream that work was launched on. Busy while entered > 0 or last > done. */
struct stream {
	uint32_t uid;	/* of its context; 0 = entry not in use */
	uint32_t owner; /* thread id for the default stream of a thread, else 0 */
	uintptr_t handle;
	struct context *context;
	uint32_t use;	  /* of this entry: changes when another stream takes it */
	uint32_t entered; /* launches between entry and exit */
	uint32_t syncing; /* threads that wait for it: the end of their wait tells that it is done */
	uint32_t pinned;  /* launches that wait before they enter: the entry stays */
	bool gone;	  /* destroyed: its handle must not be used */
	uint64_t last;	  /* number of the latest launch that has returned */
	uint64_t done;	  /* launches up to this number are complete */
	int64_t launch_ns;
	uint64_t marker;       /* launches up to this number precede the marker that is under way; 0 = none */
	uint32_t value;	       /* latest number given to a marker */
	uint32_t marker_value; /* that the marker under way writes */
	int64_t marker_ns;
	int priority; /* of CUDA: lower numbers go first */
	bool priority_known;
};

struct event {
	uintptr_t handle;
	uint32_t stream; /* index */
	uint32_t use;
	uint64_t number; /* launches of the stream up to this number precede it */
};

/* A stream that works for a task of the program. */
struct rank {
	uintptr_t handle;
	int priority; /* compares with those of CUDA: lower goes first */
};

/* How long a kernel or a graph takes, and how many blocks of it the GPU can hold at a time. */
struct cost {
	uintptr_t function;
	int64_t ns;
	uint32_t room; /* 0 = not asked yet */
};

/* Of a kernel that is being launched. */
struct shape {
	uint64_t blocks;
	uint32_t threads; /* of a block */
	uint32_t shared;  /* dynamic shared memory of a block, bytes */
};

#define PERCENT_UNKNOWN (-1)
#define PERCENT_NONE (-2) /* no kernel: a copy */

struct inject {
	struct settings settings;
	struct driver driver;
	struct occupancy occupancy; /* NULL where the driver has none */
	struct identity identity;   /* the same */
	struct touching touching;   /* the same */
	struct cupti cupti;
	void *subscriber;
	uint32_t active;  /* atomic: 1 = calls are followed. Written with release, read with acquire */
	uint32_t by_hand; /* atomic: the program marks its segments itself */
	uint32_t ranked;  /* atomic: it has given a stream a task, so launches are followed even then */

	pthread_mutex_t lock; /* guards all below; inherits priority */
	uint64_t launches;    /* numbers given */
	struct gpu gpus[GPUS_MAX];
	struct context contexts[CONTEXTS_MAX];
	struct stream streams[STREAMS_MAX];
	uint64_t to_look_at[STREAMS_MAX / 64]; /* bit for each stream that is busy or has a marker under way */
	struct event events[EVENTS_MAX];
	struct cost costs[COSTS_MAX];
	int top_priority; /* of all streams seen */
	struct rank ranks[RANKS_MAX];
	unsigned int rank_count;
	uintptr_t captures[CAPTURES_MAX]; /* streams that are being captured */
	unsigned int capture_count;	  /* also read without the lock, relaxed, to skip a call of the driver */
	gpuseg_client *client;

	pthread_mutex_t device_lock;

	bool thread_runs;     /* the library's own */
	uint32_t thread_word; /* futex: 1 = there is something to do */
	uint32_t thread_sleeps;
	bool wake_due; /* a segment was begun; the thread is to be woken */
	uint32_t stop;
	uint32_t stopped;
	uint32_t touchers; /* atomic, futex: threads that touch */
};

extern struct inject inject;

void inject_lock(void);
void inject_unlock(void);

/* Does the program mark its segments itself, with nothing else to be done for it? */
static inline bool nothing_to_do(void)
{
	return __atomic_load_n(&inject.by_hand, __ATOMIC_ACQUIRE) && !__atomic_load_n(&inject.ranked, __ATOMIC_ACQUIRE);
}

/* True if device_lock was had within its limit. */
bool device_lock(void);
void device_unlock(void);

/* Follow no call any more. The open segments end. Any thread. */
void deactivate(void);

/* ---- driver.c ---- */

/* Find a function of a loaded library; never a wrapper of it. */
void *symbol_of(void *library, const char *name);
/* Fill the table of functions. The name of one that is missing, or NULL. */
const char *resolve(void *library, void *table, const char *const *names, size_t count);
/* Find libcuda's functions. False: one line has said why not. */
bool driver_load(void);

/* ---- calls.c ---- */

/* A call of a function that is followed. */
struct call {
	const struct function *function;
	const uintptr_t *arguments;
	CUcontext context;    /* current one of the thread, or NULL */
	uint32_t context_uid; /* never used again in the process */
	CUresult result;      /* at the exit */
	uint64_t *word;	      /* one for each call, kept from entry to exit */
};

/* Before the driver is called. False: the call is not followed. */
bool call_entered(const struct call *call);
/* The driver has returned. */
void call_left(const struct call *call);
/* The calls of this thread are never followed. */
void calls_are_our_own(void);
/* Is this library calling the driver? */
bool call_is_our_own(void);

/* ---- by_wrapper.c ---- */

struct wrap;
/* The preloaded wrappers of the driver's functions, if they are there and of the same build; else NULL. */
const struct wrap *wrappers(void);
/* Follow calls by them. False: they are not there, or calls can pass them by; then *why says so, or is NULL. */
bool wrappers_follow(const char **why);
void wrappers_stop(void);

/* ---- cupti.c ---- */

/* Load a libcupti that fits. False: one line has said why not. */
bool cupti_load(void);

/* ---- by_cupti.c ---- */

/* Follow calls by CUPTI's callbacks. False: one line has said why not. */
bool cupti_follow(void);
/* Follow none, but count those that come by no wrapper. */
bool cupti_watch(void);
/* Say how many there were, if they were watched in this process. */
void cupti_say_what_passed_by(void);

/* ---- streams.c; all with inject.lock held ---- */

static inline bool stream_busy(const struct stream *s)
{
	return s->entered > 0 || s->last > s->done;
}

/* Does a thread of the program wait for the stream? Not after AWAITED_NS: the thread may have been ended. */
static inline bool stream_awaited(const struct stream *s, int64_t at_ns)
{
	return (s->syncing > 0 || s->context->syncing > 0) && at_ns - s->launch_ns < AWAITED_NS;
}

/* The context of this call; a new one is entered into the table. NULL: the table is full or no device is known. */
struct context *context_find(CUcontext handle, uint32_t uid);
/* The entry of the stream; NULL if the table is full of busy ones. */
struct stream *stream_find(struct context *context, uintptr_t handle, uint32_t owner);
/* The same, but NULL if it has no entry. */
struct stream *stream_known(struct context *context, uintptr_t handle, uint32_t owner);
/* Launches of all streams of a context up to `number` are done. */
void streams_done(uint32_t uid, uint64_t number);
/* An event was recorded on the stream; NULL: it says nothing about work that is followed. */
void event_recorded(uintptr_t handle, const struct stream *stream);
/* What precedes the event is done. */
void event_done(uintptr_t handle);
/* Launches of the stream up to `number` are done. */
void stream_done(struct stream *stream, uint64_t number);
/* A launch enters, leaves. */
void stream_enter(struct stream *stream, int64_t at_ns);
void stream_leave(struct stream *stream, bool launched);
/* Its work can't be followed any more: take it to be done some time from now. */
void stream_lose(struct stream *stream);
/* The context is being destroyed: forget its streams. */
void context_forget(struct context *context);

/* ---- segments.c; all with inject.lock held ---- */

/* Wake those who wait for a change of the GPU's state. */
void gpu_changed(struct gpu *gpu);

/*
 * Begin a segment if none is open. May release the lock and wait. True: one is open, and the caller may count its
 * launch before it releases the lock. `graph`: a graph is being launched.
 */
bool segment_enter(struct gpu *gpu, bool graph);
/* A stream has work while none had; all work is done. */
void segment_busy(struct gpu *gpu, int64_t at_ns);
void segment_idle(struct gpu *gpu, int64_t at_ns);
/* End the segment of every GPU that was idle for the hold-off. Returns when to look again; INT64_MAX = never. */
int64_t segments_look(int64_t at_ns);
/* End the open segment, whatever runs. */
void segment_end(struct gpu *gpu);
/* A wait has reached its limit: run unmanaged for a while, and say so. */
void segment_give_up(struct gpu *gpu, const char *what);

/* ---- hold_off.c; all with inject.lock held ---- */

/* A launch comes and finds no work: learn from the pause before it. */
void hold_off_learn(struct gpu *gpu, int64_t at_ns);
/* Since when nothing has happened on the GPU. */
int64_t quiet_since_ns(const struct gpu *gpu);
/* For how long after that the segment stays open. */
int64_t hold_off_ns(const struct gpu *gpu);

/* ---- held.c; all with inject.lock held ---- */

/* Wait while the daemon holds launches. Releases the lock meanwhile. False: the segment has ended. */
bool held_wait(struct gpu *gpu);
/* Does the daemon hold launches now? */
bool held_now(const struct gpu *gpu);
/* The bound on all work in flight that the daemon's mechanism needs in the segment that was begun; 0 = none. */
int64_t held_bound(const struct gpu *gpu);

/* ---- markers.c ---- */

/* Have the GPU say when the work of the stream is done. device_lock held, lock not. */
void marker_write(struct stream *stream);
/* The same for the default stream of the calling thread, at the exit of a launch. Neither lock held. */
void marker_write_own(struct stream *stream, uint32_t use);
/* Look whether markers have been written by the GPU. Lock held. */
void markers_look(void);
/* Give the context a page for markers. device_lock held, lock not. */
void marker_page(struct context *context);

/* ---- flight.c; all with inject.lock held ---- */

/* Is there anything to look at before a launch? */
static inline bool flight_wanted(const struct gpu *gpu)
{
	return inject.settings.flight_ns > 0 || gpu->bound_ns > 0;
}

/* Does the stream give way to others, or is all work bounded? */
bool flight_applies(const struct stream *stream);
void flight_note_priority(struct stream *stream, int priority);
/* The stream works for a task of priority `rank`, 1..99, 0 = best effort; -1 = for none. 0, -EINVAL or -ENOSPC. */
int flight_set_rank(uintptr_t handle, int rank);
/* True if it works for a task, and then its priority. */
bool flight_rank(uintptr_t handle, int *priority);
/* Wait until a launch on the stream may go ahead. Releases the lock meanwhile. */
void flight_wait(struct stream *stream);
/* A kernel, or whatever `function` stands for, is being launched on it; `percent` as of kernels_percent(). */
void flight_launched(struct stream *stream, uintptr_t function, int percent, int64_t at_ns);
/* The most work that may be in flight. */
int64_t flight_limit_ns(void);
/* What is known of a function; new ones are thought to take as long as the limit. */
struct cost *cost_of(uintptr_t function);
/* Is there work on a stream of the GPU that gives way? */
bool flight_lower_busy(const struct gpu *gpu);
/* No work on such streams is left. */
void flight_landed(struct gpu *gpu, int64_t at_ns);

/* ---- kernels.c; all with inject.lock held ---- */

/* How much of the GPU's room for such blocks a kernel uses, 0..100, or PERCENT_UNKNOWN. May release the lock. */
int kernels_percent(const struct context *context, uintptr_t function, const struct shape *shape);
/* A batch is done; `longest_ns`: what the longest of it is thought to take. */
void kernels_landed(struct gpu *gpu, int64_t took_ns, int64_t longest_ns);
/* Tell the daemon whether any work is in flight. */
void kernels_busy(const struct gpu *gpu);
void kernels_idle(const struct gpu *gpu, int64_t at_ns);

/* ---- thread.c ---- */

/* Start the library's thread, once. False: it can't be started, and a line has said so. Lock held. */
bool thread_start(void);
/* Wake it if it sleeps. Lock held. */
void thread_wake(void);
/* End it and those of touch.c; waits at most a second. */
void thread_stop(void);
/* Start a thread that the program does not notice. 0 or an errno. */
int thread_of_our_own(void *(*run)(void *), void *arg);

/* ---- touch.c ---- */

/* The task of the GPU is open: see to its touches from here on, if they are wanted. Lock held. */
void touch_start(struct gpu *gpu);
/* Wait until its threads have ended; inject.stop is set. */
void touch_stop(int64_t until_ns);

#endif /* GPUSEG_INJECT_H */
