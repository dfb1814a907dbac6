/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spanlog.h - the execution log: gpuseg_sim_span records in native byte order, buffered and appended to a file.
 */
#ifndef GPUSEG_VGPU_SPANLOG_H
#define GPUSEG_VGPU_SPANLOG_H

#include <stdint.h>

#include "gpuseg_abi.h"

enum { SPANLOG_BUFFER = 2048 };

struct spanlog {
	int fd;		/* -1: no log */
	int error;	/* 0, or the -errno of the write that ended the log */
	int64_t due_ns; /* when the buffer must be written; INT64_MAX: it is empty */
	uint32_t count;
	struct gpuseg_sim_span buffer[SPANLOG_BUFFER];
};

int spanlog_open(struct spanlog *log, const char *path); /* truncates; path NULL: no log. 0 or -errno */
void spanlog_append(struct spanlog *log, const struct gpuseg_sim_span *span);
void spanlog_flush(struct spanlog *log);
int spanlog_close(struct spanlog *log); /* 0, or the first error of the log */

#endif /* GPUSEG_VGPU_SPANLOG_H */
