/* SPDX-License-Identifier: Apache-2.0 */
/* held.h - the watchdog's view of the daemon's files: which contexts are held disabled, and whose they are. */
#ifndef GPUSEG_WATCHDOG_HELD_H
#define GPUSEG_WATCHDOG_HELD_H

#include <stdbool.h>
#include <sys/types.h>

#include "mechanism.h"

struct held_file {
	struct gpuseg_held *header; /* NULL: not mapped */
	struct gpuseg_held_entry *entries;
	uint32_t count;
	dev_t device;
	ino_t inode;
};

/*
 * Maps <directory>/held, or keeps the mapping when the file is still the same one.
 * 0; -ENOENT: no such file; -EAGAIN: it is being created; -EPROTO: not a held file of this version; another -errno.
 */
int held_map(struct held_file *held, const char *directory);
void held_unmap(struct held_file *held);

/* How many contexts are held disabled. */
unsigned held_count(const struct held_file *held);

/* How many contexts have time slices that are not their own. */
unsigned held_timeslices(const struct held_file *held);

enum release_outcome {
	RELEASE_ENABLED,
	RELEASE_GONE,	 /* the context or its process does not exist any more */
	RELEASE_REUSED,	 /* the pid belongs to another process now, which was not touched */
	RELEASE_UNKNOWN, /* no release for this mechanism in this program: kept */
	RELEASE_FAILED	 /* kept */
};

struct release_report {
	unsigned count[RELEASE_FAILED + 1]; /* by outcome */
	int first_error;		    /* of a failed one, -errno */
	unsigned timeslices;		    /* contexts that have their own again */
	unsigned timeslices_failed;	    /* kept */
};

struct release_rule {
	bool clear;	      /* clear the entries that need nothing more: only when no daemon owns the file */
	int64_t not_after_ns; /* entries made later belong to somebody else */
	int64_t deadline_ns;
	/* Called for every entry touched; may be NULL. */
	void (*note)(const struct held_context *context, enum release_outcome outcome);
};

/*
 * Enables every context that is held disabled. Idempotent: enabling an enabled context changes nothing. With `clear`,
 * time slices are given back afterwards: nobody is frozen by them, and while a daemon lives they are its own.
 */
struct release_report held_release(struct held_file *held, const struct release_rule *rule);

static inline unsigned release_kept(const struct release_report *report)
{
	return report->count[RELEASE_UNKNOWN] + report->count[RELEASE_FAILED];
}

/*
 * Copies <directory>/status; read(2), so that a page truncated by a starting daemon cannot fault us.
 * 0; -ENOENT: no such file; -EAGAIN: it is being created; -EPROTO: not a status page of this version; another -errno.
 */
int status_read(struct gpuseg_status *status, const char *directory);

/* Whether the daemon that wrote the page is still that process. */
bool status_owner_lives(const struct gpuseg_status *status);

#endif /* GPUSEG_WATCHDOG_HELD_H */
