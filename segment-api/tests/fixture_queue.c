/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_queue.c - queue files, byte for byte as chronicle-queue 2026.4 writes them (FAST_DAILY, BINARY_LIGHT).
 *
 * They are written without the library's parser, so that the two check each other. The interoperability test compares
 * them with the Java side.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define META_BYTES 131072
#define UNLOCKED INT64_MIN

/*
 * All directories of a test are in one. If the test ends before it removes them, by a failed check, an abort, a signal
 * or its limit, a process that waits for its end does so: nothing in the test itself can be relied on then.
 */
static char all_of_test[64 - sizeof("/XXXXXX")];
static pid_t made_by;

__attribute__((noreturn)) static void clean_at_end(int pipe)
{
	char unused;

	/* No copy of what the test has open may outlive it: others wait for its end. */
	dup2(pipe, STDIN_FILENO);
	for (int i = STDIN_FILENO + 1; i < 1024; i++)
		close(i);
	while (read(STDIN_FILENO, &unused, 1) < 0 && errno == EINTR)
		;
	fixture_remove(all_of_test);
	_exit(0);
}

/* A test that passes has removed its directories; what one that is skipped on its way leaves is removed at its end. */
static void check_that_nothing_is_left(int status, void *unused)
{
	(void)unused;
	if (made_by != getpid() || status == CHECK_SKIPPED || rmdir(all_of_test) == 0)
		return;
	fprintf(stderr, "  FAILED: the test has left something in %s\n", all_of_test);
	fflush(NULL);
	_exit(CHECK_FAILED);
}

static void make_all_of_test(void)
{
	const char *base = getenv("GPUSEG_TEST_BASE"); /* of one test: whoever started it looks what is left there */
	int ends[2];
	pid_t child;

	if (!base)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(all_of_test, sizeof(all_of_test), "%s/gpuseg-test-XXXXXX", base);
	CHECK(mkdtemp(all_of_test) != NULL, "%s", all_of_test);
	CHECK_EQ(chmod(all_of_test, 0711), 0); /* tests of several users go through it */
	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);   /* the end for writing stays open as long as the test and its children */
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		/* No child of the test, nor of its process group. */
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		close(ends[1]);
		clean_at_end(ends[0]);
	}
	CHECK_EQ(waitpid(child, NULL, 0), child);
	close(ends[0]);
	made_by = getpid();
	CHECK_EQ(on_exit(check_that_nothing_is_left, NULL), 0);
}

void fixture_directory(char dir[64])
{
	if (!all_of_test[0])
		make_all_of_test();
	snprintf(dir, 64, "%s/XXXXXX", all_of_test);
	CHECK(mkdtemp(dir) != NULL, "%s", dir);
}

void fixture_remove(const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return;
	while ((entry = readdir(d)) != NULL) {
		char path[512];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (unlink(path) < 0 && (errno == EISDIR || errno == EPERM))
			fixture_remove(path);
	}
	closedir(d);
	rmdir(dir);
}

/* A buffer that is being filled. */
struct builder {
	uint8_t *base;
	size_t at;
};

static void put(struct builder *b, const void *bytes, size_t n)
{
	memcpy(b->base + b->at, bytes, n);
	b->at += n;
}

static void put8(struct builder *b, unsigned int value)
{
	b->base[b->at++] = (uint8_t)value;
}

static void put16(struct builder *b, uint16_t value)
{
	put(b, &value, sizeof(value));
}

static void put32(struct builder *b, uint32_t value)
{
	put(b, &value, sizeof(value));
}

static void put64(struct builder *b, int64_t value)
{
	put(b, &value, sizeof(value));
}

static void put_field(struct builder *b, const char *name)
{
	put8(b, 0xC0 | (unsigned int)strlen(name));
	put(b, name, strlen(name));
}

static void put_event(struct builder *b, const char *name)
{
	put8(b, 0xB9);
	put8(b, (unsigned int)strlen(name));
	put(b, name, strlen(name));
}

static void put_type(struct builder *b, const char *name)
{
	put8(b, 0xB6);
	put8(b, (unsigned int)strlen(name));
	put(b, name, strlen(name));
}

/* Padding so that, after one code byte, the position is a multiple of 8. */
static void pad_for_word(struct builder *b)
{
	size_t n = (8 - (b->at + 1) % 8) % 8;

	if (n < 5) {
		while (n--)
			put8(b, 0x8F);
	} else {
		put8(b, 0x8E);
		put32(b, (uint32_t)n - 5);
		while (n-- > 5)
			put8(b, 0);
	}
}

static int64_t *put_word(struct builder *b, int64_t value)
{
	pad_for_word(b);
	put8(b, 0xA7);
	put64(b, value);
	return (int64_t *)(void *)(b->base + b->at - 8);
}

static size_t put_block(struct builder *b) /* returns the position of its length */
{
	put8(b, 0x82);
	put32(b, 0);
	return b->at;
}

static void end_block(struct builder *b, size_t start)
{
	uint32_t length = (uint32_t)(b->at - start);

	memcpy(b->base + start - 4, &length, 4);
}

static size_t begin_document(struct builder *b)
{
	b->at = (b->at + 3) & ~(size_t)3;
	put32(b, 0);
	return b->at;
}

static void end_document(struct builder *b, size_t start, uint32_t flags)
{
	uint32_t header;

	while (b->at & 3)
		put8(b, flags ? 0x8F : 0);
	header = (uint32_t)(b->at - start) | flags;
	memcpy(b->base + start - 4, &header, 4);
}

static uint8_t *create_file(const char *dir, int64_t cycle, size_t size)
{
	char path[128];
	void *p;
	int fd;

	fixture_path(dir, cycle, path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	return p;
}

static void put_meta_word(struct builder *b, const char *key, int64_t value)
{
	size_t document = begin_document(b);

	put_event(b, key);
	put_word(b, value);
	end_document(b, document, 0);
}

void fixture_queue_create(const char *dir, size_t size)
{
	struct builder b = {.base = create_file(dir, -1, META_BYTES)};
	size_t document, store, meta, roll;

	document = begin_document(&b);
	put_event(&b, "header");
	put_type(&b, "STStore");
	store = put_block(&b);
	put_field(&b, "wireType");
	put_type(&b, "WireType");
	put8(&b, 0xE0 | 12);
	put(&b, "BINARY_LIGHT", 12);
	put_field(&b, "metadata");
	put_type(&b, "SCQMeta");
	meta = put_block(&b);
	put_field(&b, "roll");
	put_type(&b, "SCQSRoll");
	roll = put_block(&b);
	put_field(&b, "length");
	put8(&b, 0xA6);
	put32(&b, 86400000);
	put_field(&b, "format");
	put8(&b, 0xE0 | 11);
	put(&b, "yyyyMMdd'F'", 11);
	put_field(&b, "epoch");
	put8(&b, 0xA1);
	put8(&b, 0);
	end_block(&b, roll);
	put_field(&b, "sourceId");
	put8(&b, 0xA1);
	put8(&b, 0);
	end_block(&b, meta);
	put8(&b, 0x8F); /* aligns the next document; counted in the block */
	end_block(&b, store);
	end_document(&b, document, 0x40000000);
	put_meta_word(&b, "listing.highestCycle", 0);
	put_meta_word(&b, "listing.lowestCycle", 0);
	put_meta_word(&b, "listing.modCount", 3);
	put_meta_word(&b, "chronicle.write.lock", UNLOCKED);
	put_meta_word(&b, "chronicle.append.lock", UNLOCKED);
	put_meta_word(&b, "chronicle.lastIndexReplicated", -1);
	put_meta_word(&b, "chronicle.lastAcknowledgedIndexReplicated", -1);
	put_meta_word(&b, "chronicle.lastIndexMSynced", -1);
	munmap(b.base, META_BYTES);
	fixture_cycle_create(dir, 0, size);
}

static void put_array(struct builder *b, int64_t used)
{
	pad_for_word(b);
	put8(b, 0x8D);
	put64(b, 4096);
	put64(b, used);
	b->at += 8 * 4096;
}

void fixture_cycle_create(const char *dir, int64_t cycle, size_t size)
{
	struct builder b = {.base = create_file(dir, cycle, size)};
	size_t document, store, indexing, index2index_at, index_at;
	int64_t *index2index;

	document = begin_document(&b);
	put_event(&b, "header");
	put_type(&b, "SCQStore");
	store = put_block(&b);
	put_field(&b, "writePosition");
	pad_for_word(&b);
	put8(&b, 0x8D);
	put64(&b, 2);
	put64(&b, 2);
	put64(&b, 0);
	put64(&b, 0);
	put_field(&b, "indexing");
	put_type(&b, "SCQSIndexing");
	indexing = put_block(&b);
	put_field(&b, "indexCount");
	put8(&b, 0xA5);
	put16(&b, 4096);
	put_field(&b, "indexSpacing");
	put8(&b, 0xA5);
	put16(&b, 256);
	put_field(&b, "index2Index");
	index2index = put_word(&b, 0);
	put_field(&b, "lastIndex");
	put_word(&b, 0);
	end_block(&b, indexing);
	put_field(&b, "dataFormat");
	put8(&b, 0xA1);
	put8(&b, 1);
	end_block(&b, store);
	{
		uint32_t header =
			(uint32_t)(b.at - document) | 0x40000000u; /* the one document that is not padded to 4 */

		memcpy(b.base + document - 4, &header, 4);
		b.at = (b.at + 3) & ~(size_t)3;
	}
	index2index_at = b.at;
	document = begin_document(&b);
	put_event(&b, "index2index");
	put_array(&b, 1);
	end_document(&b, document, 0x40000000);
	index_at = b.at;
	memcpy(b.base + document + 0x24, &(int64_t){(int64_t)index_at}, 8);
	document = begin_document(&b);
	put_event(&b, "index");
	put_array(&b, 0);
	end_document(&b, document, 0x40000000);
	*index2index = (int64_t)index2index_at;
	CHECK_EQ(b.at, FIXTURE_FIRST_DATA);
	munmap(b.base, size);
}

void fixture_path(const char *dir, int64_t cycle, char path[128])
{
	time_t t = (time_t)(cycle * 86400);
	struct tm tm;

	if (cycle < 0) {
		snprintf(path, 128, "%s/metadata.cq4t", dir);
		return;
	}
	gmtime_r(&t, &tm);
	snprintf(path, 128, "%s/%04d%02d%02dF.cq4", dir, (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100,
		 tm.tm_mday % 100);
}

uint8_t *fixture_map(const char *dir, int64_t cycle, size_t *size)
{
	char path[128];
	struct stat st;
	void *p;
	int fd;

	fixture_path(dir, cycle, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	CHECK_EQ(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int64_t *key_word(uint8_t *meta, size_t size, const char *key)
{
	uint8_t *at = memmem(meta, size, key, strlen(key));

	CHECK(at != NULL);
	at += strlen(key);
	while (*at != 0xA7)
		at += *at == 0x8E ? 5 + at[1] : 1;
	return (int64_t *)(void *)(at + 1);
}

int64_t *fixture_write_lock(uint8_t *meta, size_t size)
{
	return key_word(meta, size, "chronicle.write.lock");
}

void fixture_cycle_announce(const char *dir, int64_t cycle)
{
	size_t size;
	uint8_t *meta = fixture_map(dir, -1, &size);

	CHECK(meta != NULL);
	__atomic_store_n(key_word(meta, size, "listing.highestCycle"), cycle, __ATOMIC_RELEASE);
	__atomic_fetch_add(key_word(meta, size, "listing.modCount"), 1, __ATOMIC_ACQ_REL);
	munmap(meta, size);
}

int64_t fixture_announced_cycle(const char *dir)
{
	size_t size;
	uint8_t *meta = fixture_map(dir, -1, &size);
	int64_t cycle;

	CHECK(meta != NULL);
	cycle = __atomic_load_n(key_word(meta, size, "listing.highestCycle"), __ATOMIC_ACQUIRE);
	munmap(meta, size);
	return cycle;
}

void fixture_tail_open(struct fixture_tail *tail, const char *dir, int64_t cycle)
{
	memset(tail, 0, sizeof(*tail));
	snprintf(tail->dir, sizeof(tail->dir), "%s", dir);
	tail->cycle = cycle;
	tail->base = fixture_map(dir, cycle, &tail->size);
	CHECK(tail->base != NULL);
}

void fixture_tail_close(struct fixture_tail *tail)
{
	if (tail->base)
		munmap(tail->base, tail->size);
	tail->base = NULL;
}

int fixture_tail_next(struct fixture_tail *tail, struct gpuseg_record *record)
{
	for (;;) {
		uint32_t header, length;

		CHECK(tail->position + 4 <= tail->size);
		header = __atomic_load_n((uint32_t *)(void *)(tail->base + tail->position), __ATOMIC_ACQUIRE);
		if (header == 0xC0000000u)
			return 2;
		if (header == 0 || (header & 0x80000000u))
			return 0;
		length = header & 0x3fffffffu;
		CHECK(length <= tail->size - tail->position - 4);
		if (!(header & 0x40000000u)) {
			if (length != sizeof(*record))
				return -1;
			memcpy(record, tail->base + tail->position + 4, sizeof(*record));
			tail->position += 4 + sizeof(*record);
			return 1;
		}
		tail->position = (tail->position + 4 + length + 3) & ~(size_t)3;
	}
}

static void append_roll_record(uint8_t *base, size_t size)
{
	struct gpuseg_record roll = {.kind = GPUSEG_RECORD_ROLL};
	int64_t *write_position = (int64_t *)(void *)(base + 0x40);

	CHECK(size > FIXTURE_FIRST_DATA + 128);
	memcpy(base + FIXTURE_FIRST_DATA + 4, &roll, sizeof(roll));
	__atomic_store_n((uint32_t *)(void *)(base + FIXTURE_FIRST_DATA), (uint32_t)sizeof(roll), __ATOMIC_RELEASE);
	__atomic_store_n(&write_position[0], FIXTURE_FIRST_DATA, __ATOMIC_RELEASE);
	__atomic_store_n(&write_position[1], (int64_t)FIXTURE_FIRST_DATA << 32, __ATOMIC_RELEASE);
}

void fixture_roll(const char *dir, int64_t from, size_t size)
{
	struct fixture_tail tail;
	struct gpuseg_record record;
	size_t meta_size, next_size;
	uint8_t *meta = fixture_map(dir, -1, &meta_size), *next;
	int64_t *lock = fixture_write_lock(meta, meta_size), unlocked;
	char path[128];

	do {
		unlocked = UNLOCKED;
	} while (!__atomic_compare_exchange_n(lock, &unlocked, (int64_t)getppid(), false, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
	fixture_tail_open(&tail, dir, from);
	while (fixture_tail_next(&tail, &record) == 1)
		;
	memcpy(tail.base + tail.position + 4,
	       "\xc3"
	       "EOF",
	       4);
	__atomic_store_n((uint32_t *)(void *)(tail.base + tail.position), 0xC0000000u, __ATOMIC_RELEASE);
	fixture_tail_close(&tail);
	fixture_path(dir, from + 1, path);
	if (access(path, F_OK) != 0)
		fixture_cycle_create(dir, from + 1, size);
	next = fixture_map(dir, from + 1, &next_size);
	append_roll_record(next, next_size);
	munmap(next, next_size);
	fixture_cycle_announce(dir, from + 1);
	__atomic_store_n(lock, UNLOCKED, __ATOMIC_RELEASE);
	munmap(meta, meta_size);
}
