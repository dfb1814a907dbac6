/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - the segments of a job as text: "cpu:2ms,gpu:1ms+4ms,cpu:3ms" (gpu: host part + device part). */
#ifndef GPUSEG_DEMO_SEGMENTS_H
#define GPUSEG_DEMO_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

enum { SEGMENTS_MAX = 64 };

enum segment_kind { SEGMENT_CPU, SEGMENT_GPU };

struct segment {
	enum segment_kind kind;
	int64_t cpu_ns;	   /* CPU work; of a GPU segment its host part */
	int64_t device_ns; /* 0 for a CPU segment */
};

/*
 * Number of segments, or -EINVAL with one line in `error` that names the wrong segment, its text and the remedy.
 */
int parse_segments(const char *text, struct segment segments[SEGMENTS_MAX], char *error, size_t error_size);

#endif /* GPUSEG_DEMO_SEGMENTS_H */
