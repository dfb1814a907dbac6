/* SPDX-License-Identifier: Apache-2.0 */
/* seen.c - the word that all processes under one `gpuseg exec` share. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

#include "seen.h"

/*
 * "PID START FAULTS ID": the first process and when it started, since numbers of processes come again and are others in
 * a container; the page faults of the children that it had before; then ten digits of the shared memory, written by the
 * first process where they stand.
 */
#define VARIABLE "GPUSEG_EXEC_FIRST"
#define ID_DIGITS 10
#define ID_NONE "----------"
#define FIRST_BYTES 64

struct word {
	char first[FIRST_BYTES]; /* written once, before the id is: memory of somebody else has something else here */
	uint32_t seen;		 /* atomic; any process sets it, the first one reads it */
};

/* Set by seen_load(), before other threads are there. NULL: there is none. */
static struct word *word;
static int id = -1;

/* "PID START " of this process. False: it is not known. */
static bool self(char text[FIRST_BYTES])
{
	char stat[1024];
	const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	const char *at;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	stat[n] = '\0';
	at = strrchr(stat, ')'); /* of the name, the second field; the start is the 22nd */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && snprintf(text, FIRST_BYTES, "%d %llu ", (int)getpid(), strtoull(at + 1, NULL, 10)) < FIRST_BYTES;
}

/* Of all children that this process has waited for, also before it became this program. */
static long faults_of_children(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_CHILDREN, &usage) == 0 ? usage.ru_minflt : -1;
}

bool seen_begin(void)
{
	char process[FIRST_BYTES], value[2 * FIRST_BYTES];

	if (!self(process))
		return false;
	snprintf(value, sizeof(value), "%s%ld " ID_NONE, process, faults_of_children());
	return setenv(VARIABLE, value, 1) == 0;
}

void seen_none(void)
{
	unsetenv(VARIABLE);
}

/* The digits of the variable, behind what they are of; NULL: there is no first process. */
static char *digits_of(char first[FIRST_BYTES])
{
	char *value = secure_getenv(VARIABLE), *last = value ? strrchr(value, ' ') : NULL;
	const size_t length = last ? (size_t)(last + 1 - value) : 0;

	if (!last || length >= FIRST_BYTES || strlen(last + 1) != ID_DIGITS)
		return NULL;
	memcpy(first, value, length);
	first[length] = '\0';
	return last + 1;
}

/* NULL: it is gone, or is not what was meant. */
static struct word *attach(const char *digits, const char *first, int *shared)
{
	char *end;
	struct word *at;

	*shared = (int)strtol(digits, &end, 10);
	if (end != digits + ID_DIGITS)
		return NULL;
	at = shmat(*shared, NULL, 0);
	if (at == (void *)-1)
		return NULL;
	if (strncmp(at->first, first, FIRST_BYTES) == 0)
		return at;
	shmdt(at);
	return NULL;
}

/* Other users of the machine may set the word, too: a program under exec may change its user. */
static void make(char *digits, const char *first)
{
	const int shared = shmget(IPC_PRIVATE, sizeof(struct word), IPC_CREAT | 0666);
	char text[ID_DIGITS + 1];

	if (shared < 0)
		return;
	word = shmat(shared, NULL, 0);
	/* Linux lets others attach until the last one is gone. */
	shmctl(shared, IPC_RMID, NULL);
	if (word == (void *)-1) {
		word = NULL;
		return;
	}
	memcpy(word->first, first, strlen(first) + 1);
	id = shared;
	snprintf(text, sizeof(text), "%0*d", ID_DIGITS, shared);
	memcpy(digits, text, ID_DIGITS);
}

/* Has it had no children yet? What those of an earlier program in it have seen is not known any more. */
static bool is_new(const char *first, const char *process)
{
	return strtol(first + strlen(process), NULL, 10) == faults_of_children();
}

bool seen_load(void)
{
	char first[FIRST_BYTES], process[FIRST_BYTES];
	char *digits = digits_of(first);
	bool is_first;

	if (!digits)
		return false;
	is_first =
		strtol(first, NULL, 10) == getpid() && self(process) && strncmp(first, process, strlen(process)) == 0;
	word = attach(digits, first, &id);
	if (!word && is_first && is_new(first, process))
		make(digits, first);
	return is_first && word;
}

static void set(struct word *at)
{
	__atomic_store_n(&at->seen, 1, __ATOMIC_RELAXED);
}

void seen_mark(void)
{
	char first[FIRST_BYTES];
	const char *digits;
	struct word *at;
	int shared;

	if (word) {
		set(word);
		return;
	}
	digits = digits_of(first);
	at = digits ? attach(digits, first, &shared) : NULL;
	if (at) {
		set(at);
		shmdt(at);
	}
}

bool seen_nothing(void)
{
	struct shmid_ds state;

	return word && !__atomic_load_n(&word->seen, __ATOMIC_RELAXED) && shmctl(id, IPC_STAT, &state) == 0 &&
	       state.shm_nattch == 1;
}
