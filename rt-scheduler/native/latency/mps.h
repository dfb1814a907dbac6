/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps.h - a measurement among clients of an MPS server that runs already. Nothing of MPS is started or changed here.
 *
 * The driver looks for MPS once in each process, so that measurement has one of its own: this program, executed anew,
 * whose loads are its children. What is measured beside it is kept away from MPS.
 */
#ifndef GPUSEG_LATENCY_MPS_H
#define GPUSEG_LATENCY_MPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "latency/loads.h"
#include "latency/measure.h"

/*
 * Before the options, PERCENT of the multiprocessors: measures a space for `gpuseg calibrate`. Two measurements among
 * clients of MPS: "alone", the work under a limit of PERCENT, on as many blocks; and "space", the same beside --load,
 * each as best effort in a space under an equal part of the rest. JSON has execution, cpu_taken and in_flight besides.
 */
#define SPACE_ARGUMENT "--space"
#define MPS_ARGUMENT "--mps-process" /* of the child: DESCRIPTOR, and the parent's own arguments */

/* Shared. W: the parent, before the child starts; then the child. */
struct mps_page {
	struct plan plan; /* the work as it was calibrated outside of MPS */
	int limit;	  /* percent of the multiprocessors that each load may use; 0: no limit */
	int reserve;	  /* in a space: percent that the measured work may use; 0: no limit */
	bool alone;	  /* no load is started */
	struct load_order order;
	int gpu_index;
	uint32_t started; /* release: 1 = it has a context */
	uint32_t done;	  /* release: 1 = the measurement is complete */
	struct measurement measurement;
};

/* The pipe directory by which CUDA programs of this environment find MPS, if its control daemon lives. */
bool mps_find(char *directory, size_t size);

/* Percent of the multiprocessors that loads with a limit leave free together. */
#define MPS_ROOM 12

/* Loads that start from now on may use so many percent of the multiprocessors each, after the measured work. */
void mps_limit(int percent);

/* From now on contexts of this process and its children are outside of MPS. Before the driver is used. */
void mps_avoid(void);

/* Runs the child and waits. Its measurement, if it has samples, is copied. 0, or -1 after one line. */
int mps_run(const char *directory, const struct mps_page *order, char **argv, struct measurement *m);

/* In the child: the page, NULL after one line. */
struct mps_page *mps_take(const char *descriptor);

/* In the child: 0 if contexts on this GPU are the server's, -1 after one line. */
int mps_check(struct gpu *gpu, const struct mps_page *page);

#endif /* GPUSEG_LATENCY_MPS_H */
