/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "latency/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base.h"

enum { ROWS = 14, BAR = 30, MIB = 1 << 20 };

static const uint64_t percentiles[] = {500000, 900000, 990000, 999000, 999900, 999990};

static double us(int64_t ns)
{
	return (double)ns / 1e3;
}

const char *duration_text(int64_t ns, char *text, size_t size)
{
	static const struct {
		int64_t ns;
		const char *name;
	} units[] = {{NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}, {1, "ns"}};

	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		if (ns >= units[i].ns || units[i].ns == 1) {
			snprintf(text, size, "%.4g %s", (double)ns / (double)units[i].ns, units[i].name);
			break;
		}
	}
	return text;
}

const char *work_text(const struct report *r, char *text, size_t size)
{
	char time[32];

	if (r->work.kind == WORK_COPY)
		snprintf(text, size, "a copy of %zu %s to the GPU", r->work.bytes >> (r->work.bytes % MIB ? 10 : 20),
			 r->work.bytes % MIB ? "KiB" : "MiB");
	else if (r->work.kind == WORK_GRAPH)
		snprintf(text, size, "a CUDA graph of %" PRIu32 " kernel%s", r->work.kernels,
			 r->work.kernels == 1 ? "" : "s");
	else if (r->kernel_ns)
		snprintf(text, size, r->work.kind == WORK_READ ? "a kernel that reads memory for %s" : "a kernel of %s",
			 duration_text(r->kernel_ns, time, sizeof(time)));
	else
		snprintf(text, size, "a kernel that does nothing");
	return text;
}

const char *works_text(const struct report *r)
{
	return r->work.kind == WORK_COPY ? "copies" : r->work.kind == WORK_GRAPH ? "graphs" : "kernels";
}

const char *loads_text(const struct report *r, char *text, size_t size)
{
	size_t length = 0;

	snprintf(text, size, "none");
	for (int i = 0; i < r->load_count; i++) {
		int same = 0, before = 0;

		for (int k = 0; k < r->load_count; k++) {
			same += r->loads[k].kind == r->loads[i].kind;
			before += k < i && r->loads[k].kind == r->loads[i].kind;
		}
		if (before || length >= size)
			continue;
		if (same > 1)
			length += (size_t)snprintf(text + length, size - length, "%s%d x %s", length ? ", " : "", same,
						   load_name(&r->loads[i]));
		else
			length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
						   load_name(&r->loads[i]));
	}
	return text;
}

/* ---- text ---- */

/* The value that ends row i of n between two values, in even steps of their logarithm. */
static int64_t row_end(int64_t first_ns, int64_t last_ns, int i, int n)
{
	return (int64_t)llround((double)first_ns * pow((double)last_ns / (double)first_ns, (double)(i + 1) / n));
}

static uint64_t count_between(const struct histogram *h, int64_t above_ns, int64_t to_ns)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		const int64_t value = histogram_value(i) < h->max_ns ? histogram_value(i) : h->max_ns;

		if (h->buckets[i] && value > above_ns && value <= to_ns)
			count += h->buckets[i];
	}
	return count;
}

static void text_histogram(const struct report *r, FILE *out)
{
	int64_t first_ns = INT64_MAX, last_ns = 1;
	uint64_t most = 1;

	for (int i = 0; i < r->count; i++) {
		const struct times *t = &r->measurements[i].response;

		if (t->histogram.count && t->min_ns < first_ns)
			first_ns = t->min_ns;
		if (t->histogram.max_ns > last_ns)
			last_ns = t->histogram.max_ns;
	}
	if (first_ns == INT64_MAX)
		return;
	first_ns = first_ns > 0 ? first_ns : 1;
	for (int pass = 0; pass < 2; pass++) {
		int64_t above_ns = -1;

		if (pass == 1) {
			fprintf(out, "\n%12s", "up to us");
			for (int m = 0; m < r->count; m++)
				fprintf(out, "  %10s", r->measurements[m].key);
			fprintf(out, r->count == 1 ? "  (bar: logarithm of the count)\n" : "\n");
		}
		for (int row = 0; row < ROWS; row++) {
			const int64_t end_ns = row == ROWS - 1 ? INT64_MAX : row_end(first_ns, last_ns, row, ROWS);
			uint64_t counts[MEASUREMENTS_MAX];

			for (int m = 0; m < r->count; m++) {
				counts[m] = count_between(&r->measurements[m].response.histogram, above_ns, end_ns);
				most = counts[m] > most ? counts[m] : most;
			}
			above_ns = end_ns;
			if (pass == 0)
				continue;
			fprintf(out, "%12.1f", us(row == ROWS - 1 ? last_ns : end_ns));
			for (int m = 0; m < r->count; m++)
				fprintf(out, "  %10" PRIu64, counts[m]);
			if (r->count == 1 && counts[0]) {
				const int bar = 1 + (int)(log((double)counts[0]) / log((double)most + 1) * (BAR - 1));

				fprintf(out, "  %.*s", bar, "##############################");
			}
			fputc('\n', out);
		}
	}
}

/* All within 80 columns: people paste it, and a terminal is no wider. */
void report_text(const struct report *r, FILE *out)
{
	char work[64], period[32], loads[256], texts[7][24];
	const bool loaded = r->load_count && strcmp(r->measurements[r->count - 1].key, "alone") != 0;

	fprintf(out, "%s, driver %s, %s\n", r->gpu->name, r->gpu->driver, r->system);
	fprintf(out, "%s every %s, from due until the CPU sees its end\n", work_text(r, work, sizeof(work)),
		duration_text(r->period_ns, period, sizeof(period)));
	fprintf(out, "CPU scheduling %s; load: %s%s\n", r->scheduling, loads_text(r, loads, sizeof(loads)),
		r->load_count ? ", but none in the row alone" : "");
	if (r->daemon[0])
		fprintf(out, "gpuseg: %s, priority %d\n", r->daemon, r->priority);
	fprintf(out, "\n%-7s %7s %7s %7s %7s %7s %7s %7s %7s %7s\n", "us", "samples", "skipped", "min", "avg", "p50",
		"p99", "p99.9", "max", "late");
	for (int i = 0; i < r->count; i++) {
		const struct measurement *m = &r->measurements[i];
		const struct histogram *h = &m->response.histogram;

		fprintf(out, "%-7s %7" PRIu64 " %7" PRIu64 " %7s %7s %7s %7s %7s %7s %7s\n", m->key, h->count,
			m->skipped, figure(m->response.min_ns, texts[0]), figure(times_mean(&m->response), texts[1]),
			figure(histogram_at(h, 500000), texts[2]), figure(histogram_at(h, 990000), texts[3]),
			/* of fewer samples it is only the longest once more */
			h->count >= 1000 ? figure(histogram_at(h, 999000), texts[4]) : "-", figure(h->max_ns, texts[5]),
			figure(histogram_at(&m->late.histogram, 990000), texts[6]));
	}
	if (loaded)
		fprintf(out, "\n%-12s", "load, 1/s");
	for (int m = 0; loaded && m < r->count; m++)
		if (strcmp(r->measurements[m].key, "alone") != 0)
			fprintf(out, "  %10s", r->measurements[m].key);
	for (int i = 0; loaded && i < r->load_count; i++) {
		fprintf(out, "\n%-12s", load_name(&r->loads[i]));
		for (int m = 0; m < r->count; m++)
			if (strcmp(r->measurements[m].key, "alone") != 0)
				fprintf(out, "  %10.1f", r->measurements[m].load_rates[i]);
	}
	fputs(loaded ? "\n" : "", out);
	text_histogram(r, out);
	fputs("\nPercentiles: upper end of a bucket, at most 0.8 % above the sample. late: 99 %\n"
	      "of the times until the CPU was awake, a part of the response. skipped: due\n"
	      "while the one before was not done.\n",
	      out);
}

/* ---- JSON ---- */

static void json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		if (*p < 0x20 || *p > 0x7e)
			fprintf(out, "\\u%04x", *p);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

static void json_times(FILE *out, const char *name, const struct times *t, bool histogram)
{
	const char *comma = "";

	fprintf(out, "\"%s\":{\"min_ns\":%" PRId64 ",\"mean_ns\":%" PRId64 ",\"max_ns\":%" PRId64 ",\"percentiles\":{",
		name, t->min_ns, times_mean(t), t->histogram.max_ns);
	for (size_t i = 0; i < ARRAY_LENGTH(percentiles); i++)
		fprintf(out, "%s\"%g\":%" PRId64, i ? "," : "", (double)percentiles[i] / 1e4,
			histogram_at(&t->histogram, percentiles[i]));
	fputc('}', out);
	if (histogram) {
		fputs(",\"histogram_ns\":[", out);
		for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
			if (!t->histogram.buckets[i])
				continue;
			fprintf(out, "%s[%" PRId64 ",%" PRIu64 "]", comma, histogram_value(i), t->histogram.buckets[i]);
			comma = ",";
		}
		fputc(']', out);
	}
	fputc('}', out);
}

/* executions: the samples in which the CPU was not taken. batches: what loads gave to the GPU at a time. */
static void json_space(FILE *out, const struct measurement *m)
{
	fprintf(out, ",\"cpu_taken\":%" PRIu64 ",\"executions\":%" PRIu64 ",", m->cpu_taken,
		m->execution.histogram.count);
	json_times(out, "execution", &m->execution, false);
	fprintf(out, ",\"batches\":%" PRIu64 ",\"batches_cpu_taken\":%" PRIu64 ",", m->in_flight.histogram.count,
		m->loads_cpu_taken);
	json_times(out, "in_flight", &m->in_flight, false);
}

void report_json(const struct report *r, FILE *out)
{
	fputs("{\"gpu\":", out);
	json_string(out, r->gpu->name);
	fputs(",\"driver\":", out);
	json_string(out, r->gpu->driver);
	fputs(",\"system\":", out);
	json_string(out, r->system);
	fputs(",\"cpu_scheduling\":", out);
	json_string(out, r->scheduling);
	fprintf(out, ",\"work\":\"%s\",\"kernel_ns\":%" PRId64 ",\"copy_bytes\":%zu,\"graph_kernels\":%" PRIu32,
		r->work.kind == WORK_COPY    ? "copy"
		: r->work.kind == WORK_GRAPH ? "graph"
		: r->work.kind == WORK_READ  ? "read"
					     : "kernel",
		r->kernel_ns, r->work.bytes, r->work.kernels);
	fprintf(out, ",\"period_ns\":%" PRId64 ",\"complete\":%s,\"loads\":[", r->period_ns,
		r->complete ? "true" : "false");
	for (int i = 0; i < r->load_count; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", load_name(&r->loads[i]));
	fputc(']', out);
	if (r->daemon[0]) {
		fputs(",\"daemon\":", out);
		json_string(out, r->daemon);
		fprintf(out, ",\"priority\":%d", r->priority);
	}
	fputs(",\"measurements\":[", out);
	for (int i = 0; i < r->count; i++) {
		const struct measurement *m = &r->measurements[i];

		fprintf(out,
			"%s{\"name\":\"%s\",\"samples\":%" PRIu64 ",\"skipped\":%" PRIu64 ",\"took_ns\":%" PRId64 ",",
			i ? "," : "", m->key, m->response.histogram.count, m->skipped, m->took_ns);
		json_times(out, "response", &m->response, true);
		fputc(',', out);
		json_times(out, "late", &m->late, false);
		if (r->space)
			json_space(out, m);
		fputs(",\"loads_per_s\":[", out);
		for (int k = 0; k < r->load_count && strcmp(m->key, "alone") != 0; k++)
			fprintf(out, "%s%.2f", k ? "," : "", m->load_rates[k]);
		fprintf(out, "],\"touches\":%" PRIu64, m->touches);
		if (m->broke)
			fprintf(out,
				",\"break\":{\"sample\":%" PRIu64 ",\"took_ns\":%" PRId64 ",\"after_ns\":%" PRId64 "}",
				m->response.histogram.count, m->response.last_ns, m->break_after_ns);
		fputc('}', out);
	}
	fputs("]}\n", out);
}

/* ---- plain lines ---- */

void report_histogram(const struct report *r, FILE *out)
{
	fputs("# us", out);
	for (int m = 0; m < r->count; m++)
		fprintf(out, " %s", r->measurements[m].key);
	fputc('\n', out);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS;) {
		const int64_t value = histogram_value(i) / 1000;
		uint64_t counts[MEASUREMENTS_MAX] = {0}, sum = 0;

		for (; i < HISTOGRAM_BUCKETS && histogram_value(i) / 1000 == value; i++) {
			for (int m = 0; m < r->count; m++) {
				counts[m] += r->measurements[m].response.histogram.buckets[i];
				sum += r->measurements[m].response.histogram.buckets[i];
			}
		}
		if (!sum)
			continue;
		fprintf(out, "%" PRId64, value);
		for (int m = 0; m < r->count; m++)
			fprintf(out, " %" PRIu64, counts[m]);
		fputc('\n', out);
	}
}
