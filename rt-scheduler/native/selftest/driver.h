/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - what the test of one mechanism has of its own. driver_nvidia.c, driver_tegra.c and driver_amd.c define one
 * each; machine.c chooses by the device files. All but machine() runs in the helper, on one child at a time, which is
 * attached unless it is said otherwise. Results: 0, -errno, or (nvidia) an RM status > 0.
 */
#ifndef GPUSEG_SELFTEST_DRIVER_H
#define GPUSEG_SELFTEST_DRIVER_H

#include "selftest.h"

struct driver {
	const char *mechanism; /* name in gpuseg */
	uint32_t number;       /* enum gpuseg_mechanism */
	bool hip;	       /* the children's kernels go through HIP, not CUDA */
	const char *preload;   /* library for the children; NULL = none */
	const char *found;     /* title of ROW_CHANNELS */
	/* which rows there are beside those of all */
	bool gsp, lists, counts, interface;
	/* us; 0: no slices. long: short is 8 or more */
	uint32_t long_us, short_us, whole_us;
	bool notes_slices;	 /* the watchdog gives them back, too */
	const char *lower_level; /* where no running work can be disabled: level, and the result in words */
	const char *lower_sentence;

	/* Of this machine: 0, or -ENODEV with the reason in `why`. */
	int (*machine)(struct machine *machine, char *why, size_t size);
	/* Not attached; a duplicate of before is closed. Fills status and all that it knows of *answer. */
	void (*attach)(int child, const struct order *order, struct answer *answer);
	void (*detach)(int child);
	int64_t (*switch_child)(int child, bool disable, struct answer *answer);
	int64_t (*set_slice)(int child, uint64_t us);
	int64_t (*get_slice)(int child, uint64_t *us);
	int64_t (*restore_slices)(int child);
	/* In a process that stands for a daemon: notes, as the daemon does, and then disables. 0 or another number. */
	int64_t (*hold)(int child, struct gpuseg_held_entry *entries);
	void (*beat)(void); /* NULL, or what a daemon does all the time */
};

extern const struct driver driver_nvidia, driver_tegra, driver_amd;
extern const struct driver *driver; /* that of this machine */

/* A note in the held file, complete with its state. */
void note_held(struct gpuseg_held_entry *entry, pid_t pid, const void *payload, size_t size, uint32_t state);

/* Files by which the system describes itself; with a stand-in of the driver those below $GPUSEG_SELFTEST_ROOT. */
const char *machine_path(const char *path);
bool machine_has(const char *path);
/* "" if it cannot be read, and false. */
bool machine_text(const char *path, char *text, size_t size);
/* What follows KEY in a line, without blanks at both ends; "" if there is none. */
void machine_line(const char *text, const char *key, char *value, size_t size);

#endif /* GPUSEG_SELFTEST_DRIVER_H */
