/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog against a fake daemon: a process, a status page with a heartbeat, a held file and contexts that are
 * really disabled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/check.h"
#include "tests/rig.h"

#define BOUND_NS (100 * NS_PER_MS) /* no application stays frozen longer after a death */

/*
 * On a busy machine any process here may not run for a second or two. So a bound on time is tried several times and
 * must hold once. Everything else must hold each time.
 */
enum { ATTEMPTS = 10 };
/* With a period of 100 ms, a heartbeat that is no older than this must count as a sign of life. */
#define STEADY_NS (80 * NS_PER_MS)
/* A period so long that no stall counts as a hang. Only the pidfd reports a death. */
#define PATIENT "10s"

static const int64_t endless[] = {3600 * NS_PER_S};

static struct fixture {
	struct gpuseg_status *status;
	struct gpuseg_held *held;
	struct gpuseg_held_entry *entries;
	struct gpuseg_watchdog *page;
	int64_t *gap_ns; /* W the fake daemon (relaxed): the longest time that its heartbeat stayed the same */
	pid_t vgpu, daemon, watchdog;
	int control;
} f;

static void *map_file(const char *name, size_t size)
{
	const int fd = open(rig_path(name), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		abort();
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		abort();
	return map;
}

static void note_gap(int64_t since_ns)
{
	const int64_t gap_ns = now_ns() - since_ns;

	if (gap_ns > *f.gap_ns)
		__atomic_store_n(f.gap_ns, gap_ns, __ATOMIC_RELAXED);
}

/* A process that only updates a heartbeat, and records how steady it was. */
static pid_t start_daemon(void)
{
	int64_t last_ns = now_ns(), beat_ns;
	pid_t pid;

	*f.gap_ns = 0;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			beat_ns = now_ns();
			note_gap(last_ns); /* first, so that a reader of the heartbeat sees the gap that it ends */
			__atomic_store_n(&f.status->heartbeat_ns, beat_ns, __ATOMIC_RELEASE);
			note_gap(last_ns);
			last_ns = beat_ns;
			sleep_until(now_ns() + 10 * NS_PER_MS, NULL);
		}
	}
	f.status->magic = GPUSEG_STATUS_MAGIC;
	f.status->daemon_pid = pid;
	f.status->daemon_start_ticks = process_start_ticks(pid);
	f.status->heartbeat_ns = now_ns();
	__atomic_store_n(&f.status->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
	return pid;
}

/* True if the heartbeat was never so late that a watchdog of 100 ms had to assume a hang. */
static bool was_steady(void)
{
	const int64_t beat_ns = __atomic_load_n(&f.status->heartbeat_ns, __ATOMIC_ACQUIRE);

	return now_ns() - beat_ns < STEADY_NS && __atomic_load_n(f.gap_ns, __ATOMIC_RELAXED) < STEADY_NS;
}

static void set_up_with(const char *const gpu_options[])
{
	f.gap_ns = mmap(NULL, sizeof(*f.gap_ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f.gap_ns == MAP_FAILED)
		abort();
	f.vgpu = rig_vgpu(gpu_options);
	f.control = rig_connect(GPUSEG_SIM_CONTROL_NAME);
	f.status = map_file(GPUSEG_STATUS_NAME, sizeof(*f.status));
	f.held = map_file(GPUSEG_HELD_NAME, sizeof(*f.held) + GPUSEG_HELD_MAX * sizeof(*f.entries));
	f.entries = (struct gpuseg_held_entry *)(f.held + 1);
	f.held->magic = GPUSEG_HELD_MAGIC;
	f.held->entry_size = sizeof(*f.entries);
	f.held->entry_count = GPUSEG_HELD_MAX;
	__atomic_store_n(&f.held->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
	f.daemon = start_daemon();
}

static void set_up(void)
{
	set_up_with(NULL);
}

/* Lets the same test start again. Its applications end with the test. */
static void tear_down(void)
{
	const pid_t programs[] = {f.watchdog, f.daemon, f.vgpu};
	const char *const pages[] = {GPUSEG_STATUS_NAME, GPUSEG_HELD_NAME, GPUSEG_WATCHDOG_NAME};

	close(f.control);
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++)
		if (waitpid(programs[i], NULL, WNOHANG) == 0) {
			kill(programs[i], SIGKILL);
			waitpid(programs[i], NULL, 0);
		}
	for (size_t i = 0; i < ARRAY_LENGTH(pages); i++)
		unlink(rig_path(pages[i]));
}

static bool page_is_ready(void *unused)
{
	(void)unused;
	return __atomic_load_n(&f.page->version, __ATOMIC_ACQUIRE) != 0 && f.page->pid == f.watchdog;
}

static void start_watchdog(const char *period, int *output)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", f.daemon);
	const char *const arguments[] = {"--dir", rig_directory(), "--daemon-pid", pid, "--period", period, NULL};

	f.page = map_file(GPUSEG_WATCHDOG_NAME, sizeof(*f.page));
	f.watchdog = rig_start("gpuseg-watchdog", arguments, output);
	if (!rig_until(page_is_ready, NULL))
		abort();
}

static void enter(unsigned index, pid_t pid, uint64_t start_ticks, uint32_t mechanism)
{
	struct gpuseg_held_entry *e = &f.entries[index];

	e->mechanism = mechanism;
	e->pid = pid;
	e->gpu = 0;
	e->pid_start_ticks = start_ticks;
	e->since_ns = now_ns();
	e->payload_size =
		(uint32_t)snprintf((char *)e->payload, sizeof(e->payload), "%s", rig_path(GPUSEG_SIM_CONTROL_NAME)) + 1;
	__atomic_store_n(&e->state, GPUSEG_HELD_DISABLED, __ATOMIC_RELEASE);
}

/* Writes the entry, then disables the context, as an enforcer does. */
static void hold(unsigned index, pid_t pid)
{
	enter(index, pid, process_start_ticks(pid), GPUSEG_MECHANISM_SIM);
	rig_operate(f.control, GPUSEG_SIM_DISABLE, &pid, 1, 0);
}

static uint32_t state(unsigned index)
{
	return __atomic_load_n(&f.entries[index].state, __ATOMIC_ACQUIRE);
}

static bool none_disabled(void *unused)
{
	(void)unused;
	return rig_info(f.control).disabled == 0;
}

static bool has_released(void *count)
{
	return __atomic_load_n(&f.page->releases, __ATOMIC_ACQUIRE) >= *(uint64_t *)count;
}

static bool has_enabled(void *count)
{
	return __atomic_load_n(&f.page->releases, __ATOMIC_ACQUIRE) > 0 &&
	       f.page->released_contexts >= *(uint64_t *)count;
}

static bool has_beaten(void *before_ns)
{
	return __atomic_load_n(&f.page->heartbeat_ns, __ATOMIC_ACQUIRE) != *(int64_t *)before_ns;
}

static void kill_daemon(void)
{
	kill(f.daemon, SIGKILL);
}

static void stop_and_wait(pid_t pid)
{
	kill(pid, SIGSTOP);
	if (waitpid(pid, NULL, WUNTRACED) != pid)
		abort();
}

static void enable_after_a_kill(int64_t *reaction_ns)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1), b = rig_application(endless, 1);
	uint64_t once = 1;

	start_watchdog(PATIENT, NULL);
	hold(0, a.pid);
	hold(200, b.pid);
	CHECK_EQ(rig_info(f.control).disabled, 2);
	const int64_t killed_ns = now_ns();
	kill_daemon(); /* not reaped: a zombie counts as dead */
	CHECK(rig_until(has_released, &once), "nothing was released");
	*reaction_ns = f.page->last_release_ns - killed_ns;
	CHECK_EQ(rig_info(f.control).disabled, 0);
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
	CHECK_EQ(state(200), GPUSEG_HELD_FREE);
	CHECK_EQ(f.page->releases, 1);
	CHECK_EQ(f.page->released_contexts, 2);
	tear_down();
}

TEST(should_enable_what_a_killed_daemon_held_within_the_bound)
{
	int64_t reaction_ns = BOUND_NS;

	/* The documented bound, with a wide margin: it takes about 0.5 ms on an idle machine. */
	for (int attempt = 0; attempt < ATTEMPTS && reaction_ns >= BOUND_NS; attempt++)
		enable_after_a_kill(&reaction_ns);
	CHECK(reaction_ns < BOUND_NS, "enabled after %" PRId64 " ns, and never sooner", reaction_ns);
	printf("        death to enabled: %.3f ms\n", (double)reaction_ns / (double)NS_PER_MS);
}

static void enable_behind_a_hung_daemon(bool *steady)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1);
	uint64_t once = 1;

	start_watchdog("100ms", NULL);
	hold(3, a.pid);
	*steady = was_steady();
	stop_and_wait(f.daemon);
	*steady &= *f.gap_ns < STEADY_NS;
	CHECK(rig_until(has_enabled, &once), "a hung daemon froze its application");
	if (!*steady) { /* the watchdog may have seen a hang before */
		tear_down();
		return;
	}
	CHECK_EQ(rig_info(f.control).disabled, 0);
	/* Not before the heartbeat is older than nine tenths of the period: a slow daemon is not hung. */
	CHECK(f.page->last_release_ns - f.status->heartbeat_ns > 90 * NS_PER_MS, "released a daemon %" PRId64 " ns old",
	      f.page->last_release_ns - f.status->heartbeat_ns);
	CHECK_EQ(state(3), GPUSEG_HELD_DISABLED);
	CHECK_EQ(kill(f.watchdog, 0), 0);
	const int64_t first_ns = f.page->first_release_ns;
	CHECK(first_ns - f.status->heartbeat_ns > 90 * NS_PER_MS && first_ns <= f.page->last_release_ns,
	      "first release %" PRId64 " ns after the heartbeat", first_ns - f.status->heartbeat_ns);

	/* While it hangs, a context that is disabled again is enabled again. */
	rig_operate(f.control, GPUSEG_SIM_DISABLE, &a.pid, 1, 0);
	CHECK(rig_until(none_disabled, NULL), "enabled only once");
	uint64_t again = f.page->released_contexts + 1;
	CHECK(rig_until(has_enabled, &again), "enabled no more");
	CHECK_EQ(f.page->first_release_ns, first_ns);
	CHECK(f.page->last_release_ns > first_ns, "last release at the time of the first");

	/* It resumes, repairs what the watchdog changed, and stops cleanly. */
	kill(f.daemon, SIGCONT);
	__atomic_store_n(&f.entries[3].state, GPUSEG_HELD_FREE, __ATOMIC_RELEASE);
	__atomic_store_n(&f.status->stopping, 1, __ATOMIC_RELEASE);
	CHECK_EQ(rig_wait(f.watchdog), 0);
}

/* Repeats the test until the heartbeat was steady in one attempt. Skipped if it never was. */
static void with_a_steady_daemon(void (*test)(bool *steady))
{
	bool steady = false;

	for (int attempt = 0; attempt < ATTEMPTS && !steady; attempt++)
		test(&steady);
	if (steady)
		return;
	SKIP("the machine is too busy for a steady heartbeat");
}

TEST(should_enable_what_a_hung_daemon_holds_and_leave_the_entries)
{
	with_a_steady_daemon(enable_behind_a_hung_daemon);
}

/* The device enables it after the watchdog has stopped to wait: the enforcer must learn of it all the same. */
TEST(should_count_a_release_that_failed_as_one_that_may_have_happened)
{
	static const char *const slow[] = {"--enable-cost", "400ms", NULL};

	set_up_with(slow);
	const struct rig_application a = rig_application(endless, 1);
	uint64_t once = 1;

	start_watchdog("100ms", NULL);
	hold(0, a.pid);
	stop_and_wait(f.daemon);
	CHECK(rig_until(none_disabled, NULL), "a hung daemon froze its application");
	CHECK(rig_until(has_released, &once), "the application is enabled, and no enforcer learns of it");
	CHECK_EQ(f.page->released_contexts, 0);
	CHECK_EQ(state(0), GPUSEG_HELD_DISABLED);
	CHECK(f.page->first_release_ns > 0 && f.page->first_release_ns <= f.page->last_release_ns, "%" PRId64,
	      f.page->first_release_ns);
}

static void release_late(int64_t period_ns, int64_t *age_ns)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1);
	uint64_t once = 1;

	stop_and_wait(f.daemon);
	/* leaves almost a second for delays of a busy machine */
	__atomic_store_n(&f.status->heartbeat_ns, now_ns() - period_ns / 10 * 9, __ATOMIC_RELEASE);
	hold(0, a.pid);
	start_watchdog("10s", NULL);
	CHECK(rig_until(has_released, &once), "nothing was released");
	*age_ns = f.page->last_release_ns - f.status->heartbeat_ns;
	CHECK_EQ(rig_info(f.control).disabled, 0);
	tear_down();
}

/* The period is the bound, so the release, which begins at nine tenths, must be complete by then. */
TEST(should_release_before_the_period_is_over)
{
	const int64_t period_ns = 10 * NS_PER_S;
	int64_t age_ns = period_ns;

	for (int attempt = 0; attempt < ATTEMPTS && age_ns >= period_ns; attempt++)
		release_late(period_ns, &age_ns);
	CHECK(age_ns < period_ns, "released %" PRId64 " ns after the heartbeat, and never sooner", age_ns);
}

static void leave_alone(bool *steady)
{
	uint64_t releases;

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog("100ms", NULL);
	hold(0, a.pid);
	sleep_until(now_ns() + 400 * NS_PER_MS, NULL); /* four periods with a heartbeat */
	releases = __atomic_load_n(&f.page->releases, __ATOMIC_ACQUIRE);
	const uint32_t disabled = rig_info(f.control).disabled;
	*steady = was_steady(); /* after the checks, so that it covers them */
	if (*steady) {
		CHECK_EQ(releases, 0);
		CHECK_EQ(disabled, 1);
	}
	CHECK_EQ(state(0), GPUSEG_HELD_DISABLED);
	CHECK(now_ns() - __atomic_load_n(&f.page->heartbeat_ns, __ATOMIC_ACQUIRE) < 20 * NS_PER_S, "no heartbeat");
	CHECK_EQ(f.page->period_ms, 100);
	tear_down();
}

TEST(should_leave_a_living_daemon_alone)
{
	with_a_steady_daemon(leave_alone);
}

TEST(should_not_touch_a_process_that_got_the_pid_of_a_dead_one)
{
	char text[2048];
	int output;

	set_up();
	const struct rig_application reused = rig_application(endless, 1), held = rig_application(endless, 1);

	start_watchdog(PATIENT, &output);
	hold(0, held.pid);
	enter(1, reused.pid, process_start_ticks(reused.pid) - 1, GPUSEG_MECHANISM_SIM);
	rig_operate(f.control, GPUSEG_SIM_DISABLE, &reused.pid, 1, 0);
	kill_daemon();
	rig_read_all(output, text, sizeof(text));
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(rig_info(f.control).disabled, 1); /* that of another process */
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
	CHECK_EQ(state(1), GPUSEG_HELD_FREE);
	CHECK(strstr(text, "another process"), "it said: %s", text);
}

TEST(should_keep_the_entry_of_an_unknown_mechanism_and_say_so)
{
	char text[2048];
	int output;

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog(PATIENT, &output);
	hold(0, a.pid);
	enter(1, getpid(), process_start_ticks(getpid()), 77);
	kill_daemon();
	rig_read_all(output, text, sizeof(text));
	CHECK_EQ(rig_wait(f.watchdog), 1);
	CHECK_EQ(rig_info(f.control).disabled, 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
	CHECK_EQ(state(1), GPUSEG_HELD_DISABLED);
	CHECK(strstr(text, "mechanism 77"), "it said: %s", text);
}

TEST(should_count_a_vanished_virtual_gpu_as_nothing_left_to_enable)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog(PATIENT, NULL);
	hold(0, a.pid);
	kill(f.vgpu, SIGKILL);
	rig_wait(f.vgpu);
	kill_daemon();
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
}

static void retry(bool *in_time)
{
	int64_t killed_ns;
	int status;

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog("100ms", NULL);
	hold(0, a.pid);
	stop_and_wait(f.vgpu);
	killed_ns = now_ns();
	kill_daemon();
	sleep_until(now_ns() + 150 * NS_PER_MS, NULL); /* beyond the limit of one attempt */
	CHECK_EQ(state(0), GPUSEG_HELD_DISABLED);
	kill(f.vgpu, SIGCONT);
	status = rig_wait(f.watchdog);
	*in_time = status == 0;
	if (*in_time) {
		CHECK_EQ(rig_info(f.control).disabled, 0);
		CHECK_EQ(state(0), GPUSEG_HELD_FREE);
	} else { /* the virtual GPU did not run until the watchdog gave up */
		CHECK_EQ(status, 1);
		CHECK(now_ns() - killed_ns > 2 * NS_PER_S, "it gave up after %" PRId64 " ns", now_ns() - killed_ns);
		CHECK_EQ(state(0), GPUSEG_HELD_DISABLED);
	}
	tear_down();
}

TEST(should_retry_while_the_virtual_gpu_does_not_answer)
{
	bool in_time = false;

	for (int attempt = 0; attempt < ATTEMPTS && !in_time; attempt++)
		retry(&in_time);
	CHECK(in_time, "it gave up each time");
}

TEST(should_leave_the_entries_to_a_daemon_that_took_over)
{
	pid_t old;

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog(PATIENT, NULL);
	old = f.daemon;
	f.daemon = start_daemon();
	hold(0, a.pid); /* an entry of the new daemon */
	kill(old, SIGKILL);
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(rig_info(f.control).disabled, 1);
	CHECK_EQ(state(0), GPUSEG_HELD_DISABLED);
}

TEST(should_run_in_a_session_of_its_own_and_stay_while_something_is_held)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1);

	start_watchdog(PATIENT, NULL);
	CHECK_EQ(getsid(f.watchdog), f.watchdog);
	hold(0, a.pid);
	for (int look = 0; look < 2; look++) { /* each signal causes a check, and after each it is asked to stop */
		int64_t beat_ns = __atomic_load_n(&f.page->heartbeat_ns, __ATOMIC_ACQUIRE);

		kill(f.watchdog, SIGTERM);
		CHECK(rig_until(has_beaten, &beat_ns), "it looks no more");
	}
	CHECK(waitpid(f.watchdog, NULL, WNOHANG) == 0, "it left while a context was held");
	kill_daemon();
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(rig_info(f.control).disabled, 0);
}

TEST(should_stay_while_a_process_has_another_time_slice)
{
	set_up();
	enter(0, f.daemon, process_start_ticks(f.daemon) + 1, GPUSEG_MECHANISM_NVIDIA); /* of a dead process */
	__atomic_store_n(&f.entries[0].state, GPUSEG_HELD_TIMESLICE, __ATOMIC_RELEASE);
	start_watchdog(PATIENT, NULL);
	for (int look = 0; look < 2; look++) {
		int64_t beat_ns = __atomic_load_n(&f.page->heartbeat_ns, __ATOMIC_ACQUIRE);

		kill(f.watchdog, SIGTERM);
		CHECK(rig_until(has_beaten, &beat_ns), "it looks no more");
	}
	CHECK(waitpid(f.watchdog, NULL, WNOHANG) == 0, "it left while a time slice was noted");
	kill_daemon();
	CHECK_EQ(rig_wait(f.watchdog), 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
}

TEST(should_stop_at_once_when_asked_and_nothing_is_held)
{
	set_up();
	start_watchdog(PATIENT, NULL);
	kill(f.watchdog, SIGTERM);
	CHECK_EQ(rig_wait(f.watchdog), 0);
}

TEST(should_release_for_a_daemon_that_was_dead_before_it_came)
{
	set_up();
	const struct rig_application a = rig_application(endless, 1);
	char pid[16];

	hold(0, a.pid);
	kill_daemon();
	waitpid(f.daemon, NULL, 0);
	snprintf(pid, sizeof(pid), "%d", f.daemon);
	const char *const arguments[] = {"--dir", rig_directory(), "--daemon-pid", pid, "--period", PATIENT, NULL};

	CHECK_EQ(rig_run("gpuseg-watchdog", arguments, NULL, 0), 0);
	CHECK_EQ(rig_info(f.control).disabled, 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);
}

/*
 * It waits for a second for the answer of the virtual GPU. If that does not run for longer, it reports this, keeps the
 * entry and is run again.
 */
static int release(const char *force, char *text, size_t size)
{
	const char *const arguments[] = {"--release", "--dir", rig_directory(), force, NULL};
	int status = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		status = rig_run("gpuseg-watchdog", arguments, text, size);
		if (status == 0 || !strstr(text, "cannot enable"))
			break;
	}
	return status;
}

TEST(should_release_on_command_but_not_behind_a_living_daemon)
{
	char text[2048];

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	hold(0, a.pid);
	CHECK_EQ(release(NULL, text, sizeof(text)), 1);
	CHECK(strstr(text, "lives and owns") && strstr(text, "--force"), "it said: %s", text);
	CHECK_EQ(rig_info(f.control).disabled, 1);

	CHECK_EQ(release("--force", text, sizeof(text)), 0);
	CHECK(strstr(text, "1 enabled"), "it said: %s", text);
	CHECK_EQ(rig_info(f.control).disabled, 0);
	CHECK_EQ(state(0), GPUSEG_HELD_DISABLED); /* the live daemon clears it */

	rig_operate(f.control, GPUSEG_SIM_DISABLE, &a.pid, 1, 0);
	kill_daemon();
	waitpid(f.daemon, NULL, 0);
	CHECK_EQ(release(NULL, text, sizeof(text)), 0);
	CHECK(strstr(text, "(sim): enabled") && strstr(text, "1 enabled, 0 gone, 0 not touched, 0 kept"), "it said: %s",
	      text);
	CHECK_EQ(rig_info(f.control).disabled, 0);
	CHECK_EQ(state(0), GPUSEG_HELD_FREE);

	CHECK_EQ(release(NULL, text, sizeof(text)), 0);
	CHECK(strstr(text, "0 enabled, 0 gone, 0 not touched, 0 kept"), "it said: %s", text);
}

/* What a living daemon counts as disabled is not any more. */
TEST(should_tell_a_living_daemon_of_a_release_by_force)
{
	char text[2048];

	set_up();
	const struct rig_application a = rig_application(endless, 1);

	hold(0, a.pid);
	CHECK_EQ(release("--force", text, sizeof(text)), 0);
	CHECK(strstr(text, "does not learn of this"), "without a watchdog it said: %s", text);

	start_watchdog(PATIENT, NULL);
	CHECK_EQ(f.page->releases, 0);
	CHECK_EQ(release("--force", text, sizeof(text)), 0);
	CHECK(!strstr(text, "does not learn of this"), "it said: %s", text);
	CHECK_EQ(f.page->releases, 1);
	CHECK(f.page->first_release_ns > 0, "since when is not known");
}

TEST(should_release_nothing_where_there_is_nothing_or_nonsense)
{
	char text[2048];
	int fd;

	CHECK_EQ(release(NULL, text, sizeof(text)), 0);
	CHECK(strstr(text, "nothing is held"), "it said: %s", text);
	fd = open(rig_path(GPUSEG_HELD_NAME), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	memset(text, 'x', sizeof(text));
	CHECK(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text), "held file: %s", strerror(errno));
	close(fd);
	CHECK_EQ(release(NULL, text, sizeof(text)), 1);
	CHECK(strstr(text, "not a held file"), "it said: %s", text);
}

TEST(should_refuse_bad_options_with_a_remedy)
{
	static const struct {
		const char *arguments[6];
		const char *says;
	} cases[] = {
		{{"--daemon-pid", "1", NULL}, "--dir is missing"},
		{{"--dir", "/tmp", NULL}, "--daemon-pid PID or --release"},
		{{"--dir", "/tmp", "--daemon-pid", "0", NULL}, "integer from 1"},
		{{"--dir", "/tmp", "--daemon-pid", "1", "--force", NULL}, "--force"},
		{{"--dir", "/tmp", "--period", "100", NULL}, "has no unit"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char text[1024];

		CHECK_EQ(rig_run("gpuseg-watchdog", cases[i].arguments, text, sizeof(text)), 2);
		CHECK(strstr(text, cases[i].says), "case %zu says: %s", i, text);
	}
}

static const struct check_case cases[] = {
	CASE(should_refuse_bad_options_with_a_remedy),
	CASE(should_release_nothing_where_there_is_nothing_or_nonsense),
	CASE(should_release_on_command_but_not_behind_a_living_daemon),
	CASE(should_tell_a_living_daemon_of_a_release_by_force),
	CASE(should_enable_what_a_killed_daemon_held_within_the_bound),
	CASE(should_enable_what_a_hung_daemon_holds_and_leave_the_entries),
	CASE(should_count_a_release_that_failed_as_one_that_may_have_happened),
	CASE(should_release_before_the_period_is_over),
	CASE(should_leave_a_living_daemon_alone),
	CASE(should_not_touch_a_process_that_got_the_pid_of_a_dead_one),
	CASE(should_keep_the_entry_of_an_unknown_mechanism_and_say_so),
	CASE(should_count_a_vanished_virtual_gpu_as_nothing_left_to_enable),
	CASE(should_retry_while_the_virtual_gpu_does_not_answer),
	CASE(should_leave_the_entries_to_a_daemon_that_took_over),
	CASE(should_run_in_a_session_of_its_own_and_stay_while_something_is_held),
	CASE(should_stay_while_a_process_has_another_time_slice),
	CASE(should_stop_at_once_when_asked_and_nothing_is_held),
	CASE(should_release_for_a_daemon_that_was_dead_before_it_came),
};
CHECK_MAIN_APART(cases)
