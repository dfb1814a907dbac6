/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observer.bpf.c - sees GPU processes from inside the kernel: opens, ioctls and closes of GPU devices, and the end of
 * processes that used them. Changes nothing: it reads, counts and writes records into a ring buffer.
 *
 * The kernel allows bpf_probe_read_user and bpf_probe_read_kernel only to programs whose licence is compatible with
 * the GPL; so this file has two licences. See rt-scheduler/docs/adr.
 *
 * Devices are recognized by number (inode->i_rdev), never by name. The structures below name the few kernel members
 * that are read; libbpf finds their places in the running kernel from its BTF.
 */
#include "observer_abi.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define NULL ((void *)0)

#if defined(__TARGET_ARCH_arm64)
#define NR_IOCTL 29
#define NR_DUP3 24
#define NR_OPENAT 56
#define NR_CLOSE 57
#define NR_EXIT_OPEN(nr) ((nr) == NR_OPENAT || (nr) == NR_OPENAT2)
#define NR_EXIT_DUP(nr) ((nr) == NR_DUP3)
#define COMPAT_OPENAT 322
#define COMPAT_DUP3 358
#else
#define NR_IOCTL 16
#define NR_OPEN 2
#define NR_CLOSE 3
#define NR_DUP2 33
#define NR_OPENAT 257
#define NR_DUP3 292
#define NR_EXIT_OPEN(nr) ((nr) == NR_OPENAT || (nr) == NR_OPENAT2 || (nr) == NR_OPEN)
#define NR_EXIT_DUP(nr) ((nr) == NR_DUP3 || (nr) == NR_DUP2)
#define COMPAT_OPENAT 295
#define COMPAT_DUP3 330
/* A third table, whose calls have this bit; only the number of ioctl differs from that of 64-bit programs. */
#define X32 0x40000000
#define X32_IOCTL 514
#endif
/* The same in both tables. */
#define NR_CLOSE_RANGE 436
#define NR_OPENAT2 437
/* The table of 32-bit programs, which any program may use (x86: int $0x80). */
#define COMPAT_OPEN 5
#define COMPAT_CLOSE 6
#define COMPAT_CREAT 8
#define COMPAT_IOCTL 54
#define COMPAT_DUP2 63

/* Source of numbers: NVIDIA's public driver headers, 580.x; Linux, include/uapi/linux/kfd_ioctl.h. */
#define RM_TYPE 'F'
#define RM_FREE 0x29
#define RM_CONTROL 0x2a
#define RM_ALLOC 0x2b
#define RM_DUP_OBJECT 0x34
#define RM_ALLOC_LONG 48 /* bytes of the form that has rights and flags */
#define RM_CLIENT 0x41
#define RM_DEVICE 0x80
#define RM_SUBDEVICE 0x2080
#define RM_TSG 0xa06c
#define RM_ENGINE_GR0 1
#define RM_SCHEDULE_TSG 0xa06c0101
#define RM_SET_TIMESLICE 0xa06c0103 /* u64: us */
#define RM_SCHEDULE_CHANNEL 0xa06f0103
/* Source: nvgpu's public UAPI header. Submissions are ioctls, too, and are counted only. */
#define NVGPU_TYPE 'G'
#define NVGPU_OPEN_TSG 9
#define NVGPU_OPEN_CHANNEL 11
#define KFD_TYPE 'K'
#define KFD_CREATE_QUEUE 0x02
#define KFD_DESTROY_QUEUE 0x03

#define PID_LEVELS 8	 /* of nested pid namespaces */
#define CONTEXTS_MOST 16 /* of a process at a time, whose lifetime is measured */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode {
	unsigned int i_rdev;
};
struct file {
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[PID_LEVELS];
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct kernfs_node {
	unsigned long long id;
};
struct cgroup_root {
	int hierarchy_id; /* 0 = the unified one */
};
struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};
struct thread_info {
	unsigned long flags;
	unsigned int status; /* x86 */
};
struct task_struct {
	struct thread_info thread_info;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct files_struct *files;
	unsigned long long start_boottime;
};
#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31];
	int syscallno;
};
#else
struct pt_regs {
	unsigned long bx, cx, di, si, dx, orig_ax;
};
#endif
#pragma clang attribute pop

#if defined(__TARGET_ARCH_arm64)
#define ARG1(r) BPF_CORE_READ(r, regs[0])
#define ARG2(r) BPF_CORE_READ(r, regs[1])
#define ARG3(r) BPF_CORE_READ(r, regs[2])
#define COMPAT_ARG1(r) ARG1(r)
#define COMPAT_ARG2(r) ARG2(r)
#define NUMBER(r) BPF_CORE_READ(r, syscallno)
#define IN_COMPAT_CALL(t) (BPF_CORE_READ(t, thread_info.flags) & (1UL << 22)) /* TIF_32BIT */
#else
#define ARG1(r) BPF_CORE_READ(r, di)
#define ARG2(r) BPF_CORE_READ(r, si)
#define ARG3(r) BPF_CORE_READ(r, dx)
#define COMPAT_ARG1(r) BPF_CORE_READ(r, bx)
#define COMPAT_ARG2(r) BPF_CORE_READ(r, cx)
#define NUMBER(r) BPF_CORE_READ(r, orig_ax)
#define IN_COMPAT_CALL(t) (BPF_CORE_READ(t, thread_info.status) & 2) /* TS_COMPAT */
#endif

struct pending {
	__u64 arg;
	__u64 since_ns;
	__u64 file;
	__u32 cmd; /* 0 = a close */
	__s32 fd;
	__u32 driver;
	__u32 any_result;
	__u32 foreign; /* of another table than that of 64-bit programs: its block may have another layout */
	__u32 pad;
};

struct opened {
	__u32 tgid;
	__u32 pid; /* in the helper's namespace */
};

struct process {
	__u64 first_ns;
	__u64 cgroup;
	__u32 unseen;	/* UNSEEN was reported */
	__u32 contexts; /* it has had one whose lifetime is measured */
};

struct context_key {
	__u32 tgid;
	__u32 slot; /* below CONTEXTS_MOST */
};

struct context {
	__u64 since_ns;
	__u64 cgroup; /* that made it */
	__u32 client;
	__u32 device;
	__u32 handle; /* of the channel group */
	__u32 pad;
};

/* The first words of the RM blocks. */
struct rm_alloc {
	__u32 client, parent, handle, class_id;
	__u64 params;
	__u32 rest[6];
};
struct rm_free {
	__u32 client, parent, handle, status;
};
struct rm_control {
	__u32 client, object, command, flags;
	__u64 params;
	__u32 params_size, status;
};
struct rm_dup {
	__u32 client, parent, handle, from_client, from_handle, flags, status;
};

const volatile __u32 pid_namespace_inum = 0; /* of the helper, set before the program is loaded */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32); /* the kernel's form: major << 20 | minor */
	__type(value, struct gpuseg_observer_device);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* thread */
	__type(value, struct pending);
} calls SEC(".maps");

/* Least recently used: an entry that is dropped costs a search, never a wrong result. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64); /* address of the open file */
	__type(value, struct opened);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, __u64); /* client and handle */
	__type(value, __u32);
} objects SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* tgid */
	__type(value, struct process);
} processes SEC(".maps");

/* Written once and deleted once; who deletes an entry accounts for it. What finds no place is not measured. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct context_key);
	__type(value, struct context);
} contexts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GPUSEG_OBSERVER_GROUPS_MAX);
	__type(key, __u64); /* id of the control group */
	__type(value, struct gpuseg_observer_group);
} groups SEC(".maps");

__u64 lost = 0; /* records, or calls that could not be remembered */

static void count_lost(void)
{
	__sync_fetch_and_add(&lost, 1);
}

/* The pid of the current process as the helper's /proc shows it; 0 = it does not. */
static __u32 visible_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	const __u32 level = BPF_CORE_READ(pid, level);

#pragma unroll
	for (__u32 i = 0; i < PID_LEVELS; i++) {
		if (i <= level && BPF_CORE_READ(pid, numbers[i].ns, ns.inum) == pid_namespace_inum)
			return (__u32)BPF_CORE_READ(pid, numbers[i].nr);
	}
	return 0;
}

static struct gpuseg_observer_record *begin_record(__u32 kind, __u32 pid)
{
	struct gpuseg_observer_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!r) {
		count_lost();
		return NULL;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->pid = pid;
	r->time_ns = bpf_ktime_get_ns();
	r->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	r->cgroup = bpf_get_current_cgroup_id();
	r->fd = -1;
	return r;
}

static struct gpuseg_observer_group *current_group(void)
{
	const __u64 id = bpf_get_current_cgroup_id();
	const struct gpuseg_observer_group none = {};
	struct gpuseg_observer_group *g = bpf_map_lookup_elem(&groups, &id);

	if (g)
		return g;
	bpf_map_update_elem(&groups, &id, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&groups, &id);
}

/* The open file behind a descriptor of the current process, and its device if it is one of ours. */
static struct gpuseg_observer_device *device_of(__u32 fd, __u64 *address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd);
	struct file *file = NULL;
	__u32 number;

	if (fd >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), slots + fd) || !file)
		return NULL;
	number = BPF_CORE_READ(file, f_inode, i_rdev);
	*address = (__u64)file;
	return number ? bpf_map_lookup_elem(&devices, &number) : NULL;
}

static struct process *know_process(__u32 tgid)
{
	struct process *known = bpf_map_lookup_elem(&processes, &tgid);
	struct process fresh = {};
	struct gpuseg_observer_group *g;

	if (known)
		return known;
	fresh.first_ns = bpf_ktime_get_ns();
	fresh.cgroup = bpf_get_current_cgroup_id();
	if (bpf_map_update_elem(&processes, &tgid, &fresh, BPF_NOEXIST))
		count_lost(); /* its end would go unseen */
	g = current_group();
	if (g)
		__sync_fetch_and_add(&g->began, 1);
	return bpf_map_lookup_elem(&processes, &tgid);
}

static void report_unseen(__u32 tgid, __u32 pid)
{
	struct process *p = know_process(tgid);
	struct gpuseg_observer_record *r;

	if (!p || p->unseen)
		return;
	r = begin_record(GPUSEG_OBSERVER_UNSEEN, pid);
	if (!r)
		return;
	p->unseen = 1;
	bpf_ringbuf_submit(r, 0);
}

static void remember(struct gpuseg_observer_device *device, __u64 file, __s32 fd, __u32 cmd, __u64 arg, __u32 foreign)
{
	const __u64 thread = bpf_get_current_pid_tgid();
	struct pending call = {};

	call.arg = arg;
	call.since_ns = bpf_ktime_get_ns();
	call.file = file;
	call.cmd = cmd;
	call.fd = fd;
	call.driver = device->driver;
	call.any_result = device->any_result;
	call.foreign = foreign;
	if (bpf_map_update_elem(&calls, &thread, &call, BPF_ANY))
		count_lost();
}

/* The call takes the driver 0.5 ms (H200): enough for all who wait for its end to wake up. */
static int report_scheduling(__s32 fd, __u64 arg)
{
	struct rm_control c = {};
	struct gpuseg_observer_record *r;
	__u32 pid;

	if (bpf_probe_read_user(&c, sizeof(c), (void *)arg))
		return 0;
	if (c.command != RM_SCHEDULE_TSG && c.command != RM_SCHEDULE_CHANNEL)
		return 0;
	pid = visible_pid(bpf_get_current_task_btf());
	r = pid ? begin_record(GPUSEG_OBSERVER_SCHEDULES, pid) : NULL;
	if (!r)
		return 0;
	r->fd = fd;
	r->client = c.client;
	r->handle = c.object;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

/* Tables of system calls. */
enum { PLAIN, COMPAT, OTHER };

/* Which table a call that matters is of, and in *number its number in the table of 64-bit programs; else -1. */
static int table_of(long *number)
{
	switch (*number) {
	case NR_IOCTL:
	case NR_CLOSE:
	case NR_OPENAT:
	case NR_DUP3:
	case NR_CLOSE_RANGE:
	case NR_OPENAT2:
	case COMPAT_OPEN:
	case COMPAT_CLOSE:
	case COMPAT_CREAT:
	case COMPAT_IOCTL:
	case COMPAT_DUP2:
	case COMPAT_OPENAT:
	case COMPAT_DUP3:
#ifdef X32
	case NR_OPEN:
	case NR_DUP2:
#endif
		break;
	default:
#ifdef X32
		if (*number > 0 && (*number & X32)) {
			*number &= ~(long)X32;
			if (*number == X32_IOCTL)
				*number = NR_IOCTL;
			return OTHER;
		}
#endif
		return -1;
	}
	if (!IN_COMPAT_CALL(bpf_get_current_task_btf()))
		return PLAIN;
	switch (*number) {
	case COMPAT_IOCTL:
		*number = NR_IOCTL;
		return COMPAT;
	case COMPAT_CLOSE:
		*number = NR_CLOSE;
		return COMPAT;
	case COMPAT_OPEN:
	case COMPAT_CREAT:
	case COMPAT_OPENAT:
		*number = NR_OPENAT;
		return COMPAT;
	case COMPAT_DUP2:
	case COMPAT_DUP3:
		*number = NR_DUP3;
		return COMPAT;
	case NR_CLOSE_RANGE:
	case NR_OPENAT2:
		return COMPAT;
	default:
		return -1; /* it has another meaning there */
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long id)
{
	struct gpuseg_observer_device *device;
	long number = id;
	const int table = table_of(&number);
	__u64 file = 0;
	__u32 cmd;
	__s32 fd;

	if (table < 0 || (number != NR_IOCTL && number != NR_CLOSE))
		return 0;
	fd = (__s32)(table == COMPAT ? COMPAT_ARG1(regs) : ARG1(regs));
	device = fd < 0 ? NULL : device_of((__u32)fd, &file);
	if (!device)
		return 0;
	cmd = (__u32)(table == COMPAT ? COMPAT_ARG2(regs) : ARG2(regs));
	remember(device, file, fd, number == NR_CLOSE ? 0 : cmd, ARG3(regs), table != PLAIN);
	if (table == PLAIN && number == NR_IOCTL && device->driver == GPUSEG_OBSERVER_NVIDIA &&
	    ((cmd >> 8) & 0xff) == RM_TYPE && (cmd & 0xff) == RM_CONTROL)
		return report_scheduling(fd, ARG3(regs));
	return 0;
}

static int on_opened(long fd)
{
	const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct gpuseg_observer_record *r;
	struct gpuseg_observer_device *device;
	struct gpuseg_observer_group *g;
	struct opened by = {};
	__u64 file = 0;

	device = fd < 0 ? NULL : device_of((__u32)fd, &file);
	if (!device)
		return 0;
	by.tgid = tgid;
	by.pid = visible_pid(bpf_get_current_task_btf());
	if (!by.pid)
		return 0;
	know_process(tgid);
	if (bpf_map_update_elem(&files, &file, &by, BPF_ANY))
		count_lost();
	g = current_group();
	if (g)
		__sync_fetch_and_add(&g->opens, 1);
	r = begin_record(GPUSEG_OBSERVER_OPEN, by.pid);
	if (!r)
		return 0;
	r->fd = (__s32)fd;
	r->owner = by.pid;
	r->engine = device->driver;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

static int report_close(__s32 fd)
{
	const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const __u32 pid = bpf_map_lookup_elem(&processes, &tgid) ? visible_pid(bpf_get_current_task_btf()) : 0;
	struct gpuseg_observer_record *r = pid ? begin_record(GPUSEG_OBSERVER_CLOSE, pid) : NULL;

	if (r) {
		r->fd = fd;
		bpf_ringbuf_submit(r, 0);
	}
	return 0;
}

static int matters(__u32 class_id)
{
	const __u32 low = class_id & 0xff;

	return class_id <= 1 || class_id == RM_CLIENT || class_id == RM_DEVICE || class_id == RM_SUBDEVICE ||
	       class_id == RM_TSG || (low == 0x6f && class_id > RM_TSG) ||
	       (class_id > 0xff && (low == 0xc0 || low == 0x97));
}

static void begin_context(__u32 tgid, __u32 client, __u32 device, __u32 handle)
{
	struct process *p = know_process(tgid);
	struct context_key key = {.tgid = tgid};
	struct context fresh = {};

	if (!p)
		return;
	p->contexts = 1;
	fresh.since_ns = bpf_ktime_get_ns();
	fresh.cgroup = bpf_get_current_cgroup_id();
	fresh.client = client;
	fresh.device = device;
	fresh.handle = handle;
	for (__u32 i = 0; i < CONTEXTS_MOST; i++) {
		key.slot = i;
		if (!bpf_map_update_elem(&contexts, &key, &fresh, BPF_NOEXIST))
			return;
	}
}

/* Those of a process that an object freed by RM was, or contained; client 0: all of them, the process has ended. */
static void end_contexts(__u32 tgid, __u32 client, __u32 handle)
{
	const struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	const __u64 now_ns = bpf_ktime_get_ns();
	struct context_key key = {.tgid = tgid};

	if (!p || !p->contexts)
		return;
	for (__u32 i = 0; i < CONTEXTS_MOST; i++) {
		struct gpuseg_observer_group *g;
		const struct context *c;
		__u64 cgroup, since_ns;

		key.slot = i;
		c = bpf_map_lookup_elem(&contexts, &key);
		if (!c || (client &&
			   (c->client != client || (handle != client && handle != c->device && handle != c->handle))))
			continue;
		cgroup = c->cgroup;
		since_ns = c->since_ns;
		if (bpf_map_delete_elem(&contexts, &key))
			continue;
		g = bpf_map_lookup_elem(&groups, &cgroup);
		if (g)
			__sync_fetch_and_add(&g->context_ns, now_ns - since_ns);
	}
}

static void on_rm_alloc(const struct pending *call, __u32 tgid, __u32 pid, __u32 owner, struct gpuseg_observer_group *g)
{
	const __u32 size = (call->cmd >> 16) & 0x3fff;
	struct rm_alloc a = {};
	struct gpuseg_observer_record *r;
	__u32 engine = 0;
	__u32 parent;
	__u64 key;

	if (size >= RM_ALLOC_LONG ? bpf_probe_read_user(&a, 48, (void *)call->arg)
				  : bpf_probe_read_user(&a, 32, (void *)call->arg)) {
		report_unseen(tgid, pid);
		return;
	}
	if ((size >= RM_ALLOC_LONG ? a.rest[4] : a.rest[1]) != 0 || !matters(a.class_id))
		return; /* refused, or of no interest */
	parent = a.parent;
	if (a.class_id <= 1 || a.class_id == RM_CLIENT) {
		a.client = a.handle;
		a.class_id = RM_CLIENT;
		parent = 0;
	}
	if (a.class_id == RM_TSG) {
		__u32 params[4] = {};

		if (a.params && !bpf_probe_read_user(params, sizeof(params), (void *)a.params))
			engine = params[3];
		if (g && engine == RM_ENGINE_GR0) {
			__sync_fetch_and_add(&g->contexts, 1);
			begin_context(tgid, a.client, parent, a.handle);
		}
	}
	key = (__u64)a.client << 32 | a.handle;
	bpf_map_update_elem(&objects, &key, &a.class_id, BPF_ANY);
	r = begin_record(GPUSEG_OBSERVER_ALLOC, pid);
	if (!r)
		return;
	r->fd = call->fd;
	r->owner = owner;
	r->client = a.client;
	r->parent = parent;
	r->handle = a.handle;
	r->class_id = a.class_id;
	r->engine = engine;
	bpf_ringbuf_submit(r, 0);
}

static void on_rm_free(const struct pending *call, __u32 tgid, __u32 pid, __u32 owner)
{
	struct rm_free f = {};
	struct gpuseg_observer_record *r;
	__u64 key;

	if (bpf_probe_read_user(&f, sizeof(f), (void *)call->arg)) {
		report_unseen(tgid, pid);
		return;
	}
	key = (__u64)f.client << 32 | f.handle;
	if (f.status != 0 || (bpf_map_delete_elem(&objects, &key) && f.client != f.handle))
		return;
	end_contexts(tgid, f.client, f.handle);
	r = begin_record(GPUSEG_OBSERVER_FREE, pid);
	if (!r)
		return;
	r->fd = call->fd;
	r->owner = owner;
	r->client = f.client;
	r->parent = f.parent;
	r->handle = f.handle;
	bpf_ringbuf_submit(r, 0);
}

/* An object that matters got a second handle: its class is not in the call, so the process is searched. */
static void on_rm_dup(const struct pending *call, __u32 tgid, __u32 pid)
{
	struct rm_dup d = {};
	__u64 key;

	if (bpf_probe_read_user(&d, sizeof(d), (void *)call->arg) == 0) {
		key = (__u64)d.from_client << 32 | d.from_handle;
		if (d.status != 0 || !bpf_map_lookup_elem(&objects, &key))
			return;
	}
	report_unseen(tgid, pid);
}

/*
 * Channels that were disabled before run from now on; a slice that somebody else chose is gone: CUDA sets its own when
 * all else of a context is made. Other commands of a process are of no interest.
 */
static void on_rm_control(const struct pending *call, __u32 tgid, __u32 pid, __u32 owner)
{
	struct rm_control c = {};
	struct gpuseg_observer_record *r;
	__u64 slice_us = 0;

	if (bpf_probe_read_user(&c, sizeof(c), (void *)call->arg)) {
		report_unseen(tgid, pid);
		return;
	}
	if (c.status != 0 ||
	    (c.command != RM_SCHEDULE_TSG && c.command != RM_SCHEDULE_CHANNEL && c.command != RM_SET_TIMESLICE))
		return;
	if (c.command == RM_SET_TIMESLICE && bpf_probe_read_user(&slice_us, sizeof(slice_us), (void *)c.params)) {
		report_unseen(tgid, pid);
		return;
	}
	r = begin_record(c.command == RM_SET_TIMESLICE ? GPUSEG_OBSERVER_TIMESLICE : GPUSEG_OBSERVER_SCHEDULED, pid);
	if (!r)
		return;
	r->fd = call->fd;
	r->owner = owner;
	r->client = c.client;
	r->parent = slice_us > 0xffffffff ? 0xffffffff : slice_us;
	r->handle = c.object;
	bpf_ringbuf_submit(r, 0);
}

/* Whether an ioctl makes or removes something, or may schedule it. */
static int tells(__u32 driver, __u32 type, __u32 number)
{
	if (driver == GPUSEG_OBSERVER_NVIDIA)
		return type == RM_TYPE &&
		       (number == RM_ALLOC || number == RM_FREE || number == RM_DUP_OBJECT || number == RM_CONTROL);
	if (driver == GPUSEG_OBSERVER_KFD)
		return type == KFD_TYPE && (number == KFD_CREATE_QUEUE || number == KFD_DESTROY_QUEUE);
	return type == NVGPU_TYPE && (number == NVGPU_OPEN_TSG || number == NVGPU_OPEN_CHANNEL);
}

static void on_ioctl(const struct pending *call, long result)
{
	const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const __u32 type = (call->cmd >> 8) & 0xff;
	const __u32 number = call->cmd & 0xff;
	struct gpuseg_observer_group *g = current_group();
	struct gpuseg_observer_record *r;
	struct opened *by;
	__u32 owner;
	__u32 pid;

	if (g) {
		__sync_fetch_and_add(&g->ioctls, 1);
		__sync_fetch_and_add(&g->ioctl_ns, bpf_ktime_get_ns() - call->since_ns);
	}
	if (call->foreign && call->driver == GPUSEG_OBSERVER_NVIDIA) {
		/* what it does there is not known: it is searched from now on */
		pid = visible_pid(bpf_get_current_task_btf());
		if (pid)
			report_unseen(tgid, pid);
		return;
	}
	if (result < 0 && !call->any_result)
		return;
	if (!tells(call->driver, type, number))
		return;
	pid = visible_pid(bpf_get_current_task_btf());
	if (!pid)
		return;
	if (call->driver != GPUSEG_OBSERVER_NVIDIA) {
		know_process(tgid);
		if (g && call->driver == GPUSEG_OBSERVER_KFD && number == KFD_CREATE_QUEUE)
			__sync_fetch_and_add(&g->contexts, 1);
		r = begin_record(GPUSEG_OBSERVER_WORK, pid);
		if (r) {
			r->fd = call->fd;
			r->engine = call->driver;
			bpf_ringbuf_submit(r, 0);
		}
		return;
	}
	by = bpf_map_lookup_elem(&files, &call->file);
	owner = by ? by->pid : 0;
	if (!by || by->tgid != tgid)
		report_unseen(tgid, pid); /* inherited, received, or opened before this program was loaded */
	if (number == RM_ALLOC)
		on_rm_alloc(call, tgid, pid, owner, g);
	else if (number == RM_FREE)
		on_rm_free(call, tgid, pid, owner);
	else if (number == RM_CONTROL)
		on_rm_control(call, tgid, pid, owner);
	else
		on_rm_dup(call, tgid, pid);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long result)
{
	long number = (long)NUMBER(regs);
	struct pending *found;
	struct pending call;
	__u64 thread;

	if (table_of(&number) < 0)
		return 0;
	if (NR_EXIT_OPEN(number))
		return on_opened(result);
	if (number == NR_CLOSE_RANGE || NR_EXIT_DUP(number))
		return report_close(-1);
	if (number != NR_IOCTL && number != NR_CLOSE)
		return 0;
	thread = bpf_get_current_pid_tgid();
	found = bpf_map_lookup_elem(&calls, &thread);
	if (!found)
		return 0;
	call = *found;
	bpf_map_delete_elem(&calls, &thread);
	if (number == NR_CLOSE)
		return report_close(call.fd);
	on_ioctl(&call, result);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_process_exit, struct task_struct *task)
{
	const __u64 thread = bpf_get_current_pid_tgid();
	const __u32 tgid = thread >> 32;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct gpuseg_observer_record *r;
	struct gpuseg_observer_group *g;
	__u64 cgroup;
	__u32 pid;

	bpf_map_delete_elem(&calls, &thread);
	if (!p || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	cgroup = p->cgroup;
	g = bpf_map_lookup_elem(&groups, &cgroup);
	if (g) {
		__sync_fetch_and_add(&g->ended, 1);
		__sync_fetch_and_add(&g->lifetime_ns, bpf_ktime_get_ns() - p->first_ns);
	}
	end_contexts(tgid, 0, 0);
	bpf_map_delete_elem(&processes, &tgid);
	pid = visible_pid(task);
	r = pid ? begin_record(GPUSEG_OBSERVER_EXIT, pid) : NULL;
	if (r)
		bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_process_exec, struct task_struct *task)
{
	const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const __u32 pid = bpf_map_lookup_elem(&processes, &tgid) ? visible_pid(task) : 0;
	struct gpuseg_observer_record *r = pid ? begin_record(GPUSEG_OBSERVER_EXEC, pid) : NULL;

	if (r)
		bpf_ringbuf_submit(r, 0);
	return 0;
}

/* Its directory will not come back: no other account has its number, and the daemon may forget it. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_group_removed, struct cgroup *group, const char *path)
{
	struct gpuseg_observer_group_record *r;
	struct gpuseg_observer_group *g;
	__u64 id;

	if (BPF_CORE_READ(group, root, hierarchy_id) != 0)
		return 0;
	id = BPF_CORE_READ(group, kn, id);
	g = bpf_map_lookup_elem(&groups, &id);
	if (!g)
		return 0;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (r) {
		gpuseg_observer_account(r, GPUSEG_OBSERVER_GROUP_GONE, id, g);
		bpf_ringbuf_submit(r, 0);
	} else {
		count_lost();
	}
	bpf_map_delete_elem(&groups, &id);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
