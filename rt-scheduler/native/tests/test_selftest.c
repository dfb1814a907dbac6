/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-selftest on the stand-in of the driver, with one planted fault each. Every fault is found, and what is not the
 * test's own - a bystander - runs on with its own time slice.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "selftest/selftest.h"
#include "tests/check.h"
#include "tests/selftest_rig.h"

#define BYSTANDER 0xc1d00002u /* its client: it is the first program that starts */

enum { NO_VERSION = AROUND_OWN, NO_GPUS, NO_GSP };

static const struct plant right[] = {
	{NULL, NULL, AS_EVER, 0, "preempts", "slice_holds", "works"},
	{NULL, NULL, NO_WATCHDOG, 0, "preempts", "watchdog", "skipped"},
	{NULL, "register:fail:801", AS_EVER, 0, "preempts", "disable", "works"},
};

static const struct plant disables[] = {
	{"disable:refuse:0x56", NULL, AS_EVER, 1, "slices", "disable", "not supported"},
	{"disable:refuse:0x1b", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:refuse:0x1b:3", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:error:25", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:error:1:5", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:nothing", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:nothing:0:5", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:most", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:most:0:7", NULL, AS_EVER, 1, "slices", "disable", "does not"},
};

static const struct plant late_disables[] = {
	{"disable:late:200", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:late:60", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:undone:100", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:undone:30", NULL, AS_EVER, 1, "slices", "disable", "does not"},
	{"disable:slow:300", NULL, AS_EVER, 1, "drains", "calls", "does not"},
	{"disable:hang", NULL, AS_EVER, 1, "launch", "disable", "does not"},
	{"disable:hang:0:4", NULL, AS_EVER, 1, "launch", "disable", "does not"},
	{"disable:die", NULL, AS_EVER, 1, "launch", "disable", "does not"},
	{"disable:die:0:6", NULL, AS_EVER, 1, "launch", "disable", "does not"},
};

static const struct plant wide[] = {
	{"disable:all;enable:all", NULL, AS_EVER, 1, "", "others", "does not"},
	{"disable:all:0:4;enable:all:0:4", NULL, AS_EVER, 1, "", "others", "does not"},
	{"enable:all", NULL, AS_EVER, 1, "", "others", "does not"},
	{"disable:twice", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"disable:twice:0:8", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"slice:all", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"gpu-id:refuse:0x56", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{"parent:refuse:0x57", NULL, AS_EVER, 1, "launch", "channels", "does not"},
};

static const struct plant enables[] = {
	{"enable:refuse:0x56", NULL, AS_EVER, 1, "launch", "enable", "not supported"},
	{"enable:refuse:0x1b", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:refuse:0x1b:4", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:error:5", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:nothing", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:nothing:0:5", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:most", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:late:300", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:slow:300", NULL, AS_EVER, 1, "preempts", "calls", "does not"},
	{"enable:hang", NULL, AS_EVER, 1, "launch", "enable", "does not"},
	{"enable:die", NULL, AS_EVER, 1, "launch", "enable", "does not"},
};

static const struct plant slices[] = {
	{"slice:refuse:0x56", NULL, AS_EVER, 1, "preempts", "slice", "not supported"},
	{"slice:refuse:0x1b", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:refuse:0x1b:1", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:error:22", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:nothing", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:nothing:0:2", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:kept", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:fixed:1000", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:undone:20", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:late:20000", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:slow:300", NULL, AS_EVER, 1, "preempts", "calls", "does not"},
	{"slice:hang", NULL, AS_EVER, 1, "", "slice", "does not"},
};

static const struct plant queries[] = {
	{"get-slice:refuse:0x56", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"get-slice:error:22", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"get-slice:hang", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{"class:refuse:0x56", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{"class:error:22", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{"class:refuse:0x57:9230", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{"class:hang", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{NULL, NULL, IDLE_WATCHDOG, 1, "preempts", "watchdog", "does not"},
	{NULL, NULL, DEAF_WATCHDOG, 1, "preempts", "watchdog", "does not"},
};

static const struct plant programs[] = {
	{NULL, "init:fail:100", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "init:hang", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "count:fail:100", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "context:fail:2", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "context:fail:46:b", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "module:fail:222", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:fail:700", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:exit:0:b", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:exit:2000:a", AS_EVER, 1, "nothing", "children", "does not"},
	{NULL, "launch:exit:1000:b", AS_EVER, 1, "nothing", "children", "does not"},
	{NULL, "launch:exit:1500:b", AS_EVER, 1, "nothing", "children", "does not"},
	{NULL, "launch:stuck:0", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:none:0:b", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, NULL, NO_RUNTIME, 3, "nothing", "children", "does not"},
	{NULL, NULL, NO_VERSION, 3, "", "", ""},
	{NULL, NULL, NO_GPUS, 3, "", "", ""},
	{"disable:refuse:0x56", NULL, NO_GSP, 1, "slices", "gsp", "not supported"},
};

/* ---- one run, in a process of its own ---- */

static struct rig {
	pid_t standin, bystander, selftest;
	volatile uint64_t *bystander_kernels; /* gpuseg-rm-app's page */
} rig;

static void set_up(const struct plant *p)
{
	static char standin[PATH_MAX], app[PATH_MAX], preload[PATH_MAX], libraries[PATH_MAX];

	make_directory();
	snprintf(standin, sizeof(standin), "%s/gpuseg-rm-standin", build);
	snprintf(app, sizeof(app), "%s/gpuseg-rm-app", build);
	snprintf(preload, sizeof(preload), "%s/libgpuseg-rm-fake.so", build);
	snprintf(libraries, sizeof(libraries), "%s/standin", build);
	mkdir(path_of("proc"), 0755);
	mkdir(path_of("proc/gpus"), 0755);
	if (p->around != NO_VERSION)
		write_file("proc/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  x\n",
			   0644);
	if (p->around != NO_GPUS) {
		mkdir(path_of("proc/gpus/0000:06:00.0"), 0755);
		write_file("proc/gpus/0000:06:00.0/information",
			   p->around == NO_GSP
				   ? "Model: \t\t NVIDIA stand-in\nGPU UUID: \t GPU-secret\nGPU Firmware: \t N/A\n"
				   : "Model: \t\t NVIDIA stand-in\nGPU UUID: \t GPU-secret\nGPU Firmware: \t "
				     "580.159.04\n",
			   0644);
	}
	setenv("GPUSEG_RM_LOG", path_of("log"), 1);
	setenv("GPUSEG_RM_STANDIN", path_of("socket"), 1);
	setenv("GPUSEG_RM_PROC", path_of("proc"), 1);
	setenv("GPUSEG_DIR", directory, 1);
	setenv("GPUSEG_SELFTEST_STATE", path_of("state/gpuseg"), 1);
	/* a sanitizer's library does not come first in a program into which the stand-in's is preloaded */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
	if (p->driver)
		setenv("GPUSEG_RM_FAULTS", p->driver, 1);
	rig.standin = start(standin, (const char *const[]){standin, path_of("socket"), NULL}, "standin");
	wait_for_text("standin", "ready");
	setenv("LD_PRELOAD", preload, 1);
	rig.bystander = start(app, (const char *const[]){app, path_of("page"), "20", NULL}, "app");
	rig.bystander_kernels = (volatile uint64_t *)map_file("page", 4096) + 2;
	while (*rig.bystander_kernels == 0)
		sleep_until(now_ns() + NS_PER_MS, NULL);
	if (p->runtime)
		setenv("GPUSEG_CUDA_FAULT", p->runtime, 1);
	if (p->around != NO_RUNTIME)
		setenv("LD_LIBRARY_PATH", libraries, 1);
}

/* The bystander runs; then all ends, and the driver tells in which state it found each context. */
static void tear_down(bool driver_lives, unsigned disabled_max, bool slices_stay)
{
	static char log[TEXT_MAX];
	const uint64_t kernels = *rig.bystander_kernels;
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	unsigned ended = 0, disabled = 0;

	if (driver_lives) {
		while (*rig.bystander_kernels < kernels + 3) {
			CHECK(now_ns() < limit_ns, "%s: the bystander stands still", directory);
			sleep_until(now_ns() + 2 * NS_PER_MS, NULL);
		}
	}
	kill(rig.bystander, SIGKILL);
	wait_for(rig.bystander);
	if (driver_lives) {
		wait_for_text("log", "ended c1d00002"); /* the bystander's was made first */
		kill(rig.standin, SIGTERM);
		CHECK_EQ(wait_for(rig.standin), 0);
	}
	read_file("log", log);
	for (const char *line = strstr(log, "ended "); line; line = strstr(line + 1, "\nended ")) {
		unsigned client, group, channels;
		unsigned long long us;

		CHECK(sscanf(line[0] == '\n' ? line + 1 : line, "ended %x %x %u %llu", &client, &group, &channels,
			     &us) == 4);
		ended++;
		disabled += channels > 0;
		CHECK(us == 2048 || channels > 0 || (slices_stay && client != BYSTANDER),
		      "%s: a context ended with a slice of %llu us: %s", directory, us, log);
		CHECK(client != BYSTANDER || channels == 0, "%s: the bystander ended disabled", directory);
	}
	CHECK(!driver_lives || ended > 0, "%s: no context ended: %s", directory, log);
	CHECK(disabled <= disabled_max, "%s: %u contexts ended disabled: %s", directory, disabled, log);
}

/* A driver that refuses or ignores what is asked for last cannot be made to give back. */
static bool lasts(const struct plant *p, const char *what)
{
	return p->driver && strstr(p->driver, what) && !strstr(p->driver, "slow") && !strstr(p->driver, "late");
}

static void run(const struct plant *p)
{
	set_up(p);
	rig.selftest = start_selftest(p, NULL);
	check_selftest(p, rig.selftest, "mechanism: nvidia\ndriver: 580.159.04\ngpu: stand-in\n");
	/* one is killed while it is disabled, on purpose */
	tear_down(!p->driver || !strstr(p->driver, "die"), 1 + lasts(p, "enable") + lasts(p, "twice"),
		  lasts(p, "slice:"));
	remove_directory();
}

TEST(should_say_that_a_right_driver_preempts)
{
	run_plants(right, ARRAY_LENGTH(right), run);
}

TEST(should_find_disables_without_effect)
{
	run_plants(disables, ARRAY_LENGTH(disables), run);
}

TEST(should_find_disables_that_are_late_or_never_return)
{
	run_plants(late_disables, ARRAY_LENGTH(late_disables), run);
}

TEST(should_find_calls_that_act_on_others)
{
	run_plants(wide, ARRAY_LENGTH(wide), run);
}

TEST(should_find_enables_without_effect)
{
	run_plants(enables, ARRAY_LENGTH(enables), run);
}

TEST(should_find_time_slices_without_effect)
{
	run_plants(slices, ARRAY_LENGTH(slices), run);
}

TEST(should_find_queries_and_watchdogs_that_fail)
{
	run_plants(queries, ARRAY_LENGTH(queries), run);
}

TEST(should_find_programs_that_do_not_run)
{
	run_plants(programs, ARRAY_LENGTH(programs), run);
}

static unsigned lines_with(const char *text, const char *part)
{
	unsigned count = 0;

	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		count++;
	return count;
}

/* Its context, that is: the bystander has made twenty channels. */
static void wait_for_a_second_program(void)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	static char log[TEXT_MAX];

	do {
		CHECK(now_ns() < limit_ns, "%s: no program starts: %s", directory, log);
		sleep_until(now_ns() + 2 * NS_PER_MS, NULL);
		read_file("log", log);
	} while (lines_with(log, "made ") <= 20);
}

/* Until all contexts but the bystander's have ended (each makes one channel 5c00001c). */
static void wait_for_ends(void)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	static char log[TEXT_MAX];

	for (;;) {
		unsigned made = 0;

		read_file("log", log);
		for (const char *line = log; *line; line += strcspn(line, "\n") + 1) {
			unsigned client, channel;

			made += sscanf(line, "made %x %x", &client, &channel) == 2 && channel == 0x5c00001c;
			if (!line[strcspn(line, "\n")])
				break;
		}
		if (lines_with(log, "ended ") + 1 >= made)
			return;
		CHECK(now_ns() < limit_ns, "%s: contexts are left: %s", directory, log);
		sleep_until(now_ns() + 5 * NS_PER_MS, NULL);
	}
}

static void stop_by(int signal, const char *when, int status)
{
	const struct plant none = {0};
	static char said[TEXT_MAX];

	find_build();
	set_up(&none);
	rig.selftest = start_selftest(&none, NULL);
	if (when)
		wait_for_text("log", when);
	else
		wait_for_a_second_program();
	kill(rig.selftest, signal);
	CHECK_EQ(wait_for(rig.selftest), status);
	read_file("said", said);
	if (signal != SIGKILL)
		CHECK_CONTAINS(said, "what was disabled is enabled");
	/* the contexts of both children end, and soon: also where nobody was left to end them */
	wait_for_ends();
	tear_down(true, signal == SIGKILL ? 1 : 0, false);
	remove_directory();
}

TEST(should_enable_what_it_disabled_when_it_is_stopped)
{
	stop_by(SIGTERM, "disabled c1d0000", 128 + SIGTERM);
	stop_by(SIGINT, "disabled c1d0000", 128 + SIGINT);
	stop_by(SIGHUP, NULL, 128 + SIGHUP);
}

TEST(should_leave_nothing_when_it_is_killed)
{
	stop_by(SIGKILL, "disabled c1d0000", 128 + SIGKILL);
}

TEST(should_not_run_where_a_daemon_does)
{
	const struct plant none = {0};
	struct gpuseg_status status = {.magic = GPUSEG_STATUS_MAGIC,
				       .version = GPUSEG_ABI_VERSION,
				       .daemon_pid = getpid(),
				       .mechanism = "nvidia"};
	static char said[TEXT_MAX];
	FILE *file;

	find_build();
	set_up(&none);
	file = fopen(path_of(GPUSEG_STATUS_NAME), "we");
	CHECK(file && fwrite(&status, sizeof(status), 1, file) == 1 && fclose(file) == 0);
	rig.selftest = start_selftest(&none, NULL);
	CHECK_EQ(wait_for(rig.selftest), 3);
	read_file("said", said);
	CHECK_CONTAINS(said, "a daemon is running");
	tear_down(true, 0, false);
	remove_directory();
}

TEST(should_take_only_its_own_children_for_its_own)
{
	int orders[2];
	pid_t child, grandchild;

	CHECK(pipe(orders) == 0);
	child = fork();
	if (child == 0) {
		grandchild = fork();
		if (grandchild == 0) {
			pause();
			_exit(0);
		}
		CHECK(write(orders[1], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
		pause();
		_exit(0);
	}
	CHECK(read(orders[0], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
	CHECK(is_child_of(child, getpid()));
	CHECK(!is_child_of(grandchild, getpid()));
	CHECK(!is_child_of(getpid(), getpid()));
	CHECK(!is_child_of(getppid(), getpid()));
	CHECK(!is_child_of(1, 0));
	CHECK(!is_child_of(0, getpid()));
	CHECK(!is_child_of(-1, getpid()));
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(!is_child_of(child, getpid()));
}

/* The numbers of the table: fewer would say less. */
_Static_assert(ARRAY_LENGTH(disables) + ARRAY_LENGTH(late_disables) + ARRAY_LENGTH(wide) + ARRAY_LENGTH(enables) +
			       ARRAY_LENGTH(slices) + ARRAY_LENGTH(queries) + ARRAY_LENGTH(programs) >=
		       75,
	       "75 planted faults");

static const struct check_case cases[] = {
	CASE(should_say_that_a_right_driver_preempts),
	CASE(should_find_disables_without_effect),
	CASE(should_find_disables_that_are_late_or_never_return),
	CASE(should_find_calls_that_act_on_others),
	CASE(should_find_enables_without_effect),
	CASE(should_find_time_slices_without_effect),
	CASE(should_find_queries_and_watchdogs_that_fail),
	CASE(should_find_programs_that_do_not_run),
	CASE(should_enable_what_it_disabled_when_it_is_stopped),
	CASE(should_leave_nothing_when_it_is_killed),
	CASE(should_not_run_where_a_daemon_does),
	CASE(should_take_only_its_own_children_for_its_own),
};

CHECK_MAIN_APART(cases)
