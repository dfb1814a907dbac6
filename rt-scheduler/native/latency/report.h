/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what was measured, as text, JSON, a page and plain lines. */
#ifndef GPUSEG_LATENCY_REPORT_H
#define GPUSEG_LATENCY_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "latency/loads.h"
#include "latency/measure.h"

enum { MEASUREMENTS_MAX = 5 };

struct report {
	const struct gpu *gpu;
	char system[160];    /* "Linux 6.12.0-rt x86_64" */
	char scheduling[32]; /* of the thread that measured */
	char daemon[64];     /* mechanism and policy, "" without --compare */
	struct work work;
	int64_t kernel_ns, period_ns, break_ns;
	int priority;
	const struct load *loads;
	int load_count;
	bool space;
	struct measurement measurements[MEASUREMENTS_MAX];
	int count;
	bool complete; /* false: ended early */
};

void report_text(const struct report *r, FILE *out);
void report_json(const struct report *r, FILE *out);
void report_histogram(const struct report *r, FILE *out); /* --histfile */
void report_page(const struct report *r, FILE *out);

/* "a kernel of 5 ms", "a copy of 8 MiB to the GPU"; and "kernels", "copies", "graphs". */
const char *work_text(const struct report *r, char *text, size_t size);
const char *works_text(const struct report *r);
/* "5 ms", "250 us", "1.5 s". */
const char *duration_text(int64_t ns, char *text, size_t size);
/* "products, copies"; a kind that runs twice is "2 x products". "none" if there are none. */
const char *loads_text(const struct report *r, char *text, size_t size);

/*
 * A file that appears whole or not at all: it is written beside its place and renamed. What is not a regular file is
 * written directly.
 */
struct output {
	const char *option, *path;
	char temporary[4096];
};

/* Says before the measurement whether the file can be made. 0, or -1 after one line. */
int output_check(struct output *output, const char *option, const char *path);
int output_write(struct output *output, const struct report *r, void (*write)(const struct report *, FILE *));

/* As cyclictest --breaktrace: writes a line into the kernel's trace and stops it. 1: done, 0: not permitted or none. */
int trace_stop(const char *directory, const char *text);

#endif /* GPUSEG_LATENCY_REPORT_H */
