/* SPDX-License-Identifier: Apache-2.0 */
/* markers.h - the GPU says when the work of a stream is done. */
#ifndef GPUSEG_INJECT_MARKERS_H
#define GPUSEG_INJECT_MARKERS_H

#include <stdbool.h>
#include <stdint.h>

struct context;
struct stream;

/* Have the GPU say when the work of the stream is done. device_lock held, lock not. */
void marker_write(struct stream *stream);
/* The same for the default stream of the calling thread, at the exit of a launch. Neither lock held. */
void marker_write_own(struct stream *stream, uint32_t use);
/* Look whether markers have been written by the GPU. Lock held. */
void markers_look(void);
/* Give the context a page for markers. device_lock held, lock not. */
void marker_page(struct context *context);

#endif /* GPUSEG_INJECT_MARKERS_H */
