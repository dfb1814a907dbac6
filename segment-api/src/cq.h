/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cq.h - native appender for a Chronicle Queue v5 directory that a Java process created.
 *
 * Scope: appends fixed 64-byte records to a queue of FAST_DAILY, BINARY_LIGHT, dataFormat 1. The daemon creates, sizes
 * and rolls the directory, metadata.cq4t and every cycle file. This side attaches, appends and follows rolls; it never
 * creates a file or makes one longer.
 *
 * The parts of the format that matter here:
 *
 *   metadata.cq4t  header{wireType, roll{length, format, epoch}} then one document per key, value an aligned int64
 *   NNNNNNNNF.cq4  header{writePosition[2], indexing{...}, dataFormat} then documents, 4-aligned:
 *                  [ length | flags ][ payload ... ] [ 0 ] ...   header 0 = nothing here yet, 0xC0000000 = end of cycle
 *
 * One append (protocol of chronicle-queue 2026.4; the step numbers are the crash points of the tests):
 *
 *   1  chronicle.write.lock: CAS unlocked -> pid (acquire)
 *   2  half of the payload is written, header still 0
 *   3  payload and eight zero bytes after it are written, header still 0: a crash up to here leaves only bytes that the
 *      next append overwrites, and the zeros prevent older bytes from looking like a header
 *   4  header = 64 (release): published
 *   5  writePosition[0] = position
 *   6  writePosition[1] = position << shift | sequence
 *   7  write.lock = unlocked (release)
 *   8  the caller noted the append as done
 *
 * Index entries are not written. Readers then find a position by walking at most 60 % of one small file. Nothing in
 * this project looks up an index in a client queue, and without entries an append has a constant cost: no index page
 * every 2^20 records, no second dirty cache line every 256.
 *
 * The tail is kept privately, since queue files only grow. It is checked under the lock at every append, and found at
 * attach by a walk from the start of the file. writePosition is written for the Java side and never trusted.
 *
 * Threads. The caller must serialise cq_append(). cq_service() and cq_append() may run at the same time.
 */
#ifndef GPUSEG_CQ_H
#define GPUSEG_CQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "descriptor.h"
#include "gpuseg_abi.h"

#define CQ_TEXT_BYTES 256
#define CQ_LOCK_TIMEOUT_NS (20 * 1000000LL) /* longer than a roll by the daemon takes (2-3 ms, first one 9 ms) */

/*
 * Who opens the files of a queue whose directory is not writable here.
 *
 * open   returns a descriptor of a cycle file, or of metadata.cq4t for GPUSEG_QUEUE_METADATA, that is open for reading
 *        and writing; the caller closes it. Or -errno, and a line about it in text[CQ_TEXT_BYTES]. May take seconds:
 *        cq_attach_given() and cq_service() call it, cq_append() never does.
 * hurry  an append waits for the next cycle: call cq_service() soon. Must not wait.
 */
struct cq_source {
	int (*open)(void *arg, int64_t cycle, char *text);
	void (*hurry)(void *arg);
	void *arg;
};

/* One mapped cycle file. */
struct cq_map {
	uint8_t *base; /* NULL = none */
	size_t size;
	int64_t cycle;
	int64_t *write_position; /* two words inside the mapping */
	size_t tail;		 /* where the next header goes */
	int64_t next_seq;	 /* sequence of the next data document in this cycle */
};

struct cq {
	/* Owned by the thread that is in cq_append(). */
	struct cq_map cur;
	int64_t *write_lock;
	int64_t pid;
	uint64_t rolls;		/* cycles followed */
	uint64_t remaps_inline; /* of these, mapped or waited for by the appender because the roll thread was late */
	uint64_t steals;	/* write locks taken over from a dead process */
	uint64_t stolen;	/* our write lock was gone at unlock: another process took us for dead */
	uint64_t overwritten;	/* unfinished documents of a dead writer, replaced */

	/* Set by cq_attach() or cq_attach_given(), constant afterwards. */
	struct descriptor dir; /* none if there is a source */
	int64_t lock_timeout_ns;
	bool foreign_pids; /* other holders of the lock have pids of another namespace, which say nothing here */
	uint8_t *meta;
	size_t meta_size;
	const int64_t *highest_cycle;  /* W Java (under the write lock) */
	const int64_t *prepared_cycle; /* session.prepared_cycle or NULL; W daemon (release) */

	int64_t current_cycle; /* atomic copy of cur.cycle for the roll thread */

	/* Passed between appender and roll thread. */
	pthread_mutex_t swap; /* priority inheritance; held for a few instructions */
	struct cq_map ahead;
	struct cq_map retired;

	struct cq_source source; /* constant after cq_attach_given(); .open is NULL if there is a directory */
};

/*
 * cq_attach() sets foreign_pids to false. Set it to true before the first append if the daemon is in another PID
 * namespace: a lock is then never taken over, since a living holder would look dead; the append ends with -EBUSY after
 * lock_timeout_ns instead.
 *
 * Attach to the queue in `dir`: check that its format is the one that this code was written for, then map and pre-fault
 * the newest cycle. prepared_cycle may be NULL. After a failure text[CQ_TEXT_BYTES] holds one line about it.
 * 0, -ENOENT (not a queue, or no cycle yet), -EPROTONOSUPPORT (another format), -EBADMSG (damaged), -ENOSPC (the file
 * system cannot back the file), -errno. Attach a queue at most once in a process.
 */
int cq_attach(struct cq *q, const char *dir, const int64_t *prepared_cycle, char *text);

/*
 * As cq_attach(), with files that `source` opens. Only the thread that calls cq_service() asks it for further cycles:
 * an append that finds the next one missing waits up to lock_timeout_ns for that thread.
 */
int cq_attach_given(struct cq *q, const struct cq_source *source, const int64_t *prepared_cycle, char *text);

/* Unmap everything. No append or service may be running. */
void cq_detach(struct cq *q);

/*
 * Append one record.
 * 0, -EBUSY (write lock not obtained, or the next cycle not there, within lock_timeout_ns), -ENOSPC (cycle full; the
 * daemon has to roll), -EBADMSG (the file holds an impossible length), -EBADF (a cycle could not be opened, because the
 * program closed the directory's descriptor). Nothing is written unless 0 is returned.
 */
int cq_append(struct cq *q, const struct gpuseg_record *record);

/*
 * Roll thread: unmap the former cycle, and map the next one if its file exists already. 0 or -errno of the mapping. If
 * it failed, the appender maps the cycle itself, or, where there is a source, hurries this thread.
 */
int cq_service(struct cq *q);

#ifdef GPUSEG_CRASHPOINTS
/* Test builds only: kill -9 this process at step `cq_crash_step` of append number `cq_crash_after` (from 0). */
extern int cq_crash_step;
extern int64_t cq_crash_after;
void cq_crashpoint(int step);
#define CQ_CRASHPOINT(step) cq_crashpoint(step)
#else
#define CQ_CRASHPOINT(step) ((void)0)
#endif

#endif /* GPUSEG_CQ_H */
