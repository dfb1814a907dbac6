/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is judged does not depend on how busy the machine is: the GPU counts, a child stands still if the other one
 * counts meanwhile and it has work queued, and that it ran on is concluded only from two looks of which the earlier one
 * was late enough.
 *
 * children.c  their processes, and what the GPU counted
 * calls.c     the helper's answers, and what is done if none comes
 * slices.c    time slices, and begins beside them
 * notes.c     the watchdog
 * checks.c    all else
 */
#ifndef GPUSEG_SELFTEST_CHECKS_H
#define GPUSEG_SELFTEST_CHECKS_H

#include <stddef.h>

#include "common/base.h"
#include "selftest.h"

#define LOOK_NS (NS_PER_MS / 2)
#define PROGRESS_LIMIT_NS (10 * NS_PER_S)
#define END_LIMIT_NS (5 * NS_PER_S)    /* without a step of the process that is waited for */
#define START_LIMIT_NS (20 * NS_PER_S) /* eight CUDA programs that start at once take 9 s */
#define HOLD_NS (60 * NS_PER_MS)       /* how long a disabled child is watched */
#define LATE_NS (20 * NS_PER_MS)       /* a disable has to act sooner after it returned */
#define PROGRESS 20		       /* kernels */
#define RUNS_ON_NS NS_PER_S	       /* after a disable; then nobody waits for it any more */

struct child {
	pid_t pid; /* 0 = none, or it has ended */
	int status;
	struct child_page *page;
	uint64_t own_us; /* its time slice; 0 = unknown */
	bool attached;
};

extern struct child children[CHILDREN];
extern const char *const names[CHILDREN];

/* Why the checks that follow are left out; "" = they are not. The first reason stays. */
extern char over[160];
__attribute__((format(printf, 1, 2))) void give_up(const char *format, ...);

void nap(int64_t ns);

uint64_t count_of(const struct child *c);
uint64_t queued(const struct child *c);
bool has_work(const struct child *c);
/* Reaps it if it has ended; until then its pid is its own. */
bool lives(struct child *c);
const char *end_of(const struct child *c);
/* Both children, and nobody asked to stop. */
bool all_live(void);
/* program: NULL, or one that runs the child's. 0 or -errno. */
int start_child(struct child *c, const char *name, uint32_t limit, const char *program);
/* Ends it, whatever it does; false if it does not end. */
bool end_child(struct child *c, int64_t *took_ns);
/* Waits until the child is ready; "" or why it is not. */
const char *wait_ready(struct child *c);
void set_mode(struct child *c, enum child_mode mode, uint32_t scale);
/*
 * Waits until the child has finished `kernels` more. False if it stands still though it has work queued, or has none
 * for longer than PROGRESS_LIMIT_NS.
 */
bool progresses(struct child *c, uint64_t kernels);

/* After an enable. Late: the other child finished many kernels before this one did one. */
enum resumed { RESUMED, RESUMED_LATE, STANDS };
enum resumed resumes(struct child *c, const struct child *other);

struct stand {
	int64_t ran_on_ns; /* it certainly ran so long after the call had returned; 0 = not at all */
	bool stopped;
	bool again;    /* it stood still and ran again */
	bool had_work; /* at the end: else that it stood still proves nothing */
	bool other_ran;
};

/* Watches a child whose disable has returned, while the other one runs. */
struct stand watch_disabled(struct child *c, struct child *other, int64_t returned_ns, int64_t hold_ns);

/* 0 and *answer, or < 0 after which no further check is made. */
int call(enum order_code code, int child, uint64_t argument, struct answer *answer);
/* Says in the row that a call failed, or what the driver answered. */
void refused(enum row_id row, const char *what, int rc, int64_t status);

/* Sets a slice and asks for it. False: the row says why not. */
bool set_slice(int i, uint64_t us);
void check_slices(void);
void check_begin(void);

/* The path of a file in the directory of this program; whether it may be used so (X_OK, R_OK). */
bool beside(const char *name, int mode, char *path, size_t size);
void check_watchdog(void);

#endif /* GPUSEG_SELFTEST_CHECKS_H */
