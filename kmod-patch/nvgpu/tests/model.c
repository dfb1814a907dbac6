// SPDX-License-Identifier: GPL-2.0-only
/*
 * The patched stand-in of nvgpu with gpuseg_nvgpu.c, in user space: each published deadlock as a test that also shows
 * that the published algorithm, restated here from its description, gets stuck; and random sequences against a model.
 */
#include "shim.h"

#include <stdio.h>

#include <nvgpu/channel.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/runlist.h>
#include <nvgpu/tsg.h>

#include "ctrl_priv.h"
#include "gpuseg_nvgpu.h"

int gk20a_ctrl_dev_release(struct inode *inode, struct file *filp);
long gk20a_ctrl_dev_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);

#define TSGS 160
#define PROCESSES 8
#define FIRST_PID 100

static struct task_struct tasks[PROCESSES];
struct task_struct *current = tasks;
bool shim_capable = true;
struct delayed_work *shim_pending;

static struct gk20a gpu;
static struct nvgpu_runlist runlist;
static struct gk20a_ctrl_priv sessions[PROCESSES];
static struct file files[PROCESSES];
static bool on[TSGS]; /* by chid: on the runlist, as the hardware sees it */
static int fail_next;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("    model.c:%d: %s\n", __LINE__, #condition);                                          \
			return false;                                                                                  \
		}                                                                                                      \
	} while (0)

struct task_struct *shim_task(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + PROCESSES ? &tasks[pid - FIRST_PID] : NULL;
}

static int update(struct gk20a *g, struct nvgpu_runlist *rl, struct nvgpu_channel *ch, bool add, bool wait)
{
	assert(g == &gpu && rl == &runlist && wait);
	if (fail_next && --fail_next == 0)
		return -ETIMEDOUT;
	on[ch->chid] = add;
	return 0;
}

static void set_up(void)
{
	memset(&gpu, 0, sizeof(gpu));
	memset(on, 0, sizeof(on));
	gpu.fifo.num_channels = TSGS;
	gpu.ops.runlist.update = update;
	fail_next = 0;
	shim_pending = NULL;
	shim_capable = true;
	assert(nvgpu_fifo_setup_sw(&gpu) == 0);
	for (int i = 0; i < PROCESSES; i++) {
		tasks[i] = (struct task_struct){.rt_priority = 0, .tgid = FIRST_PID + i, .comm = "app"};
		sessions[i].g = &gpu;
		files[i].private_data = &sessions[i];
	}
}

static void tear_down(void)
{
	for (int i = 0; i < PROCESSES; i++)
		gk20a_ctrl_dev_release(NULL, &files[i]);
	nvgpu_fifo_cleanup_sw(&gpu);
}

/* A TSG of one channel with the same number, enabled. */
static u32 open_tsg(int process)
{
	struct nvgpu_tsg *tsg = nvgpu_tsg_open(&gpu, FIRST_PID + process);
	struct nvgpu_channel *ch = &gpu.fifo.channel[tsg->tsgid];

	tsg->runlist = &runlist;
	ch->tsgid = tsg->tsgid;
	list_add_tail(&ch->ch_entry, &tsg->ch_list);
	nvgpu_channel_enable(&gpu, ch);
	return tsg->tsgid;
}

static void close_tsg(u32 id)
{
	nvgpu_channel_disable(&gpu, &gpu.fifo.channel[id]);
	list_del(&gpu.fifo.channel[id].ch_entry);
	nvgpu_tsg_release_common(&gpu, &gpu.fifo.tsg[id]);
}

static long segment(int process, u32 op, int priority)
{
	struct gpuseg_nvgpu_segment_args args = {.op = op, .gpu_priority = priority};

	current = &tasks[process];
	return gk20a_ctrl_dev_ioctl(&files[process], GPUSEG_NVGPU_IOCTL_SEGMENT, (unsigned long)&args);
}

static long begin(int process, int priority)
{
	return segment(process, GPUSEG_NVGPU_BEGIN, priority);
}

static long end(int process)
{
	return segment(process, GPUSEG_NVGPU_END, 0);
}

/* --- the published algorithm, as it is described: sets that are edited, a bitmap of one word, a cache --- */

struct published {
	bool running[PROCESSES], pending[PROCESSES];
	int priority[PROCESSES];
	u32 tsg[PROCESSES];
	bool on[TSGS];
	uint64_t cached;
	bool ever;
};

static int highest(const struct published *p, const bool *set)
{
	int best = -1;

	for (int i = 0; i < PROCESSES; i++)
		if (set[i] && p->priority[i] > 0 && (best < 0 || p->priority[i] > p->priority[best]))
			best = i;
	return best;
}

static void published_write(struct published *p)
{
	uint64_t wanted = 0;

	for (int i = 0; i < PROCESSES; i++)
		if (p->running[i] && p->tsg[i] < 64)
			wanted |= 1ull << p->tsg[i];
	if (p->ever && wanted == p->cached)
		return;
	p->ever = true;
	p->cached = wanted;
	for (u32 t = 0; t < 64; t++)
		p->on[t] = wanted >> t & 1;
}

static void published_add(struct published *p, int caller, int priority)
{
	const int h = highest(p, p->running);

	p->priority[caller] = priority;
	if (priority == 0 ? h < 0 : h < 0 || priority > p->priority[h]) {
		if (priority > 0)
			for (int i = 0; i < PROCESSES; i++) {
				p->pending[i] |= p->running[i];
				p->running[i] = false;
			}
		p->running[caller] = true;
	} else {
		p->pending[caller] = true;
	}
	published_write(p);
}

static void published_remove(struct published *p, int caller)
{
	const int k = highest(p, p->pending);

	memset(p->running, 0, sizeof(p->running));
	if (k >= 0) {
		p->running[k] = true;
		p->pending[k] = false;
	} else {
		memcpy(p->running, p->pending, sizeof(p->running));
		memset(p->pending, 0, sizeof(p->pending));
		p->running[caller] = false;
	}
	published_write(p);
}

static struct published published(const u32 *tsg, int n)
{
	struct published p = {0};

	for (int i = 0; i < n; i++) {
		p.tsg[i] = tsg[i];
		p.on[tsg[i]] = true;
	}
	return p;
}

/* --- tests --- */

/* Source: facts on the published algorithm, line 24: running := pending drops who still works. */
static bool should_not_drop_a_best_effort_task_when_another_ends(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};
	struct published p = published(t, 2);

	published_add(&p, 0, 0);
	published_add(&p, 1, 0);
	published_remove(&p, 1);
	CHECK(!p.on[t[0]]); /* its kernel never finishes */

	CHECK(begin(0, 0) == 0 && begin(1, 0) == 0 && end(1) == 0);
	CHECK(on[t[0]] && on[t[1]]);
	return true;
}

/* A preempted task whose GPU work had finished ends while a third one waits. */
static bool should_not_evict_the_highest_when_a_preempted_task_ends(void)
{
	u32 t[3] = {open_tsg(0), open_tsg(1), open_tsg(2)};
	struct published p = published(t, 3);

	published_add(&p, 0, 10);
	published_add(&p, 1, 30);
	published_add(&p, 2, 20);
	published_remove(&p, 0);
	CHECK(!p.on[t[1]] && p.on[t[2]]);
	published_remove(&p, 2);
	CHECK(!p.on[t[1]]); /* 1 waits for the GPU for ever: nothing enables it */

	CHECK(begin(0, 10) == 0 && begin(1, 30) == 0 && begin(2, 20) == 0 && end(0) == 0);
	CHECK(on[t[1]] && !on[t[2]] && !on[t[0]]);
	CHECK(end(1) == 0 && on[t[2]] && !on[t[1]]);
	CHECK(end(2) == 0 && on[t[0]] && on[t[1]] && on[t[2]]);
	return true;
}

/* The driver's own paths edit the runlist behind the cache. */
static bool should_keep_a_held_tsg_off_when_the_driver_adds_it(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};
	struct published p = published(t, 2);

	published_add(&p, 0, 10);
	CHECK(!p.on[t[1]]);
	p.on[t[1]] = true; /* recovery adds its channel again */
	published_add(&p, 1, 0);
	CHECK(p.on[t[1]]); /* the cache says that nothing is to be done */

	CHECK(begin(0, 10) == 0 && !on[t[1]]);
	CHECK(nvgpu_channel_disable(&gpu, &gpu.fifo.channel[t[1]]) == 0);
	CHECK(nvgpu_channel_enable(&gpu, &gpu.fifo.channel[t[1]]) == 0 && !on[t[1]]);
	CHECK(end(0) == 0 && on[t[1]]);
	CHECK(begin(0, 10) == 0 && nvgpu_channel_disable(&gpu, &gpu.fifo.channel[t[1]]) == 0);
	CHECK(end(0) == 0 && !on[t[1]]); /* what the driver took off is not added for it */
	return true;
}

static bool should_bring_back_processes_that_never_open_a_segment(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};
	struct published p = published(t, 2);

	published_add(&p, 0, 10);
	published_remove(&p, 0);
	CHECK(!p.on[t[1]]);

	CHECK(begin(0, 10) == 0 && !on[t[1]] && end(0) == 0 && on[t[1]] && on[t[0]]);
	return true;
}

static bool should_bring_back_a_tsg_that_is_made_while_a_segment_is_open(void)
{
	u32 t[3] = {open_tsg(0)};
	struct published p = published(t, 1);

	published_add(&p, 0, 10);
	published_remove(&p, 0);
	CHECK(!p.on[1]); /* TSG 1, made meanwhile by a process that waits for it before its first segment */

	CHECK(begin(0, 10) == 0);
	t[1] = open_tsg(1);
	t[2] = open_tsg(0);
	CHECK(!on[t[1]] && on[t[2]] && end(0) == 0 && on[t[1]]);
	return true;
}

static bool should_hold_tsgs_numbered_64_and_above(void)
{
	u32 t[2], last = 0;
	struct published p;

	for (int i = 0; i < 70; i++)
		last = open_tsg(1);
	t[0] = 0;
	t[1] = last;
	CHECK(last >= 64);
	p = published(t, 2);
	p.tsg[0] = 1;
	published_add(&p, 0, 10);
	CHECK(p.on[last]); /* runs beside the real-time task */

	t[0] = open_tsg(0);
	CHECK(begin(0, 10) == 0 && on[t[0]]);
	for (u32 i = 0; i < 70; i++)
		CHECK(!on[i]);
	CHECK(end(0) == 0 && on[last] && on[0]);
	return true;
}

static bool should_order_by_gpu_priority_not_by_cpu_priority(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};

	tasks[0].rt_priority = 50;
	tasks[1].rt_priority = 40;
	CHECK(begin(0, 10) == 0 && begin(1, 20) == 0 && !on[t[0]] && on[t[1]]);
	CHECK(end(0) == 0 && end(1) == 0);
	CHECK(begin(0, -1) == 0 && begin(1, -1) == 0 && on[t[0]] && !on[t[1]]);
	CHECK(end(0) == 0 && on[t[1]] && end(1) == 0);
	return true;
}

static bool should_serve_equals_in_order_of_arrival(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};

	CHECK(begin(1, 10) == 0 && begin(0, 10) == 0 && on[t[1]] && !on[t[0]]);
	CHECK(end(1) == 0 && on[t[0]]);
	return true;
}

static bool should_end_a_segment_with_its_file(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};

	CHECK(begin(0, 10) == 0 && !on[t[1]]);
	close_tsg(t[0]);
	gk20a_ctrl_dev_release(NULL, &files[0]);
	CHECK(on[t[1]]);
	return true;
}

static bool should_never_take_the_display_off(void)
{
	u32 t[2] = {open_tsg(0), open_tsg(1)};

	strcpy(tasks[1].comm, "Xorg");
	CHECK(begin(0, 10) == 0 && on[t[0]] && on[t[1]]);
	return true;
}

static bool should_refuse_what_is_not_permitted(void)
{
	struct gpuseg_nvgpu_segment_args args = {.op = 7};

	CHECK(segment(0, 7, 0) == -EINVAL && begin(0, 100) == -EINVAL && begin(0, -2) == -EINVAL);
	CHECK(end(0) == -EINVAL && begin(0, 5) == 0 && begin(0, 5) == -EALREADY && end(0) == 0 && end(0) == -EINVAL);
	shim_capable = false;
	CHECK(begin(0, 5) == -EPERM);
	tasks[0].rt_priority = 5;
	CHECK(begin(0, 5) == 0 && end(0) == 0 && begin(0, 6) == -EPERM);
	args = (struct gpuseg_nvgpu_segment_args){.op = GPUSEG_NVGPU_BEGIN, .pid = FIRST_PID + 1};
	CHECK(gk20a_ctrl_dev_ioctl(&files[0], GPUSEG_NVGPU_IOCTL_SEGMENT, (unsigned long)&args) == -EPERM);
	shim_capable = true;
	args.pid = 4711;
	CHECK(gk20a_ctrl_dev_ioctl(&files[0], GPUSEG_NVGPU_IOCTL_SEGMENT, (unsigned long)&args) == -ESRCH);
	args.reserved = 1;
	CHECK(gk20a_ctrl_dev_ioctl(&files[0], GPUSEG_NVGPU_IOCTL_SEGMENT, (unsigned long)&args) == -EINVAL);
	CHECK(gk20a_ctrl_dev_ioctl(&files[0], _IO('G', 1), 0) == 0);
	return true;
}

static bool should_undo_a_begin_that_fails_and_retry_an_end_that_fails(void)
{
	u32 t[4] = {open_tsg(0), open_tsg(1), open_tsg(2), open_tsg(3)};

	fail_next = 2;
	CHECK(begin(0, 10) == -EIO && on[t[0]] && on[t[1]] && on[t[2]] && on[t[3]]);
	CHECK(begin(0, 10) == 0 && !on[t[1]] && !on[t[2]] && !on[t[3]]);
	fail_next = 2;
	CHECK(end(0) == 0 && on[t[1]] + on[t[2]] + on[t[3]] == 2 && shim_pending);
	shim_pending->function(&shim_pending->work);
	CHECK(on[t[1]] && on[t[2]] && on[t[3]]);
	return true;
}

static uint64_t rng(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#define STEPS 200000

static bool should_agree_with_the_model_in_random_sequences(void)
{
	bool open[PROCESSES] = {0}, enabled[TSGS] = {0}, used[TSGS] = {0};
	int priority[PROCESSES], order[PROCESSES], owner[TSGS], clock = 0;
	uint64_t seed = 88172645463325252ull;

	strcpy(tasks[PROCESSES - 1].comm, "gnome-shell");
	for (int step = 0; step < STEPS; step++) {
		const int p = (int)(rng(&seed) % PROCESSES);
		const u32 t = (u32)(rng(&seed) % TSGS);
		const bool fault = rng(&seed) % 16 == 0;
		int best = -1;
		long rc;

		switch (rng(&seed) % 8) {
		case 0: {
			u32 n = 0, id;

			for (u32 i = 0; i < TSGS; i++)
				n += used[i];
			if (n >= TSGS - 1)
				break;
			id = open_tsg(p);
			used[id] = enabled[id] = true;
			owner[id] = p;
			break;
		}
		case 1:
			if (!used[t])
				break;
			close_tsg(t);
			used[t] = enabled[t] = false;
			break;
		case 2:
			if (!used[t])
				break;
			enabled[t] = !enabled[t];
			if (enabled[t])
				nvgpu_channel_enable(&gpu, &gpu.fifo.channel[t]);
			else
				nvgpu_channel_disable(&gpu, &gpu.fifo.channel[t]);
			break;
		case 3 ... 5:
			priority[p] = open[p] ? priority[p] : (int)(rng(&seed) % 4);
			fail_next = fault ? 1 + (int)(rng(&seed) % 20) : 0;
			rc = begin(p, priority[p]);
			CHECK(open[p] ? rc == -EALREADY : rc == 0 || (rc == -EIO && fault));
			if (rc == 0) {
				open[p] = true;
				order[p] = clock++;
			}
			break;
		case 6:
			fail_next = fault ? 1 + (int)(rng(&seed) % 20) : 0;
			rc = end(p);
			CHECK(rc == (open[p] ? 0 : -EINVAL));
			open[p] = false;
			break;
		default:
			gk20a_ctrl_dev_release(NULL, &files[p]);
			open[p] = false;
			break;
		}
		fail_next = 0;
		while (shim_pending) {
			struct delayed_work *w = shim_pending;

			shim_pending = NULL;
			w->function(&w->work);
		}
		for (int i = 0; i < PROCESSES; i++)
			if (open[i] && priority[i] > 0 &&
			    (best < 0 || priority[i] > priority[best] ||
			     (priority[i] == priority[best] && order[i] < order[best])))
				best = i;
		for (u32 i = 0; i < TSGS; i++) {
			const bool allowed = used[i] && (best < 0 || owner[i] == best || owner[i] == PROCESSES - 1);

			if (on[i] != (enabled[i] && allowed)) {
				printf("    step %d: TSG %u\n", step, i);
				return false;
			}
		}
	}
	for (u32 i = 0; i < TSGS; i++)
		if (used[i])
			close_tsg(i);
	printf("    %d steps\n", STEPS);
	return true;
}

static int passed, failed;

static void run(const char *name, bool (*test)(void))
{
	bool ok;

	set_up();
	ok = test();
	tear_down();
	printf("%s %s\n", ok ? "ok  " : "FAIL", name);
	passed += ok;
	failed += !ok;
}

#define RUN(test) run(#test, test)

int main(void)
{
	RUN(should_not_drop_a_best_effort_task_when_another_ends);
	RUN(should_not_evict_the_highest_when_a_preempted_task_ends);
	RUN(should_keep_a_held_tsg_off_when_the_driver_adds_it);
	RUN(should_bring_back_processes_that_never_open_a_segment);
	RUN(should_bring_back_a_tsg_that_is_made_while_a_segment_is_open);
	RUN(should_hold_tsgs_numbered_64_and_above);
	RUN(should_order_by_gpu_priority_not_by_cpu_priority);
	RUN(should_serve_equals_in_order_of_arrival);
	RUN(should_end_a_segment_with_its_file);
	RUN(should_never_take_the_display_off);
	RUN(should_refuse_what_is_not_permitted);
	RUN(should_undo_a_begin_that_fails_and_retry_an_end_that_fails);
	RUN(should_agree_with_the_model_in_random_sequences);
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
