/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tegra_state.h - the state of the stand-in: for each TSG one page of memory (a memfd), which exists as long as one of
 * its duplicates is open, as a TSG does; and a file that all processes of a test share.
 */
#ifndef GPUSEG_TEGRA_STATE_H
#define GPUSEG_TEGRA_STATE_H

#include <stdint.h>

#define TEGRA_STATE_ENV "GPUSEG_TEGRA_STANDIN" /* path of the shared file, struct tegra_table */
#define TEGRA_TSG_NAME "gpuseg-tegra-tsg"
#define TEGRA_TSGS 256
#define TEGRA_TIMESLICE_US 1024

struct tegra_tsg {
	uint32_t tsgid;
	uint32_t disabled; /* DISABLE: no new work starts */
	uint32_t off;	   /* PREEMPT while disabled: running work was switched out, too */
	uint32_t timeslice_us;
};

struct tegra_table {
	uint32_t next;
	uint32_t fail; /* the next DISABLEs, as many as this, return -EIO */
	uint32_t disables;
	uint32_t preempts;
	uint32_t enables;
	uint32_t foreign; /* ioctls of type 'T' or 'S' that the stand-in does not know: must stay 0 */
	int32_t pids[TEGRA_TSGS];
};

#endif
