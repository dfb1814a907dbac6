/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-selftest - proves on this machine what its mechanism relies on, on processes of its own alone: nvidia, tegra
 * or amd, by the device files that are there.
 *
 * exit status: 0 it preempts, and all of it holds; 1 something does not; 2 usage; 3 it cannot run here
 */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "common/status_page.h"
#include "gpuseg.h"

enum { EXIT_NOT_HERE = 3 };

static void on_signal(int signal)
{
	stopping = signal;
}

static const char help[] =
	"usage: gpuseg selftest [--json] [--evidence FILE]\n"
	"Prove within a minute what mechanism nvidia, tegra or amd can do on this machine. It starts CUDA or HIP "
	"programs "
	"of its own, and disables, enables and kills them alone. No daemon may be running. gpuseg doctor shows the "
	"last "
	"result.\n"
	"  --json           Print the result as JSON.\n"
	"  --evidence FILE  Write it there as JSON, too: machine, driver, verdicts and times, but no name of a host or "
	"a "
	"user and no serial number.\n"
	"  --help           Show this text.\n"
	"Exit status: 0 the hardware preempts, and all that the mechanism relies on holds; 1 something does not; 2 "
	"usage; "
	"3 it cannot run here.\n";

/* The longest begin with and without what the driver can do. */
static void say_times(char *text, size_t size)
{
	const double without_us = series_quantile(driver->long_us ? SERIES_BEGIN_SLICES : SERIES_BEGIN_DRIVER, 1);

	snprintf(text, size, "Beside endless work a kernel of %.2f ms took at most %.2f ms %s, %.2f ms with the call.",
		 series_quantile(SERIES_BEGIN_ALONE, 0.5) / 1e3, without_us / 1e3,
		 driver->long_us ? "with time slices alone" : "without the call",
		 series_quantile(SERIES_BEGIN_CALL, 1) / 1e3);
}

/* What the mechanism relies on beside the level, and does not work. "" = nothing. */
static void list_missing(char *text, size_t size)
{
	static const struct {
		enum row_id id;
		const char *name;
	} relied[] = {
		{ROW_LISTED, "a list of the processes"},
		{ROW_RESULTS, "right results"},
		{ROW_COUNTED, "one enable that ends two disables"},
		{ROW_CALLS, "quick calls"},
		{ROW_SLICE, "time slices"},
		{ROW_SLICE_HOLDS, "time slices that the GPU keeps to"},
		{ROW_BEGIN, "begins that end"},
		{ROW_WATCHDOG, "a watchdog that gives back"},
		{ROW_KILLED, "the end of a disabled process"},
	};

	text[0] = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(relied); i++) {
		const enum verdict v = report.rows[relied[i].id].verdict;

		/* a tool that is not installed says nothing against the driver */
		if (row_is_made(relied[i].id) && v != WORKS && !(relied[i].id == ROW_WATCHDOG && v == SKIPPED))
			snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "", relied[i].name);
	}
}

/* What level holds, and whether all that the mechanism relies on does. */
static void judge(void)
{
	static const enum row_id disables[] = {ROW_CHANNELS, ROW_DISABLE, ROW_ENABLE, ROW_OTHERS};
	char missing[240], times[160];
	bool hardware = true;
	const bool interrupts = report.rows[ROW_INTERRUPT].verdict == WORKS;

	for (size_t i = 0; i < ARRAY_LENGTH(disables); i++)
		hardware = hardware && report.rows[disables[i]].verdict == WORKS;
	list_missing(missing, sizeof(missing));
	say_times(times, sizeof(times));
	report.exit_status = EXIT_FAILURE;
	if (report.rows[ROW_CHILDREN].verdict != WORKS) {
		strcpy(report.level, "nothing");
		report.exit_status = report.started ? EXIT_FAILURE : EXIT_NOT_HERE;
		snprintf(report.sentence, sizeof(report.sentence),
			 "Nothing can be proven here: its own %s programs do not run (%s).",
			 driver->hip ? "HIP" : "CUDA", report.rows[ROW_CHILDREN].reason);
	} else if (hardware && interrupts && missing[0] == 0) {
		strcpy(report.level, "preempts");
		report.exit_status = EXIT_SUCCESS;
		snprintf(report.sentence, sizeof(report.sentence),
			 "This machine preempts on the hardware: mechanism %s holds. %s", driver->mechanism, times);
	} else if (hardware && interrupts) {
		strcpy(report.level, "preempts");
		snprintf(report.sentence, sizeof(report.sentence),
			 "This machine preempts on the hardware, but mechanism %s relies on more. Missing: %s.",
			 driver->mechanism, missing);
	} else if (hardware) {
		strcpy(report.level, "drains");
		snprintf(report.sentence, sizeof(report.sentence),
			 "A disabled process starts no kernel, but one that runs is not proven to be interrupted: "
			 "level 2. "
			 "%s%s%s",
			 missing[0] ? "Missing, too: " : times, missing, missing[0] ? "." : "");
	} else if (report.rows[ROW_SLICE_HOLDS].verdict == WORKS) {
		strcpy(report.level, "slices");
		snprintf(report.sentence, sizeof(report.sentence),
			 "Slices only: a running process cannot be disabled reliably, but the GPU keeps to time "
			 "slices; a "
			 "begin waits for one slice of each other process.");
	} else {
		snprintf(report.level, sizeof(report.level), "%s", driver->lower_level);
		snprintf(report.sentence, sizeof(report.sentence), "%s", driver->lower_sentence);
	}
}

static void leave_where_a_daemon_runs(void)
{
	struct gpuseg_status status;
	char directory[PATH_MAX];

	if (gpuseg_runtime_dir(directory, sizeof(directory)) < 0 || status_read(&status, directory) != 0 ||
	    !status_owner_lives(&status))
		return;
	message("a daemon is running (pid %d, mechanism %.15s), and would control the test's processes; "
		"`gpuseg stop` ends it",
		status.daemon_pid, status.mechanism);
	exit(EXIT_NOT_HERE);
}

static void parse(int argc, char **argv, bool *json, const char **evidence)
{
	static const struct option known[] = {{"json", no_argument, NULL, 'j'},
					      {"evidence", required_argument, NULL, 'e'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int option;

	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (option) {
		case 'j':
			*json = true;
			break;
		case 'e':
			*evidence = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("unexpected argument \"%s\"; see --help", argv[optind]);
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const int64_t from_ns = now_ns();
	const char *evidence_path = NULL;
	FILE *evidence = NULL;
	bool json = false;
	char why[PATH_MAX + 128];

	program_name = "gpuseg-selftest";
	if (argc == 5 && strcmp(argv[1], "--child") == 0) {
		if (machine_read(&report.machine, why, sizeof(why)) != 0)
			return EXIT_NOT_HERE;
		child_main(atoi(argv[2]), atoi(argv[3]));
	}
	parse(argc, argv, &json, &evidence_path);
	if (machine_read(&report.machine, why, sizeof(why)) != 0) {
		message("%s", why);
		return EXIT_NOT_HERE;
	}
	leave_where_a_daemon_runs();
	if (evidence_path && !(evidence = fopen(evidence_path, "we"))) {
		message("--evidence %s: %s", evidence_path, strerror(errno));
		return EXIT_USAGE;
	}
	if (file_hash("/proc/self/exe", report.program_hash) != 0)
		strcpy(report.program_hash, "unknown");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	run_checks();
	if (stopping) {
		message("stopped by signal %d; what was disabled is enabled", stopping);
		if (evidence)
			unlink(evidence_path);
		return 128 + stopping;
	}
	judge();
	report.took_ns = now_ns() - from_ns;
	leave_result();
	if (json)
		report_json(stdout);
	else
		report_table(stdout);
	if (evidence) {
		report_json(evidence);
		if (fflush(evidence) != 0 || ferror(evidence)) {
			message("--evidence %s: %s", evidence_path, strerror(errno));
			report.exit_status = EXIT_FAILURE;
		}
		fclose(evidence);
	}
	if (fflush(stdout) != 0) {
		message("stdout: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	return report.exit_status;
}
