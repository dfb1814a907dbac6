/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

struct report report;

static const struct {
	const char *id, *title;
} rows[ROWS] = {
	[ROW_DRIVER] = {"driver", "GPU and driver"},
	[ROW_GSP] = {"gsp", "GSP firmware"},
	[ROW_INTERFACE] = {"interface", "interface and scheduler"},
	[ROW_RIGHTS] = {"rights", "rights of this user"},
	[ROW_CHILDREN] = {"children", "two children run kernels"},
	[ROW_CHANNELS] = {"channels", NULL},
	[ROW_LISTED] = {"listed", "the driver lists them"},
	[ROW_DISABLE] = {"disable", "a disabled child stands still"},
	[ROW_ENABLE] = {"enable", "an enabled child goes on"},
	[ROW_OTHERS] = {"others", "the other child runs meanwhile"},
	[ROW_INTERRUPT] = {"interrupt", "a running kernel is interrupted"},
	[ROW_RESULTS] = {"results", "results are right"},
	[ROW_COUNTED] = {"counted", "one enable ends two disables"},
	[ROW_CALLS] = {"calls", "calls are quick"},
	[ROW_SLICE] = {"slice", "time slices can be set"},
	[ROW_SLICE_HOLDS] = {"slice_holds", "the GPU keeps to them"},
	[ROW_BEGIN] = {"begin", "wait of a begin"},
	[ROW_WATCHDOG] = {"watchdog", "the watchdog gives back"},
	[ROW_KILLED] = {"killed", "killed while it is disabled"},
	[ROW_EXEC] = {"exec", "runs under gpuseg exec"},
	[ROW_OBSERVER] = {"observer", "observer is possible"},
};

static const char *const verdicts[] = {"undecided", "works", "does not", "not supported", "skipped"};

static const char *const series_names[SERIES] = {
	[SERIES_DISABLE] = "disable_us",
	[SERIES_ENABLE] = "enable_us",
	[SERIES_PREEMPT] = "preempt_us",
	[SERIES_SET_SLICE] = "set_slice_us",
	[SERIES_QUERY] = "query_us",
	[SERIES_STOP] = "ran_on_after_disable_us",
	[SERIES_RESUME] = "resumed_after_enable_us",
	[SERIES_BEGIN_ALONE] = "begin_alone_us",
	[SERIES_BEGIN_DRIVER] = "begin_beside_own_slices_us",
	[SERIES_BEGIN_SLICES] = "begin_beside_short_slice_us",
	[SERIES_BEGIN_CALL] = "begin_beside_short_slice_and_call_us",
};

bool row_is_made(enum row_id id)
{
	switch (id) {
	case ROW_GSP:
		return driver->gsp;
	case ROW_INTERFACE:
		return driver->interface;
	case ROW_LISTED:
		return driver->lists;
	case ROW_COUNTED:
		return driver->counts;
	case ROW_SLICE:
	case ROW_SLICE_HOLDS:
		return driver->long_us != 0;
	case ROW_EXEC: /* it is for CUDA programs */
		return !driver->hip;
	default:
		return true;
	}
}

void row_set(enum row_id id, enum verdict verdict, const char *value, const char *reason, ...)
{
	struct row *row = &report.rows[id];
	va_list list;

	row->verdict = verdict;
	snprintf(row->value, sizeof(row->value), "%s", value);
	va_start(list, reason);
	vsnprintf(row->reason, sizeof(row->reason), reason, list);
	va_end(list);
}

void series_add(enum series_id id, int64_t ns)
{
	struct series *s = &report.series[id];

	if (s->count < SAMPLES_MAX)
		s->us[s->count++] = (double)ns / 1e3;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double series_quantile(enum series_id id, double share)
{
	struct series sorted = report.series[id];

	if (sorted.count == 0)
		return 0;
	qsort(sorted.us, sorted.count, sizeof(sorted.us[0]), ascending);
	return sorted.us[(unsigned)((double)(sorted.count - 1) * share + 0.5)];
}

void report_table(FILE *out)
{
	fprintf(out, "%-31s %-13s %-44s %s\n", "CHECK", "VERDICT", "MEASURED", "WHY");
	for (int i = 0; i < ROWS; i++) {
		const struct row *row = &report.rows[i];

		if (!row_is_made(i))
			continue;
		fprintf(out, "%-31s %-13s %-44s %s\n", rows[i].title ? rows[i].title : driver->found,
			verdicts[row->verdict], row->value[0] ? row->value : "-", row->reason);
	}
	fprintf(out, "%s%s\n", report.machine.standin ? "Simulated, on a stand-in of the driver. " : "",
		report.sentence);
}

static void text(FILE *out, const char *key, const char *value, const char *after)
{
	fprintf(out, "\"%s\": \"", key);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', out);
		fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
	}
	fprintf(out, "\"%s", after);
}

/* Names no host, user, serial number or UUID: it can be published. */
void report_json(FILE *out)
{
	const struct machine *m = &report.machine;

	fprintf(out, "{\n  \"selftest\": 1,\n  \"simulated\": %s,\n  ", m->standin ? "true" : "false");
	text(out, "mechanism", driver->mechanism, ",\n  ");
	text(out, "program_sha256", report.program_hash, ",\n  \"machine\": {");
	text(out, "hardware", m->hardware, ", ");
	text(out, "board", m->board, ", ");
	fprintf(out, "\"cpus\": %ld, \"memory_gib\": %d, \"gpus\": %d,\n    ", m->cpus, m->memory_gib, m->gpus);
	text(out, "gpu", m->model, ", ");
	text(out, "driver", m->driver, ", ");
	text(out, "module", m->flavour, ", ");
	text(out, "gsp_firmware", m->gsp, ",\n    ");
	text(out, "kernel", m->kernel, ", ");
	fprintf(out, "\"persistence\": %s},\n  ", m->persistence < 0 ? "null" : m->persistence ? "true" : "false");
	text(out, "level", report.level, ",\n  ");
	text(out, "sentence", report.sentence, ",\n  ");
	fprintf(out, "\"exit_status\": %d,\n  \"took_s\": %.1f,\n  \"checks\": [\n", report.exit_status,
		(double)report.took_ns / (double)NS_PER_S);
	for (int i = 0, first = 1; i < ROWS; i++) {
		if (!row_is_made(i))
			continue;
		fprintf(out, "%s    {", first ? "" : ",\n");
		first = 0;
		text(out, "id", rows[i].id, ", ");
		text(out, "verdict", verdicts[report.rows[i].verdict], ", ");
		text(out, "value", report.rows[i].value, ", ");
		text(out, "reason", report.rows[i].reason, "}");
	}
	fprintf(out, "\n  ],\n  \"measured\": {\n");
	for (int i = 0; i < SERIES; i++)
		fprintf(out, "    \"%s\": {\"n\": %u, \"p50\": %.1f, \"p90\": %.1f, \"max\": %.1f}%s\n",
			series_names[i], report.series[i].count, series_quantile(i, 0.5), series_quantile(i, 0.9),
			series_quantile(i, 1), i + 1 < SERIES ? "," : "");
	fprintf(out, "  }\n}\n");
}
