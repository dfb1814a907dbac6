/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is judged does not depend on how busy the machine is: the GPU counts, a child stands still if the other one
 * counts meanwhile and it has work queued, and that it ran on is concluded only from two looks of which the earlier one
 * was late enough.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "rm/gpuseg_rm.h"

#define LOOK_NS (NS_PER_MS / 2)
#define START_LIMIT_NS (20 * NS_PER_S) /* eight CUDA programs that start at once take 9 s */
#define PROGRESS_LIMIT_NS (10 * NS_PER_S)
#define STUCK_NS (2 * NS_PER_S) /* with work queued */
#define END_LIMIT_NS (5 * NS_PER_S)
#define HOLD_NS (60 * NS_PER_MS)       /* how long a disabled child is watched */
#define LONG_HOLD_NS (400 * NS_PER_MS) /* once */
#define LATE_NS (20 * NS_PER_MS)       /* a disable has to act sooner after it returned */
#define RUNS_ON_NS NS_PER_S	       /* then nobody waits for it any more */
#define PROGRESS 20		       /* kernels */
#define LATE_KERNELS 30		       /* 30 ms, and the other child has one slice before */
#define ROUNDS 10
#define LONG_US 4000
#define SHORT_US 500
#define RATIO_MIN 2.5 /* 8 is asked for */
#define RATIO_NS (300 * NS_PER_MS)
#define RATIO_LIMIT_NS (20 * NS_PER_S)
#define STALL_NS (20 * NS_PER_MS) /* this program was late: what happened meanwhile is unknown */
#define WHOLE_US 1000000	  /* the slice of a real-time task */
#define BEGINS 20
#define LONG_KERNEL 10		 /* short ones */
#define SLOW_NS (20 * NS_PER_MS) /* and ten times a query */
#define EXEC_KERNELS 400

static struct child {
	pid_t pid; /* 0 = none, or it has ended */
	int status;
	struct child_page *page;
	uint64_t own_us; /* its time slice; 0 = unknown */
	bool attached;
} children[CHILDREN];

static const char *const names[CHILDREN] = {"a", "b"};

/* Why the checks that follow are left out; "" = they are not. */
static char over[160];

__attribute__((format(printf, 1, 2))) static void give_up(const char *format, ...)
{
	va_list list;

	if (over[0])
		return;
	va_start(list, format);
	vsnprintf(over, sizeof(over), format, list);
	va_end(list);
}

static void nap(int64_t ns)
{
	sleep_until(now_ns() + ns, NULL);
}

/* ---- children ---- */

static uint64_t count_of(const struct child *c)
{
	return __atomic_load_n(&c->page->count, __ATOMIC_ACQUIRE);
}

static uint64_t queued(const struct child *c)
{
	const uint64_t launched = __atomic_load_n(&c->page->launched, __ATOMIC_ACQUIRE), count = count_of(c);

	return launched > count ? launched - count : 0;
}

static bool has_work(const struct child *c)
{
	return queued(c) > 0;
}

/* Reaps it if it has ended; until then its pid is its own. */
static bool lives(struct child *c)
{
	if (c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->pid = 0;
	return c->pid > 0;
}

static const char *end_of(const struct child *c)
{
	static char text[64];

	if (WIFSIGNALED(c->status))
		snprintf(text, sizeof(text), "signal %d", WTERMSIG(c->status));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(c->status));
	return text;
}

static bool all_live(void)
{
	for (int i = 0; i < CHILDREN; i++)
		if (!lives(&children[i])) {
			give_up("child %s ended by itself (%s)", names[i], end_of(&children[i]));
			row_set(ROW_CHILDREN, DOES_NOT, "", "child %s ended during the checks: %s %s", names[i],
				end_of(&children[i]), children[i].page->reason);
			return false;
		}
	return !stopping;
}

/* program: NULL, or one that runs the child's. */
static int start_child(struct child *c, const char *name, uint32_t limit, const char *program)
{
	const int fd = (int)syscall(SYS_memfd_create, "gpuseg-selftest", 0u);
	const pid_t parent = getpid();
	char number[16], owner[16], self[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (fd < 0 || length <= 0 || ftruncate(fd, sizeof(*c->page)) != 0)
		return -errno;
	self[length] = 0;
	if (c->page)
		munmap(c->page, sizeof(*c->page));
	*c = (struct child){0};
	c->page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->page == MAP_FAILED)
		return -errno;
	c->page->limit = limit;
	c->page->mode = limit ? CHILD_ENDLESS : CHILD_IDLE;
	c->page->persistence = -1;
	snprintf(number, sizeof(number), "%d", fd);
	snprintf(owner, sizeof(owner), "%d", parent);
	c->pid = fork();
	if (c->pid == 0) {
		const char *const own[] = {self, "--child", number, owner, name, NULL};
		const char *const under[] = {program, "--best-effort", "--", self, "--child",
					     number,  owner,	       name, NULL};
		const int nowhere = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Ctrl-C goes to all processes of the terminal: the parent ends this one when all is given back */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		setenv("CUDA_CACHE_DISABLE", "1", 1); /* no file in the user's home */
		/* a context of its own, even where an MPS server runs */
		setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gpuseg-selftest", 1);
		execv(program ? program : self, (char *const *)(uintptr_t)(program ? under : own));
		_exit(127);
	}
	close(fd);
	return c->pid < 0 ? -errno : 0;
}

/* Ends it, whatever it does; false if it does not end. */
static bool end_child(struct child *c, int64_t *took_ns)
{
	const int64_t from_ns = now_ns();

	if (c->pid > 0)
		kill(c->pid, SIGKILL);
	while (lives(c) && now_ns() - from_ns < END_LIMIT_NS)
		nap(NS_PER_MS);
	if (took_ns)
		*took_ns = now_ns() - from_ns;
	return c->pid == 0;
}

/* Waits until the child is ready; "" or why it is not. */
static const char *wait_ready(struct child *c)
{
	static char why[256];
	const int64_t limit_ns = now_ns() + START_LIMIT_NS;
	uint32_t state;

	while ((state = __atomic_load_n(&c->page->state, __ATOMIC_ACQUIRE)) == CHILD_STARTING && lives(c) &&
	       now_ns() < limit_ns && !stopping)
		nap(2 * NS_PER_MS);
	state = __atomic_load_n(&c->page->state, __ATOMIC_ACQUIRE);
	why[0] = 0;
	if (state == CHILD_FAILED)
		snprintf(why, sizeof(why), "%s", c->page->reason);
	else if (state == CHILD_STARTING && c->pid == 0)
		snprintf(why, sizeof(why), "it ended while it started: %s", end_of(c));
	else if (state == CHILD_STARTING)
		snprintf(why, sizeof(why), "it was not ready within %d s", (int)(START_LIMIT_NS / NS_PER_S));
	return why;
}

static void set_mode(struct child *c, enum child_mode mode, uint32_t scale)
{
	__atomic_store_n(&c->page->scale, scale, __ATOMIC_RELEASE);
	__atomic_store_n(&c->page->mode, mode, __ATOMIC_RELEASE);
}

/*
 * Waits until the child has finished `kernels` more. False if it stands still though it has had work queued for
 * STUCK_NS, or has none for longer than PROGRESS_LIMIT_NS.
 */
static bool progresses(struct child *c, uint64_t kernels)
{
	const uint64_t from = count_of(c);
	const int64_t from_ns = now_ns();
	uint64_t last = from;
	int64_t change_ns = from_ns;

	while (count_of(c) - from < kernels) {
		const int64_t time_ns = now_ns();

		if (count_of(c) != last || !has_work(c)) {
			last = count_of(c);
			change_ns = time_ns;
		}
		if (time_ns - change_ns > STUCK_NS || time_ns - from_ns > PROGRESS_LIMIT_NS || stopping || !lives(c))
			return false;
		nap(LOOK_NS);
	}
	return true;
}

enum resumed { RESUMED, RESUMED_LATE, STANDS };

/* After an enable: late, if the other child finished LATE_KERNELS before it did one. */
static enum resumed resumes(struct child *c, const struct child *other)
{
	const uint64_t from = count_of(c), others = count_of(other);
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	bool late = false;

	while (count_of(c) == from && now_ns() < limit_ns && !stopping && lives(c)) {
		const uint64_t more = count_of(other) - others;

		late = late || (count_of(c) == from && more > LATE_KERNELS);
		if (count_of(c) == from && more > LATE_KERNELS * 30)
			return STANDS;
		nap(LOOK_NS);
	}
	if (!progresses(c, 3))
		return STANDS;
	return late ? RESUMED_LATE : RESUMED;
}

/* ---- calls ---- */

static int call(enum order_code code, int child, uint64_t argument, struct answer *answer);

/* After a call that did not return: another helper enables all and restores the slices, else the children end. */
static void recover(void)
{
	struct order order = {.code = ORDER_ATTACH};
	struct answer answer;
	bool given_back = helper_start() == 0;

	for (int i = 0; i < CHILDREN && given_back; i++) {
		if (!lives(&children[i]) || !children[i].attached)
			continue;
		order.child = i;
		order.pid = children[i].pid;
		order.argument = children[i].own_us;
		given_back = helper_call(&order, &answer) == 0;
	}
	order.code = ORDER_GIVE_BACK;
	given_back = given_back && helper_call(&order, &answer) == 0 && answer.status == 0;
	for (int i = 0; i < CHILDREN && !given_back; i++)
		end_child(&children[i], NULL);
}

/* 0 and *answer, or < 0 after which no further check is made. */
static int call(enum order_code code, int child, uint64_t argument, struct answer *answer)
{
	const struct order order = {.code = code, .child = child, .pid = children[child].pid, .argument = argument};
	int rc;

	if (over[0])
		return -ECANCELED;
	rc = helper_call(&order, answer);
	if (rc == -ETIMEDOUT || rc == -EPIPE) {
		give_up(rc == -ETIMEDOUT ? "a call of the driver did not return" : "the helper died in a call");
		recover();
	}
	return rc;
}

static const char *status_text(int64_t status)
{
	static char text[96];

	if (status < 0)
		snprintf(text, sizeof(text), "%s", strerror((int)-status));
	else
		snprintf(text, sizeof(text), "RM status 0x%x%s", (unsigned)status,
			 status == 0x56 ? ", not supported" : "");
	return text;
}

static void refused(enum row_id row, const char *what, int rc, int64_t status)
{
	if (rc != 0)
		row_set(row, DOES_NOT, "", "%s: %s", what, over[0] ? over : strerror(-rc));
	else
		row_set(row, status == 0x56 ? NOT_SUPPORTED : DOES_NOT, "", "%s: %s", what, status_text(status));
}

/* ---- the checks ---- */

static bool check_children(void)
{
	char value[96];
	int64_t from_ns = now_ns();

	for (int i = 0; i < CHILDREN; i++) {
		const int rc = start_child(&children[i], names[i], 0, NULL);

		if (rc != 0) {
			row_set(ROW_CHILDREN, DOES_NOT, "", "child %s: %s", names[i], strerror(-rc));
			return false;
		}
	}
	for (int i = 0; i < CHILDREN; i++) {
		const char *why = wait_ready(&children[i]);

		if (why[0]) {
			row_set(ROW_CHILDREN, DOES_NOT, "", "child %s: %s", names[i], why);
			return false;
		}
	}
	if (children[CHILD_A].page->gpu[0] && !report.machine.model[0])
		snprintf(report.machine.model, sizeof(report.machine.model), "%s", children[CHILD_A].page->gpu);
	report.machine.persistence = children[CHILD_A].page->persistence;
	snprintf(value, sizeof(value), "ready in %.1f s, kernels of %.2f ms", (double)(now_ns() - from_ns) / NS_PER_S,
		 (double)children[CHILD_A].page->kernel_ns / NS_PER_MS);
	/* the same kernels in both, so that counts can be compared */
	__atomic_store_n(&children[CHILD_B].page->iterations, children[CHILD_A].page->iterations, __ATOMIC_RELEASE);
	for (int i = 0; i < CHILDREN; i++)
		set_mode(&children[i], CHILD_ENDLESS, 1);
	for (int i = 0; i < CHILDREN; i++)
		if (!progresses(&children[i], PROGRESS)) {
			row_set(ROW_CHILDREN, DOES_NOT, value, "child %s: its kernels do not end%s%s", names[i],
				lives(&children[i]) ? "" : "; it ended, ",
				lives(&children[i]) ? "" : end_of(&children[i]));
			return false;
		}
	row_set(ROW_CHILDREN, WORKS, value, "both count beside each other");
	report.started = true;
	return true;
}

static bool attach(int i, struct answer *answer, int *rc)
{
	*rc = call(ORDER_ATTACH, i, 0, answer);
	if (*rc != 0 || answer->status != 0)
		return false;
	children[i].attached = true;
	children[i].own_us = answer->value;
	return true;
}

static bool check_channels(void)
{
	char value[96];
	struct answer answer;
	int64_t took_ns = 0;
	int rc;

	for (int i = 0; i < CHILDREN; i++) {
		if (!attach(i, &answer, &rc)) {
			if (rc == 0 && (answer.status == -EPERM || answer.status == -EACCES))
				row_set(ROW_CHANNELS, DOES_NOT, "",
					"its descriptors cannot be duplicated: %s; root or CAP_SYS_PTRACE may",
					strerror((int)-answer.status));
			else if (rc == 0 && answer.status == -ENOENT)
				row_set(ROW_CHANNELS, DOES_NOT, "", "the driver shows no channel group of child %s",
					names[i]);
			else
				refused(ROW_CHANNELS, "attach", rc, answer.status);
			return false;
		}
		took_ns += answer.took_ns;
		if (answer.groups == 0 || answer.channels == 0) {
			row_set(ROW_CHANNELS, DOES_NOT, "", "child %s has no channel for compute work", names[i]);
			return false;
		}
		if (answer.gpu_id == UINT32_MAX) {
			row_set(ROW_CHANNELS, DOES_NOT, "", "the driver does not say on which GPU they are");
			return false;
		}
	}
	snprintf(value, sizeof(value), "%u channels in %u queries, %.0f ms", answer.channels, answer.controls,
		 (double)took_ns / CHILDREN / NS_PER_MS);
	row_set(ROW_CHANNELS, WORKS, value, "of the compute channel group, through %u descriptors", answer.descriptors);
	return true;
}

struct stand {
	int64_t ran_on_ns; /* it certainly ran so long after the call had returned; 0 = not at all */
	bool stopped;
	bool again;    /* it stood still and ran again */
	bool had_work; /* at the end: else that it stood still proves nothing */
	bool other_ran;
};

static struct stand watch_disabled(struct child *c, struct child *other, int64_t returned_ns, int64_t hold_ns)
{
	struct stand s = {.stopped = true};
	uint64_t last = count_of(c), from = count_of(other), other_last = from;
	int64_t before_ns = returned_ns, change_ns = returned_ns, other_change_ns = returned_ns, quiet_ns = 0;

	for (;;) {
		const int64_t time_ns = now_ns();
		const uint64_t count = count_of(c), others = count_of(other);

		if (count != last) {
			s.ran_on_ns = before_ns - returned_ns;
			s.again = s.again || quiet_ns > LATE_NS;
			quiet_ns = 0;
			change_ns = time_ns;
			last = count;
		} else if (time_ns - before_ns < STALL_NS) {
			quiet_ns += time_ns - before_ns;
		}
		before_ns = time_ns;
		if (others != other_last || !has_work(other)) {
			other_last = others;
			other_change_ns = time_ns;
		}
		s.other_ran = others - from >= PROGRESS;
		s.had_work = has_work(c);
		s.stopped = time_ns - change_ns >= hold_ns;
		if ((s.stopped && s.other_ran) || (!s.stopped && time_ns - returned_ns > hold_ns + RUNS_ON_NS) ||
		    time_ns - other_change_ns > STUCK_NS || stopping || !lives(c) || !lives(other))
			return s;
		nap(LOOK_NS);
	}
}

/* One call and the next one for the other child, in turns. */
static void check_switches(void)
{
	unsigned valid = 0, others_stood = 0;
	int64_t longest_ns = 0;
	bool ran_on = false, again = false, endless = false, stays = false;
	struct answer answer;
	char value[96];

	for (int round = 0; round < ROUNDS && others_stood < 3 && !endless && !stays && all_live(); round++) {
		const int i = round % CHILDREN;
		struct child *c = &children[i], *other = &children[(i + 1) % CHILDREN];
		struct stand s;
		int64_t from_ns;
		enum resumed resumed;
		int rc = call(ORDER_SWITCH, i, 1, &answer);

		if (rc != 0 || answer.status != 0) {
			struct answer enabled;

			if (rc != -EINTR)
				refused(ROW_DISABLE, "disable", rc, answer.status);
			call(ORDER_SWITCH, i, 0, &enabled); /* it may have had an effect */
			return;
		}
		series_add(SERIES_DISABLE, answer.took_ns);
		s = watch_disabled(c, other, now_ns(), round == 0 ? LONG_HOLD_NS : HOLD_NS);
		if (!all_live())
			break;
		series_add(SERIES_STOP, s.ran_on_ns);
		longest_ns = s.ran_on_ns > longest_ns ? s.ran_on_ns : longest_ns;
		ran_on = ran_on || s.ran_on_ns > LATE_NS;
		again = again || s.again;
		endless = !s.stopped;
		valid += s.had_work && s.stopped;
		others_stood += !s.other_ran;
		if (call(ORDER_GET_SLICE, i, 0, &answer) == 0)
			series_add(SERIES_QUERY, answer.took_ns);
		from_ns = now_ns();
		rc = call(ORDER_SWITCH, i, 0, &answer);
		if (rc != 0 || answer.status != 0) {
			if (rc != -EINTR)
				refused(ROW_ENABLE, "enable", rc, answer.status);
			stays = true;
			break;
		}
		series_add(SERIES_ENABLE, answer.took_ns);
		resumed = resumes(c, other);
		if (resumed != RESUMED) {
			if (!all_live())
				break;
			row_set(ROW_ENABLE, DOES_NOT, "", "success, but child %s %s", names[i],
				resumed == RESUMED_LATE	      ? "stood still long after the call had returned"
				: progresses(other, PROGRESS) ? "stands still while the other one runs"
							      : "stands still as the other one does");
			stays = true;
			break;
		}
		series_add(SERIES_RESUME, now_ns() - from_ns);
	}
	if (stopping || over[0])
		return;
	snprintf(value, sizeof(value), "stands after %.1f ms, longest of %u", (double)longest_ns / NS_PER_MS,
		 report.series[SERIES_STOP].count);
	if (again)
		row_set(ROW_DISABLE, DOES_NOT, "", "it stood still and ran again, though nothing had enabled it");
	else if (endless)
		row_set(ROW_DISABLE, DOES_NOT, "", "success, but the child counts on: no effect within %.0f ms",
			(double)(RUNS_ON_NS) / NS_PER_MS);
	else if (ran_on)
		row_set(ROW_DISABLE, DOES_NOT, value, "it counted on after the call had returned");
	else if (valid == 0)
		row_set(ROW_DISABLE, DOES_NOT, value, "it had no work queued, so that it stood still proves nothing");
	else
		row_set(ROW_DISABLE, WORKS, value, "in %u rounds; with work queued in %u",
			report.series[SERIES_STOP].count, valid);
	snprintf(value, sizeof(value), "runs after %.1f ms (p50), %.1f at most",
		 series_quantile(SERIES_RESUME, 0.5) / 1e3, series_quantile(SERIES_RESUME, 1) / 1e3);
	if (!stays && report.rows[ROW_DISABLE].verdict == WORKS)
		row_set(ROW_ENABLE, WORKS, value, "in %u rounds", report.series[SERIES_RESUME].count);
	else if (!stays)
		row_set(ROW_ENABLE, SKIPPED, "", "a disabled child does not stand still");
	if (others_stood > 1)
		row_set(ROW_OTHERS, DOES_NOT, "", "the other child stood still, too, with work queued");
	else
		row_set(ROW_OTHERS, WORKS, "", "%d kernels or more in each round", PROGRESS);
}

/* Both are disabled, then one is enabled: the other one has to stay. */
static void check_apart(void)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	struct answer answer;
	bool done = true;
	struct stand s;

	if (over[0] || report.rows[ROW_ENABLE].verdict != WORKS || report.rows[ROW_OTHERS].verdict != WORKS)
		return;
	for (int i = 0; i < CHILDREN; i++)
		done = done && call(ORDER_SWITCH, i, 1, &answer) == 0 && answer.status == 0;
	done = done && call(ORDER_SWITCH, CHILD_A, 0, &answer) == 0 && answer.status == 0;
	if (done && resumes(a, b) == STANDS) {
		row_set(ROW_ENABLE, DOES_NOT, "", "both were disabled; child a was enabled and stands still");
	} else if (done) {
		s = watch_disabled(b, a, now_ns(), HOLD_NS);
		if (!s.stopped || s.ran_on_ns > LATE_NS)
			row_set(ROW_OTHERS, DOES_NOT, "", "child a was enabled, and child b, still disabled, ran, too");
	}
	for (int i = 0; i < CHILDREN; i++)
		call(ORDER_SWITCH, i, 0, &answer);
	if (!done && !over[0] && !stopping)
		row_set(ROW_OTHERS, DOES_NOT, "", "a call failed while both were disabled");
}

/* Calls that take longer than a query, by far. */
static void check_calls(void)
{
	const double slow_us = SLOW_NS / 1e3 + 10 * series_quantile(SERIES_QUERY, 0.5);
	const double disable_us = series_quantile(SERIES_DISABLE, 0.5), enable_us = series_quantile(SERIES_ENABLE, 0.5);
	const double slice_us = series_quantile(SERIES_SET_SLICE, 0.5);
	char value[96];

	if (over[0] || report.series[SERIES_ENABLE].count == 0)
		return;
	snprintf(value, sizeof(value), "disable %.2f, enable %.2f, slice %.2f ms", disable_us / 1e3, enable_us / 1e3,
		 slice_us / 1e3);
	if (disable_us > slow_us || enable_us > slow_us || slice_us > slow_us)
		row_set(ROW_CALLS, DOES_NOT, value, "a query takes %.2f ms: no begin can wait for such a call",
			series_quantile(SERIES_QUERY, 0.5) / 1e3);
	else
		row_set(ROW_CALLS, WORKS, value, "p50; a query takes %.2f", series_quantile(SERIES_QUERY, 0.5) / 1e3);
}

/*
 * Kernels of a for each of b, over the time between two looks in which neither can have run out of work, had it had the
 * GPU alone at twice the speed; 0 = there was too little of it.
 */
static double ratio(void)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	const int64_t kernel_ns = a->page->kernel_ns > 0 ? a->page->kernel_ns : 1;
	uint64_t sum_a = 0, sum_b = 0;
	int64_t sum_ns = 0;
	const int64_t from_ns = now_ns();

	nap(50 * NS_PER_MS); /* slices of before have ended */
	while ((sum_ns < RATIO_NS || sum_a + sum_b < 10 * PROGRESS) && now_ns() - from_ns < RATIO_LIMIT_NS &&
	       all_live()) {
		const uint64_t had_a = queued(a), had_b = queued(b), least = had_a < had_b ? had_a : had_b;
		const uint64_t first_a = count_of(a), first_b = count_of(b);
		const int64_t look_ns = now_ns();

		nap(LOOK_NS);
		const uint64_t more_a = count_of(a) - first_a, more_b = count_of(b) - first_b;
		const int64_t passed_ns = now_ns() - look_ns;

		if (least < 2 * (uint64_t)(passed_ns / kernel_ns) + 4)
			continue;
		sum_a += more_a;
		sum_b += more_b;
		sum_ns += passed_ns;
	}
	return sum_a + sum_b < 10 * PROGRESS ? 0 : (double)sum_a / (double)(sum_b ? sum_b : 1);
}

/* Sets a slice and asks for it. 0, or the row says why not. */
static bool set_slice(int i, uint64_t us)
{
	struct answer answer;
	int rc = call(ORDER_SLICE, i, us, &answer);

	if (rc != 0 || answer.status != 0) {
		if (rc != -EINTR)
			refused(ROW_SLICE, "set", rc, answer.status);
		return false;
	}
	series_add(SERIES_SET_SLICE, answer.took_ns);
	rc = call(ORDER_GET_SLICE, i, 0, &answer);
	if (rc != 0 || answer.status != 0) {
		if (rc != -EINTR)
			refused(ROW_SLICE, "query", rc, answer.status);
		return false;
	}
	if (answer.value != us) {
		row_set(ROW_SLICE, DOES_NOT, "", "success, but asked for %llu us the driver tells %llu",
			(unsigned long long)us, (unsigned long long)answer.value);
		return false;
	}
	return true;
}

static bool own_slices(void)
{
	bool same = true;

	for (int i = 0; i < CHILDREN; i++)
		if (children[i].own_us)
			same = set_slice(i, children[i].own_us) && same;
	return same;
}

static void check_slices(void)
{
	double long_a, long_b;
	char value[96];

	if (over[0])
		return;
	if (children[CHILD_A].own_us == 0 || children[CHILD_B].own_us == 0) {
		row_set(ROW_SLICE, DOES_NOT, "", "the driver does not tell a child's own, so none is changed");
		return;
	}
	if (!set_slice(CHILD_A, LONG_US) || !set_slice(CHILD_B, SHORT_US)) {
		own_slices();
		return;
	}
	long_a = ratio();
	if (!set_slice(CHILD_A, SHORT_US) || !set_slice(CHILD_B, LONG_US)) {
		own_slices();
		return;
	}
	long_b = ratio();
	if (!own_slices() || over[0] || stopping)
		return;
	snprintf(value, sizeof(value), "own: %llu us", (unsigned long long)children[CHILD_A].own_us);
	row_set(ROW_SLICE, WORKS, value, "set, asked for and given back");
	snprintf(value, sizeof(value), "work a:b %.1f and %.2f for %d:%d and %d:%d us", long_a, long_b, LONG_US,
		 SHORT_US, SHORT_US, LONG_US);
	if (long_a == 0 || long_b == 0)
		row_set(ROW_SLICE_HOLDS, SKIPPED, value, "the machine was too busy to keep work queued; run it again");
	else if (long_a < RATIO_MIN * RATIO_MIN * long_b)
		row_set(ROW_SLICE_HOLDS, DOES_NOT, value, "success, but the shares of the GPU do not follow them");
	else
		row_set(ROW_SLICE_HOLDS, WORKS, value, "the shares of the GPU follow them");
}

/* So long a short kernel of child a takes; < 0: it did not end. With the call: b is disabled meanwhile. */
static int64_t begin(bool with_call)
{
	static uint32_t request;
	struct child_page *page = children[CHILD_A].page;
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	struct answer answer;

	__atomic_store_n(&page->request, ++request, __ATOMIC_RELEASE);
	if (with_call && (call(ORDER_SWITCH, CHILD_B, 1, &answer) != 0 || answer.status != 0))
		return -1;
	while (__atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) != request && now_ns() < limit_ns && all_live())
		nap(LOOK_NS);
	if (with_call && (call(ORDER_SWITCH, CHILD_B, 0, &answer) != 0 || answer.status != 0))
		return -1;
	return __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) == request ? page->took_ns : -1;
}

static bool begins(enum series_id series)
{
	for (int n = 0; n < BEGINS && !stopping; n++) {
		const int64_t took_ns = begin(series == SERIES_BEGIN_CALL);

		if (took_ns < 0)
			return false;
		series_add(series, took_ns);
		nap((4 + n * 7 % 9) * NS_PER_MS); /* in another phase of the other's slice */
	}
	return true;
}

static void check_begin(void)
{
	const bool can_disable = report.rows[ROW_DISABLE].verdict == WORKS && report.rows[ROW_ENABLE].verdict == WORKS;
	const bool can_slice = report.rows[ROW_SLICE].verdict == WORKS;
	struct child *b = &children[CHILD_B];
	char value[96];
	bool ended;

	if (over[0] || (!can_slice && !can_disable))
		return;
	set_mode(&children[CHILD_A], CHILD_IDLE, 1);
	set_mode(b, CHILD_IDLE, 1);
	ended = begins(SERIES_BEGIN_ALONE);
	set_mode(b, CHILD_ENDLESS, LONG_KERNEL);
	ended = ended && progresses(b, 2) && begins(SERIES_BEGIN_DRIVER);
	if (ended && can_slice) {
		ended = set_slice(CHILD_A, WHOLE_US) && set_slice(CHILD_B, SHORT_US) && begins(SERIES_BEGIN_SLICES);
		if (ended && can_disable)
			ended = begins(SERIES_BEGIN_CALL);
		ended = own_slices() && ended;
	}
	for (int i = 0; i < CHILDREN; i++)
		set_mode(&children[i], CHILD_ENDLESS, 1);
	if (stopping || over[0])
		return;
	snprintf(value, sizeof(value), "max ms: alone %.2f, slices %.2f, call %.2f",
		 series_quantile(SERIES_BEGIN_ALONE, 1) / 1e3, series_quantile(SERIES_BEGIN_SLICES, 1) / 1e3,
		 series_quantile(SERIES_BEGIN_CALL, 1) / 1e3);
	if (ended)
		row_set(ROW_BEGIN, WORKS, value, "beside endless kernels; with the driver's slices %.2f",
			series_quantile(SERIES_BEGIN_DRIVER, 1) / 1e3);
	else
		row_set(ROW_BEGIN, DOES_NOT, value, "a short kernel beside endless ones did not end, or a call failed");
}

/* ---- notes ---- */

static bool beside(const char *name, char *path, size_t size)
{
	const ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + strlen(name) + 2 > size)
		return false;
	strcpy(slash + 1, name);
	return access(path, X_OK) == 0;
}

static bool page_says(const char *directory, const char *name, size_t offset)
{
	char path[128];
	uint32_t word = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &word, sizeof(word), (off_t)offset) != sizeof(word))
		word = 0;
	close(fd);
	return word != 0;
}

static bool wait_for_page(const char *directory, const char *name, size_t offset)
{
	const int64_t limit_ns = now_ns() + END_LIMIT_NS;

	while (!page_says(directory, name, offset)) {
		if (now_ns() > limit_ns || stopping)
			return false;
		nap(2 * NS_PER_MS);
	}
	return true;
}

static pid_t start_watchdog(const char *program, const char *directory, pid_t holder)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", holder);
	pid = fork();
	if (pid == 0) {
		const int nowhere = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		execl(program, program, "--dir", directory, "--daemon-pid", number, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void remove_directory(const char *directory)
{
	static const char *const files[] = {GPUSEG_STATUS_NAME, GPUSEG_HELD_NAME, GPUSEG_WATCHDOG_NAME};
	char path[128];

	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* The holder is the helper's child; it has ended as soon as it is no longer a living process. */
static void give_back_by_watchdog(const char *program, const char *directory)
{
	struct order order = {.code = ORDER_HOLD, .child = CHILD_A};
	struct child *a = &children[CHILD_A];
	struct answer answer;
	pid_t holder = 0, watchdog = 0;
	bool runs, ended = false, own = false;
	int64_t killed_ns, took_ns, limit_ns;
	int status = 0;
	struct stand s;
	char value[96];

	snprintf(order.directory, sizeof(order.directory), "%s", directory);
	if (helper_call(&order, &answer) == 0 && answer.status == 0)
		holder = (pid_t)answer.value;
	if (holder <= 0 || !wait_for_page(directory, GPUSEG_STATUS_NAME, offsetof(struct gpuseg_status, reserved))) {
		if (!stopping)
			row_set(ROW_WATCHDOG, DOES_NOT, "", "the process that should hold a child did not come to it");
	} else {
		s = watch_disabled(a, &children[CHILD_B], now_ns(), HOLD_NS);
		watchdog = start_watchdog(program, directory, holder);
		if (!s.stopped || !s.had_work)
			row_set(ROW_WATCHDOG, DOES_NOT, "", "the child that was to be held did not stand still");
		else if (watchdog < 0 ||
			 !wait_for_page(directory, GPUSEG_WATCHDOG_NAME, offsetof(struct gpuseg_watchdog, version)))
			row_set(ROW_WATCHDOG, DOES_NOT, "", "%s did not start to watch", program);
	}
	if (holder > 0)
		kill(holder, SIGKILL);
	if (report.rows[ROW_WATCHDOG].verdict != UNDECIDED || stopping)
		goto ends;
	killed_ns = now_ns();
	runs = progresses(a, 3);
	took_ns = now_ns() - killed_ns;
	limit_ns = now_ns() + END_LIMIT_NS;
	while (!ended && now_ns() < limit_ns) {
		ended = waitpid(watchdog, &status, WNOHANG) == watchdog;
		if (!ended)
			nap(2 * NS_PER_MS);
	}
	if (ended)
		watchdog = 0;
	if (call(ORDER_GET_SLICE, CHILD_A, 0, &answer) == 0 && answer.status == 0)
		own = answer.value == a->own_us;
	snprintf(value, sizeof(value), "runs %.1f ms after its holder was killed", (double)took_ns / NS_PER_MS);
	if (!all_live() || over[0])
		goto ends;
	if (!runs)
		row_set(ROW_WATCHDOG, DOES_NOT, "", "the child stands still after its holder was killed");
	else if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		row_set(ROW_WATCHDOG, DOES_NOT, value, "the watchdog did not end with status 0");
	else if (!own)
		row_set(ROW_WATCHDOG, DOES_NOT, value, "the time slice is not the child's own again");
	else
		row_set(ROW_WATCHDOG, WORKS, value, "its own time slice, too");
ends:
	if (watchdog > 0) {
		kill(watchdog, SIGKILL);
		waitpid(watchdog, NULL, 0);
	}
	/* whatever the watchdog did */
	call(ORDER_SWITCH, CHILD_A, 0, &answer);
	if (a->own_us)
		call(ORDER_SLICE, CHILD_A, a->own_us, &answer);
}

static void check_watchdog(void)
{
	char program[PATH_MAX], directory[64] = "/dev/shm/gpuseg-selftest-XXXXXX";

	if (over[0])
		return;
	if (report.rows[ROW_DISABLE].verdict != WORKS || report.rows[ROW_ENABLE].verdict != WORKS) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "no child can be disabled and enabled");
		return;
	}
	if (children[CHILD_A].own_us == 0) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "the driver does not tell a child's own time slice");
		return;
	}
	if (!beside("gpuseg-watchdog", program, sizeof(program))) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "%s is not installed", program);
		return;
	}
	if (!mkdtemp(directory)) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "%s: %s", directory, strerror(errno));
		return;
	}
	give_back_by_watchdog(program, directory);
	remove_directory(directory);
}

static void check_killed(void)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	const char *why = "";
	struct answer answer;
	int64_t took_ns, from_ns;
	char value[96];
	int rc;

	if (over[0])
		return;
	if (report.rows[ROW_DISABLE].verdict != WORKS) {
		row_set(ROW_KILLED, SKIPPED, "", "no child can be disabled");
		return;
	}
	rc = call(ORDER_SWITCH, CHILD_A, 1, &answer);
	if (rc != 0 || answer.status != 0) {
		if (rc != -EINTR)
			refused(ROW_KILLED, "disable", rc, answer.status);
		return;
	}
	/* a duplicate of its descriptor would keep its channels alive */
	call(ORDER_DETACH, CHILD_A, 0, &answer);
	a->attached = false;
	if (!end_child(a, &took_ns)) {
		row_set(ROW_KILLED, DOES_NOT, "", "it has not ended within %d s", (int)(END_LIMIT_NS / NS_PER_S));
		give_up("child a cannot be killed");
		return;
	}
	snprintf(value, sizeof(value), "ended in %.1f ms", (double)took_ns / NS_PER_MS);
	if (!progresses(b, PROGRESS)) {
		if (lives(b))
			row_set(ROW_KILLED, DOES_NOT, value, "the other child stands still since then");
		give_up("child b stands still");
		return;
	}
	from_ns = now_ns();
	rc = start_child(a, names[CHILD_A], 0, NULL);
	why = rc != 0 ? strerror(-rc) : wait_ready(a);
	set_mode(a, CHILD_ENDLESS, 1);
	if (why[0])
		row_set(ROW_KILLED, DOES_NOT, value, "a new child does not start: %s", why);
	else if (!progresses(a, PROGRESS))
		row_set(ROW_KILLED, DOES_NOT, value, "a new child does not count");
	else
		row_set(ROW_KILLED, WORKS, value, "the other one ran on, and a new one %.1f s later",
			(double)(now_ns() - from_ns) / NS_PER_S);
}

static void check_exec(void)
{
	char program[PATH_MAX];
	struct child c = {0};
	const char *why;
	int64_t limit_ns;
	uint64_t counted;

	if (stopping)
		return;
	if (!beside("gpuseg-exec", program, sizeof(program)) &&
	    !beside("../../../segment-api/build/gpuseg-exec", program, sizeof(program))) {
		row_set(ROW_EXEC, SKIPPED, "", "gpuseg-exec is not installed");
		return;
	}
	if (start_child(&c, "exec", EXEC_KERNELS, program) != 0) {
		row_set(ROW_EXEC, DOES_NOT, "", "it does not start");
		return;
	}
	why = wait_ready(&c);
	limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	while (!why[0] && lives(&c) && now_ns() < limit_ns && !stopping)
		nap(2 * NS_PER_MS);
	counted = count_of(&c);
	if (stopping)
		row_set(ROW_EXEC, SKIPPED, "", "stopped");
	else if (why[0])
		row_set(ROW_EXEC, DOES_NOT, "", "%s", why);
	else if (c.pid > 0 || !WIFEXITED(c.status) || WEXITSTATUS(c.status) != 0 || counted != EXEC_KERNELS)
		row_set(ROW_EXEC, DOES_NOT, "", "%llu of %d kernels, %s", (unsigned long long)counted, EXEC_KERNELS,
			c.pid > 0 ? "and it did not end" : end_of(&c));
	else
		row_set(ROW_EXEC, WORKS, "", "%d kernels, all counted; without a daemon", EXEC_KERNELS);
	end_child(&c, NULL);
}

static void check_machine(void)
{
	const struct machine *m = &report.machine;
	char value[96];

	snprintf(value, sizeof(value), "%.48s, %.24s %s", m->model[0] ? m->model : "GPU", m->driver, m->flavour);
	row_set(ROW_DRIVER, WORKS, value, "%d GPU%s; the first that CUDA sees is tested", m->gpus,
		m->gpus == 1 ? "" : "s");
	if (strcmp(m->gsp, "N/A") == 0)
		row_set(ROW_GSP, NOT_SUPPORTED, "N/A", "the driver passes channels to disable on to GSP alone");
	else if (!m->gsp[0])
		row_set(ROW_GSP, SKIPPED, "", "the driver does not say; disabling tells");
	else
		row_set(ROW_GSP, WORKS, m->gsp, "as /proc/driver/nvidia/gpus says");
}

void run_checks(void)
{
	struct order order = {.code = ORDER_GIVE_BACK};
	struct answer answer;
	int rc;

	check_machine();
	check_rights();
	check_observer();
	if (!check_children()) {
		give_up("no two children run");
	} else if ((rc = helper_start()) != 0) {
		row_set(ROW_CHANNELS, DOES_NOT, "", "helper: %s", strerror(-rc));
	} else if (check_channels()) {
		check_switches();
		check_apart();
		if (!over[0] && (!progresses(&children[CHILD_A], 3) || !progresses(&children[CHILD_B], 3)))
			give_up("a child was not enabled again");
		check_slices();
		check_calls();
		check_begin();
		check_watchdog();
		check_killed();
	} else {
		give_up("channels are not found");
	}
	helper_call(&order, &answer); /* the helper does it, too, when it ends */
	helper_stop();
	for (int i = 0; i < CHILDREN; i++)
		end_child(&children[i], NULL);
	if (report.rows[ROW_CHILDREN].verdict == WORKS)
		check_exec();
	for (int i = 0; i < ROWS; i++)
		if (report.rows[i].verdict == UNDECIDED)
			row_set(i, SKIPPED, "", "%s", over[0] ? over : "a check before it failed");
}
