/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>

#define LONG_HOLD_NS (400 * NS_PER_MS) /* once */
#define ROUNDS 10
#define SLOW_NS (20 * NS_PER_MS) /* and ten times a query */
#define EXEC_KERNELS 400

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
	if (children[CHILD_A].page->gpu[0])
		snprintf(report.machine.model, sizeof(report.machine.model), "%s", children[CHILD_A].page->gpu);
	check_machine(); /* as CUDA names the GPU */
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
			if (!all_live()) /* then that is the reason */
				return false;
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
		if (all_live()) /* else that is the reason */
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
		row_set(ROW_KILLED, DOES_NOT, value, "the other child %s",
			lives(b) ? "stands still since then" : "ended, too");
		give_up("child b does not run on");
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
