/* SPDX-License-Identifier: Apache-2.0 */
/* cq.c - see cq.h for the format, the protocol and the threading rules. */
#include "cq.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "platform.h"

#define CQ_UNLOCKED INT64_MIN
#define CQ_NOT_COMPLETE 0x80000000u
#define CQ_META 0x40000000u
#define CQ_END_OF_DATA 0xC0000000u
#define CQ_LENGTH 0x3fffffffu

#define CQ_HEADER_BYTES 4
#define CQ_ZEROS_BYTES 8    /* after the payload */
#define CQ_RESERVE_BYTES 64 /* kept free at the end of a cycle for the daemon's end-of-data document */
#define CQ_RECORD_BYTES sizeof(struct gpuseg_record)

#define CQ_DAY_MS 86400000
#define CQ_DATA_FORMAT 1
#define CQ_INDEX_COUNT 4096 /* FAST_DAILY */
#define CQ_INDEX_SPACING 256
#define CQ_SHIFT 32 /* max(32, 2 * log2(4096) + log2(256)) */

#define CQ_META_BYTES_MAX (16u << 20)
#define CQ_CYCLE_BYTES_MAX (1ull << 32)
#define CQ_CYCLE_MAX 2000000 /* days: the year 7445; file names have four digits for the year */

#define CQ_POPULATE_STEP (1u << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#ifdef GPUSEG_CRASHPOINTS
int cq_crash_step;
int64_t cq_crash_after;
static int64_t cq_crash_appends;

void cq_crashpoint(int step)
{
	if (step == cq_crash_step && cq_crash_appends == cq_crash_after) {
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	}
	if (step == 8)
		cq_crash_appends++;
}
#endif

__attribute__((format(printf, 2, 3))) static void say(char *text, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, CQ_TEXT_BYTES, format, ap);
	va_end(ap);
}

static size_t align4(size_t position)
{
	return (position + 3) & ~(size_t)3;
}

/*
 * Reading BINARY_LIGHT. A field is a name (0xC0|length, or 0xB9 length for an event), padding (0x8F, or 0x8E int32 n)
 * and a value that begins with a code. Only the codes that the two headers use are known here. Any other code ends the
 * parse, so that an unknown format is refused and not misread.
 */
struct wire_value {
	const uint8_t *at; /* first byte of the value's code */
	const uint8_t *end;
};

static const uint8_t *wire_skip_padding(const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		if (*p == 0x8F) {
			p++;
		} else if (*p == 0x8E) {
			uint32_t n;

			if (end - p < 5)
				return NULL;
			memcpy(&n, p + 1, 4);
			if (n > (size_t)(end - p) - 5)
				return NULL;
			p += 5 + n;
		} else {
			break;
		}
	}
	return p;
}

/* Length of the value at p including its code, 0 if it is unknown or does not fit. */
static size_t wire_value_size(const uint8_t *p, const uint8_t *end)
{
	size_t room = (size_t)(end - p), n = 0;

	if (room == 0)
		return 0;
	if (*p < 0x80) {
		n = 1;
	} else if (*p >= 0xE0) { /* short string */
		n = 1 + (*p & 0x1f);
	} else {
		switch (*p) {
		case 0xA1: /* uint8 */
		case 0xA4: /* int8 */
			n = 2;
			break;
		case 0xA2:
		case 0xA5:
			n = 3;
			break;
		case 0xA3:
		case 0xA6:
			n = 5;
			break;
		case 0xA7:
			n = 9;
			break;
		case 0x82: /* nested block, int32 length */
			if (room >= 5) {
				uint32_t length;

				memcpy(&length, p + 1, 4);
				n = 5 + (size_t)length;
			}
			break;
		case 0x8D: /* int64 array: capacity, used, values */
			if (room >= 17) {
				uint64_t capacity;

				memcpy(&capacity, p + 1, 8);
				if (capacity <= CQ_META_BYTES_MAX / 8)
					n = 17 + 8 * (size_t)capacity;
			}
			break;
		case 0xB6: /* type prefix: length, name, then the value itself */
			if (room >= 2 && room > 2 + (size_t)p[1]) {
				size_t inner = wire_value_size(p + 2 + p[1], end);

				n = inner ? 2 + p[1] + inner : 0;
			}
			break;
		default:
			break;
		}
	}
	return n <= room ? n : 0;
}

/* Find field `name` among the fields in [p, end). False: it is absent, or an unknown value precedes it. */
static bool wire_find(const uint8_t *p, const uint8_t *end, const char *name, struct wire_value *value)
{
	size_t wanted = strlen(name);

	for (;;) {
		const uint8_t *field;
		size_t length, size;

		p = wire_skip_padding(p, end);
		if (!p || p >= end)
			return false;
		if (*p == 0xB9) {
			if (end - p < 2)
				return false;
			length = p[1];
			field = p + 2;
		} else if (*p >= 0xC0 && *p < 0xE0) {
			length = *p & 0x1f;
			field = p + 1;
		} else {
			return false;
		}
		if (length > (size_t)(end - field))
			return false;
		p = wire_skip_padding(field + length, end);
		if (!p)
			return false;
		size = wire_value_size(p, end);
		if (!size)
			return false;
		if (length == wanted && memcmp(field, name, wanted) == 0) {
			value->at = p;
			value->end = p + size;
			return true;
		}
		p += size;
	}
}

/* Narrow a value to the fields inside it: strip the type prefix and the block's header. */
static bool wire_enter(struct wire_value *v)
{
	while (v->at < v->end && *v->at == 0xB6)
		v->at += 2 + v->at[1];
	if (v->end - v->at < 5 || *v->at != 0x82)
		return false;
	v->at += 5;
	return true;
}

static bool wire_int(const struct wire_value *v, int64_t *out)
{
	const uint8_t *p = v->at;
	int16_t i16;
	int32_t i32;

	switch (*p) {
	case 0xA1:
		*out = p[1];
		return true;
	case 0xA4:
		*out = (int8_t)p[1];
		return true;
	case 0xA2:
		*out = p[1] | p[2] << 8;
		return true;
	case 0xA5:
		memcpy(&i16, p + 1, 2);
		*out = i16;
		return true;
	case 0xA3:
	case 0xA6:
		memcpy(&i32, p + 1, 4);
		*out = *p == 0xA3 ? (int64_t)(uint32_t)i32 : i32;
		return true;
	case 0xA7:
		memcpy(out, p + 1, 8);
		return true;
	default:
		*out = *p;
		return *p < 0x80;
	}
}

/* A short text, after any type prefix. */
static bool wire_text_is(const struct wire_value *v, const char *expected)
{
	const uint8_t *p = v->at;

	while (p < v->end && *p == 0xB6)
		p += 2 + p[1];
	return p < v->end && *p >= 0xE0 && (size_t)(*p & 0x1f) == strlen(expected) &&
	       memcmp(p + 1, expected, strlen(expected)) == 0;
}

/* Field `name` must be the integer `expected`. */
static bool wire_check_int(const struct wire_value *block, const char *name, int64_t expected, const char *file,
			   char *text)
{
	struct wire_value v;
	int64_t found;

	if (!wire_find(block->at, block->end, name, &v) || !wire_int(&v, &found)) {
		say(text, "%s: no readable \"%s\"; this library knows Chronicle Queue 2026.4, FAST_DAILY", file, name);
		return false;
	}
	if (found != expected) {
		say(text,
		    "%s: %s is %lld, this library knows only %lld; create the queue as FAST_DAILY with the daemon of "
		    "this release",
		    file, name, (long long)found, (long long)expected);
		return false;
	}
	return true;
}

/* The document at `position`: its payload, its header word. -EBADMSG if it is absent, unfinished or does not fit. */
static int document_at(const uint8_t *base, size_t size, size_t position, struct wire_value *payload, uint32_t *header)
{
	uint32_t h;

	if (position > size || size - position < CQ_HEADER_BYTES)
		return -EBADMSG;
	h = __atomic_load_n((const uint32_t *)(base + position), __ATOMIC_ACQUIRE);
	if (h == 0 || (h & CQ_NOT_COMPLETE) || (h & CQ_LENGTH) > size - position - CQ_HEADER_BYTES)
		return -EBADMSG;
	payload->at = base + position + CQ_HEADER_BYTES;
	payload->end = payload->at + (h & CQ_LENGTH);
	*header = h;
	return 0;
}

/* A descriptor or -errno. A source says in text[] why it has none. */
static int open_file(const struct cq *q, int64_t cycle, const char *name, char *text)
{
	int fd;

	if (q->source.open)
		return q->source.open(q->source.arg, cycle, text);
	if (descriptor_is_foreign(&q->dir))
		return -EBADF;
	fd = openat(q->dir.number, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Map a whole file, shared and writable. Sets *size. text[] is empty and may stay so. */
static int map_file(const struct cq *q, int64_t cycle, const char *name, uint64_t size_max, uint8_t **base,
		    size_t *size, char *text)
{
	struct stat st;
	void *p;
	int fd, error;

	fd = open_file(q, cycle, name, text);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		error = errno;
	} else if (!S_ISREG(st.st_mode) || st.st_size < 4096 || (uint64_t)st.st_size > size_max) {
		error = EBADMSG;
	} else {
		*size = (size_t)st.st_size;
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		error = p == MAP_FAILED ? errno : 0;
		*base = p;
	}
	close(fd);
	if (error)
		return -error;
	/* A forked child must not use the queue, so it need not keep the memory of a deleted cycle. */
	madvise(*base, *size, MADV_DONTFORK);
	return 0;
}

/*
 * Make [from, size) present and writable now, so that an append takes no page fault, and a full file system is an error
 * here and not a SIGBUS later.
 */
static int populate(uint8_t *base, size_t size, size_t from)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool touch = false;

	for (size_t at = from & ~(page - 1); at < size; at += CQ_POPULATE_STEP) {
		size_t n = size - at < CQ_POPULATE_STEP ? size - at : CQ_POPULATE_STEP;

		if (!touch) {
			if (madvise(base + at, n, MADV_POPULATE_WRITE) == 0)
				continue;
			if (errno == EFAULT)
				return -ENOSPC;
			if (errno == EINTR) {
				at -= CQ_POPULATE_STEP;
				continue;
			}
			if (errno != EINVAL)
				return -errno;
			touch = true; /* before Linux 5.14 */
		}
		for (size_t i = at; i < at + n; i += page)
			__atomic_fetch_or((uint32_t *)(base + i), 0, __ATOMIC_RELAXED);
	}
	return 0;
}

static void unmap(struct cq_map *map)
{
	if (map->base)
		munmap(map->base, map->size);
	map->base = NULL;
}

static void cycle_file_name(char name[32], int64_t cycle)
{
	/* Days since 1970-01-01 to a civil date, by eras of 400 years that begin on 1 March. */
	int64_t z = cycle + 719468, era = z / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	int day = (int)(doy - (153 * mp + 2) / 5 + 1), month = (int)(mp < 10 ? mp + 3 : mp - 9);
	int year = (int)(yoe + era * 400 + (month <= 2));

	snprintf(name, 32, "%04d%02d%02dF.cq4", year, month, day);
}

enum tail { TAIL_FREE = 0, TAIL_END_OF_DATA = 1 };

/* Advance map->tail to the first free header. TAIL_FREE, TAIL_END_OF_DATA, -EBADMSG or -ENOSPC. Write lock held. */
static int find_tail(struct cq_map *map, uint64_t *overwritten)
{
	for (;;) {
		uint32_t *header, h;
		size_t room, length;

		if (map->tail > map->size || map->size - map->tail < CQ_HEADER_BYTES)
			return -ENOSPC;
		room = map->size - map->tail - CQ_HEADER_BYTES;
		header = (uint32_t *)(map->base + map->tail);
		h = __atomic_load_n(header, __ATOMIC_ACQUIRE); /* pairs with the publishing store of another appender */
		if (likely(h == 0))
			return TAIL_FREE;
		if (h == CQ_END_OF_DATA)
			return TAIL_END_OF_DATA;
		if (h & CQ_NOT_COMPLETE) { /* its writer died: we hold the lock */
			__atomic_store_n(header, 0, __ATOMIC_RELEASE);
			++*overwritten;
			return TAIL_FREE;
		}
		length = h & CQ_LENGTH;
		if (length > room)
			return -EBADMSG;
		if (!(h & CQ_META))
			map->next_seq++;
		map->tail = align4(map->tail + CQ_HEADER_BYTES + length);
	}
}

/* As find_tail(), but changes nothing in the file and needs no lock. For pre-faulting. */
static void skip_documents(struct cq_map *map)
{
	struct wire_value payload;
	uint32_t header;

	while (document_at(map->base, map->size, map->tail, &payload, &header) == 0) {
		if (!(header & CQ_META))
			map->next_seq++;
		map->tail = align4(map->tail + CQ_HEADER_BYTES + (header & CQ_LENGTH));
	}
}

static int check_cycle_header(struct cq_map *map, const char *name, char *text)
{
	struct wire_value document, store, v, indexing;
	uint32_t header;
	uint64_t capacity;

	if (document_at(map->base, map->size, 0, &document, &header) < 0 || !(header & CQ_META)) {
		say(text, "%s: no complete header document; the daemon creates cycle files, is it still starting?",
		    name);
		return -EBADMSG;
	}
	if (!wire_find(document.at, document.end, "header", &store) || !wire_enter(&store)) {
		say(text, "%s: header is not an SCQStore; this library knows Chronicle Queue 2026.4, FAST_DAILY", name);
		return -EPROTONOSUPPORT;
	}
	if (!wire_check_int(&store, "dataFormat", CQ_DATA_FORMAT, name, text))
		return -EPROTONOSUPPORT;
	if (!wire_find(store.at, store.end, "indexing", &indexing) || !wire_enter(&indexing)) {
		say(text, "%s: no readable \"indexing\"; this library knows Chronicle Queue 2026.4, FAST_DAILY", name);
		return -EPROTONOSUPPORT;
	}
	if (!wire_check_int(&indexing, "indexCount", CQ_INDEX_COUNT, name, text) ||
	    !wire_check_int(&indexing, "indexSpacing", CQ_INDEX_SPACING, name, text))
		return -EPROTONOSUPPORT;
	if (!wire_find(store.at, store.end, "writePosition", &v) || *v.at != 0x8D || ((uintptr_t)(v.at + 1) & 7)) {
		say(text, "%s: writePosition is not an aligned int64 array; this library knows Chronicle Queue 2026.4",
		    name);
		return -EPROTONOSUPPORT;
	}
	memcpy(&capacity, v.at + 1, 8);
	if (capacity < 2) {
		say(text, "%s: writePosition has %llu words, 2 are needed", name, (unsigned long long)capacity);
		return -EPROTONOSUPPORT;
	}
	map->write_position = (int64_t *)(map->base + (v.at + 17 - map->base));
	return 0;
}

static int map_cycle(const struct cq *q, int64_t cycle, bool prefault, struct cq_map *map, char *text)
{
	char name[32];
	int ret;

	*map = (struct cq_map){.cycle = cycle};
	text[0] = '\0';
	if (cycle < 0 || cycle > CQ_CYCLE_MAX) {
		say(text, "metadata.cq4t: cycle %lld is out of range", (long long)cycle);
		return -EBADMSG;
	}
	cycle_file_name(name, cycle);
	ret = map_file(q, cycle, name, CQ_CYCLE_BYTES_MAX, &map->base, &map->size, text);
	if (ret < 0) {
		map->base = NULL;
		if (!text[0])
			say(text, "%s: cannot map the cycle file: %s", name,
			    ret == -EBADMSG ? "impossible size" : strerror(-ret));
		return ret;
	}
	ret = check_cycle_header(map, name, text);
	if (ret == 0 && prefault) {
		struct cq_map walk = *map;

		skip_documents(&walk);
		ret = populate(map->base, map->size, walk.tail < map->size ? walk.tail : map->size);
		/* The cache line that every append writes is at the start of the file. */
		if (ret == 0)
			ret = populate(map->base, 1, 0);
		if (ret < 0)
			say(text,
			    "%s: cannot pre-fault %zu bytes: %s; is the file system of the runtime directory full?",
			    name, map->size, strerror(-ret));
	}
	if (ret < 0)
		unmap(map);
	return ret;
}

/* The aligned int64 of a metadata document, or NULL. */
static int64_t *meta_word(const struct wire_value *document, const char *key)
{
	struct wire_value v;

	if (!wire_find(document->at, document->end, key, &v) || *v.at != 0xA7 || ((uintptr_t)(v.at + 1) & 7))
		return NULL;
	return (int64_t *)(uintptr_t)(v.at + 1);
}

static int parse_metadata(struct cq *q, char *text)
{
	static const char file[] = "metadata.cq4t";
	struct wire_value document, store, meta, roll, v;
	int64_t *word;
	size_t position = 0;
	uint32_t header;

	if (document_at(q->meta, q->meta_size, 0, &document, &header) < 0 || !(header & CQ_META) ||
	    !wire_find(document.at, document.end, "header", &store) || !wire_enter(&store)) {
		say(text, "%s: no complete header; the daemon creates the queue, is it still starting?", file);
		return -EPROTONOSUPPORT;
	}
	if (!wire_find(store.at, store.end, "wireType", &v) || !wire_text_is(&v, "BINARY_LIGHT")) {
		say(text, "%s: wireType is not BINARY_LIGHT; create the queue with the daemon of this release", file);
		return -EPROTONOSUPPORT;
	}
	if (!wire_find(store.at, store.end, "metadata", &meta) || !wire_enter(&meta) ||
	    !wire_find(meta.at, meta.end, "roll", &roll) || !wire_enter(&roll)) {
		say(text, "%s: no readable roll settings; this library knows Chronicle Queue 2026.4, FAST_DAILY", file);
		return -EPROTONOSUPPORT;
	}
	if (!wire_check_int(&roll, "length", CQ_DAY_MS, file, text) || !wire_check_int(&roll, "epoch", 0, file, text))
		return -EPROTONOSUPPORT;
	if (!wire_find(roll.at, roll.end, "format", &v) || !wire_text_is(&v, "yyyyMMdd'F'")) {
		say(text, "%s: roll format is not yyyyMMdd'F'; create the queue as FAST_DAILY", file);
		return -EPROTONOSUPPORT;
	}
	while (document_at(q->meta, q->meta_size, position, &document, &header) == 0) {
		if (!(header & CQ_META)) {
			if ((word = meta_word(&document, "chronicle.write.lock")) != NULL)
				q->write_lock = word;
			if ((word = meta_word(&document, "listing.highestCycle")) != NULL)
				q->highest_cycle = word;
		}
		position = align4(position + CQ_HEADER_BYTES + (header & CQ_LENGTH));
	}
	if (!q->write_lock || !q->highest_cycle) {
		say(text, "%s: key %s is missing; this library knows Chronicle Queue 2026.4", file,
		    q->write_lock ? "listing.highestCycle" : "chronicle.write.lock");
		return -EPROTONOSUPPORT;
	}
	return 0;
}

static int init_swap_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	/* The roll thread has normal priority: without inheritance it could delay a real-time appender. */
	ret = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (!ret)
		ret = pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

/* `dir` is NULL if there is a source. */
static int attach(struct cq *q, const char *dir, const struct cq_source *source, const int64_t *prepared_cycle,
		  char *text)
{
	const char *const where = dir ? dir : "the queue"; /* in messages */
	int64_t cycle, own;
	int ret;

	memset(q, 0, sizeof(*q));
	text[0] = '\0';
	q->dir.number = -1;
	if (source)
		q->source = *source;
	q->pid = getpid();
	q->lock_timeout_ns = CQ_LOCK_TIMEOUT_NS;
	q->prepared_cycle = prepared_cycle;
	ret = init_swap_mutex(&q->swap);
	if (ret < 0) {
		say(text, "priority-inheritance mutex: %s", strerror(-ret));
		return ret;
	}
	if (dir) {
		ret = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (ret < 0) {
			ret = -errno;
			say(text, "queue directory %.120s: %s", dir, strerror(-ret));
			goto fail;
		}
		descriptor_take(&q->dir, ret);
	}
	ret = map_file(q, GPUSEG_QUEUE_METADATA, "metadata.cq4t", CQ_META_BYTES_MAX, &q->meta, &q->meta_size, text);
	if (ret < 0) {
		q->meta = NULL;
		if (!text[0])
			say(text, "%.120s/metadata.cq4t: %s; the daemon creates the queue", where,
			    ret == -EBADMSG ? "impossible size" : strerror(-ret));
		goto fail;
	}
	ret = parse_metadata(q, text);
	if (ret < 0)
		goto fail;
	cycle = __atomic_load_n(q->highest_cycle, __ATOMIC_ACQUIRE);
	if (cycle < 0 || cycle > CQ_CYCLE_MAX) {
		say(text, "%.120s: no cycle file yet (highestCycle %lld); the daemon creates it", where,
		    (long long)cycle);
		ret = -ENOENT;
		goto fail;
	}
	ret = map_cycle(q, cycle, true, &q->cur, text);
	if (ret < 0)
		goto fail;
	__atomic_store_n(&q->current_cycle, cycle, __ATOMIC_RELEASE);
	/* A lock with our pid was left by a dead process that had the same pid. */
	own = q->pid;
	__atomic_compare_exchange_n(q->write_lock, &own, CQ_UNLOCKED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return 0;
fail:
	cq_detach(q);
	return ret;
}

int cq_attach(struct cq *q, const char *dir, const int64_t *prepared_cycle, char *text)
{
	return attach(q, dir, NULL, prepared_cycle, text);
}

int cq_attach_given(struct cq *q, const struct cq_source *source, const int64_t *prepared_cycle, char *text)
{
	return attach(q, NULL, source, prepared_cycle, text);
}

void cq_detach(struct cq *q)
{
	unmap(&q->cur);
	unmap(&q->ahead);
	unmap(&q->retired);
	if (q->meta)
		munmap(q->meta, q->meta_size);
	q->meta = NULL;
	descriptor_close(&q->dir);
	pthread_mutex_destroy(&q->swap);
}

static bool try_write_lock(struct cq *q, int64_t expected)
{
	return __atomic_compare_exchange_n(q->write_lock, &expected, q->pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The daemon holds the lock during a roll. The wait is bounded, because a stopped daemon must not stop the client. */
static int write_lock_contended(struct cq *q)
{
	int64_t deadline_ns = now_ns() + q->lock_timeout_ns;

	for (;;) {
		int64_t owner;
		pid_t pid;

		for (int i = 0; i < 500; i++) {
			cpu_relax();
			if (__atomic_load_n(q->write_lock, __ATOMIC_RELAXED) == CQ_UNLOCKED &&
			    try_write_lock(q, CQ_UNLOCKED))
				return 0;
		}
		owner = __atomic_load_n(q->write_lock, __ATOMIC_RELAXED);
		pid = (pid_t)(uint32_t)owner; /* older releases put a thread id into the upper half */
		if (owner != CQ_UNLOCKED && !q->foreign_pids && pid > 0 && pid != (pid_t)q->pid && kill(pid, 0) < 0 &&
		    errno == ESRCH && try_write_lock(q, owner)) {
			q->steals++;
			return 0;
		}
		if (now_ns() - deadline_ns >= 0)
			return -EBUSY;
		sleep_ns(20 * NS_PER_US);
	}
}

static void write_unlock(struct cq *q)
{
	/* A check and a store instead of a compare-and-swap: only this process may change a lock with our pid. */
	if (likely(__atomic_load_n(q->write_lock, __ATOMIC_RELAXED) == q->pid))
		__atomic_store_n(q->write_lock, CQ_UNLOCKED, __ATOMIC_RELEASE);
	else
		q->stolen++;
}

static int64_t newest_cycle(const struct cq *q)
{
	int64_t newest = __atomic_load_n(q->highest_cycle, __ATOMIC_ACQUIRE);

	if (q->prepared_cycle) {
		int64_t prepared = __atomic_load_n(q->prepared_cycle, __ATOMIC_ACQUIRE);

		if (prepared > newest)
			newest = prepared;
	}
	return newest < CQ_CYCLE_MAX ? newest : CQ_CYCLE_MAX;
}

/* Map the first existing cycle after `cycle`. -ENOENT: none yet. */
static int map_following(const struct cq *q, int64_t cycle, bool prefault, struct cq_map *map)
{
	int64_t newest = newest_cycle(q);
	char text[CQ_TEXT_BYTES];
	int ret = -ENOENT;

	/* A source serves the one appender, so none can be missing; and asking for each would take long. */
	if (q->source.open && newest > cycle)
		newest = cycle + 1;
	/* The daemon may have consumed and deleted the cycles in between. */
	for (int64_t c = cycle + 1; c <= newest && ret == -ENOENT; c++)
		ret = map_cycle(q, c, prefault, map, text);
	return ret;
}

/* Take the cycle that the roll thread has mapped ahead. False: there is none. */
static bool take_ahead(struct cq *q, struct cq_map *next)
{
	bool taken = false;

	pthread_mutex_lock(&q->swap);
	if (q->ahead.base && q->ahead.cycle > q->cur.cycle) {
		*next = q->ahead;
		q->ahead.base = NULL;
		taken = true;
	}
	pthread_mutex_unlock(&q->swap);
	return taken;
}

/*
 * An append does not ask the source itself, because that could take seconds. Write lock held. Not inlined, so that an
 * append to a queue with a directory is compiled as if there were no source.
 */
__attribute__((cold, noinline)) static int await_ahead(struct cq *q, struct cq_map *next)
{
	const int64_t deadline_ns = now_ns() + q->lock_timeout_ns;

	if (newest_cycle(q) <= q->cur.cycle)
		return -ENOENT;
	/* Repeat the call, for the roll thread may be about to sleep; seldom, because it asks the daemon each time. */
	for (unsigned int turn = 0; !take_ahead(q, next); turn++) {
		if (now_ns() - deadline_ns >= 0)
			return -EBUSY;
		if (turn % 32 == 0)
			q->source.hurry(q->source.arg);
		sleep_ns(50 * NS_PER_US);
	}
	return 0;
}

/* The current cycle has ended: switch to the next one. Write lock held. -ENOENT: there is none yet. */
static int follow_roll(struct cq *q)
{
	struct cq_map next = {0}, leftover;
	bool inline_map = false;

	if (!take_ahead(q, &next)) {
		int ret = q->source.open ? await_ahead(q, &next) : map_following(q, q->cur.cycle, false, &next);

		if (ret < 0)
			return ret;
		inline_map = true;
	}
	pthread_mutex_lock(&q->swap);
	leftover = q->retired;
	q->retired = q->cur;
	pthread_mutex_unlock(&q->swap);
	unmap(&leftover);
	q->cur = next;
	__atomic_store_n(&q->current_cycle, next.cycle, __ATOMIC_RELEASE);
	q->rolls++;
	if (inline_map)
		q->remaps_inline++;
	return 0;
}

static int find_tail_following_rolls(struct cq *q)
{
	int ret;

	while ((ret = find_tail(&q->cur, &q->overwritten)) == TAIL_END_OF_DATA) {
		ret = follow_roll(q);
		if (ret < 0)
			return ret == -ENOENT ? -EBUSY : ret;
	}
	return ret;
}

int cq_append(struct cq *q, const struct gpuseg_record *record)
{
	const size_t half = CQ_RECORD_BYTES / 2;
	struct cq_map *map = &q->cur;
	int64_t position;
	uint8_t *at;
	int ret;

	if (unlikely(!try_write_lock(q, CQ_UNLOCKED))) {
		ret = write_lock_contended(q);
		if (ret < 0)
			return ret;
	}
	CQ_CRASHPOINT(1);
	ret = find_tail_following_rolls(q);
	if (likely(ret == TAIL_FREE) &&
	    map->size - map->tail < CQ_HEADER_BYTES + CQ_RECORD_BYTES + CQ_ZEROS_BYTES + CQ_RESERVE_BYTES)
		ret = -ENOSPC;
	if (unlikely(ret < 0)) {
		write_unlock(q);
		return ret;
	}

	position = (int64_t)map->tail;
	at = map->base + position + CQ_HEADER_BYTES;
	memcpy(at, record, half);
	CQ_CRASHPOINT(2);
	memcpy(at + half, (const uint8_t *)record + half, half);
	memset(at + CQ_RECORD_BYTES, 0, CQ_ZEROS_BYTES);
	CQ_CRASHPOINT(3);
	/* release; pairs with the acquire of the daemon's tailer */
	__atomic_store_n((uint32_t *)(map->base + position), (uint32_t)CQ_RECORD_BYTES, __ATOMIC_RELEASE);
	CQ_CRASHPOINT(4);
	/* release; a Java appender reads it under the lock, or without the lock as a hint */
	if (__atomic_load_n(&map->write_position[0], __ATOMIC_RELAXED) < position)
		__atomic_store_n(&map->write_position[0], position, __ATOMIC_RELEASE);
	CQ_CRASHPOINT(5);
	__atomic_store_n(&map->write_position[1],
			 (int64_t)((uint64_t)position << CQ_SHIFT | ((uint64_t)map->next_seq & UINT32_MAX)),
			 __ATOMIC_RELEASE);
	CQ_CRASHPOINT(6);
	map->tail += CQ_HEADER_BYTES + CQ_RECORD_BYTES;
	map->next_seq++;
	write_unlock(q);
	CQ_CRASHPOINT(7);
	return 0;
}

int cq_service(struct cq *q)
{
	struct cq_map retired, stale = {0}, next = {0};
	int64_t current = __atomic_load_n(&q->current_cycle, __ATOMIC_ACQUIRE);
	bool wanted;
	int ret = 0;

	pthread_mutex_lock(&q->swap);
	retired = q->retired;
	q->retired.base = NULL;
	if (q->ahead.base && q->ahead.cycle <= current) { /* the appender was faster */
		stale = q->ahead;
		q->ahead.base = NULL;
	}
	wanted = !q->ahead.base;
	pthread_mutex_unlock(&q->swap);
	unmap(&retired);
	unmap(&stale);
	if (!wanted)
		return 0;
	ret = map_following(q, current, true, &next);
	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	pthread_mutex_lock(&q->swap);
	q->ahead = next; /* only this thread fills the slot, and it was empty */
	pthread_mutex_unlock(&q->swap);
	return 0;
}
