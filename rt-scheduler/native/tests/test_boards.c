/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-selftest on the stand-ins of nvgpu (Jetson) and KFD (AMD, both of its interfaces), with one planted fault
 * each. Every fault is found. Afterwards all that still runs is enabled, with its own time slice, and a bystander runs
 * on that no call was about.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amd/amd_state.h"
#include "common/base.h"
#include "selftest/standin/gpu.h"
#include "tegra/tegra_state.h"
#include "tests/check.h"
#include "tests/selftest_rig.h"

#define GPU_ID 4711
#define PRELOAD "libgpuseg-preload.so"
#define GFX_MI200 90402
#define GFX_NAVI3 110000

enum board { TEGRA, AGENT, KFD };

enum {
	UNSAFE_MODE = AROUND_OWN, /* amdgpu.sched_policy=2 on gfx11 */
	NO_GPU,
	REFUSED_HOLDS /* /dev/gpuseg-kfd does not hold on this GPU, so the agent does */
};

/* What is found in the same way on all boards. */
static const struct plant everywhere[] = {
	{NULL, NULL, AS_EVER, 0, "preempts", "interrupt", "works"},
	{NULL, "register:fail:801", AS_EVER, 0, "preempts", "results", "works"},
	{NULL, NULL, NO_WATCHDOG, 0, "preempts", "watchdog", "skipped"},
	{NULL, NULL, IDLE_WATCHDOG, 1, "preempts", "watchdog", "does not"},
	{NULL, NULL, DEAF_WATCHDOG, 1, "preempts", "watchdog", "does not"},
	{NULL, NULL, NO_RUNTIME, 3, "nothing", "children", "does not"},
	{"disable:refuse:1", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:refuse:25", NULL, AS_EVER, 1, "", "disable", "not supported"},
	{"disable:refuse:5:4", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:nothing", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:nothing:0:5", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:late:200", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:undone:100", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:slow:300", NULL, AS_EVER, 1, "drains", "calls", "does not"},
	{"disable:all;enable:all", NULL, AS_EVER, 1, "", "others", "does not"},
	{"enable:refuse:5", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:refuse:25:3", NULL, AS_EVER, 1, "", "enable", "not supported"},
	{"enable:nothing", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:nothing:0:5", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:late:400", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:slow:300", NULL, AS_EVER, 1, "preempts", "calls", "does not"},
	{"enable:corrupt", NULL, AS_EVER, 1, "preempts", "results", "does not"},
	{"disable:twice", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"list:nothing", NULL, AS_EVER, 1, "preempts", "listed", "does not"},
};

/* Calls that do not return are made by the helper; with the agent it is the child that hangs or dies. */
static const struct plant hangs[] = {
	{"disable:hang", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:hang:0:4", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:die", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"enable:hang", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:die", NULL, AS_EVER, 1, "", "enable", "does not"},
};

static const struct plant hangs_in_child[] = {
	{"disable:hang", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:hang:0:4", NULL, AS_EVER, 1, "", "disable", "does not"},
	{"disable:die", NULL, AS_EVER, 1, "nothing", "children", "does not"},
	{"enable:hang", NULL, AS_EVER, 1, "", "enable", "does not"},
	{"enable:die", NULL, AS_EVER, 1, "nothing", "children", "does not"},
};

static const struct plant of_nvgpu[] = {
	{"preempt:refuse:25", NULL, AS_EVER, 1, "slices", "disable", "not supported"},
	{"preempt:nothing", NULL, AS_EVER, 1, "drains", "interrupt", "does not"},
	{"preempt:hang", NULL, AS_EVER, 1, "launch", "disable", "does not"},
	{"disable:counts", NULL, AS_EVER, 1, "preempts", "counted", "does not"},
	{"list:refuse:1", NULL, AS_EVER, 1, "preempts", "listed", "does not"},
	{"slice:refuse:25", NULL, AS_EVER, 1, "preempts", "slice", "not supported"},
	{"slice:refuse:1:1", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:nothing", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:kept", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"slice:fixed:1000", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:undone:20", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:all", NULL, AS_EVER, 1, "preempts", "slice_holds", "does not"},
	{"slice:slow:300", NULL, AS_EVER, 1, "preempts", "calls", "does not"},
	{"slice:hang", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"get-slice:refuse:25", NULL, AS_EVER, 1, "preempts", "slice", "does not"},
	{"get-slice:hang", NULL, AS_EVER, 1, "launch", "channels", "does not"},
	{NULL, "context:close", AS_EVER, 1, "launch", "channels", "does not"},
	{NULL, "context:fail:2:b", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:exit:1000:b", AS_EVER, 1, "nothing", "children", "does not"},
	{NULL, "launch:stuck:0", AS_EVER, 3, "nothing", "children", "does not"},
};

static const struct plant of_kfd[] = {
	{"disable:drains", NULL, AS_EVER, 1, "drains", "interrupt", "does not"},
	{NULL, "compile:fail:6", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, "launch:none:0:b", AS_EVER, 3, "nothing", "children", "does not"},
	{NULL, NULL, UNSAFE_MODE, 3, "", "", ""},
	{NULL, NULL, NO_GPU, 3, "", "", ""},
};

static const struct plant of_agent[] = {
	{NULL, NULL, NO_LIBRARY, 1, "gate", "channels", "does not"},
	{NULL, NULL, REFUSED_HOLDS, 0, "preempts", "interface", "works"},
};

/* ---- one run ---- */

static enum board board;

static struct rig {
	pid_t gpu, bystander, selftest;
	struct gpu *state;
	volatile uint64_t *bystander_kernels; /* after 16 bytes of the page of gpuseg-tegra-app and gpuseg-amd-app */
} rig;

static void make_directories(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s", name);
	for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		CHECK(mkdir(path_of(path), 0755) == 0 || errno == EEXIST, "%s", path);
		*at = '/';
	}
}

static void describe(const char *name, const char *text)
{
	make_directories(name);
	write_file(name, text, 0644);
}

static void describe_tegra(void)
{
	map_file("table", sizeof(struct tegra_table));
	describe("dev/nvhost-sched-gpu", "");
	describe("etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic\n");
	describe("proc/device-tree/model", "NVIDIA Jetson AGX Orin");
	setenv("GPUSEG_TEGRA_STANDIN", path_of("table"), 1);
}

static void describe_amd(const struct plant *p)
{
	struct amd_table *t = map_file("table", AMD_DELAYS_AT + sizeof(struct amd_delays));
	const int gfx = p->around == UNSAFE_MODE ? GFX_NAVI3 : GFX_MI200;
	char text[64];

	*t = (struct amd_table){.minor = 14,
				.hold_abi = board == KFD || p->around == REFUSED_HOLDS,
				.hold_refused = p->around == REFUSED_HOLDS,
				.n_gpus = 1,
				.gpu_ids = {GPU_ID}};
	describe("dev/kfd", "");
	describe("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
	if (p->around != NO_GPU) {
		snprintf(text, sizeof(text), "%d\n", GPU_ID);
		describe("sys/class/kfd/kfd/topology/nodes/1/gpu_id", text);
		snprintf(text, sizeof(text), "simd_count 440\ngfx_target_version %d\n", gfx);
		describe("sys/class/kfd/kfd/topology/nodes/1/properties", text);
	}
	describe("sys/module/amdgpu/parameters/sched_policy", p->around == UNSAFE_MODE ? "2\n" : "0\n");
	describe("sys/module/amdgpu/version", "6.8.5\n");
	setenv("GPUSEG_AMD_STANDIN", directory, 1);
}

static void set_up(const struct plant *p)
{
	static char gpu[PATH_MAX], app[PATH_MAX], preload[PATH_MAX], libraries[PATH_MAX];
	const char *name = board == TEGRA ? "tegra" : "amd";
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	char number[16];

	make_directory();
	snprintf(gpu, sizeof(gpu), "%s/gpuseg-gpu-standin", build);
	snprintf(app, sizeof(app), "%s/gpuseg-%s-app", build, name);
	snprintf(preload, sizeof(preload), "%s/libgpuseg-%s-fake.so", build, name);
	snprintf(libraries, sizeof(libraries), "%s/standin/%s", build, name);
	rig.state = map_file("gpu", sizeof(*rig.state));
	rig.state->concurrent = board != TEGRA;
	if (board == TEGRA)
		describe_tegra();
	else
		describe_amd(p);
	setenv("GPUSEG_GPU_STANDIN", path_of("gpu"), 1);
	setenv("GPUSEG_SELFTEST_ROOT", directory, 1);
	setenv("GPUSEG_DIR", directory, 1);
	setenv("GPUSEG_SELFTEST_STATE", path_of("state/gpuseg"), 1);
	/* a sanitizer's library does not come first in a program into which the stand-in's is preloaded */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
	rig.gpu = start(gpu, (const char *const[]){gpu, path_of("gpu"), NULL}, "standin");
	wait_for_text("standin", "ready");
	setenv("LD_PRELOAD", preload, 1);
	snprintf(number, sizeof(number), "%d", p->around == NO_GPU ? 0 : GPU_ID);
	rig.bystander_kernels = (volatile uint64_t *)map_file("page", 4096) + 2;
	rig.bystander = start(app,
			      board == TEGRA ? (const char *const[]){app, path_of("page"), "2", NULL}
					     : (const char *const[]){app, path_of("page"), number, "2", NULL},
			      "app");
	while (*rig.bystander_kernels == 0 && p->around != NO_GPU) {
		CHECK(now_ns() < limit_ns, "%s: the bystander does not start", directory);
		sleep_until(now_ns() + NS_PER_MS, NULL);
	}
	/* from now on: what the bystander did to start is not counted */
	if (p->driver)
		setenv("GPUSEG_GPU_FAULTS", p->driver, 1);
	if (p->runtime)
		setenv("GPUSEG_CUDA_FAULT", p->runtime, 1);
	if (p->around != NO_RUNTIME)
		setenv("LD_LIBRARY_PATH", libraries, 1);
}

/* `disabled_max`: groups that ended disabled: one is killed so, on purpose. */
static void tear_down(const struct plant *p, unsigned disabled_max, bool slices_stay)
{
	const uint64_t kernels = *rig.bystander_kernels;
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	unsigned disabled = 0;

	while (*rig.bystander_kernels < kernels + 3 && p->around != NO_GPU) {
		CHECK(now_ns() < limit_ns, "%s: the bystander stands still", directory);
		sleep_until(now_ns() + 2 * NS_PER_MS, NULL);
	}
	kill(rig.bystander, SIGKILL);
	wait_for(rig.bystander);
	sleep_until(now_ns() + 20 * NS_PER_MS, NULL); /* ticks of the GPU: what was due has happened */
	kill(rig.gpu, SIGTERM);
	CHECK_EQ(wait_for(rig.gpu), 0);
	CHECK(rig.state->strays == 0, "%s: %u calls about the bystander", directory, rig.state->strays);
	for (unsigned i = 0; i < GPU_GROUPS; i++) {
		const struct gpu_group *g = &rig.state->groups[i];

		CHECK(g->pid == 0 || kill(g->pid, 0) != 0, "%s: child %d lives", directory, g->pid);
		disabled += g->disabled > 0;
		CHECK(g->pid == 0 || board != TEGRA || slices_stay || g->disabled > 0 ||
			      g->programmed_us == TEGRA_TIMESLICE_US,
		      "%s: a child ended with a slice of %llu us", directory, (unsigned long long)g->programmed_us);
	}
	CHECK(disabled <= disabled_max, "%s: %u children ended disabled", directory, disabled);
}

/* A driver that refuses or ignores what is asked for last cannot be made to give back. */
static bool lasts(const struct plant *p, const char *what)
{
	return p->driver && strstr(p->driver, what) && !strstr(p->driver, "slow") && !strstr(p->driver, "corrupt");
}

static void run(const struct plant *p)
{
	set_up(p);
	rig.selftest = start_selftest(p, PRELOAD);
	check_selftest(p, rig.selftest,
		       board == TEGRA ? "mechanism: tegra\ndriver: R36.4.3\ngpu: NVIDIA Jetson AGX Orin\n"
				      : "mechanism: amd\ndriver: 6.8.5\ngpu: gfx9.4.2\n");
	/* KFD has no hold on a child that a planted fault disabled with the other one: there is nothing to release */
	tear_down(p, 1 + lasts(p, "enable") + lasts(p, "twice") + lasts(p, "die") + lasts(p, "disable:all"),
		  lasts(p, "slice:"));
	remove_directory();
}

static void run_table(enum board on, const struct plant *plants, size_t count)
{
	board = on;
	run_plants(plants, count, run);
}

TEST(should_find_what_is_wrong_with_a_jetson)
{
	run_table(TEGRA, everywhere, ARRAY_LENGTH(everywhere));
}

TEST(should_find_calls_of_nvgpu_that_do_not_return)
{
	run_table(TEGRA, hangs, ARRAY_LENGTH(hangs));
}

TEST(should_find_what_nvgpu_alone_can_do_wrong)
{
	run_table(TEGRA, of_nvgpu, ARRAY_LENGTH(of_nvgpu));
}

TEST(should_find_what_is_wrong_with_the_agent_of_amd)
{
	run_table(AGENT, everywhere, ARRAY_LENGTH(everywhere));
}

TEST(should_find_children_that_hang_in_update_queue)
{
	run_table(AGENT, hangs_in_child, ARRAY_LENGTH(hangs_in_child));
	run_table(AGENT, of_agent, ARRAY_LENGTH(of_agent));
}

TEST(should_find_what_is_wrong_with_holds_of_amd)
{
	run_table(KFD, everywhere, ARRAY_LENGTH(everywhere));
}

TEST(should_find_holds_that_do_not_return)
{
	run_table(KFD, hangs, ARRAY_LENGTH(hangs));
}

TEST(should_find_what_kfd_alone_can_do_wrong)
{
	run_table(KFD, of_kfd, ARRAY_LENGTH(of_kfd));
	run_table(AGENT, of_kfd, ARRAY_LENGTH(of_kfd));
}

/* Stopped in the middle: while a child is disabled, and before any is. */
static void stop_by(enum board on, int signal, bool once_disabled, int status)
{
	const struct plant none = {0};
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	static char said[TEXT_MAX];
	bool there = false;

	board = on;
	find_build();
	set_up(&none);
	rig.selftest = start_selftest(&none, PRELOAD);
	while (!there) {
		CHECK(now_ns() < limit_ns, "%s: it does not come to it", directory);
		for (unsigned i = 0; i < GPU_GROUPS; i++)
			there = there ||
				(once_disabled ? rig.state->groups[i].disabled > 0 : rig.state->groups[i].tail > 0);
		sleep_until(now_ns() + NS_PER_MS / 2, NULL);
	}
	kill(rig.selftest, signal);
	CHECK_EQ(wait_for(rig.selftest), status);
	read_file("said", said);
	if (signal != SIGKILL)
		CHECK_CONTAINS(said, "what was disabled is enabled");
	for (unsigned i = 0; i < GPU_GROUPS; i++)
		while (rig.state->groups[i].pid > 0 && kill(rig.state->groups[i].pid, 0) == 0) {
			CHECK(now_ns() < limit_ns, "%s: child %d lives", directory, rig.state->groups[i].pid);
			sleep_until(now_ns() + 2 * NS_PER_MS, NULL);
		}
	tear_down(&none, signal == SIGKILL, false);
	remove_directory();
}

TEST(should_enable_what_it_disabled_on_a_board_when_it_is_stopped)
{
	for (enum board on = TEGRA; on <= KFD; on++) {
		stop_by(on, SIGTERM, true, 128 + SIGTERM);
		stop_by(on, SIGINT, false, 128 + SIGINT);
		stop_by(on, SIGKILL, true, 128 + SIGKILL);
	}
}

/* Of each board, but for the three rows in which nothing is wrong: fewer would say less. */
#define FAULTS (ARRAY_LENGTH(everywhere) - 3)
_Static_assert(FAULTS + ARRAY_LENGTH(hangs) + ARRAY_LENGTH(of_nvgpu) >= 46, "planted faults of nvgpu");
_Static_assert(FAULTS + ARRAY_LENGTH(hangs_in_child) + ARRAY_LENGTH(of_kfd) + ARRAY_LENGTH(of_agent) - 1 >= 32,
	       "planted faults of KFD's agent");
_Static_assert(FAULTS + ARRAY_LENGTH(hangs) + ARRAY_LENGTH(of_kfd) >= 31, "planted faults of holds");

static const struct check_case cases[] = {
	CASE(should_find_what_is_wrong_with_a_jetson),
	CASE(should_find_calls_of_nvgpu_that_do_not_return),
	CASE(should_find_what_nvgpu_alone_can_do_wrong),
	CASE(should_find_what_is_wrong_with_the_agent_of_amd),
	CASE(should_find_children_that_hang_in_update_queue),
	CASE(should_find_what_is_wrong_with_holds_of_amd),
	CASE(should_find_holds_that_do_not_return),
	CASE(should_find_what_kfd_alone_can_do_wrong),
	CASE(should_enable_what_it_disabled_on_a_board_when_it_is_stopped),
};

CHECK_MAIN_APART(cases)
