/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual GPU as a process. No test compares a wall-clock time with an expectation. The log and the replies contain
 * the timeline, which is exact whatever the machine does; waits only have a limit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "gpuseg_sim.h"
#include "tests/check.h"
#include "tests/rig.h"

enum { SPANS_MAX = 8192 };

static struct gpuseg_sim_span spans[SPANS_MAX];
static size_t span_count;

static int64_t executed_ns(pid_t pid)
{
	int64_t sum = 0;

	for (size_t i = 0; i < span_count; i++)
		if (spans[i].pid == pid)
			sum += spans[i].end_ns - spans[i].start_ns;
	return sum;
}

static const struct gpuseg_sim_span *span_of(pid_t pid, unsigned nth)
{
	for (size_t i = 0; i < span_count; i++)
		if (spans[i].pid == pid && nth-- == 0)
			return &spans[i];
	return NULL;
}

TEST(should_rotate_slices_exactly)
{
	static const int64_t kernel[] = {20 * NS_PER_MS};
	static const char *const options[] = {"--timeslice", "1ms", "--switch-cost", "100us", NULL};
	const pid_t vgpu = rig_vgpu(options);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	const struct rig_application a = rig_held_application(kernel, 1), b = rig_held_application(kernel, 1);
	const pid_t pids[] = {a.pid, b.pid};

	/* Both have submitted before either may run: so they compete from the first slice to the last. */
	CHECK_EQ(rig_operate(control, GPUSEG_SIM_DISABLE, pids, 2, 0).status, -ESRCH);
	rig_let_go(&a);
	rig_let_go(&b);
	CHECK(rig_event(&a) == 's' && rig_event(&b) == 's', "an application could not submit");
	CHECK_EQ(rig_operate(control, GPUSEG_SIM_ENABLE, pids, 2, 0).status, 0);
	CHECK(rig_event(&a) == 'd' && rig_event(&b) == 'd', "a kernel did not complete");
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK_EQ(executed_ns(a.pid), kernel[0]);
	CHECK_EQ(executed_ns(b.pid), kernel[0]);
	for (size_t i = 0; i < span_count; i++) {
		const int64_t length_ns = spans[i].end_ns - spans[i].start_ns;

		CHECK_EQ(length_ns, NS_PER_MS);
		CHECK_EQ(spans[i].flags, i < 2 * 20 - 2 ? 4 : 1); /* the last slice of each ends with its kernel */
		if (i == 0)
			continue;
		CHECK_EQ(spans[i].start_ns - spans[i - 1].end_ns, 100 * NS_PER_US);
		CHECK(spans[i].pid != spans[i - 1].pid, "the slice of span %zu was not given on", i - 1);
	}
	CHECK_EQ(span_count, 2 * 20);
}

static void preempt_mid_kernel(int64_t kernel_ns, bool *preempted)
{
	static const char *const options[] = {"--disable-cost", "300us", "--enable-cost", "200us", NULL};
	const pid_t vgpu = rig_vgpu(options);
	const struct rig_application a = rig_application(&kernel_ns, 1);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	struct gpuseg_sim_msg off, on;
	int64_t before_ns;

	sleep_until(now_ns() + 5 * NS_PER_MS, NULL);
	before_ns = now_ns();
	off = rig_operate(control, GPUSEG_SIM_DISABLE, &a.pid, 1, 0);
	CHECK_EQ(off.status, 0);
	CHECK(off.time_ns - before_ns >= 300 * NS_PER_US, "the operation took %" PRId64 " ns", off.time_ns - before_ns);
	CHECK(off.time_ns <= now_ns(), "the reply came %" PRId64 " ns before the effect", off.time_ns - now_ns());
	sleep_until(now_ns() + kernel_ns + 20 * NS_PER_MS, NULL); /* longer than the kernel: it would be over */
	CHECK_EQ(rig_info(control).disabled, 1);
	if (rig_info(control).kernels_completed > 0) {
		span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
		CHECK_EQ(span_count, 1);
		CHECK(spans[0].end_ns <= off.time_ns, "the kernel went on for %" PRId64 " ns",
		      spans[0].end_ns - off.time_ns);
		*preempted = false;
		return;
	}
	*preempted = true;
	on = rig_operate(control, GPUSEG_SIM_ENABLE, &a.pid, 1, 0);
	CHECK_EQ(on.status, 0);
	CHECK(rig_event(&a) == 'd', "the kernel did not complete");
	CHECK_EQ(rig_info(control).ran_while_disabled, 0);
	CHECK_EQ(rig_info(control).preemptions, 1);
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK_EQ(span_count, 2);
	CHECK_EQ(spans[0].flags, 2);
	CHECK_EQ(spans[0].end_ns, off.time_ns);
	CHECK_EQ(spans[1].flags, 1);
	CHECK_EQ(spans[1].start_ns, on.time_ns);
	CHECK_EQ(executed_ns(a.pid), kernel_ns);
}

/*
 * If this process does not run for a while, the kernel completes before the disable, which the log shows. The test is
 * then repeated with a kernel of twice the duration, from 60 ms to 4 s.
 */
static void until_preempted(void (*test)(int64_t kernel_ns, bool *preempted))
{
	bool preempted = false;

	for (int64_t kernel_ns = 60 * NS_PER_MS; kernel_ns < 4 * NS_PER_S; kernel_ns *= 2) {
		test(kernel_ns, &preempted);
		if (preempted)
			return;
	}
	CHECK(preempted, "no kernel was on the GPU when it was to be disabled");
}

TEST(should_preempt_mid_kernel_and_keep_the_exact_rest)
{
	until_preempted(preempt_mid_kernel);
}

TEST(should_serve_operations_of_two_controllers_one_after_the_other)
{
	static const int64_t kernel[] = {0};
	static const char *const options[] = {"--disable-cost", "20ms", NULL};
	const pid_t vgpu = rig_vgpu(options);
	const struct rig_application a = rig_application(kernel, 1), b = rig_application(kernel, 1);
	const int first = rig_connect(GPUSEG_SIM_CONTROL_NAME), second = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	struct gpuseg_sim_msg m = rig_message(GPUSEG_SIM_DISABLE), one, two;

	m.count = 1;
	m.pids[0] = a.pid;
	CHECK_EQ(send(first, &m, sizeof(m), 0), sizeof(m));
	m.pids[0] = b.pid;
	CHECK_EQ(send(second, &m, sizeof(m), 0), sizeof(m));
	CHECK_EQ(rig_receive(second, &two, sizeof(two)), sizeof(two));
	CHECK_EQ(rig_receive(first, &one, sizeof(one)), sizeof(one));
	/* The two sockets may be read in either order, but their operations never overlap. */
	CHECK(llabs(two.time_ns - one.time_ns) >= 20 * NS_PER_MS, "effects %" PRId64 " ns apart",
	      two.time_ns - one.time_ns);
	rig_stop_vgpu(vgpu, spans, SPANS_MAX);
}

static bool one_disabled(void *control)
{
	return rig_info(*(int *)control).disabled == 1;
}

static void disable_and_leave(int64_t kernel_ns, bool *preempted)
{
	const pid_t vgpu = rig_vgpu(NULL);
	const struct rig_application a = rig_application(&kernel_ns, 1);
	int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	struct gpuseg_sim_msg m = rig_message(GPUSEG_SIM_DISABLE), on;

	m.count = 1;
	m.pids[0] = a.pid;
	CHECK_EQ(send(control, &m, sizeof(m), 0), sizeof(m));
	close(control); /* before the effect, and so before the reply */
	control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	CHECK(rig_until(one_disabled, &control), "the operation was lost with its controller");
	*preempted = rig_info(control).kernels_completed == 0;
	on = rig_operate(control, GPUSEG_SIM_ENABLE, &a.pid, 1, 0);
	CHECK(rig_event(&a) == 'd', "the kernel did not complete");
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK_EQ(executed_ns(a.pid), kernel_ns);
	if (!*preempted)
		return;
	CHECK_EQ(span_count, 2);
	CHECK_EQ(spans[1].start_ns, on.time_ns);
}

TEST(should_keep_a_context_disabled_after_its_controller_has_gone)
{
	until_preempted(disable_and_leave);
}

static bool no_context(void *control)
{
	return rig_info(*(int *)control).contexts == 0;
}

TEST(should_drop_the_context_of_a_killed_process)
{
	static const int64_t endless[] = {3600 * NS_PER_S}, brief[] = {1 * NS_PER_MS};
	const pid_t vgpu = rig_vgpu(NULL);
	const struct rig_application a = rig_application(endless, 1);
	int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);

	rig_operate(control, GPUSEG_SIM_DISABLE, &a.pid, 1, 0);
	kill(a.pid, SIGKILL);
	waitpid(a.pid, NULL, 0);
	CHECK(rig_until(no_context, &control), "the context outlived its process");
	CHECK_EQ(rig_info(control).disabled, 0);
	const struct rig_application b = rig_application(brief, 1);
	CHECK(rig_event(&b) == 'd', "the GPU is not usable afterwards");
	rig_stop_vgpu(vgpu, spans, SPANS_MAX);
}

TEST(should_drop_the_context_though_a_child_holds_the_connection)
{
	const pid_t vgpu = rig_vgpu(NULL);
	int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	int ready[2], end[2];
	char c;
	pid_t child;

	CHECK(pipe(ready) == 0 && pipe(end) == 0, "pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		gpuseg_sim *gpu;

		close(end[1]);

		if (gpuseg_sim_open(rig_directory(), &gpu) != 0 || gpuseg_sim_submit(gpu, 3600 * NS_PER_S, NULL) != 0)
			_exit(1);
		if (fork() == 0) /* keeps a copy of the socket until the test closes the other end of the pipe */
			_exit(read(end[0], &c, 1) == 0);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1, "no application");
	CHECK_EQ(rig_info(control).contexts, 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(rig_until(no_context, &control), "the context lives on in the child's copy of the socket");
	close(end[1]);
	rig_stop_vgpu(vgpu, spans, SPANS_MAX);
}

static struct gpuseg_sim_msg with(struct gpuseg_sim_msg m, uint64_t arg, int64_t arg_ns, uint32_t count, int32_t pid)
{
	m.arg = arg;
	m.arg_ns = arg_ns;
	m.count = count;
	m.pids[0] = pid;
	return m;
}

TEST(should_drop_a_malformed_sender_and_nobody_else)
{
	static const int64_t kernel[] = {400 * NS_PER_MS};
	const pid_t vgpu = rig_vgpu(NULL);
	const struct rig_application neighbour = rig_application(kernel, 1);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	struct gpuseg_sim_msg bad_magic = rig_message(GPUSEG_SIM_OPEN), bad_version = rig_message(GPUSEG_SIM_OPEN);

	bad_magic.magic ^= 1;
	bad_version.version += 1 << 16;

	const struct {
		const char *what;
		bool control, open_first;
		struct gpuseg_sim_msg m;
		size_t size; /* 0: the whole message */
	} cases[] = {
		{"short packet", false, false, rig_message(GPUSEG_SIM_OPEN), 40},
		{"one byte short", false, false, rig_message(GPUSEG_SIM_OPEN), sizeof(bad_magic) - 1},
		{"magic", false, false, bad_magic, 0},
		{"version", false, false, bad_version, 0},
		{"operation", false, false, rig_message(99), 0},
		{"control operation from an application", false, true,
		 with(rig_message(GPUSEG_SIM_DISABLE), 0, 0, 1, neighbour.pid), 0},
		{"info from an application", false, true, rig_message(GPUSEG_SIM_INFO), 0},
		{"submit before open", false, false, with(rig_message(GPUSEG_SIM_SUBMIT), 1, 1000, 0, 0), 0},
		{"open twice", false, true, rig_message(GPUSEG_SIM_OPEN), 0},
		{"fence that jumps", false, true, with(rig_message(GPUSEG_SIM_SUBMIT), 2, 1000, 0, 0), 0},
		{"fence 0", false, true, with(rig_message(GPUSEG_SIM_SUBMIT), 0, 1000, 0, 0), 0},
		{"negative duration", false, true, with(rig_message(GPUSEG_SIM_SUBMIT), 1, -1, 0, 0), 0},
		{"endless duration", false, true, with(rig_message(GPUSEG_SIM_SUBMIT), 1, INT64_MAX, 0, 0), 0},
		{"open on the control socket", true, false, rig_message(GPUSEG_SIM_OPEN), 0},
		{"65 processes", true, false, with(rig_message(GPUSEG_SIM_DISABLE), 0, 0, 65, neighbour.pid), 0},
		{"4 billion processes", true, false,
		 with(rig_message(GPUSEG_SIM_ENABLE), 0, 0, UINT32_MAX, neighbour.pid), 0},
		{"process 0", true, false, with(rig_message(GPUSEG_SIM_DISABLE), 0, 0, 1, 0), 0},
		{"process -1", true, false, with(rig_message(GPUSEG_SIM_DISABLE), 0, 0, 1, -1), 0},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const int fd = rig_connect(cases[i].control ? GPUSEG_SIM_CONTROL_NAME : GPUSEG_SIM_SOCKET_NAME);
		struct gpuseg_sim_msg m = rig_message(GPUSEG_SIM_OPEN);

		if (cases[i].open_first) {
			CHECK_EQ(send(fd, &m, sizeof(m), 0), sizeof(m));
			CHECK_EQ(rig_receive(fd, &m, sizeof(m)), sizeof(m));
		}
		send(fd, &cases[i].m, cases[i].size ? cases[i].size : sizeof(m), MSG_NOSIGNAL);
		CHECK(rig_receive(fd, &m, sizeof(m)) <= 0 && errno != EAGAIN, "%s: the connection lives on",
		      cases[i].what);
		close(fd);
	}
	/* A value out of range in a valid message is answered; the connection stays open. */
	CHECK_EQ(rig_operate(control, GPUSEG_SIM_TIMESLICE, &neighbour.pid, 1, 5).status, -EINVAL);
	CHECK_EQ(rig_operate(control, GPUSEG_SIM_TIMESLICE, &neighbour.pid, 1, 2 * NS_PER_MS).status, 0);
	CHECK(rig_event(&neighbour) == 'd', "the neighbour's kernel did not complete");
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK_EQ(executed_ns(neighbour.pid), kernel[0]);
	CHECK_EQ(span_count, 1);
}

TEST(should_take_64_processes_in_one_operation)
{
	static const int64_t endless[] = {3600 * NS_PER_S};
	const pid_t vgpu = rig_vgpu(NULL);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	pid_t pids[GPUSEG_SIM_BATCH_MAX];
	struct gpuseg_sim_msg off;
	struct gpuseg_sim_info info;

	for (int i = 0; i < GPUSEG_SIM_BATCH_MAX; i++) {
		const struct rig_application a = rig_application(endless, 1);

		pids[i] = a.pid;
		close(a.events);
		close(a.orders);
	}
	off = rig_operate(control, GPUSEG_SIM_DISABLE, pids, GPUSEG_SIM_BATCH_MAX, 0);
	CHECK_EQ(off.status, 0);
	info = rig_info(control);
	CHECK_EQ(info.contexts, GPUSEG_SIM_BATCH_MAX);
	CHECK_EQ(info.disabled, GPUSEG_SIM_BATCH_MAX);
	CHECK_EQ(info.operations, 1);

	kill(pids[7], SIGKILL);
	waitpid(pids[7], NULL, 0);
	CHECK_EQ(rig_operate(control, GPUSEG_SIM_ENABLE, pids, GPUSEG_SIM_BATCH_MAX, 0).status, -ESRCH);
	info = rig_info(control);
	CHECK_EQ(info.disabled, 0); /* the others were served */
	CHECK_EQ(info.contexts, GPUSEG_SIM_BATCH_MAX - 1);
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
}

TEST(should_remember_a_disabled_process_that_opens_later)
{
	static const int64_t kernel[] = {2 * NS_PER_MS};
	const pid_t vgpu = rig_vgpu(NULL);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	const struct rig_application a = rig_held_application(kernel, 1);
	struct gpuseg_sim_msg on;

	CHECK_EQ(rig_operate(control, GPUSEG_SIM_DISABLE, &a.pid, 1, 0).status, -ESRCH);
	rig_let_go(&a);
	CHECK(rig_event(&a) == 's', "the application could not open");
	CHECK_EQ(rig_info(control).contexts, 1);
	CHECK_EQ(rig_info(control).disabled, 1);
	on = rig_operate(control, GPUSEG_SIM_ENABLE, &a.pid, 1, 0);
	CHECK_EQ(on.status, 0);
	CHECK(rig_event(&a) == 'd', "the kernel did not complete");
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK(span_of(a.pid, 0)->start_ns >= on.time_ns, "it ran %" PRId64 " ns too early",
	      on.time_ns - span_of(a.pid, 0)->start_ns);
}

TEST(should_complete_a_thousand_kernels_in_order)
{
	static int64_t kernels[1000];
	const pid_t vgpu = rig_vgpu(NULL);
	int64_t sum = 0;
	uint64_t fence = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(kernels); i++)
		sum += kernels[i] = (int64_t)(i % 7) * 5 * NS_PER_US;
	const struct rig_application a = rig_application(kernels, ARRAY_LENGTH(kernels));
	CHECK(rig_event(&a) == 'd', "the kernels did not complete");
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	CHECK_EQ(executed_ns(a.pid), sum);
	for (size_t i = 0; i < span_count; i++)
		if (spans[i].flags & 1)
			CHECK_EQ(spans[i].fence, ++fence);
	CHECK_EQ(fence, ARRAY_LENGTH(kernels));
}

static void operate_at_random(bool *preempted)
{
	enum { APPLICATIONS = 4, KERNELS = 60, ROUNDS = 400 };
	static const char *const options[] = {"--timeslice", "300us",	      "--switch-cost", "50us", "--disable-cost",
					      "80us",	     "--enable-cost", "60us",	       NULL};
	const pid_t vgpu = rig_vgpu(options);
	const int control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	struct rig_application a[APPLICATIONS];
	int64_t off_ns[APPLICATIONS][ROUNDS], on_ns[APPLICATIONS][ROUNDS], kernels[KERNELS], sum = 0;
	unsigned offs[APPLICATIONS] = {0};
	bool off[APPLICATIONS] = {false};

	srand(7);
	for (int i = 0; i < KERNELS; i++)
		sum += kernels[i] = rand() % 2000 * NS_PER_US;
	for (int i = 0; i < APPLICATIONS; i++)
		a[i] = rig_application(kernels, KERNELS);
	for (int round = 0; round < ROUNDS; round++) {
		const int i = rand() % APPLICATIONS;
		const struct gpuseg_sim_msg m =
			rig_operate(control, off[i] ? GPUSEG_SIM_ENABLE : GPUSEG_SIM_DISABLE, &a[i].pid, 1, 0);

		CHECK_EQ(m.status, 0);
		if (off[i])
			on_ns[i][offs[i]++] = m.time_ns;
		else
			off_ns[i][offs[i]] = m.time_ns;
		off[i] = !off[i];
	}
	for (int i = 0; i < APPLICATIONS; i++)
		if (off[i])
			on_ns[i][offs[i]++] = rig_operate(control, GPUSEG_SIM_ENABLE, &a[i].pid, 1, 0).time_ns;
	for (int i = 0; i < APPLICATIONS; i++)
		CHECK(rig_event(&a[i]) == 'd', "the kernels of application %d did not complete", i);
	CHECK_EQ(rig_info(control).ran_while_disabled, 0);
	*preempted = rig_info(control).preemptions > 0;
	span_count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	for (size_t s = 1; s < span_count; s++)
		CHECK(spans[s].start_ns - spans[s - 1].end_ns >=
			      (spans[s].pid == spans[s - 1].pid ? 0 : 50 * NS_PER_US),
		      "spans %zu and %zu overlap or the switch was free", s - 1, s);
	/* Computed from the replies and the log, without the virtual GPU's own check. */
	for (int i = 0; i < APPLICATIONS; i++) {
		CHECK_EQ(executed_ns(a[i].pid), sum);
		for (size_t s = 0; s < span_count; s++)
			for (unsigned k = 0; k < offs[i] && spans[s].pid == a[i].pid; k++)
				CHECK(spans[s].end_ns <= off_ns[i][k] || spans[s].start_ns >= on_ns[i][k],
				      "application %d executed while it was off", i);
	}
}

TEST(should_never_execute_a_disabled_context_under_random_operations)
{
	bool preempted = false;

	/* Repeat it if this process did not run until all kernels were complete. */
	for (int attempt = 0; attempt < 10; attempt++) {
		operate_at_random(&preempted);
		if (preempted)
			return;
	}
	CHECK(preempted, "nothing was ever preempted: the test tests nothing");
}

TEST(should_tell_a_waiter_the_exact_completion_or_that_the_gpu_is_gone)
{
	const pid_t vgpu = rig_vgpu(NULL);
	gpuseg_sim *gpu;
	uint64_t fence, completed;
	int64_t completed_ns;

	CHECK_EQ(gpuseg_sim_open(rig_directory(), &gpu), 0);
	CHECK_EQ(gpuseg_sim_submit(gpu, -1, &fence), -EINVAL);
	CHECK_EQ(gpuseg_sim_submit(gpu, 5 * NS_PER_MS, &fence), 0);
	CHECK_EQ(fence, 1);
	CHECK_EQ(gpuseg_sim_wait(gpu, 2, GPUSEG_SIM_BLOCK, -1), -EINVAL);
	CHECK_EQ(gpuseg_sim_wait(gpu, 1, GPUSEG_SIM_BUSY, -1), 0);
	CHECK_EQ(gpuseg_sim_completed(gpu, &completed, &completed_ns), 0);
	CHECK_EQ(completed, 1);
	CHECK(completed_ns <= now_ns(), "completed in the future");
	CHECK_EQ(gpuseg_sim_submit(gpu, 3600 * NS_PER_S, &fence), 0);
	CHECK_EQ(gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, 2 * NS_PER_MS), -ETIMEDOUT);
	CHECK_EQ(gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BUSY, 2 * NS_PER_MS), -ETIMEDOUT);
	CHECK_EQ(gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, 0), -ETIMEDOUT);
	kill(vgpu, SIGKILL);
	CHECK_EQ(gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, -1), -ENODEV);
	CHECK_EQ(gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BUSY, -1), -ENODEV);
	CHECK_EQ(gpuseg_sim_submit(gpu, 1, &fence), -ENODEV);
	gpuseg_sim_close(gpu);
	CHECK_EQ(gpuseg_sim_open(rig_directory(), &gpu), -ECONNREFUSED);
	CHECK(gpu == NULL, "a handle after a failure");
}

TEST(should_start_over_a_dead_one_but_not_beside_a_living_one)
{
	const char *const second[] = {"--dir", rig_directory(), NULL};
	const pid_t first = rig_vgpu(NULL);
	struct stat file;
	char text[512];

	CHECK(stat(rig_path(GPUSEG_SIM_SOCKET_NAME), &file) == 0 && (file.st_mode & 0777) == 0666, "mode %o",
	      file.st_mode & 0777);
	CHECK(stat(rig_path(GPUSEG_SIM_CONTROL_NAME), &file) == 0 && (file.st_mode & 0777) == 0600, "mode %o",
	      file.st_mode & 0777);
	CHECK_EQ(rig_run("gpuseg-vgpu", second, text, sizeof(text)), 1);
	CHECK(strstr(text, "already listening"), "%s", text);
	kill(first, SIGKILL);
	rig_wait(first);
	CHECK(stat(rig_path(GPUSEG_SIM_SOCKET_NAME), &file) == 0, "the killed one removed its socket");
	rig_stop_vgpu(rig_vgpu(NULL), spans, SPANS_MAX);
	CHECK(stat(rig_path(GPUSEG_SIM_SOCKET_NAME), &file) != 0, "a stopped one left its socket");
}

TEST(should_exit_when_its_parent_dies)
{
	char parent_text[16];
	const pid_t parent = fork();
	pid_t vgpu;

	if (parent == 0)
		for (;;)
			pause();
	snprintf(parent_text, sizeof(parent_text), "%d", parent);
	const char *const more[] = {"--parent", parent_text, NULL};
	vgpu = rig_vgpu(more);
	kill(parent, SIGKILL);
	CHECK_EQ(rig_wait(vgpu), 0);
	waitpid(parent, NULL, 0);
}

TEST(should_refuse_bad_options_with_a_remedy)
{
	static const struct {
		const char *arguments[6];
		const char *says;
	} cases[] = {
		{{"--timeslice", "5", "--dir", "/tmp", NULL}, "has no unit; write it as 5ms"},
		{{"--timeslice", "0ns", "--dir", "/tmp", NULL}, "out of range"},
		{{"--switch-cost", "5 ms", "--dir", "/tmp", NULL}, "is not a duration"},
		{{"--timeslice", "5ms", NULL}, "--dir is missing"},
		{{"--dir", "/tmp", "more", NULL}, "unexpected argument"},
		{{"--scheduling", "fifo:100", "--dir", "/tmp", NULL}, "1 to 99"},
		{{"--nonsense", NULL}, "nonsense"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char text[1024];

		CHECK_EQ(rig_run("gpuseg-vgpu", cases[i].arguments, text, sizeof(text)), 2);
		CHECK(strstr(text, cases[i].says), "case %zu says: %s", i, text);
	}
}

static const struct check_case cases[] = {
	CASE(should_refuse_bad_options_with_a_remedy),
	CASE(should_start_over_a_dead_one_but_not_beside_a_living_one),
	CASE(should_drop_a_malformed_sender_and_nobody_else),
	CASE(should_rotate_slices_exactly),
	CASE(should_preempt_mid_kernel_and_keep_the_exact_rest),
	CASE(should_serve_operations_of_two_controllers_one_after_the_other),
	CASE(should_keep_a_context_disabled_after_its_controller_has_gone),
	CASE(should_remember_a_disabled_process_that_opens_later),
	CASE(should_take_64_processes_in_one_operation),
	CASE(should_drop_the_context_of_a_killed_process),
	CASE(should_drop_the_context_though_a_child_holds_the_connection),
	CASE(should_complete_a_thousand_kernels_in_order),
	CASE(should_never_execute_a_disabled_context_under_random_operations),
	CASE(should_tell_a_waiter_the_exact_completion_or_that_the_gpu_is_gone),
	CASE(should_exit_when_its_parent_dies),
};
CHECK_MAIN_APART(cases)
