/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tegra_state.h - what stands behind a TSG of the stand-in: one page of memory shared by all duplicates of the
 * descriptor (a memfd), so it lives as long as one is open, as a TSG does; and a file that all processes of a test
 * share.
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
	uint32_t disabled; /* DISABLE: nothing of it is put on the hardware any more */
	uint32_t off;	   /* PREEMPT while disabled: what ran is off too */
	uint32_t timeslice_us;
};

struct tegra_table {
	uint32_t next;
	uint32_t fail; /* the next so many DISABLEs answer -EIO */
	uint32_t disables;
	uint32_t preempts;
	uint32_t enables;
	uint32_t foreign; /* ioctls of type 'T' or 'S' that the stand-in does not know: must stay 0 */
	int32_t pids[TEGRA_TSGS];
};

#endif
