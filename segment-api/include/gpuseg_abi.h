/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_abi.h - every byte that crosses a process boundary, defined once.
 *
 * Who shares what:
 *
 *   application (libgpuseg) --- record ---> client queue (Chronicle v5) ---> daemon dispatcher
 *   application             <-- session (sealed memfd, one per client) ---   daemon dispatcher
 *   application, watchdog   <-- status page (read-only file) --------------- daemon dispatcher
 *   application             --- doorbell (eventfd, one per client) ------->  daemon dispatcher
 *   application, tools      <-> registration socket (SOCK_SEQPACKET) <---->  daemon conductor
 *   watchdog, release tool  <-- held file --------------------------------   daemon enforcer
 *   any tool                <-- journal (Chronicle v5) -------------------   daemon dispatcher
 *   application, daemon     <-> virtual GPU sockets (SOCK_SEQPACKET) <---->  gpuseg-vgpu
 *
 * Rules. Little-endian, natural alignment, no implicit padding, fixed-width members only. The comment of each shared
 * word names its one writer (W), its readers (R) and its memory order. Times are int64 nanoseconds of CLOCK_MONOTONIC.
 * tools/gen_abi.c generates the Java offsets (Abi.java) from this file, and a test compares them again. A change of
 * meaning increments GPUSEG_ABI_MAJOR; a new field in reserved space, or a new message, increments GPUSEG_ABI_MINOR.
 */
#ifndef GPUSEG_ABI_H
#define GPUSEG_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GPUSEG_ABI_ASSERT(cond, text) static_assert(cond, text)
#else
#define GPUSEG_ABI_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#define GPUSEG_ABI_MAJOR 1
#define GPUSEG_ABI_MINOR 14
#define GPUSEG_ABI_VERSION ((GPUSEG_ABI_MAJOR << 16) | GPUSEG_ABI_MINOR)

#define GPUSEG_CACHE_LINE 64
#define GPUSEG_NAME_BYTES 64 /* task and process names: UTF-8, NUL-terminated, so 63 bytes of text */
#define GPUSEG_PATH_BYTES 256
#define GPUSEG_TEXT_BYTES 256 /* one line for a person: what was refused, its value, a remedy */

/*
 * A reply's status is 0 or a negative errno, or minus this: admission refused (since ABI 1.6; before, -EBUSY). No
 * errno of Linux has this value, and libraries before ABI 1.6 pass it on, too.
 */
#define GPUSEG_ADMISSION_REFUSED 4000

#define GPUSEG_PRIORITY_BEST_EFFORT 0 /* 1..99 are real time, 99 highest */
#define GPUSEG_PRIORITY_MAX 99

/* Limits of one daemon. */
#define GPUSEG_CLIENTS_MAX 256
#define GPUSEG_SLOTS_MAX 64 /* open tasks of one client */
#define GPUSEG_GPUS_MAX 16

/* The runtime directory of an installed daemon. systemd creates it, so only root can replace it. */
#define GPUSEG_INSTALLED_DIR "/run/gpuseg"

/* File names below the runtime directory (gpuseg_runtime_dir(3)). */
#define GPUSEG_SOCKET_NAME "gpuseg.sock"
#define GPUSEG_STATUS_NAME "status"
#define GPUSEG_HELD_NAME "held"
#define GPUSEG_WATCHDOG_NAME "watchdog"
#define GPUSEG_SIM_SOCKET_NAME "vgpu.sock"
#define GPUSEG_SIM_CONTROL_NAME "vgpu.ctl"
/*
 * Written by a daemon that keeps a part of the GPU free, as text: lines "pipe PATH", "reserve PERCENT", "places PERCENT
 * PERCENT ..." and "uid N". Beside it a file for each place, NAME and its number from 0: who has an flock(2) on one has
 * that place.
 */
#define GPUSEG_SPACE_NAME "space"
#define GPUSEG_PLACE_NAME "place"

/*
 * Record: what a client appends to its queue, one per event, always 64 bytes.
 *
 *   0      2      4              8                       16                      24                      32
 *   +------+------+--------------+-----------------------+-----------------------+-----------------------+
 *   | kind | flags| task_id      | seq                   | ticket                | time_ns               |
 *   +------+------+--------------+-----------------------+-----------------------+-----------------------+
 *   | release_ns                 | arg_ns                | tid      | reserved   | sample                |
 *   +----------------------------+-----------------------+----------+------------+-----------------------+
 *   32                           40                      48         52           56                      64
 *
 * W: the client, in a Chronicle document that it publishes with release. R: daemon dispatcher, which copies the record,
 * validates the copy and then uses it. A value out of range poisons the client: the daemon drops it.
 */
enum gpuseg_record_kind {
	GPUSEG_RECORD_BEGIN = 1, /* release_ns: job release or 0; arg_ns: absolute deadline or 0 (release + relative) */
	GPUSEG_RECORD_END = 2,	 /* ends the segment of `ticket`; arg_ns: measured device time or 0 */
	/* a job of the task is released at release_ns; ticket 0; arg_ns: time of its sample or 0 (since ABI 1.5) */
	GPUSEG_RECORD_RELEASE = 3,
	GPUSEG_RECORD_HINT = 4, /* the next begin is expected at arg_ns; ticket 0 */
	/* the job is complete (response time ends here), or skipped (CANCELLED, since ABI 1.12); ticket 0 */
	GPUSEG_RECORD_JOB_END = 5,
	GPUSEG_RECORD_ROLL = 6 /* W: daemon only; first document of a new cycle; no event */
};

enum gpuseg_record_flag {
	GPUSEG_FLAG_OPTIMISTIC = 1 << 0, /* BEGIN: the caller saw pregrant == 1 and did not wait */
	GPUSEG_FLAG_CANCELLED = 1 << 1,	 /* END: begin gave up (timeout, try) before the grant. JOB_END: skipped */
	GPUSEG_FLAG_PROCEEDED = 1 << 2	 /* END: begin timed out and the task proceeded without a grant */
};
#define GPUSEG_FLAGS_KNOWN 0x7

struct gpuseg_record {
	uint16_t kind;
	uint16_t flags;
	uint32_t task_id;
	uint64_t seq;	 /* per client, from 1, without gaps: a gap means a lost record and poisons the client */
	uint64_t ticket; /* per task, from 1, +1 per begin; END repeats it; 0 for the other kinds */
	int64_t time_ns; /* when the caller wrote it */
	int64_t release_ns;
	int64_t arg_ns;
	uint32_t tid;	    /* the caller's thread id, for traces only */
	uint32_t reserved0; /* 0 */
	uint64_t sample;    /* RELEASE: identity of the job's sample, 0 = none (since ABI 1.11); 0 for the others */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_record) == 64, "record is one cache line");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_record, release_ns) == 32, "record layout");

/*
 * Session: one sealed memfd per client; header, then slot_count slots.
 *
 *   0    magic version size header_size slot_size slot_count client_id daemon_pid incarnation ...   (line 0: fixed)
 *   64   poisoned | roll_generation | prepared_cycle                                                (line 1: W daemon)
 *   128  records | rolls | remaps_inline | bells | drops | ...                                      (line 2: W client)
 *   192  hold[0] ... hold[15]                                                                       (line 3: W daemon)
 *   256  slot 0: { line 0: W daemon } { line 1: W client }
 *   384  slot 1 ...
 *
 * The client can overwrite all of it. The daemon reads back `waiting` and `wants_expected`, which only decide whether
 * it makes a wake-up call for this client, `expected`, which it only adds to, and what the client says of its own
 * kernels: whether and since when none is in flight, and how long they take. That decides how long ahead launches are
 * held for an expected begin, within the budget for that.
 */
#define GPUSEG_SESSION_MAGIC 0x47455353u /* "SSEG" */

struct gpuseg_session {
	uint32_t magic;
	uint32_t version; /* W daemon, published last with release; 0 = not ready */
	uint32_t size;
	uint32_t header_size;
	uint32_t slot_size;
	uint32_t slot_count;
	uint32_t client_id;
	int32_t daemon_pid;
	uint64_t incarnation; /* start time of the daemon, ns; equals status.incarnation */
	uint64_t reserved0[3];

	uint32_t poisoned;	  /* W daemon (release): 0, or enum gpuseg_poison: the daemon dropped this client */
	uint32_t roll_generation; /* W daemon (release), after prepared_cycle; futex of the client's roll thread */
	int64_t prepared_cycle;	  /* W daemon (release): newest cycle whose file is complete; -1 = none */
	uint64_t reserved1[6];

	uint64_t records;	/* W client (relaxed), statistics only: records appended */
	uint64_t rolls;		/* cycles followed */
	uint64_t remaps_inline; /* cycles mapped or waited for by the caller because the roll thread was late */
	uint64_t bells;		/* writes to the doorbell */
	uint64_t drops;		/* appends refused: quota used up, or lock not obtained in time */
	uint64_t reserved2[3];

	/*
	 * W daemon, the enforcer of that GPU (release); futex. R client (acquire), before each launch under `gpuseg
	 * exec`: enum gpuseg_hold. Only counts while the daemon's heartbeat is recent (since ABI 1.7).
	 */
	uint32_t hold[GPUSEG_GPUS_MAX];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_session) == 256, "session header is four cache lines");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_session, poisoned) == 64, "session line 1");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_session, records) == 128, "session line 2");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_session, hold) == 192, "session line 3");

/* May the process launch work on the GPU? */
enum gpuseg_hold { GPUSEG_HOLD_GO = 0, GPUSEG_HOLD_WAIT = 1 };

/* A hold does not count while the daemon's heartbeat is older than this: it died or hangs. */
#define GPUSEG_HOLD_SILENCE_NS 100000000

enum gpuseg_poison {
	GPUSEG_POISON_NONE = 0,
	GPUSEG_POISON_LENGTH = 1,   /* a document that is not 64 bytes long, or a forged header */
	GPUSEG_POISON_KIND = 2,	    /* unknown kind, flags or non-zero reserved field */
	GPUSEG_POISON_TASK = 3,	    /* task id that this client does not own */
	GPUSEG_POISON_SEQUENCE = 4, /* seq went backwards or jumped */
	GPUSEG_POISON_TICKET = 5,   /* begin of an old ticket, or end of a ticket that was never begun */
	GPUSEG_POISON_TIME =
		6, /* a time that is negative, more than 10 s ahead, or an absolute deadline that overflows */
	GPUSEG_POISON_TRUNCATED = 7, /* a shared file shrank or vanished under the daemon */
	GPUSEG_POISON_QUOTA = 8,     /* the client filled its queue faster than its quota allows */
	GPUSEG_POISON_PROTOCOL = 9   /* an invalid message on the socket */
};

/*
 * Verdict: the low byte of the grant word. The word is (ticket << 8) | verdict; its ticket never decreases.
 */
enum gpuseg_verdict {
	GPUSEG_VERDICT_NONE = 0,
	GPUSEG_VERDICT_GRANTED = 1,
	GPUSEG_VERDICT_REFUSED = 2, /* overrun action skip-next, or the task is closed */
	GPUSEG_VERDICT_POISONED = 3 /* the client is dropped; the ticket is unchanged, so look at session.poisoned */
};
#define GPUSEG_GRANT_SHIFT 8

enum gpuseg_segment_state {
	GPUSEG_SEGMENT_IDLE = 0,
	GPUSEG_SEGMENT_WAITING = 1,
	GPUSEG_SEGMENT_RUNNING = 2,
	GPUSEG_SEGMENT_PREEMPTED = 3
};

struct gpuseg_slot {
	/* W daemon dispatcher. R client. */
	uint64_t grant;	   /* release; pairs with the acquire in the client's wait. Futex word = its low 32 bits */
	uint32_t pregrant; /* release: 1 = begin does not wait (optimistic begin); may be one event out of date */
	uint32_t state;	   /* relaxed, for tools: enum gpuseg_segment_state */
	uint32_t task_id;  /* release, published last at task open; 0 = slot free */
	uint32_t gpu;
	uint64_t preemptions; /* relaxed: how often a segment of this task was preempted */
	uint64_t overruns;    /* relaxed */
	uint64_t misses;      /* relaxed: deadlines missed */
	/*
	 * release; futex. Changes when lower work is about to be disabled for an expected begin of this task, and once
	 * more when it is. Only if wants_expected is 1 (these two since ABI 1.10).
	 */
	uint32_t expected;
	uint32_t reserved0;
	uint64_t reserved1;
	/* W client. R daemon dispatcher. */
	uint32_t waiting; /* seq_cst store, full fence, load of grant; daemon: store of grant, full fence, load */
	/* release: 1 while work of a program under `gpuseg exec` is not known to be done (these since ABI 1.8) */
	uint32_t in_flight;
	uint64_t ticket;	 /* relaxed, for tools: last ticket begun */
	int64_t drained_ns;	 /* relaxed, before in_flight: since when none is */
	int64_t kernel_ns;	 /* relaxed: how long its longest kernels take; 0 = not known */
	uint32_t kernel_class;	 /* relaxed: enum gpuseg_kernel_class, of most of the time of its kernels */
	uint32_t kernel_percent; /* relaxed: of the GPU's room for blocks that a kernel uses on average, 0..100 */
	uint32_t wants_expected; /* release: 1 = a thread waits for `expected` */
	uint32_t reserved2;
	uint64_t reserved3[2];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_slot) == 128, "slot is two cache lines, one writer each");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_slot, waiting) == 64, "slot line 1");

/* What the kernels of a best-effort program under `gpuseg exec` do to the GPU, from launches and markers alone. */
enum gpuseg_kernel_class {
	GPUSEG_KERNELS_UNKNOWN = 0, /* none measured yet, or graphs, whose kernels are not seen */
	GPUSEG_KERNELS_SMALL = 1,   /* they leave at least half of the room for blocks free */
	GPUSEG_KERNELS_FILL = 2,    /* they use more, each for less than the bound on work in flight */
	GPUSEG_KERNELS_LONG = 3	    /* they use more, each for longer than that */
};

#define GPUSEG_SESSION_BYTES (sizeof(struct gpuseg_session) + GPUSEG_SLOTS_MAX * sizeof(struct gpuseg_slot))
GPUSEG_ABI_ASSERT(GPUSEG_SESSION_BYTES == 8448, "session size");

/*
 * Status page: <runtime dir>/status. W: the daemon. All other processes map it read-only.
 *
 * Sleeping protocol. Each side stores and then looks, so one of them sees the other; the eventfd keeps an early ring:
 *   client:  append record (release) ; full fence ; if (load sleeping == 1) write(doorbell, 1)
 *   daemon:  store sleeping = 1 ; full fence ; poll every queue once more ; epoll_wait if all are empty ; sleeping = 0
 */
#define GPUSEG_STATUS_MAGIC 0x47535441u /* "ATSG" */

struct gpuseg_status {
	uint32_t magic;
	uint32_t version; /* published last with release; 0 = not ready */
	int32_t daemon_pid;
	uint32_t mechanism_level;    /* 0 observe, 1 gate, 2 deactivate, 3 interrupt */
	uint64_t incarnation;	     /* start time of this daemon, ns */
	uint64_t daemon_start_ticks; /* field 22 of /proc/<pid>/stat: detects a reused pid */
	char policy[16];
	char mechanism[16];

	int64_t heartbeat_ns;	 /* W daemon dispatcher (release), at least every 20 ms. R watchdog */
	uint32_t sleeping;	 /* W daemon dispatcher (seq_cst). R clients */
	uint32_t stopping;	 /* W daemon (release): 1 during a clean stop */
	uint64_t holds_launches; /* 1: the mechanism uses the words `hold` of sessions (since ABI 1.7) */
	/* W daemon dispatcher (release). 1: no open task waits for what lower work has in flight (since ABI 1.14) */
	uint64_t nobody_waits;
	uint64_t reserved[4];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_status) == 128, "status is two cache lines");
GPUSEG_ABI_ASSERT(offsetof(struct gpuseg_status, heartbeat_ns) == 64, "status line 1");

/*
 * Watchdog page: <runtime dir>/watchdog. W: the watchdog; `gpuseg release --force` writes `releases` and
 * `first_release_ns`. A change of `releases` tells an enforcer that what it had applied is undone, or may be; it then
 * applies its desired state again.
 */
#define GPUSEG_WATCHDOG_MAGIC 0x47574454u /* "TDWG" */

struct gpuseg_watchdog {
	uint32_t magic;
	uint32_t version; /* published last with release */
	int32_t pid;
	uint32_t period_ms;
	int64_t heartbeat_ns; /* release, every period/4 */
	uint64_t releases;    /* release: how often held contexts were enabled, or that was tried */
	uint64_t released_contexts;
	int64_t last_release_ns;
	int64_t first_release_ns; /* in the daemon's last silence; 0 = never, or a watchdog of ABI 1.3 or earlier */
	uint64_t reserved;
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_watchdog) == 64, "watchdog page is one cache line");

/*
 * Held file: <runtime dir>/held. A context is written here BEFORE it is disabled and cleared AFTER it is enabled, so
 * that the next program to start (daemon, watchdog, `gpuseg release`) can enable what a dead daemon left disabled. A
 * header, then GPUSEG_HELD_MAX entries. W: the daemon (one enforcer per entry); the releasing program if no daemon is
 * alive. `state` is stored last, with release.
 */
#define GPUSEG_HELD_MAGIC 0x47484c44u /* "DLHG" */
#define GPUSEG_HELD_MAX 256
#define GPUSEG_HELD_PAYLOAD 1984

enum gpuseg_mechanism {
	GPUSEG_MECHANISM_NONE = 0,
	GPUSEG_MECHANISM_GATE = 1,
	GPUSEG_MECHANISM_SIM = 2, /* payload: NUL-terminated path of the virtual GPU's control socket */
	GPUSEG_MECHANISM_NVIDIA = 3,
	GPUSEG_MECHANISM_TEGRA = 4,
	GPUSEG_MECHANISM_AMD = 5,
	GPUSEG_MECHANISM_LAUNCH = 6 /* no payload: held processes go on by themselves when the daemon is silent */
};

enum gpuseg_held_state {
	GPUSEG_HELD_FREE = 0,
	GPUSEG_HELD_DISABLED = 1,
	GPUSEG_HELD_TIMESLICE = 2 /* enabled with changed time slices; the payload holds the original ones */
};

struct gpuseg_held_entry {
	uint32_t state; /* enum gpuseg_held_state, release, last */
	uint32_t mechanism;
	int32_t pid;
	uint32_t gpu;
	uint64_t pid_start_ticks; /* with pid: detects a reused pid; 0 = not checked */
	uint32_t context_id;
	uint32_t payload_size;
	int64_t since_ns;
	uint64_t reserved[3];
	uint8_t payload[GPUSEG_HELD_PAYLOAD]; /* what the mechanism needs to enable the context again */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_held_entry) == 2048, "held entry");

struct gpuseg_held {
	uint32_t magic;
	uint32_t version; /* published last with release */
	uint32_t entry_size;
	uint32_t entry_count;
	uint64_t reserved[6];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_held) == 64, "held header");

/*
 * Registration socket: <runtime dir>/gpuseg.sock, AF_UNIX SOCK_SEQPACKET, one message per packet, a reply for each
 * request. Every message begins with gpuseg_msg. A reply repeats type and seq; its status is 0 or a negative errno. The
 * daemon takes pid, uid and gid of the peer from SO_PEERCRED, never from a message.
 */
#define GPUSEG_MSG_MAGIC 0x47534547u /* "GESG" */
#define GPUSEG_MSG_BYTES_MAX 65536

enum gpuseg_msg_type {
	GPUSEG_MSG_HELLO = 1,	   /* gpuseg_msg_hello -> gpuseg_msg_hello_reply + 2 descriptors: session, doorbell */
	GPUSEG_MSG_TASK_OPEN = 2,  /* gpuseg_msg_task_open -> gpuseg_msg_task_reply */
	GPUSEG_MSG_TASK_CLOSE = 3, /* gpuseg_msg_task_close -> gpuseg_msg_task_reply */
	GPUSEG_MSG_ADMIN = 4,	   /* gpuseg_msg_admin -> gpuseg_msg_admin_reply (one or more packets) */
	/* gpuseg_msg_queue_file -> gpuseg_msg_queue_file_reply + 1 descriptor (since ABI 1.9) */
	GPUSEG_MSG_QUEUE_FILE = 5
};

struct gpuseg_msg {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t size; /* of the whole packet */
	uint32_t seq;
	int32_t status; /* replies: 0 or -errno */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg) == 24, "message header");

struct gpuseg_msg_hello {
	struct gpuseg_msg msg;
	uint32_t flags; /* 0 */
	uint32_t reserved;
	char name[GPUSEG_NAME_BYTES]; /* of the application */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_hello) == 96, "hello");

struct gpuseg_msg_hello_reply {
	struct gpuseg_msg msg;
	uint32_t client_id;
	uint32_t session_size;
	uint64_t incarnation;
	char queue_dir[GPUSEG_PATH_BYTES];
	char status_path[GPUSEG_PATH_BYTES];
	char text[GPUSEG_TEXT_BYTES];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_hello_reply) == 808, "hello reply");

enum gpuseg_task_flag {
	GPUSEG_TASK_NO_OPTIMISTIC = 1 << 0 /* this task always waits for the grant, which follows enforcement */
};
/* Bits 8..14 of the flags: SCHED_FIFO priority of the task's thread inside its windows; 0 = unchanged. */
#define GPUSEG_TASK_BOOST_SHIFT 8
#define GPUSEG_TASK_BOOST_MASK 0x7f00
/*
 * Bits 16..22, since 1.13: the part of the GPU's multiprocessors that the task has for itself, percent; 0 = none.
 * Daemons before refuse such a task.
 */
#define GPUSEG_TASK_RESERVE_SHIFT 16
#define GPUSEG_TASK_RESERVE_MASK 0x7f0000
/* Bits 1 and 2 chose a strategy in 1.3 and 1.4; they must be 0. */

enum gpuseg_overrun {
	GPUSEG_OVERRUN_DEFAULT = 0,  /* the daemon's setting: demote */
	GPUSEG_OVERRUN_NOTIFY = 1,   /* count and journal it, change nothing */
	GPUSEG_OVERRUN_DEMOTE = 2,   /* best effort until the segment ends */
	GPUSEG_OVERRUN_SUSPEND = 3,  /* the context is disabled until the segment ends */
	GPUSEG_OVERRUN_SKIP_NEXT = 4 /* demote, and the next begin is refused (-ECANCELED) */
};
#define GPUSEG_WEIGHT_DEFAULT 100
#define GPUSEG_WEIGHT_MAX 10000
#define GPUSEG_PARTITION_MAX 255

struct gpuseg_msg_task_open {
	struct gpuseg_msg msg;
	uint32_t priority;     /* 0 best effort, 1..99 */
	uint32_t gpu_priority; /* 0 = same as priority */
	uint32_t gpu;	       /* GPU index, from 0 */
	uint32_t flags;	       /* enum gpuseg_task_flag, boost and reserve */
	int64_t period_ns;     /* 0 = not periodic */
	int64_t deadline_ns;   /* relative; 0 = period */
	int64_t budget_ns;     /* longest time that a segment may hold the GPU, without preempted time; 0 = none */
	uint8_t overrun;       /* enum gpuseg_overrun */
	uint8_t partition;     /* time partition; 0 = none */
	uint16_t weight;       /* of this process in best-effort time, 1..10000; 0 = unchanged */
	uint32_t window_us;    /* longest time from grant to end, with preempted time, us; 0 = none */
	char name[GPUSEG_NAME_BYTES];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_task_open) == 136, "task open");

struct gpuseg_msg_task_close {
	struct gpuseg_msg msg;
	uint32_t task_id;
	uint32_t reserved;
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_task_close) == 32, "task close");

struct gpuseg_msg_task_reply {
	struct gpuseg_msg msg;
	uint32_t task_id;
	uint32_t slot;
	char text[GPUSEG_TEXT_BYTES];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_task_reply) == 288, "task reply");

/*
 * A file of the client's own queue, for a client that cannot open it by path: its mount is read-only. The descriptor is
 * open for reading and writing. -ENOENT: it is neither the metadata, nor the current cycle, nor the one announced in
 * session.prepared_cycle. -EAGAIN: asked too often. A daemon before ABI 1.9 drops the client that asks; the version in
 * its reply to HELLO tells.
 */
#define GPUSEG_QUEUE_METADATA (-1)

struct gpuseg_msg_queue_file {
	struct gpuseg_msg msg;
	int64_t cycle; /* or GPUSEG_QUEUE_METADATA */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_queue_file) == 32, "queue file");

struct gpuseg_msg_queue_file_reply {
	struct gpuseg_msg msg;
	int64_t cycle; /* as asked */
	char text[GPUSEG_TEXT_BYTES];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_queue_file_reply) == 288, "queue file reply");

struct gpuseg_msg_admin {
	struct gpuseg_msg msg;
	uint32_t text_size;
	uint32_t reserved;
	/* followed by text_size bytes of UTF-8 JSON: {"command": "status" | "stop" | "release" | "hint", ...} */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_admin) == 32, "admin");

struct gpuseg_msg_admin_reply {
	struct gpuseg_msg msg;
	uint32_t text_size; /* in this packet */
	uint32_t more;	    /* 1 = another packet of this reply follows */

	/* followed by text_size bytes of UTF-8 JSON */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_msg_admin_reply) == 32, "admin reply");

/*
 * Journal: what the daemon decided and did, in that order. One 64-byte event per Chronicle document. Kinds marked
 * (+text) are followed by UTF-8 text in the same document.
 */
enum gpuseg_event_kind {
	GPUSEG_EVENT_START = 1,		/* (+text) daemon start: configuration as JSON */
	GPUSEG_EVENT_STOP = 2,		/* clean stop */
	GPUSEG_EVENT_CLIENT_OPEN = 3,	/* (+text) name; arg0 = pid, arg1 = uid */
	GPUSEG_EVENT_CLIENT_CLOSE = 4,	/* arg0 = pid */
	GPUSEG_EVENT_CLIENT_POISON = 5, /* (+text) reason; arg0 = enum gpuseg_poison */
	GPUSEG_EVENT_TASK_OPEN = 6,	/* (+text) JSON of the attributes and the name */
	GPUSEG_EVENT_TASK_CLOSE = 7,
	GPUSEG_EVENT_RELEASE = 8,  /* arg0 = release ns, arg1 = time of the sample or 0, arg2 = its identity or 0 */
	GPUSEG_EVENT_BEGIN = 9,	   /* arg0 = client's time, arg1 = release ns, arg2 = absolute deadline ns */
	GPUSEG_EVENT_GRANT = 10,   /* the grant word was written, or the begin was optimistic (see flags) */
	GPUSEG_EVENT_PREEMPT = 11, /* preempted by a segment of higher rank; arg0 = task id of that segment */
	GPUSEG_EVENT_RESUME = 12,
	GPUSEG_EVENT_END = 13,	   /* arg0 = client's time, arg1 = device time or 0 */
	GPUSEG_EVENT_CANCEL = 14,  /* begin gave up; arg0 = client's time */
	GPUSEG_EVENT_JOB_END = 15, /* arg0 = client's time, arg1 = response ns */
	GPUSEG_EVENT_MISS = 16,	   /* the deadline passed; arg0 = deadline ns */
	GPUSEG_EVENT_OVERRUN = 17, /* the budget is used up; arg0 = budget ns */
	GPUSEG_EVENT_HINT = 18,	   /* arg0 = when the begin will be, ns */
	/* A context is disabled. arg0 = start of the operation, arg1 = its cost ns, arg2 = time of its report. */
	GPUSEG_EVENT_DISABLE = 19,
	GPUSEG_EVENT_ENABLE = 20,	   /* a context is enabled; arguments as above */
	GPUSEG_EVENT_ENFORCED = 21,	   /* every context that this segment preempts is disabled */
	GPUSEG_EVENT_POLICY = 22,	   /* (+text) policy or parameter change */
	GPUSEG_EVENT_STALL = 23,	   /* duty cycle longer than the threshold; arg0 = ns */
	GPUSEG_EVENT_WATCHDOG = 24,	   /* the watchdog enabled contexts; arg0 = releases, arg1 = first_release_ns */
	GPUSEG_EVENT_MECHANISM_ERROR = 25, /* (+text) */
	GPUSEG_EVENT_GC = 26,		   /* the daemon's JVM paused; arg0 = start, arg1 = duration ns (1 ms steps) */
	GPUSEG_EVENT_LOST = 27,	 /* the ring was full; arg0 = events lost, arg1 = first sequence number lost */
	GPUSEG_EVENT_CLOCK = 28, /* (+text) offsets as JSON; arg0 = CLOCK_MONOTONIC ns, arg1 = CLOCK_REALTIME ns */
	GPUSEG_EVENT_CONTEXT_OPEN = 29, /* (+text) process name; arg0 = pid, arg1 = enum gpuseg_context_kind */
	GPUSEG_EVENT_CONTEXT_KIND = 30, /* arg1 = the new enum gpuseg_context_kind */
	GPUSEG_EVENT_CONTEXT_CLOSE = 31,
	GPUSEG_EVENT_DECIDED = 32,    /* chosen to run; its GRANT follows when lower contexts are disabled */
	GPUSEG_EVENT_PRIORITY = 33,   /* arg0, arg1 = the new priority and gpu_priority */
	GPUSEG_EVENT_FORCED_END = 34, /* ended by the daemon; the client's END may follow */
	GPUSEG_EVENT_TIMER = 35,      /* a turn or a time window ended; no segment changed */
	/* Anticipation; flags = enum gpuseg_anticipation, which says what the arguments are. */
	GPUSEG_EVENT_ANTICIPATE = 36,
	/* The share of the task's user is used up (arg0 = 1) or whole again (0); arg1 = his account. */
	GPUSEG_EVENT_SHARE = 37,
	/*
	 * A job took longer than the bound with which its task is admitted, or a call or wait longer than a constant of
	 * that bound. arg0 = what it took ns, arg1 = bound or constant ns, arg2 = 0 job, 1 driver call, 2 wait of a
	 * begin.
	 */
	GPUSEG_EVENT_BOUND = 38,
	GPUSEG_EVENT_JOB_CANCEL = 39 /* the job was skipped; arg0 = client's time (since ABI 1.12) */
};

/* What an ANTICIPATE event tells. Task and context are those whose begin is expected. */
enum gpuseg_anticipation {
	/* Lower work is disabled. arg0 = expected begin ns, arg1 = lead ns, arg2 = 1 after a hint of the program. */
	GPUSEG_ANTICIPATION_ACTED = 1,
	GPUSEG_ANTICIPATION_WASTED = 2,	     /* the begin did not come in time; arg2 as above */
	GPUSEG_ANTICIPATION_OVER_BUDGET = 3, /* the budget does not allow it */
	GPUSEG_ANTICIPATION_RESERVED = 4,    /* arg0 = for how long the GPU was reserved, ns */
	/* All is disabled that was to be. arg0 = decided ns, arg1 = disabled ns, arg2 = number of contexts. */
	GPUSEG_ANTICIPATION_COST = 5,
	GPUSEG_ANTICIPATION_DUE = 6 /* the daemon looked which expected begins are due, on every GPU */
};

enum gpuseg_context_kind {
	GPUSEG_CONTEXT_MANAGED = 0,   /* registered by a client */
	GPUSEG_CONTEXT_UNMANAGED = 1, /* counts as best effort */
	GPUSEG_CONTEXT_PROTECTED = 2  /* never disabled */
};

struct gpuseg_event {
	uint64_t seq; /* from 1, no gap within one incarnation */
	int64_t time_ns;
	uint16_t kind;
	uint8_t gpu;
	uint8_t flags; /* enum gpuseg_record_flag where it applies */
	uint32_t task_id;
	uint64_t ticket;
	uint32_t context_id;
	uint32_t client_id;
	int64_t arg0;
	int64_t arg1;
	int64_t arg2;
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_event) == 64, "journal event is one cache line");

/*
 * Virtual GPU. Applications connect to vgpu.sock; the mechanism, the watchdog and tools connect to vgpu.ctl. Both are
 * SOCK_SEQPACKET. A context is one process (its pid, from SO_PEERCRED). It exists from the first OPEN of the process
 * until its last connection closes. It stays disabled until it is enabled or its process ends, as on real hardware.
 * Completion: the reply to OPEN carries a memfd with one gpuseg_sim_fence. The futex word is the low half of
 * `completed`.
 */
#define GPUSEG_SIM_MAGIC 0x47534956u /* "VISG" */
#define GPUSEG_SIM_BATCH_MAX 64

enum gpuseg_sim_op {
	GPUSEG_SIM_OPEN = 1,   /* app: -> reply with the descriptor of the fence page */
	GPUSEG_SIM_SUBMIT = 2, /* app: arg_ns = duration; arg = fence value (1, 2, 3 ... per connection); no reply */
	GPUSEG_SIM_ENABLE = 3, /* control: pids[count]; reply after the operation delay */
	GPUSEG_SIM_DISABLE = 4,
	GPUSEG_SIM_TIMESLICE = 5, /* control: pids[count], arg_ns = timeslice, 0 = default */
	GPUSEG_SIM_INFO = 6	  /* control: reply carries gpuseg_sim_info */
};

struct gpuseg_sim_msg {
	uint32_t magic;
	uint32_t version;
	uint32_t op;
	int32_t status; /* replies: 0 or -errno (-ESRCH: a pid has no context; the others were served) */
	uint64_t arg;
	int64_t arg_ns;
	int64_t time_ns; /* replies: when the change took effect */
	uint32_t count;
	uint32_t reserved;
	int32_t pids[GPUSEG_SIM_BATCH_MAX];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_sim_msg) == 304, "virtual GPU message");

struct gpuseg_sim_fence {
	uint64_t completed; /* W virtual GPU (release), futex; R application: last finished fence value */
	int64_t completed_ns;
	uint32_t waiting; /* W application: number of sleeping threads */
	uint32_t reserved0;
	uint64_t reserved[5];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_sim_fence) == 64, "fence page");

struct gpuseg_sim_info {
	uint32_t magic;
	uint32_t version;
	int32_t pid;
	uint32_t contexts;
	uint32_t disabled;
	uint32_t reserved0;
	int64_t timeslice_ns;
	int64_t switch_cost_ns;
	int64_t disable_cost_ns;
	int64_t enable_cost_ns;
	uint64_t kernels_completed;
	uint64_t switches;
	uint64_t preemptions;
	uint64_t operations;
	uint64_t ran_while_disabled; /* kernels that made progress in a disabled context: must stay 0 */
	int64_t busy_ns;	     /* time in which the engine ran a kernel or switched */
	uint64_t reserved[1];
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_sim_info) == 112, "virtual GPU info");

/* One line of the virtual GPU's execution log: context `pid` held the engine in [start_ns, end_ns). */
struct gpuseg_sim_span {
	int64_t start_ns;
	int64_t end_ns;
	int32_t pid;
	uint32_t flags; /* 1 = the kernel completed at end_ns, 2 = a disable preempted it, 4 = its slice expired */
	uint64_t fence;
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_sim_span) == 32, "execution span");

/* One line of the virtual GPU's operation log: how the context of `pid` changed, and when that took effect. */
enum gpuseg_sim_change {
	GPUSEG_SIM_DISABLED = 1,
	GPUSEG_SIM_ENABLED = 2,
	GPUSEG_SIM_GONE = 3 /* its process died or disconnected */
};

struct gpuseg_sim_operation {
	int64_t time_ns;
	int32_t pid;
	uint32_t change; /* enum gpuseg_sim_change */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_sim_operation) == 16, "operation log");

/*
 * Progress of gpuseg-demo-task, in a file that survives kill -9: what the task knows to be recorded or granted. W: the
 * task (release), each word after the fact that it counts. R: programs that judge a run.
 */
enum gpuseg_progress_state {
	GPUSEG_PROGRESS_RESTING = 0, /* between jobs, or computing outside a segment */
	GPUSEG_PROGRESS_WAITING = 1, /* in begin */
	GPUSEG_PROGRESS_HOLDING = 2, /* between begin and end, not on the GPU */
	GPUSEG_PROGRESS_KERNEL = 3   /* between begin and end, its kernel is on the GPU */
};

struct gpuseg_progress {
	int32_t pid;
	uint32_t state;	      /* enum gpuseg_progress_state */
	uint64_t begins;      /* begins that were recorded and granted */
	uint64_t answered;    /* of these, granted after a wait: the daemon has seen the record */
	uint64_t ends;	      /* ends that were recorded */
	uint64_t jobs;	      /* completed, scheduled or not */
	uint32_t managed;     /* 1: a daemon accepted the last mark */
	uint32_t connections; /* daemons that it has used */
	uint64_t kernels;     /* completed by the virtual GPU */
	int64_t last_ns;      /* when the last job was completed */
};
GPUSEG_ABI_ASSERT(sizeof(struct gpuseg_progress) == 64, "progress is one cache line");

#endif /* GPUSEG_ABI_H */
