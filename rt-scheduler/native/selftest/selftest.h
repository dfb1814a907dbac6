/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.h - the parts of gpuseg-selftest:
 *
 *   parent (main.c, checks.c)  starts the others, watches, judges. Makes no call of the driver, so none can stop it
 *   child a, b (child.c)       CUDA or HIP programs with endless short kernels; the GPU counts them in shared memory
 *   helper (helper.c)          makes all calls of the driver, on the children alone. When the parent has ended or says
 *                              so, it enables what it disabled and restores time slices. One that hangs is replaced.
 *                              What differs between drivers is in driver.h
 */
#ifndef GPUSEG_SELFTEST_H
#define GPUSEG_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "gpuseg_abi.h"

/* ---- a child's page, a memory file ---- */

enum child_state { CHILD_STARTING, CHILD_READY, CHILD_FAILED };
enum child_mode { CHILD_IDLE, CHILD_ENDLESS };

struct child_page {
	/* W: the GPU, when a kernel has finished. R: all */
	uint64_t count;
	uint64_t result; /* what the kernel computed, so that it cannot be left out */
	uint8_t registered[4096 - 16];
	/* W: the child (release). R: the parent */
	uint32_t state;
	uint32_t answered;
	uint64_t launched;
	int64_t took_ns;     /* the begin that was answered last; -1 = its kernel did not end in time */
	int64_t kernel_ns;   /* one short kernel alone, as measured at start */
	uint32_t iterations; /* of a short kernel; once the child is ready W: the parent */
	int32_t persistence; /* persistence mode of the GPU: 0, 1; -1 = unknown */
	char gpu[64];
	char reason[160]; /* CHILD_FAILED */
	/* W: the parent (release). R: the child */
	uint32_t mode;
	uint32_t scale;	  /* a kernel of the endless sequence is so many short ones long */
	uint32_t request; /* another number: one short kernel, please, and how long it takes */
	uint32_t limit;	  /* 0, or the number of kernels after which the child ends */
};

/* The program of a child: never returns. fd: its page. */
__attribute__((noreturn)) void child_main(int fd, pid_t parent);

/* ---- helper ---- */

enum { CHILD_A, CHILD_B, CHILDREN };

enum order_code {
	ORDER_ATTACH,	 /* child, pid; argument: its own time slice in us, 0 = ask the driver */
	ORDER_DETACH,	 /* child */
	ORDER_SWITCH,	 /* child; argument: 1 disable, 0 enable */
	ORDER_SLICE,	 /* child; argument: us */
	ORDER_GET_SLICE, /* child */
	ORDER_HOLD,	 /* child; directory: a process that disables it and notes that, as a daemon does */
	ORDER_GIVE_BACK	 /* enables all, own time slices */
};

struct order {
	uint32_t number; /* helper_call() sets it; the answer has the same */
	enum order_code code;
	int child;
	pid_t pid;
	uint64_t argument;
	char directory[64];
};

struct answer {
	uint32_t number;
	int64_t status; /* 0, -errno, or an RM status (> 0) */
	int64_t took_ns;
	uint64_t value; /* time slice in us; pid of the holder */
	/* of a disable that is two calls, the second: its time, and whether it is what failed */
	int64_t preempt_ns;
	bool preempt_failed;
	/* of an attach */
	int listed;	    /* what the driver's list has of the child, or -errno */
	char found[64];	    /* how much was found */
	char how[160];	    /* how it was, or why it was not */
	char interface[64]; /* what disables, and how it reaches the hardware */
	char missing[160];  /* why no better interface does */
};

/* Forks the helper; 0 or -errno. The helper of before, if any, is killed. */
int helper_start(void);
/* 0: see answer->status. -ETIMEDOUT: the call has not returned. -EPIPE: the helper has died. -EINTR: asked to stop. */
int helper_call(const struct order *order, struct answer *answer);
/* Gives back and ends; kills what does not. */
void helper_stop(void);

/* The pid is a child of this very process, dead or alive; only such are ever touched. */
bool is_child_of(pid_t pid, pid_t parent);

/* ---- report ---- */

enum verdict { UNDECIDED, WORKS, DOES_NOT, NOT_SUPPORTED, SKIPPED }; /* at the end none is undecided */

enum row_id {
	ROW_DRIVER,
	ROW_GSP,
	ROW_INTERFACE,
	ROW_RIGHTS,
	ROW_CHILDREN,
	ROW_CHANNELS,
	ROW_LISTED,
	ROW_DISABLE,
	ROW_ENABLE,
	ROW_OTHERS,
	ROW_INTERRUPT,
	ROW_RESULTS,
	ROW_COUNTED,
	ROW_CALLS,
	ROW_SLICE,
	ROW_SLICE_HOLDS,
	ROW_BEGIN,
	ROW_WATCHDOG,
	ROW_KILLED,
	ROW_EXEC,
	ROW_OBSERVER,
	ROWS
};

enum series_id {
	SERIES_DISABLE,	     /* us of a call */
	SERIES_ENABLE,	     /* us of a call */
	SERIES_PREEMPT,	     /* us of the second call of a disable */
	SERIES_SET_SLICE,    /* us of a call */
	SERIES_QUERY,	     /* us of a call */
	SERIES_STOP,	     /* us from the return of a disable to the last kernel seen, at least */
	SERIES_RESUME,	     /* us from an enable to the next kernels, at most */
	SERIES_BEGIN_ALONE,  /* us of a short kernel */
	SERIES_BEGIN_DRIVER, /* beside endless kernels, own slices */
	SERIES_BEGIN_SLICES, /* long and short slices, no call */
	SERIES_BEGIN_CALL,   /* the same, the others are disabled meanwhile */
	SERIES
};

#define SAMPLES_MAX 64

struct row {
	enum verdict verdict;
	char value[96];
	char reason[200];
};

struct series {
	double us[SAMPLES_MAX];
	unsigned count;
};

struct machine {
	char driver[64];   /* version */
	char flavour[16];  /* open, closed, nvgpu, amdgpu */
	char model[64];	   /* of the first GPU */
	char known_as[64]; /* the GPU as a file names it, or "": doctor compares it */
	char gsp[64];	   /* version, "N/A" or "" */
	char kernel[64];   /* version, without what its builder added */
	char hardware[16]; /* architecture */
	char board[64];	   /* of a device tree, or "" */
	long cpus;
	int memory_gib;
	int gpus;
	int persistence;
	bool standin;
};

struct report {
	struct row rows[ROWS];
	struct series series[SERIES];
	struct machine machine;
	char program_hash[65];
	char level[16];	    /* preempts, drains, slices, launch, gate, nothing */
	char sentence[600]; /* the same in words, and what holds */
	bool started;	    /* both children ran */
	int exit_status;
	int64_t took_ns;
};

extern struct report report;

/* Whether this driver's report has the row. */
bool row_is_made(enum row_id id);

__attribute__((format(printf, 4, 5))) void row_set(enum row_id id, enum verdict verdict, const char *value,
						   const char *reason, ...);
void series_add(enum series_id id, int64_t ns);
double series_quantile(enum series_id id, double share); /* us; 0 without samples */
void report_table(FILE *out);
void report_json(FILE *out);

/* Leaves the result of a test that ran for gpuseg doctor; says why if it cannot. */
void leave_result(void);

/* Reads what the system says, and chooses the driver. 0, or -ENODEV with the reason in `why`. */
int machine_read(struct machine *machine, char *why, size_t size);
void check_rights(void);
void check_observer(void);

/* SHA-256 of a file in hexadecimal digits, by sha256sum of coreutils; 0 or -errno. */
int file_hash(const char *path, char digits[65]);

/* ---- checks ---- */

/* Set by a signal: every wait ends, what was disabled is enabled, the program ends. */
extern volatile int stopping;

/* Runs all that need a GPU, and gives everything back. */
void run_checks(void);

#endif /* GPUSEG_SELFTEST_H */
