/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's functions that gpuseg_nvgpu.c and the stand-in use, for a single-threaded test in user space. */
#ifndef SHIM_H
#define SHIM_H

#include <assert.h>
#include <errno.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define __KERNEL__ 1
#define __user
#define __aligned(n) __attribute__((aligned(n)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define GFP_KERNEL 0
#define kzalloc(size, flags) calloc(1, size)
#define kcalloc(n, size, flags) calloc(n, size)
#define kfree(p) free(p)

struct list_head {
	struct list_head *next, *prev;
};
#define LIST_HEAD(name) struct list_head name = {&name, &name}

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	entry->next = NULL;
	entry->prev = NULL;
}

#define list_entry(p, type, member) container_of(p, type, member)
#define list_for_each_entry(pos, head, member)                                                                         \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head);                         \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, n, head, member)                                                                 \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),                                                 \
	    n = list_entry(pos->member.next, __typeof__(*pos), member);                                                \
	     &pos->member != (head); pos = n, n = list_entry(n->member.next, __typeof__(*n), member))

/* Locks: taken once, given back once. */
struct mutex {
	int held;
};
#define rt_mutex mutex
struct rw_semaphore {
	int readers, writer;
};
#define DEFINE_MUTEX(name) struct mutex name
static inline void mutex_lock(struct mutex *m)
{
	assert(!m->held);
	m->held = 1;
}
static inline void mutex_unlock(struct mutex *m)
{
	assert(m->held);
	m->held = 0;
}
#define rt_mutex_init(m) ((m)->held = 0)
#define rt_mutex_lock(m) mutex_lock(m)
#define rt_mutex_unlock(m) mutex_unlock(m)
static inline void init_rwsem(struct rw_semaphore *s)
{
	s->readers = 0;
	s->writer = 0;
}
static inline void down_read(struct rw_semaphore *s)
{
	assert(!s->writer);
	s->readers++;
}
static inline void up_read(struct rw_semaphore *s)
{
	assert(s->readers-- > 0);
}
static inline void down_write(struct rw_semaphore *s)
{
	assert(!s->writer && !s->readers);
	s->writer = 1;
}
static inline void up_write(struct rw_semaphore *s)
{
	assert(s->writer);
	s->writer = 0;
}

static inline bool test_bit(u32 n, const unsigned long *map)
{
	return map[n / 64] >> n % 64 & 1;
}
static inline void set_bit(u32 n, unsigned long *map)
{
	map[n / 64] |= 1ul << n % 64;
}
static inline void clear_bit(u32 n, unsigned long *map)
{
	map[n / 64] &= ~(1ul << n % 64);
}
static inline void change_bit(u32 n, unsigned long *map)
{
	map[n / 64] ^= 1ul << n % 64;
}
#define bitmap_zalloc(bits, flags) calloc(((bits) + 63) / 64, 8)
#define bitmap_free(p) free(p)

/* Processes, as the test has set them. */
struct pid {
	pid_t nr;
};
struct task_struct {
	int rt_priority;
	pid_t tgid;
	char comm[16];
};
extern struct task_struct *current;
extern bool shim_capable;
struct task_struct *shim_task(pid_t pid);
#define PIDTYPE_TGID 0
#define CAP_SYS_ADMIN 21
#define CAP_SYS_NICE 23
#define capable(cap) shim_capable
#define task_tgid_nr(t) ((t)->tgid)
#define find_get_pid(nr) ((struct pid *)shim_task(nr))
#define get_pid_task(p, type) ((struct task_struct *)(p))
#define pid_nr(p) (((struct task_struct *)(p))->tgid)
#define put_pid(p) ((void)(p))
#define put_task_struct(t) ((void)(t))

/* Work that was asked for runs when the test says so. */
struct work_struct {
	int unused;
};
struct delayed_work {
	struct work_struct work;
	void (*function)(struct work_struct *);
};
extern struct delayed_work *shim_pending;
#define INIT_DELAYED_WORK(w, f) ((w)->function = (f))
#define to_delayed_work(w) container_of(w, struct delayed_work, work)
#define schedule_delayed_work(w, delay) (shim_pending = (w))
#define cancel_delayed_work_sync(w) (shim_pending = shim_pending == (w) ? NULL : shim_pending)
#define msecs_to_jiffies(ms) (ms)
#define ktime_get_ns() ((u64)0)

struct inode {
	int unused;
};
struct file {
	void *private_data;
};
static inline unsigned long copy_from_user(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	return 0;
}
static inline unsigned long copy_to_user(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	return 0;
}

#endif
