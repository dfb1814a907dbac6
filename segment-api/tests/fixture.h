/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - replaces the daemon in tests: a queue directory as Java creates it, a reader for it, and a daemon that
 * implements the registration protocol in a thread of the test.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuseg_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIXTURE_CYCLE_BYTES 1310720 /* result of blockSize 1 MiB */
#define FIXTURE_FIRST_DATA 65808    /* position of the first data document */

/* ---- files ---- */

/*
 * A fresh empty directory in /dev/shm or /tmp, or in $GPUSEG_TEST_BASE; its path is written to dir[64]. It is removed
 * when the process ends, whatever ends it; but a process that exits without having removed it fails.
 */
void fixture_directory(char dir[64]);
/* Remove a directory and what is in it. */
void fixture_remove(const char *dir);

/* metadata.cq4t and cycle 0, as chronicle-queue 2026.4 writes them (FAST_DAILY). The cycle file has `size` bytes. */
void fixture_queue_create(const char *dir, size_t size);
/* A further cycle file, complete but without data; not announced. */
void fixture_cycle_create(const char *dir, int64_t cycle, size_t size);
/* Announce it as Java does: listing.highestCycle, listing.modCount. */
void fixture_cycle_announce(const char *dir, int64_t cycle);
/* listing.highestCycle: every cycle up to it is complete. */
int64_t fixture_announced_cycle(const char *dir);
/* Path of a cycle file or of metadata.cq4t (cycle < 0). */
void fixture_path(const char *dir, int64_t cycle, char path[128]);
/* Map a file of the queue, shared and writable. */
uint8_t *fixture_map(const char *dir, int64_t cycle, size_t *size);
/* The write lock inside a mapped metadata.cq4t. */
int64_t *fixture_write_lock(uint8_t *meta, size_t size);

/* ---- reading and writing as the daemon does ---- */

struct fixture_tail {
	char dir[64];
	int64_t cycle;
	size_t position;
	size_t size;
	uint8_t *base;
};

void fixture_tail_open(struct fixture_tail *tail, const char *dir, int64_t cycle);
void fixture_tail_close(struct fixture_tail *tail);
/*
 * 1: a record; 0: nothing yet; 2: end of the cycle (the tail does not move); -1: a document that is not 64 bytes long.
 */
int fixture_tail_next(struct fixture_tail *tail, struct gpuseg_record *record);
/* Under the write lock, as a Java appender: end-of-data at the end of `from`, create `from` + 1 if it is not there,
 * announce it, put a ROLL record into it. */
void fixture_roll(const char *dir, int64_t from, size_t size);

/* ---- the daemon ---- */

enum fake_grants {
	FAKE_GRANT = 0, /* grant every begin at once */
	FAKE_IGNORE,	/* never */
	FAKE_REFUSE,	/* GPUSEG_VERDICT_REFUSED */
	FAKE_DELAY	/* grant after delay_ns */
};

/* How it answers a request for a file of the queue. */
enum fake_files {
	FAKE_FILE = 0,	     /* as it should */
	FAKE_FILE_NONE,	     /* no descriptor */
	FAKE_FILE_TWICE,     /* two */
	FAKE_FILE_READ_ONLY, /* one that cannot be written */
	FAKE_FILE_SHORT,     /* a file of 100 bytes */
	FAKE_FILE_NO_FILE,   /* an eventfd */
	FAKE_FILE_OTHER,     /* the metadata, whatever was asked for */
	FAKE_FILE_MISLABELED /* the right one, with another number */
};

#define FAKE_LOG_MAX 65536

struct fake_daemon {
	char dir[64]; /* runtime directory; the queue is in <dir>/q */
	char queue[64];
	char shown[64]; /* where clients find the runtime directory, if it is mounted there a second time; else "" */
	size_t cycle_bytes;
	int listener, connection, doorbell, session_fd;
	int stop_pipe[2];
	struct gpuseg_status *status;
	struct gpuseg_session *session; /* of the one client */
	struct gpuseg_slot *slots;
	pthread_t thread;
	bool running;
	bool busy_poll; /* for measurements */

	pthread_mutex_t mutex; /* guards all below, shared by the daemon's thread and the test */
	enum fake_grants grants;
	int64_t delay_ns;
	bool beat;		/* update the heartbeat */
	bool expects;		/* after each end say that the next begin is expected, to a client that asks */
	bool sleeps;		/* announce that it sleeps and wait for the doorbell, as an idle daemon does */
	int64_t sleep_ns;	/* longest sleep; default 15 ms */
	uint64_t slept_over;	/* sleeps that timed out with a record in the queue: its wake-up was lost */
	int refuse_status;	/* refuse HELLO or TASK_OPEN with this */
	int refuse_type;	/* enum gpuseg_msg_type */
	bool unsealed;		/* give a session that can be made shorter */
	uint32_t wrong_version; /* answer with this layout version */
	bool mute;		/* do not answer */
	uint32_t fuzz;		/* not 0: state of the generator that garbles answers of fuzz_type */
	int fuzz_type;		/* enum gpuseg_msg_type; after a garbled answer the connection ends */
	enum fake_files files;
	unsigned int files_asked;
	unsigned int unanswered;  /* requests, because it is mute */
	unsigned int not_granted; /* begins that were refused, delayed or ignored */
	char open_name[GPUSEG_NAME_BYTES];
	struct gpuseg_msg_task_open last_open;
	unsigned int opens, closes;
	uint64_t bells;
	uint64_t wakes;
	struct fixture_tail tail;
	uint64_t expected_seq;
	bool sequence_broken;
	size_t records; /* atomic */
	struct gpuseg_record *log;
	int64_t grant_at_ns; /* FAKE_DELAY: of the begin below */
	uint32_t grant_slot;
	uint64_t grant_ticket;
};

/* Make the runtime directory and the queue and serve one client at a time. */
void fake_daemon_start(struct fake_daemon *d);
void fake_daemon_start_sized(struct fake_daemon *d, size_t cycle_bytes, bool busy_poll);
/* End the thread and close the sockets, so that the client loses its daemon. The directory stays. */
void fake_daemon_kill(struct fake_daemon *d);
/* After a kill: start another daemon in the same directory, without the state of the first. */
void fake_daemon_follow(struct fake_daemon *d);
/* Kill it, if that has not been done, and clean up. */
void fake_daemon_stop(struct fake_daemon *d);
/* Set options under the mutex. */
void fake_daemon_files(struct fake_daemon *d, enum fake_files files);
/* Answer requests of a type with a status; 0 = as it should. */
void fake_daemon_refuse(struct fake_daemon *d, enum gpuseg_msg_type type, int status);
void fake_daemon_grants(struct fake_daemon *d, enum fake_grants grants, int64_t delay_ns);
void fake_daemon_pregrant(struct fake_daemon *d, uint32_t slot, bool on);
void fake_daemon_poison(struct fake_daemon *d, uint32_t code);
void fake_daemon_sleeps(struct fake_daemon *d, bool on);
/* As the daemon drops a client: the code, then a changed grant word and a wake-up for each of its waiters. */
void fake_daemon_drop(struct fake_daemon *d, uint32_t code);
/*
 * Roll the queue. `ahead`: first create the file, announce it in the session, and give the client time to map it.
 */
void fake_daemon_roll(struct fake_daemon *d, bool ahead);
/* Wait until n records have been read, at most 30 s; copies the last one. False if they do not come. */
bool fake_daemon_wait(struct fake_daemon *d, size_t n, struct gpuseg_record *last);
/* The i-th record read (from 0). */
struct gpuseg_record fake_daemon_record(struct fake_daemon *d, size_t i);
size_t fake_daemon_records(struct fake_daemon *d);
/* Say that a begin of the task is expected, as Session.expected(). False: the client did not ask. */
bool fake_daemon_expect(struct fake_daemon *d, uint32_t slot);
/* How many files of the queue it was asked for. */
unsigned int fake_daemon_files_asked(struct fake_daemon *d);
/* As fake_daemon_records(), without the mutex, so that the caller does not delay the daemon. */
size_t fake_daemon_peek(struct fake_daemon *d);
/* Number of its futex wake-ups. */
uint64_t fake_daemon_wakes(struct fake_daemon *d);

#ifdef __cplusplus
}
#endif

#endif /* FIXTURE_H */
