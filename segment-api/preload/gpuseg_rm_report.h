/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_rm_report.h - how libgpuseg-preload.so reports the RM objects of a process to the daemon.
 *
 * The report is a memfd of the application, named GPUSEG_RM_REPORT_NAME, close-on-exec. The daemon finds it when it
 * searches /proc/<pid>/fd for control descriptors, and reads it through /proc/<pid>/fd/<n>. It needs no file, directory
 * or permission. It ends with the process; a forked child creates its own, and exec closes it.
 *
 *   0      4        8     12      16     20           32
 *   +------+--------+-----+-------+------+------------+---------------------------------------------+
 *   | magic| version| pid | count | lost | reserved   | entry 0 (32 bytes) | entry 1 | ...          |
 *   +------+--------+-----+-------+------+------------+---------------------------------------------+
 *
 * W: the application, any thread; an entry is complete before `count` (release) covers it. R: the daemon, which does
 * not trust it: it asks the driver for the class of each handle before it uses the handle.
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
	int32_t fd; /* descriptor of the call, in the application */
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
	int32_t pid;	  /* of the process that created it; for a forked child the report is wrong */
	uint32_t count;	  /* release */
	uint32_t lost;	  /* entries that did not fit: the daemon then searches by itself */
	uint32_t reserved[3];
	struct gpuseg_rm_report_entry entries[GPUSEG_RM_REPORT_ENTRIES];
};

#endif /* GPUSEG_RM_REPORT_H */
