/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_rm_report.h - how libgpuseg-preload.so tells the daemon which RM objects a process made.
 *
 * The report is a memfd of the application, named GPUSEG_RM_REPORT_NAME, close-on-exec: the daemon meets it while it
 * walks /proc/<pid>/fd for control descriptors and reads it through /proc/<pid>/fd/<n>. No file, no directory, no
 * permission to arrange; it dies with the process, a forked child makes its own, exec drops it.
 *
 *   0      4        8     12      16     20           32
 *   +------+--------+-----+-------+------+------------+---------------------------------------------+
 *   | magic| version| pid | count | lost | reserved   | entry 0 (32 bytes) | entry 1 | ...          |
 *   +------+--------+-----+-------+------+------------+---------------------------------------------+
 *
 * W: the application (any of its threads; an entry is complete before `count` covers it, release). R: the daemon, which
 * trusts nothing: a handle named here is asked for its class before it is used.
 */
#ifndef GPUSEG_RM_REPORT_H
#define GPUSEG_RM_REPORT_H

#include <stdint.h>

#define GPUSEG_RM_REPORT_MAGIC 0x52525347u /* "GSRR" */
#define GPUSEG_RM_REPORT_VERSION 1
#define GPUSEG_RM_REPORT_NAME "gpuseg-rm-report"
#define GPUSEG_RM_REPORT_ENTRIES 4096

enum gpuseg_rm_report_kind { GPUSEG_RM_REPORT_ALLOC = 1, GPUSEG_RM_REPORT_FREE = 2 };

struct gpuseg_rm_report_entry {
	uint32_t kind;
	int32_t fd; /* the descriptor the call went through, in the application's numbering */
	uint32_t client;
	uint32_t parent;
	uint32_t handle;
	uint32_t class_id; /* 0 for FREE */
	uint32_t engine;   /* TSG: engine type of its allocation; 1 = GR0 */
	uint32_t reserved;
};
_Static_assert(sizeof(struct gpuseg_rm_report_entry) == 32, "report entry");

struct gpuseg_rm_report {
	uint32_t magic;
	uint32_t version; /* published last with release */
	int32_t pid;	  /* of the process that made it: a fork inherits the descriptor, not the truth */
	uint32_t count;	  /* release */
	uint32_t lost;	  /* entries that did not fit: the reader then looks for itself */
	uint32_t reserved[3];
	struct gpuseg_rm_report_entry entries[GPUSEG_RM_REPORT_ENTRIES];
};

#endif /* GPUSEG_RM_REPORT_H */
