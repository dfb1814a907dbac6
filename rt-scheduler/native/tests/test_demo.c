/* SPDX-License-Identifier: Apache-2.0 */
/* The demo task without a daemon: jobs, responses, summary, options. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/check.h"
#include "tests/rig.h"

enum { SPANS_MAX = 4096 };

static struct gpuseg_sim_span spans[SPANS_MAX];

TEST(should_run_its_jobs_and_account_for_every_nanosecond_of_device_time)
{
	const pid_t vgpu = rig_vgpu(NULL);
	const int64_t start_ns = now_ns() + 100 * NS_PER_MS;
	char start[32], text[2048], row[128];
	long long release_ns, response_ns, worked_ns, sum_ns = 0;
	int miss, jobs = 0;

	snprintf(start, sizeof(start), "%" PRId64, start_ns);
	const char *const arguments[] = {"--dir",	rig_directory(),
					 "--name",	"camera",
					 "--priority",	"70",
					 "--period",	"25ms",
					 "--segments",	"cpu:100us,gpu:50us+2ms,gpu:0ns+1ms",
					 "--offset",	"3ms",
					 "--start-at",	start,
					 "--duration",	"200ms",
					 "--out",	rig_path("jobs.csv"),
					 "--unmanaged", "--deadline",
					 "24h",		NULL};
	/* 24h is refused, since hours are not a unit; the message names the units. */
	CHECK_EQ(rig_run("gpuseg-demo-task", arguments, text, sizeof(text)), 2);

	const char *const good[] = {"--dir",	   rig_directory(),
				    "--name",	   "camera",
				    "--priority",  "70",
				    "--period",	   "25ms",
				    "--segments",  "cpu:100us,gpu:50us+2ms,gpu:0ns+1ms",
				    "--offset",	   "3ms",
				    "--start-at",  start,
				    "--duration",  "200ms",
				    "--out",	   rig_path("jobs.csv"),
				    "--unmanaged", "--deadline",
				    "60s",	   NULL};
	CHECK_EQ(rig_run("gpuseg-demo-task", good, text, sizeof(text)), 0);
	CHECK(strstr(text, "{\"name\":\"camera\",\"simulated\":true,\"managed\":false,\"priority\":70,\"jobs\":8,"
			   "\"misses\":0,"),
	      "summary: %s", text);
	CHECK(strstr(text, "\"begins\":0,\"timeouts\":0,\"skipped\":0}\n"), "summary: %s", text);

	FILE *file = fopen(rig_path("jobs.csv"), "re");
	CHECK(file && fgets(row, sizeof(row), file) && strcmp(row, "release_ns,response_ns,miss,worked_ns\n") == 0,
	      "no header");
	for (; fgets(row, sizeof(row), file); jobs++) {
		CHECK(sscanf(row, "%lld,%lld,%d,%lld", &release_ns, &response_ns, &miss, &worked_ns) == 4, "row %s",
		      row);
		CHECK_EQ(release_ns, start_ns + 3 * NS_PER_MS + jobs * 25 * NS_PER_MS);
		CHECK(worked_ns >= 3 * NS_PER_MS + 150 * NS_PER_US, "a job took only %lld ns", worked_ns);
		CHECK(response_ns >= worked_ns, "row %s", row);
		CHECK_EQ(miss, 0);
	}
	fclose(file);
	CHECK_EQ(jobs, 8); /* releases at 3, 28 ... 178 ms lie in [0, 200 ms) */

	const size_t count = rig_stop_vgpu(vgpu, spans, SPANS_MAX);
	for (size_t i = 0; i < count; i++)
		sum_ns += spans[i].end_ns - spans[i].start_ns;
	CHECK_EQ(sum_ns, 8 * 3 * NS_PER_MS);
}

TEST(should_count_a_late_job_from_its_nominal_release)
{
	char text[2048];
	char *line;

	rig_vgpu(NULL);
	/* 12 ms of device every 10 ms: every job is late, the last of five by at least 5 * 2 ms. */
	const char *const arguments[] = {
		"--dir",      rig_directory(), "--name",     "late", "--priority",  "5",      "--period", "10ms",
		"--segments", "gpu:0ns+12ms",  "--duration", "50ms", "--unmanaged", "--wait", "busy",	  NULL};
	CHECK_EQ(rig_run("gpuseg-demo-task", arguments, text, sizeof(text)), 0);
	CHECK(strstr(text, "\"jobs\":5,\"misses\":5,"), "summary: %s", text);
	line = strstr(text, "\"max_ms\":");
	CHECK(line && strtod(line + 9, NULL) >= 20.0, "the last response is 5 * 12 - 4 * 10 ms at least: %s", text);
}

static bool at_its_kernel(void *path)
{
	struct gpuseg_progress progress = {0};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool whole = fd >= 0 && read(fd, &progress, sizeof(progress)) == sizeof(progress);

	if (fd >= 0)
		close(fd);
	return whole && progress.state == GPUSEG_PROGRESS_KERNEL;
}

TEST(should_report_what_it_has_when_it_is_stopped)
{
	char text[2048];
	int output;
	pid_t task;

	rig_vgpu(NULL);
	const char *const arguments[] = {
		"--dir",      rig_directory(),		"--name",      "stopped", "--period",	"5ms",
		"--segments", "cpu:10us,gpu:0ns+3600s", "--cpu-mode",  "sleep",	  "--duration", "60s",
		"--progress", rig_path("progress"),	"--unmanaged", NULL};
	task = rig_start("gpuseg-demo-task", arguments, &output);
	CHECK(rig_until(at_its_kernel, (void *)(uintptr_t)rig_path("progress")), "it submitted no kernel");
	kill(task, SIGTERM); /* it waits for a kernel that never ends */
	rig_read_all(output, text, sizeof(text));
	CHECK_EQ(rig_wait(task), 0);
	CHECK(strstr(text, "\"jobs\":0,\"misses\":0,\"p50_ms\":null"), "summary: %s", text);
}

TEST(should_refuse_bad_options_with_a_remedy)
{
	static const struct {
		const char *arguments[10];
		const char *says;
		int status;
	} cases[] = {
		{{"--name", "a", "--period", "10", NULL}, "has no unit", 2},
		{{"--name", "a", "--period", "10ms", NULL}, "are required", 2},
		{{"--segments", "gpu:4ms", NULL}, "gpu:1ms+4ms", 2},
		{{"--priority", "100", NULL}, "0 to 99", 2},
		{{"--wait", "sometimes", NULL}, "block or busy", 2},
		{{"--name", "a\"b", "--period", "10ms", "--segments", "cpu:1ms", NULL}, "letters", 2},
		{{"--name", "a", "--period", "1us", "--segments", "cpu:1us", "--duration", "100s", NULL},
		 "jobs are more",
		 2},
		{{"--dir", "/nonexistent", "--name", "a", "--period", "1s", "--segments", "cpu:1us", NULL},
		 "virtual GPU",
		 1},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char text[2048];

		CHECK_EQ(rig_run("gpuseg-demo-task", cases[i].arguments, text, sizeof(text)), cases[i].status);
		CHECK(strstr(text, cases[i].says), "case %zu says: %s", i, text);
	}
}

TEST(should_measure_the_floor_and_refuse_a_bench_without_a_daemon)
{
	const char *const floor[] = {"floor", "pingpong-futex", "--n", "2000", "--warmup", "100", NULL};
	const char *const no_daemon[] = {"begin", "--dir", rig_directory(), NULL};
	const char *const unknown[] = {"floor", "ceiling", NULL};
	char text[2048];

	CHECK_EQ(rig_run("gpuseg-bench-ipc", unknown, text, sizeof(text)), 2);
	CHECK(strstr(text, "\"ceiling\" is unknown") && !strstr(text, "p50"), "it said: %s", text);
	CHECK_EQ(rig_run("gpuseg-bench-ipc", no_daemon, text, sizeof(text)), 1);
	CHECK(strstr(text, "begin: connect"), "it said: %s", text);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		SKIP("a ping-pong needs two processors");
	}
	CHECK_EQ(rig_run("gpuseg-bench-ipc", floor, text, sizeof(text)), 0);
	CHECK(strstr(text, "{\"mode\":\"floor\",\"n\":2000,") &&
		      strstr(text, "{\"mode\":\"pingpong-futex\",\"n\":2000,"),
	      "it said: %s", text);
}

static const struct check_case cases[] = {
	CASE(should_refuse_bad_options_with_a_remedy),
	CASE(should_run_its_jobs_and_account_for_every_nanosecond_of_device_time),
	CASE(should_count_a_late_job_from_its_nominal_release),
	CASE(should_report_what_it_has_when_it_is_stopped),
	CASE(should_measure_the_floor_and_refuse_a_bench_without_a_daemon),
};
CHECK_MAIN_APART(cases)
