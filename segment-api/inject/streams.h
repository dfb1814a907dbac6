/* SPDX-License-Identifier: Apache-2.0 */
/* streams.h - which streams have work that is not known to be done. All with inject.lock held. */
#ifndef GPUSEG_INJECT_STREAMS_H
#define GPUSEG_INJECT_STREAMS_H

#include <stdbool.h>
#include <stdint.h>
#include "driver_api.h"
#include "platform.h"
#include "touch.h"

struct gpu;

#define CONTEXTS_MAX 64
#define STREAM_SETS 128
#define STREAM_WAYS 8
#define STREAMS_MAX (STREAM_SETS * STREAM_WAYS)
#define PAGE_WORDS (2 * STREAMS_MAX)
#define TOUCH_WORD STREAMS_MAX /* of the page; those before it are of streams */
#define AWAITED_NS (10 * NS_PER_S)

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
	bool no_markers; /* the driver refused one: ask by cuStreamQuery */
	struct touch_stream touch;
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

/*
 * streams.c writes it, except for a few fields of a stream and its context: the marker and the page (markers.c),
 * `syncing` and `gone` (calls.c), `pinned` (turn.c), the priority (flight.c, ranks.c), touches (touch.c).
 */
struct tracked {
	uint64_t launches; /* numbers given */
	struct context contexts[CONTEXTS_MAX];
	struct stream streams[STREAMS_MAX];
	uint64_t to_look_at[STREAMS_MAX / 64]; /* bit for each stream that is busy or has a marker under way */
};

extern struct tracked tracked;

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

#endif /* GPUSEG_INJECT_STREAMS_H */
