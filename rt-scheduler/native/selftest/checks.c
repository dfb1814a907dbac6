/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"
#include "driver.h"
#include "spin.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_HOLD_NS (400 * NS_PER_MS) /* once */
#define ROUNDS 10
#define SLOW_NS (20 * NS_PER_MS) /* and ten times a query */
#define EXEC_KERNELS 400
#define LONG_SCALE 80 /* short kernels in one that is interrupted */

static void check_machine(void)
{
	const struct machine *m = &report.machine;
	char value[96];

	snprintf(value, sizeof(value), "%.48s, %.24s %s", m->model[0] ? m->model : "GPU", m->driver, m->flavour);
	row_set(ROW_DRIVER, WORKS, value, "%d GPU%s; the first that %s sees is tested", m->gpus,
		m->gpus == 1 ? "" : "s", driver->hip ? "HIP" : "CUDA");
	if (!driver->gsp)
		return;
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
	check_machine(); /* as the runtime names the GPU */
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

static void say_interface(const struct answer *answer)
{
	if (!driver->interface)
		return;
	if (answer->interface[0])
		row_set(ROW_INTERFACE, WORKS, answer->interface, "%s", answer->missing);
	else
		row_set(ROW_INTERFACE, DOES_NOT, "", "%s", answer->missing);
}

static void say_listed(const struct answer *answer)
{
	char value[96];

	if (!driver->lists)
		return;
	snprintf(value, sizeof(value), "%d of child b", answer->listed);
	if (answer->listed > 0)
		row_set(ROW_LISTED, WORKS, value, "so a daemon finds processes");
	else
		row_set(ROW_LISTED, DOES_NOT, "", "%s: a daemon finds no process that is not registered",
			answer->listed < 0 ? strerror(-answer->listed) : "the list does not have it");
}

static bool check_channels(void)
{
	char value[96];
	struct answer answer;
	int64_t took_ns = 0;
	int rc;

	for (int i = 0; i < CHILDREN; i++) {
		const bool attached = attach(i, &answer, &rc);

		if (rc == 0)
			say_interface(&answer);
		if (!attached) {
			if (!all_live()) /* then that is the reason */
				return false;
			if (rc == 0 && (answer.status == -EPERM || answer.status == -EACCES))
				row_set(ROW_CHANNELS, DOES_NOT, "",
					"its descriptors cannot be duplicated: %s; root or CAP_SYS_PTRACE may",
					strerror((int)-answer.status));
			else if (rc == 0 && answer.status == -ENOENT)
				row_set(ROW_CHANNELS, DOES_NOT, "", "child %s: %s", names[i], answer.how);
			else
				refused(ROW_CHANNELS, "attach", rc, answer.status);
			return false;
		}
		took_ns += answer.took_ns;
	}
	say_listed(&answer);
	snprintf(value, sizeof(value), "%s, %.0f ms", answer.found, (double)took_ns / CHILDREN / NS_PER_MS);
	row_set(ROW_CHANNELS, WORKS, value, "%s", answer.how);
	return true;
}

/* Of the kernels of the children: how many were compared, and whether one was wrong. */
static unsigned compared;
static bool wrong;

/* All that the child has run since its last kernel of another length were `scale` short ones long. */
static void compare_result(const struct child *c, uint32_t scale)
{
	const uint32_t expected = spin_result((uint64_t)c->page->iterations * scale);

	compared++;
	wrong = wrong || (uint32_t)__atomic_load_n(&c->page->result, __ATOMIC_ACQUIRE) != expected;
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
				refused(ROW_DISABLE, answer.preempt_failed ? "preempt" : "disable", rc, answer.status);
			call(ORDER_SWITCH, i, 0, &enabled); /* it may have had an effect */
			return;
		}
		series_add(SERIES_DISABLE, answer.took_ns);
		if (answer.preempt_ns > 0)
			series_add(SERIES_PREEMPT, answer.preempt_ns);
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
		if (driver->long_us && call(ORDER_GET_SLICE, i, 0, &answer) == 0)
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
		compare_result(c, 1);
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

static bool has_drained(struct child *c)
{
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;

	set_mode(c, CHILD_IDLE, 1);
	while (has_work(c) && now_ns() < limit_ns && all_live())
		nap(LOOK_NS);
	return !has_work(c);
}

/*
 * Child a is disabled in the middle of a long kernel. While the other child runs for twice as long, a kernel that still
 * runs ends, and is counted. What was counted before the call returned counts, too: a driver may wait for that end.
 * False: nobody knows. After a late call the kernel may have ended before.
 */
static bool disable_in_kernel(bool *interrupted, int64_t *stood_ns)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	const uint64_t last = count_of(a);
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	uint64_t before, others;
	struct answer answer;
	int64_t began_ns, from_ns;
	bool known, late;

	do {
		began_ns = now_ns();
		if (began_ns > limit_ns || !all_live())
			return false;
		nap(LOOK_NS);
	} while (count_of(a) == last);
	nap(LONG_SCALE / 8 * a->page->kernel_ns);
	before = count_of(a);
	from_ns = now_ns();
	late = from_ns - began_ns > LONG_SCALE / 2 * a->page->kernel_ns || before != last + 1;
	known = call(ORDER_SWITCH, CHILD_A, 1, &answer) == 0 && answer.status == 0;
	others = count_of(b);
	known = known && progresses(b, 2 * LONG_SCALE) && count_of(b) > others && has_work(a);
	*stood_ns = now_ns() - from_ns;
	*interrupted = count_of(a) == before;
	known = call(ORDER_SWITCH, CHILD_A, 0, &answer) == 0 && answer.status == 0 && known;
	if (!progresses(a, 1))
		return false;
	compare_result(a, LONG_SCALE);
	return known && (*interrupted || !late);
}

static void say_results(void)
{
	char value[96];

	snprintf(value, sizeof(value), "of %u compared, each after a disable", compared);
	if (wrong)
		row_set(ROW_RESULTS, DOES_NOT, value, "a kernel that was interrupted computed something else");
	else
		row_set(ROW_RESULTS, WORKS, value, "as the processor computes them");
}

static void check_interrupt(void)
{
	struct child *a = &children[CHILD_A];
	int64_t stood_ns = 0;
	unsigned ended = 0;
	bool interrupted = false, drained;
	char value[96];

	if (over[0] || report.rows[ROW_ENABLE].verdict != WORKS || report.rows[ROW_OTHERS].verdict != WORKS)
		return;
	if (series_quantile(SERIES_DISABLE, 0.5) > SLOW_NS / 1e3) {
		row_set(ROW_INTERRUPT, SKIPPED, "", "the call takes so long that the kernel ends before");
		say_results();
		return;
	}
	drained = has_drained(a); /* else its next kernels are short ones */
	set_mode(a, CHILD_ENDLESS, LONG_SCALE);
	/* a kernel may have ended just then by itself, and a busy machine may have left a child without work */
	for (int round = 0; round < ROUNDS && drained && !interrupted && ended < 3 && !over[0] && all_live(); round++) {
		const bool known = disable_in_kernel(&interrupted, &stood_ns);

		ended += known && !interrupted;
		interrupted = known && interrupted;
	}
	has_drained(a);
	set_mode(a, CHILD_ENDLESS, 1);
	if (!all_live() || over[0])
		return;
	snprintf(value, sizeof(value), "of %.0f ms, disabled for %.0f ms",
		 (double)(LONG_SCALE * a->page->kernel_ns) / NS_PER_MS, (double)stood_ns / NS_PER_MS);
	if (interrupted)
		row_set(ROW_INTERRUPT, WORKS, value, "it ended when it was enabled");
	else if (ended < 3)
		row_set(ROW_INTERRUPT, SKIPPED, "", "a long kernel could not be disabled, or did not go on");
	else
		row_set(ROW_INTERRUPT, DOES_NOT, value, "it ended while it was disabled, %u times: level 2", ended);
	say_results();
}

/* What two daemons, or one that starts again, may do. */
static void check_counted(void)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	struct answer answer;
	bool runs, done = true;

	if (over[0] || !driver->counts || report.rows[ROW_ENABLE].verdict != WORKS)
		return;
	for (int i = 0; i < 3; i++) /* two disables, one enable */
		done = done && call(ORDER_SWITCH, CHILD_A, i < 2, &answer) == 0 && answer.status == 0;
	runs = done && resumes(a, b) != STANDS;
	call(ORDER_SWITCH, CHILD_A, 0, &answer);
	if (!all_live() || over[0])
		return;
	if (!done)
		row_set(ROW_COUNTED, DOES_NOT, "", "a call failed");
	else if (runs)
		row_set(ROW_COUNTED, WORKS, "not counted", "so one that starts again may disable again");
	else
		row_set(ROW_COUNTED, DOES_NOT, "counted", "mechanism %s enables once", driver->mechanism);
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
	if (driver->long_us)
		snprintf(value, sizeof(value), "disable %.2f, enable %.2f, slice %.2f ms", disable_us / 1e3,
			 enable_us / 1e3, slice_us / 1e3);
	else
		snprintf(value, sizeof(value), "disable %.2f, enable %.2f ms", disable_us / 1e3, enable_us / 1e3);
	if (disable_us > slow_us || enable_us > slow_us || slice_us > slow_us)
		row_set(ROW_CALLS, DOES_NOT, value, "p50; no begin can wait for such a call; a query takes %.2f",
			series_quantile(SERIES_QUERY, 0.5) / 1e3);
	else if (driver->long_us)
		row_set(ROW_CALLS, WORKS, value, "p50; a query takes %.2f", series_quantile(SERIES_QUERY, 0.5) / 1e3);
	else
		row_set(ROW_CALLS, WORKS, value, "p50");
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
	if (!beside("gpuseg-exec", X_OK, program, sizeof(program)) &&
	    !beside("../../../segment-api/build/gpuseg-exec", X_OK, program, sizeof(program))) {
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
		check_interrupt();
		check_counted();
		if (!over[0] && all_live() &&
		    (!progresses(&children[CHILD_A], 3) || !progresses(&children[CHILD_B], 3)))
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
	if (report.rows[ROW_CHILDREN].verdict == WORKS && !driver->hip)
		check_exec();
	for (int i = 0; i < ROWS; i++)
		if (report.rows[i].verdict == UNDECIDED)
			row_set(i, SKIPPED, "", "%s", over[0] ? over : "a check before it failed");
}
