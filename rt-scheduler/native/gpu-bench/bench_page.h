/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_page.h - the page of a program of the GPU bench. CudaBench and the Python programs of this directory have its
 * offsets; BenchPageTest compares them.
 */
#ifndef GPUSEG_BENCH_PAGE_H
#define GPUSEG_BENCH_PAGE_H

#include <stdint.h>

#define BE_PAGE_BYTES 4096 /* size of the file; readers map all of it */

/* A small mapped file in which a best-effort process reports its progress to the bench. */
struct be_page {
	int32_t pid;
	uint32_t ready;
	uint32_t stop;
	uint32_t reserved; /* gpuseg-bench-rt: 1 = go (--gate), 2 = done (--stay); -proc: 1 = in the second context */
	uint64_t kernels;
	uint64_t wrong;
	int64_t last_ns; /* end of the last kernel */
	int64_t longest_ns;
	int64_t first_ns;
	int64_t mark_ns;  /* set by the observer, after it has set after_ns to 0 */
	int64_t after_ns; /* end of the first kernel that ended after mark_ns */
	int32_t child;	  /* gpuseg-bench-proc */
};

#endif /* GPUSEG_BENCH_PAGE_H */
