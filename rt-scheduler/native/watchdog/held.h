/* SPDX-License-Identifier: Apache-2.0 */
/* held.h - the watchdog's view of the daemon's files: which contexts are held, and by which daemon. */
#ifndef GPUSEG_WATCHDOG_HELD_H
#define GPUSEG_WATCHDOG_HELD_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/status_page.h"
#include "mechanism.h"

struct held_file {
	struct gpuseg_held *header; /* NULL: not mapped */
	struct gpuseg_held_entry *entries;
	uint32_t count;
	dev_t device;
	ino_t inode;
};

/*
 * Maps <directory>/held, or keeps the mapping if the file is still the same.
 * 0; -ENOENT: no such file; -EAGAIN: it is being created; -EPROTO: not a held file of this version; another -errno.
 */
int held_map(struct held_file *held, const char *directory);
void held_unmap(struct held_file *held);

/* Number of contexts that are held, that is, disabled by the daemon. */
unsigned held_count(const struct held_file *held);

/* Number of contexts whose time slices the daemon has changed. */
unsigned held_timeslices(const struct held_file *held);

enum release_outcome {
	RELEASE_ENABLED,
	RELEASE_GONE,	 /* the context or its process does not exist any more */
	RELEASE_REUSED,	 /* the pid belongs to another process now, which is left alone */
	RELEASE_UNKNOWN, /* this program cannot release this mechanism: the entry is kept */
	RELEASE_FAILED	 /* the entry is kept */
};

struct release_report {
	unsigned count[RELEASE_FAILED + 1]; /* by outcome */
	unsigned tried;			    /* whatever came of it, each of these may be enabled now */
	int first_error;		    /* of a failed one, -errno */
	unsigned timeslices;		    /* contexts whose time slices were restored */
	unsigned timeslices_failed;	    /* kept */
};

struct release_rule {
	bool clear;	      /* clear the entries that are done: only if no daemon owns the file */
	int64_t not_after_ns; /* later entries belong to another daemon */
	int64_t deadline_ns;
	/* Called for every entry that was handled; may be NULL. */
	void (*note)(const struct held_context *context, enum release_outcome outcome);
};

/*
 * Enables every held context. Idempotent: enabling an enabled context changes nothing. With `clear`, restores time
 * slices afterwards. They freeze no process, and while a daemon is alive they are its business.
 */
struct release_report held_release(struct held_file *held, const struct release_rule *rule);

static inline unsigned release_kept(const struct release_report *report)
{
	return report->count[RELEASE_UNKNOWN] + report->count[RELEASE_FAILED];
}

#endif /* GPUSEG_WATCHDOG_HELD_H */
