/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-selftest - proves on this machine what mechanism nvidia relies on, on processes of its own alone.
 *
 * exit status: 0 it preempts, and all of it holds; 1 something does not; 2 usage; 3 it cannot run here
 */
#define _GNU_SOURCE
#include "selftest.h"

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
	"Prove within a minute what mechanism nvidia can do on this machine. It starts CUDA programs of its own, and "
	"disables, enables and kills them alone. No daemon may be running. gpuseg doctor shows the last result.\n"
	"  --json           Print the result as JSON.\n"
	"  --evidence FILE  Write it there as JSON, too: machine, driver, verdicts and times, but no name of a host or "
	"a "
	"user and no serial number.\n"
	"  --help           Show this text.\n"
	"Exit status: 0 the hardware preempts, and all that the mechanism relies on holds; 1 something does not; 2 "
	"usage; "
	"3 it cannot run here.\n";

/* What level holds, and whether all that mechanism nvidia relies on does. */
static void judge(void)
{
	static const enum row_id preempts[] = {ROW_CHANNELS, ROW_DISABLE, ROW_ENABLE, ROW_OTHERS};
	static const struct {
		enum row_id id;
		const char *name;
	} relied[] = {
		{ROW_CALLS, "quick calls"},
		{ROW_SLICE, "time slices"},
		{ROW_SLICE_HOLDS, "time slices that the GPU keeps to"},
		{ROW_BEGIN, "begins that end"},
		{ROW_WATCHDOG, "a watchdog that gives back"},
		{ROW_KILLED, "the end of a disabled process"},
	};
	const double slices_ms = series_quantile(SERIES_BEGIN_SLICES, 1) / 1e3;
	const double call_ms = series_quantile(SERIES_BEGIN_CALL, 1) / 1e3;
	char missing[200] = "";
	bool hardware = true;

	for (size_t i = 0; i < ARRAY_LENGTH(preempts); i++)
		hardware = hardware && report.rows[preempts[i]].verdict == WORKS;
	for (size_t i = 0; i < ARRAY_LENGTH(relied); i++) {
		const enum verdict v = report.rows[relied[i].id].verdict;

		/* a tool that is not installed says nothing against the driver */
		if (v != WORKS && !(relied[i].id == ROW_WATCHDOG && v == SKIPPED))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%s%s",
				 missing[0] ? ", " : "", relied[i].name);
	}
	report.exit_status = EXIT_FAILURE;
	if (report.rows[ROW_CHILDREN].verdict != WORKS) {
		strcpy(report.level, "nothing");
		report.exit_status = report.started ? EXIT_FAILURE : EXIT_NOT_HERE;
		snprintf(report.sentence, sizeof(report.sentence),
			 "Nothing can be proven here: its own CUDA programs do not run (%s).",
			 report.rows[ROW_CHILDREN].reason);
	} else if (hardware && missing[0] == 0) {
		strcpy(report.level, "preempts");
		report.exit_status = EXIT_SUCCESS;
		snprintf(report.sentence, sizeof(report.sentence),
			 "This machine preempts on the hardware: mechanism nvidia holds. Beside endless work a kernel "
			 "of "
			 "%.2f ms took at most %.2f ms with time slices alone, %.2f ms with the call.",
			 series_quantile(SERIES_BEGIN_ALONE, 0.5) / 1e3, slices_ms, call_ms);
	} else if (hardware) {
		strcpy(report.level, "preempts");
		snprintf(report.sentence, sizeof(report.sentence),
			 "This machine preempts on the hardware, but mechanism nvidia relies on more. Missing: %s.",
			 missing);
	} else if (report.rows[ROW_SLICE_HOLDS].verdict == WORKS) {
		strcpy(report.level, "slices");
		snprintf(report.sentence, sizeof(report.sentence),
			 "Slices only: a running process cannot be disabled reliably, but the GPU keeps to time "
			 "slices; a "
			 "begin waits for one slice of each other process.");
	} else {
		strcpy(report.level, "launch");
		snprintf(report.sentence, sizeof(report.sentence),
			 "Launches can be held, no more: use gpuseg exec and mechanism launch.");
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
	if (argc == 5 && strcmp(argv[1], "--child") == 0)
		child_main(atoi(argv[2]), atoi(argv[3]));
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
