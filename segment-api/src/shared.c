/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.c - the one client of a process, and connect and disconnect on top of it.
 *
 * The daemon takes one client per process, but a process may have several copies of this library: in the shared object,
 * in plug-ins that link the archive, in libgpuseg-inject.so. They meet at the `meeting` of the first object, in the
 * order in which objects were loaded, that has a copy with the same layout; a note in each object says where it is.
 * Nothing is looked up by name, so neither hidden symbols nor RTLD_LOCAL matter. A copy with another layout meets
 * others of its kind, or nobody.
 *
 * Objects. An object whose meeting is used, and each whose code made the connection or may hold a handle, stays loaded
 * for good (RTLD_NODELETE): the roll thread and the handlers of fork run its code.
 *
 * fork(). What the copies meet at is a page that is zero in a child: no lock is held there, and there is no client. The
 * kernel clears it (MADV_WIPEONFORK, Linux 4.14), and before that the fork handler.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client.h"
#include "internal.h"

/* Of struct gpuseg_client, struct gpuseg_task, struct process and what is done with them: incremented with each. */
#ifndef MEETING_LAYOUT /* tests/test_shared.c has a copy of another one */
#define MEETING_LAYOUT 1
#endif
#define MEETING_NOTE 0x67730001 /* type of the note */
#define FIND_TRIES 100

/* What all copies share. The lock is held for a whole connect or disconnect. */
struct process {
	uint32_t lock; /* atomic; futex: 0 free, 1 held, 2 held and awaited */
	uint32_t unused;
	struct gpuseg_client *first; /* connections that are shared, one per runtime directory; by next_shared */
};

struct meeting {
	uint32_t layout;
	uint32_t client_size;
	uint32_t task_size;
	uint32_t counters_size;
	char version[16];
	struct process *process; /* release; pairs with the acquire in process_of() of any copy */
};

/* Neither static nor visible: the note names it. */
__attribute__((visibility("hidden"), used)) struct meeting gpuseg_meeting = {MEETING_LAYOUT,
									     sizeof(struct gpuseg_client),
									     sizeof(struct gpuseg_task),
									     sizeof(struct gpuseg_counters),
									     VERSION_TEXT,
									     NULL};

/* Name, then how far it is from the note's content to the meeting. */
__asm__(".pushsection .note.gpuseg,\"a\",%note\n"
	".balign 4\n"
	".long 7, 4, 0x67730001\n"
	".asciz \"gpuseg\"\n"
	".balign 4\n"
	".long gpuseg_meeting - .\n"
	".popsection\n");

/* Weak, so that a static program can be linked; nothing is unloaded there. */
extern __typeof__(dlopen) dlopen __attribute__((weak));
extern __typeof__(dladdr) dladdr __attribute__((weak));

static struct meeting *known; /* atomic; where the copies meet does not change */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void in_forked_child(void)
{
	struct meeting *meeting = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	struct process *process = meeting ? __atomic_load_n(&meeting->process, __ATOMIC_ACQUIRE) : NULL;

	if (process)
		memset(process, 0, sizeof(*process));
}

static void prepare(void)
{
	(void)pthread_atfork(NULL, NULL, in_forked_child); /* the kernel clears the page, too */
}

/* ---- where copies meet ---- */

struct found {
	struct meeting *meeting;
	char object[PATH_MAX]; /* "" = the program itself */
};

static bool is_like_ours(const struct meeting *meeting)
{
	return meeting->layout == gpuseg_meeting.layout && meeting->client_size == gpuseg_meeting.client_size &&
	       meeting->task_size == gpuseg_meeting.task_size &&
	       meeting->counters_size == gpuseg_meeting.counters_size &&
	       memcmp(meeting->version, gpuseg_meeting.version, sizeof(meeting->version)) == 0;
}

/* The meeting that a segment of notes names, if it is like ours. */
static struct meeting *meeting_in(const uint8_t *notes, size_t size)
{
	size_t at = 0;

	while (size - at >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)(notes + at);
		const size_t name_size = (note->n_namesz + 3) & ~(size_t)3,
			     content_size = (note->n_descsz + 3) & ~(size_t)3;
		const uint8_t *name = (const uint8_t *)(note + 1), *content = name + name_size;
		int32_t distance;

		if (name_size > size - at - sizeof(*note) || content_size > size - at - sizeof(*note) - name_size)
			return NULL;
		if (note->n_type == MEETING_NOTE && note->n_namesz == sizeof("gpuseg") &&
		    note->n_descsz == sizeof(distance) && memcmp(name, "gpuseg", sizeof("gpuseg")) == 0) {
			struct meeting *meeting;

			memcpy(&distance, content, sizeof(distance));
			meeting = (struct meeting *)(uintptr_t)(content + distance);
			if (is_like_ours(meeting))
				return meeting;
		}
		at += sizeof(*note) + name_size + content_size;
	}
	return NULL;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct found *found = arg;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && !found->meeting; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		/* of an alignment of 8 the kernel and the linker make segments of their own */
		if (segment->p_type == PT_NOTE && segment->p_align <= 4)
			found->meeting = meeting_in((const uint8_t *)(uintptr_t)(object->dlpi_addr + segment->p_vaddr),
						    segment->p_memsz);
	}
	if (!found->meeting)
		return 0;
	if (strlen(object->dlpi_name) >= sizeof(found->object))
		found->meeting = NULL; /* cannot be kept loaded */
	else
		strcpy(found->object, object->dlpi_name);
	return 1;
}

/* From now on the object stays loaded. False: it is not, any more. */
static bool keep(const char *object)
{
	return !*object || !dlopen || dlopen(object, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

/* This very code. If it is the program's own, it has no name to be kept by, and need not be. */
static void keep_ours(void)
{
	Dl_info ours;

	if (dladdr && dladdr(&gpuseg_meeting, &ours) && ours.dli_fname)
		(void)keep(ours.dli_fname);
}

/* The first object with a copy like ours, kept. It cannot change any more: later ones are loaded behind it. */
static struct meeting *find_meeting(void)
{
	struct found found, again;

	for (int i = 0; i < FIND_TRIES; i++) { /* another thread may unload it in between */
		memset(&found, 0, sizeof(found));
		memset(&again, 0, sizeof(again));
		dl_iterate_phdr(look_into, &found);
		if (!found.meeting)
			return NULL;
		if (!keep(found.object))
			continue;
		dl_iterate_phdr(look_into, &again);
		if (again.meeting == found.meeting)
			return found.meeting;
	}
	return NULL;
}

/* NULL: there is none, or none can be had. */
static struct process *process_of(bool make)
{
	struct meeting *meeting = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	struct process *process, *none = NULL;

	if (!meeting) {
		meeting = find_meeting();
		if (!meeting)
			return NULL;
		__atomic_store_n(&known, meeting, __ATOMIC_RELEASE);
	}
	process = __atomic_load_n(&meeting->process, __ATOMIC_ACQUIRE);
	if (process || !make)
		return process;
	process = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (process == MAP_FAILED)
		return NULL;
	madvise(process, 4096, MADV_WIPEONFORK);
	if (__atomic_compare_exchange_n(&meeting->process, &none, process, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return process;
	munmap(process, 4096);
	return none;
}

/* ---- the lock ---- */

static void process_lock(struct process *process)
{
	uint32_t free = 0;

	if (__atomic_compare_exchange_n(&process->lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&process->lock, 2, __ATOMIC_ACQUIRE) != 0)
		futex_wait(&process->lock, 2, INT64_MAX);
}

static void process_unlock(struct process *process)
{
	if (__atomic_exchange_n(&process->lock, 0, __ATOMIC_RELEASE) == 2)
		futex_wake_all(&process->lock);
}

/* ---- handles ---- */

/* A connection that the daemon has dropped is its holders' alone; another one may be made. Lock held. */
static bool is_dropped(struct gpuseg_client *root)
{
	int ret;

	pthread_mutex_lock(&root->request_mutex); /* see newest_check() of task.c */
	ret = client_check(root->newest, now_ns());
	pthread_mutex_unlock(&root->request_mutex);
	return ret == -EPROTO;
}

static void forget(struct process *process, const struct gpuseg_client *root)
{
	struct gpuseg_client **link = &process->first;

	while (*link && *link != root)
		link = &(*link)->next_shared;
	if (*link)
		*link = root->next_shared;
}

/* The shared connection to the daemon of a directory. Lock held. */
static struct gpuseg_client *shared_with(struct process *process, const char *dir)
{
	struct gpuseg_client *root;

	for (root = process->first; root && strcmp(root->dir, dir) != 0; root = root->next_shared)
		;
	if (root && is_dropped(root)) {
		forget(process, root);
		root = NULL;
	}
	return root;
}

/* One line for a loss is said if anybody goes on then. Lock held. */
static void count_holders(struct gpuseg_client *root, const struct gpuseg_client *handle, int change)
{
	root->handles += (unsigned int)change;
	if (!handle->fails_if_lost)
		root->going_on += (unsigned int)change;
	__atomic_store_n(&root->fails_if_lost, root->going_on == 0, __ATOMIC_RELAXED);
}

/* Another handle of a shared connection. Lock held. */
static int share(struct gpuseg_client *root, const struct destination *to, gpuseg_client **out)
{
	struct gpuseg_client *handle = aligned_alloc(GPUSEG_CACHE_LINE, sizeof(*handle));

	if (!handle)
		return fail_with(NULL, -ENOMEM, "out of memory");
	memset(handle, 0, sizeof(*handle));
	handle->own_process = root->own_process;
	handle->root = root;
	handle->managed_at_connect = true;
	handle->is_handle = true;
	handle->fails_if_lost = to->attr.flags & GPUSEG_CONNECT_FAIL_IF_LOST;
	count_holders(root, handle, 1);
	*out = handle;
	return 0;
}

/* Connect, and let others share the connection. One without a daemon is the caller's alone. Lock held. */
static int connect_and_share(struct process *process, const struct destination *to, gpuseg_client **out)
{
	struct gpuseg_client *root;
	int ret = client_connect(to, &root);

	if (ret < 0)
		return ret;
	if (!root->managed_at_connect) {
		*out = root;
		return 0;
	}
	ret = share(root, to, out);
	if (ret < 0) {
		client_disconnect(root);
		return ret;
	}
	root->next_shared = process->first;
	process->first = root;
	return 0;
}

/* A thread that is cancelled while it connects must not leave the lock held. */
static int connect_locked(struct process *process, const struct destination *to, bool make, gpuseg_client **out)
{
	struct gpuseg_client *root;
	int before, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	process_lock(process);
	root = shared_with(process, to->dir);
	if (root)
		ret = share(root, to, out);
	else
		ret = make ? connect_and_share(process, to, out) : -ENOENT;
	process_unlock(process);
	pthread_setcancelstate(before, NULL);
	return ret;
}

/* make: the connection is to be shared if there is none yet. */
static int connect_process(const struct gpuseg_connect_attr *attr, bool make, gpuseg_client **out)
{
	struct process *process;
	struct destination to;
	int ret;

	if (!out)
		return fail_with(NULL, -EINVAL, "gpuseg_connect: no place for the client");
	*out = NULL;
	ret = client_destination(&to, attr);
	if (ret < 0)
		return ret;
	if (make && to.attr.flags & GPUSEG_CONNECT_ONCE)
		return fail_with(NULL, -EINVAL,
				 "GPUSEG_CONNECT_ONCE: a client that is shared connects again for all that hold it; "
				 "use gpuseg_connect()");
	ret = client_prepare();
	if (ret < 0)
		return ret;
	pthread_once(&prepared, prepare);
	process = to.attr.flags & GPUSEG_CONNECT_ONCE ? NULL : process_of(make);
	if (process) {
		keep_ours();
		ret = connect_locked(process, &to, make, out);
		if (ret != -ENOENT || make)
			return ret;
	}
	return client_connect(&to, out);
}

int gpuseg_connect(const struct gpuseg_connect_attr *attr, gpuseg_client **out)
{
	return connect_process(attr, false, out);
}

int gpuseg_connect_shared(const struct gpuseg_connect_attr *attr, gpuseg_client **out)
{
	return connect_process(attr, true, out);
}

static void close_tasks(struct gpuseg_client *handle)
{
	struct gpuseg_client *root = handle->root;
	struct gpuseg_task *task, *next;

	pthread_mutex_lock(&root->request_mutex);
	for (task = root->tasks; task; task = next) {
		next = task->next;
		if (task->handle == handle)
			task_close_locked(task);
	}
	pthread_mutex_unlock(&root->request_mutex);
}

/* Of the parent's connection. Its locks are in any state, so nothing takes one. */
static void disconnect_copy(struct gpuseg_client *handle)
{
	struct gpuseg_client *root = handle->root;

	client_forget_tasks(root, handle);
	if (--root->handles == 0)
		client_disconnect(root);
	free(handle);
}

int gpuseg_disconnect(gpuseg_client *client)
{
	struct gpuseg_client *root;
	struct process *process;
	int before;

	if (!client)
		return 0;
	if (!client->is_handle)
		return client_disconnect(client);
	root = client->root;
	if (!__atomic_load_n(client->own_process, __ATOMIC_RELAXED)) {
		disconnect_copy(client);
		return 0;
	}
	process = process_of(false); /* there is one, as there is a handle */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	process_lock(process);
	close_tasks(client);
	count_holders(root, client, -1);
	if (root->handles == 0) {
		forget(process, root);
		client_disconnect(root);
	}
	process_unlock(process);
	pthread_setcancelstate(before, NULL);
	free(client);
	return 0;
}
