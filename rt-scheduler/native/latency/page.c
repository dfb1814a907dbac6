/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - one HTML file without scripts and without links: cards, two drawings, a table. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "latency/report.h"

/* Of a drawing, in its own units. */
enum { LEFT = 78, RIGHT = 1080, WIDTH = 1100, TOP = 14, TAIL_BOTTOM = 374, COUNT_BOTTOM = 194, AXIS = 44, BINS = 160 };
enum { LABEL_WIDTH = 170, LABEL_HEIGHT = 17 };

static const char style[] =
	":root{color-scheme:light dark;--bg:#fff;--fg:#1a1f26;--muted:#5a6572;--line:#e1e5ea;--card:#f5f7f9;"
	"--as-is:#0b6bcb;--alone:#76828f;--driver:#d4680a;--mps:#8a4fd3;--room:#12805c;--gpuseg:#0b6bcb}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#11151a;--fg:#e7ebf0;--muted:#98a3b0;--line:#2a313a;"
	"--card:#191f26;--as-is:#58a6ff;--alone:#9aa5b1;--driver:#f59a45;--mps:#c297ff;--room:#4cc38a;--gpuseg:#58a6ff}"
	"}\n"
	"*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
	"font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\n"
	"main{max-width:1160px;margin:0 auto;padding:28px 30px 40px}h1{font-size:25px;margin:0 0 "
	"2px;letter-spacing:-.01em}\n"
	"h2{font-size:17px;margin:30px 0 2px}p{margin:4px 0}.muted{color:var(--muted)}.say{font-size:18px;margin:14px "
	"0 18px}\n"
	".cards{display:flex;gap:16px;flex-wrap:wrap}.card{flex:1 1 250px;background:var(--card);border-radius:10px;"
	"padding:13px 18px 15px;border-top:4px solid var(--c)}\n"
	".card "
	"b{display:block;font-size:34px;line-height:1.2;letter-spacing:-.02em;font-variant-numeric:tabular-nums}\n"
	".card span{color:var(--muted)}.card .name{color:var(--fg);font-weight:600}\n"
	"svg{width:100%;height:auto;display:block}svg text{fill:var(--muted);font-size:13px;paint-order:stroke;"
	"stroke:var(--bg);stroke-width:4px}svg "
	".grid{stroke:var(--line)}\n"
	"svg .mark{stroke:var(--muted);stroke-dasharray:3 5}svg .curve{fill:none;stroke:var(--c);stroke-width:2.6;"
	"stroke-linejoin:round}\n"
	"svg .area{fill:var(--c);fill-opacity:.22;stroke:var(--c);stroke-width:1.4;stroke-linejoin:round}"
	"svg .dot{fill:var(--c)}svg .end{fill:var(--c);font-weight:600}\n"
	"table{border-collapse:collapse;width:100%;margin-top:8px;font-size:14px;font-variant-numeric:tabular-nums}"
	"th,td{text-align:right;white-space:nowrap;padding:5px 6px;border-bottom:1px solid var(--line)}\n"
	"th{font-weight:500;color:var(--muted)}th:first-child,td:first-child{text-align:left}"
	"i{display:inline-block;width:11px;height:11px;border-radius:3px;background:var(--c);margin-right:8px}\n"
	".wide{overflow-x:auto}\n"
	"@media(max-width:640px){main{padding:18px 16px}.cards{gap:10px}.card{flex-basis:150px;padding:9px 12px 11px}"
	".card b{font-size:26px}svg{min-width:720px}}\n";

struct axis {
	double from, to; /* log10 of ns */
};

static void escaped(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*p, out);
		}
	}
}

/* Three digits, as people say it. In one of a few static buffers. */
static const char *span(int64_t ns)
{
	static char texts[8][32];
	static unsigned next;
	char *text = texts[next++ % ARRAY_LENGTH(texts)];
	const double value = (double)ns;
	const double scale = value < 999.5e3 ? 1e3 : value < 999.5e6 ? 1e6 : 1e9;
	const double shown = value / scale;

	snprintf(text, sizeof(texts[0]), "%.*f\u00a0%s",
		 shown < 9.995	 ? 2
		 : shown < 99.95 ? 1
				 : 0,
		 shown,
		 scale < 1e6   ? "µs"
		 : scale < 1e9 ? "ms"
			       : "s");
	return text;
}

static int64_t at(const struct measurement *m, uint64_t per_million)
{
	return histogram_at(&m->response.histogram, per_million);
}

/* A percentile that less than one sample lies above is only the longest once more. */
static const char *tail(const struct measurement *m, uint64_t per_million)
{
	const uint64_t above = m->response.histogram.count * (1000000 - per_million);

	return above < 1000000 ? "–" : span(at(m, per_million));
}

static double part_skipped(const struct measurement *m)
{
	return 100.0 * (double)m->skipped / (double)(m->skipped + m->response.histogram.count);
}

static const struct measurement *named(const struct report *r, const char *key)
{
	for (int i = 0; i < r->count; i++)
		if (strcmp(r->measurements[i].key, key) == 0)
			return &r->measurements[i];
	return NULL;
}

static void times_of(FILE *out, const struct measurement *m, const struct measurement *base)
{
	if (base && base != m)
		fprintf(out, " (%.*f times)", at(m, 990000) < 10 * at(base, 990000) ? 2 : 0,
			(double)at(m, 990000) / (double)at(base, 990000));
}

/* ---- head ---- */

static void sentence(const struct report *r, FILE *out)
{
	static const struct {
		const char *key, *words;
	} compared[] = {{"mps", "in MPS"}, {"room", "in MPS with 12 % kept free"}, {"gpuseg", "with gpuseg"}};
	const struct measurement *alone = named(r, "alone"), *driver = named(r, "driver");
	const struct measurement *first = &r->measurements[0];
	char loads[256];

	fputs("<p class=\"say\">", out);
	if (!driver) {
		fprintf(out,
			"99 %% of the %s end within <b>%s</b> of the time at which they were due; the longest "
			"took %s.",
			works_text(r), span(at(first, 990000)), span(first->response.histogram.max_ns));
	} else {
		fprintf(out, "99 %% of the %s end within ", works_text(r));
		if (alone)
			fprintf(out, "<b>%s</b> alone; beside %s within ", span(at(alone, 990000)),
				loads_text(r, loads, sizeof(loads)));
		fprintf(out, "<b style=\"color:var(--driver)\">%s</b>", span(at(driver, 990000)));
		times_of(out, driver, alone);
		fputs(" by the driver alone", out);
		for (size_t i = 0; i < ARRAY_LENGTH(compared); i++) {
			const struct measurement *m = named(r, compared[i].key);

			if (!m)
				continue;
			fprintf(out, ", <b style=\"color:var(--%s)\">%s</b>", m->key, span(at(m, 990000)));
			times_of(out, m, alone);
			fprintf(out, " %s", compared[i].words);
		}
		fputc('.', out);
	}
	fputs("</p>\n", out);
}

static void head(const struct report *r, FILE *out)
{
	const time_t now = time(NULL);
	char work[64], period[32], loads[256], day[32] = "";
	struct tm utc;

	if (gmtime_r(&now, &utc))
		strftime(day, sizeof(day), "%Y-%m-%d", &utc);
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>GPU latency: ",
	      out);
	escaped(out, r->gpu->name);
	fprintf(out, "</title>\n<style>%s</style></head>\n<body><main>\n<h1>GPU latency: ", style);
	escaped(out, r->gpu->name);
	fprintf(out, "</h1>\n<p class=\"muted\">A%s every %s · load: %s · driver ",
		work_text(r, work, sizeof(work)) + 1, duration_text(r->period_ns, period, sizeof(period)),
		loads_text(r, loads, sizeof(loads)));
	escaped(out, r->gpu->driver);
	fputs(" · ", out);
	escaped(out, r->system);
	fprintf(out, " · CPU scheduling %s", r->scheduling);
	if (r->daemon[0]) {
		fputs(" · gpuseg: ", out);
		escaped(out, r->daemon);
		fprintf(out, ", priority %d", r->priority);
	}
	fprintf(out, " · %s%s</p>\n", day, r->complete ? "" : " · ended early");
	sentence(r, out);
	fputs("<div class=\"cards\">\n", out);
	for (int i = 0; i < r->count; i++) {
		const struct measurement *m = &r->measurements[i];

		fprintf(out,
			"<div class=\"card\" style=\"--c:var(--%s)\"><span class=\"name\">%s</span><b>%s</b>"
			"<span>99 %% end within this time<br>half %s · 99.9\u00a0%% %s<br>longest %s<br>"
			"skipped %.3g\u00a0%%</span></div>\n",
			m->key, m->title, span(at(m, 990000)), span(at(m, 500000)), tail(m, 999000),
			span(m->response.histogram.max_ns), part_skipped(m));
	}
	fputs("</div>\n", out);
}

/* ---- drawings ---- */

static struct axis axis_of(const struct report *r)
{
	double least = 1e18, most = 1;

	for (int i = 0; i < r->count; i++) {
		const struct times *t = &r->measurements[i].response;

		least = fmin(least, (double)(t->min_ns > 0 ? t->min_ns : 1));
		most = fmax(most, (double)t->histogram.max_ns);
	}
	return (struct axis){.from = log10(least) - 0.06, .to = log10(most) + 0.12};
}

static double x_of(const struct axis *axis, double ns)
{
	const double part = (log10(ns > 1 ? ns : 1) - axis->from) / (axis->to - axis->from);

	return LEFT + fmin(fmax(part, 0), 1) * (RIGHT - LEFT);
}

static void axis_number(double ns, char *text, size_t size)
{
	const double scale = ns < 999e3 ? 1e3 : ns < 999e6 ? 1e6 : 1e9;

	snprintf(text, size, "%g %s", ns / scale, scale < 1e6 ? "µs" : scale < 1e9 ? "ms" : "s");
}

/* Lines at 1, 2 and 5 of each decade, numbers where there is room. */
static void draw_axis(const struct axis *axis, int bottom, const char *name, FILE *out)
{
	static const double steps[] = {1, 2, 5};
	const double decades = axis->to - axis->from;
	double last = -1e9;

	for (int e = (int)floor(axis->from); e <= (int)ceil(axis->to); e++) {
		for (size_t i = 0; i < (decades > 4 ? 1 : ARRAY_LENGTH(steps)); i++) {
			const double ns = steps[i] * pow(10, e), x = x_of(axis, ns);
			char text[32];

			if (log10(ns) < axis->from || log10(ns) > axis->to)
				continue;
			fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP,
				bottom);
			if (x - last < 58)
				continue;
			last = x;
			axis_number(ns, text, sizeof(text));
			fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", x, bottom + 18,
				text);
		}
	}
	if (last < 0) /* a range without such a line */
		fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>", LEFT, bottom + 18,
			span(llround(pow(10, axis->from))));
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", RIGHT, bottom + 38, name);
}

static void draw_period(const struct report *r, const struct axis *axis, int bottom, FILE *out)
{
	const double period = (double)r->period_ns, x = x_of(axis, period);
	char text[32];

	if (log10(period) <= axis->from || log10(period) >= axis->to)
		return;
	fprintf(out,
		"<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\"%s>the "
		"period, %s</text>\n",
		x, x, TOP, bottom, x + (x > 900 ? -6 : 6), TOP - 3, x > 900 ? " text-anchor=\"end\"" : "",
		duration_text(r->period_ns, text, sizeof(text)));
}

static double tail_y(double share, int decades)
{
	return TOP + fmin(-log10(share) / decades, 1) * (TAIL_BOTTOM - TOP);
}

/* The words about the end of a curve: the left end of their place, and whether they stand left of the curve's end. */
struct label {
	double x, y;
	bool left;
};

/* Right of the end if there is room, and not over the labels before. */
static struct label place(double x, double y, const struct label before[], int count)
{
	const bool left = x + 10 + LABEL_WIDTH > WIDTH;
	struct label label = {left ? x - 10 - LABEL_WIDTH : x + 10, y - 7, left};

	for (int i = 0; i < count; i++) {
		if (fabs(label.x - before[i].x) < LABEL_WIDTH && fabs(label.y - before[i].y) < LABEL_HEIGHT) {
			label.y = before[i].y - LABEL_HEIGHT;
			i = -1;
		}
	}
	return label;
}

static void draw_tail(const struct report *r, const struct axis *axis, FILE *out)
{
	struct label ends[MEASUREMENTS_MAX];
	uint64_t most = 10;
	int decades;

	for (int i = 0; i < r->count; i++)
		if (r->measurements[i].response.histogram.count > most)
			most = r->measurements[i].response.histogram.count;
	decades = (int)ceil(log10((double)most) - 1e-9);
	fprintf(out,
		"<h2>How many take longer</h2><p class=\"muted\">Read a curve from the left: the share of %s that need "
		"at "
		"least this time. Further left is better.</p>\n<div class=\"wide\"><svg viewBox=\"0 0 %d %d\" "
		"role=\"img\" "
		"aria-label=\"Share that needs at least a time\">\n",
		works_text(r), WIDTH, TAIL_BOTTOM + AXIS);
	draw_axis(axis, TAIL_BOTTOM, "from due to done", out);
	for (int e = 0; e <= decades; e++) {
		const double y = tail_y(pow(10, -e), decades);
		char text[96] = "all";

		if (e >= 4)
			snprintf(text, sizeof(text), "1 in 10<tspan dy=\"-5\" font-size=\"10\">%d</tspan>", e);
		else if (e)
			snprintf(text, sizeof(text), "1 in %.0f", pow(10, e));
		fprintf(out,
			"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
			"text-anchor=\"end\">%s</text>\n",
			LEFT, RIGHT, y, y, LEFT - 8, y + 4, text);
	}
	draw_period(r, axis, TAIL_BOTTOM, out);
	for (int i = 0; i < r->count; i++) {
		const struct measurement *m = &r->measurements[i];
		const struct histogram *h = &m->response.histogram;
		const double x_max = x_of(axis, (double)h->max_ns);
		double y = tail_y(1, decades);
		uint64_t seen = 0;

		fprintf(out, "<g style=\"--c:var(--%s)\"><path class=\"curve\" d=\"M%d %.1f", m->key, LEFT, y);
		for (unsigned b = 0; b < HISTOGRAM_BUCKETS && seen < h->count; b++) {
			if (!h->buckets[b])
				continue;
			fprintf(out, "H%.1f", fmin(x_of(axis, (double)histogram_value(b)), x_max));
			seen += h->buckets[b];
			if (seen == h->count)
				break;
			y = tail_y((double)(h->count - seen) / (double)h->count, decades);
			fprintf(out, "V%.1f", y);
		}
		fprintf(out, "\"/><circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", x_max, y);
		ends[i] = place(x_max, y, ends, i);
		fprintf(out, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\"%s>%s, longest %s</text></g>\n",
			ends[i].left ? ends[i].x + LABEL_WIDTH : ends[i].x, ends[i].y,
			ends[i].left ? " text-anchor=\"end\"" : "", m->key, span(h->max_ns));
	}
	fputs("</svg></div>\n", out);
}

static void draw_counts(const struct report *r, const struct axis *axis, FILE *out)
{
	static uint64_t bins[MEASUREMENTS_MAX][BINS];
	const double width = (double)(RIGHT - LEFT) / BINS;
	uint64_t most = 1;
	double top;

	memset(bins, 0, sizeof(bins));
	for (int i = 0; i < r->count; i++) {
		const struct histogram *h = &r->measurements[i].response.histogram;

		for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
			const int64_t value = histogram_value(b) < h->max_ns ? histogram_value(b) : h->max_ns;
			int bin = (int)((x_of(axis, (double)value) - LEFT) / width);

			if (!h->buckets[b])
				continue;
			bin = bin < BINS ? bin : BINS - 1;
			bins[i][bin] += h->buckets[b];
			most = bins[i][bin] > most ? bins[i][bin] : most;
		}
	}
	top = log10((double)most) + 0.3;
	fprintf(out,
		"<h2>Histogram</h2><p class=\"muted\">How many in each of %d steps of time; both scales are "
		"logarithmic.</p>\n<div class=\"wide\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Histogram "
		"of the times\">\n",
		BINS, WIDTH, COUNT_BOTTOM + AXIS);
	draw_axis(axis, COUNT_BOTTOM, "from due to done", out);
	for (int e = 0; e <= (int)top; e++) {
		const double y = COUNT_BOTTOM - (e + 0.3) / (top + 0.3) * (COUNT_BOTTOM - TOP);

		fprintf(out,
			"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
			"text-anchor=\"end\">%.0f</text>\n",
			LEFT, RIGHT, y, y, LEFT - 8, y + 4, pow(10, e));
	}
	draw_period(r, axis, COUNT_BOTTOM, out);
	for (int i = 0; i < r->count; i++) {
		fprintf(out, "<path class=\"area\" style=\"--c:var(--%s)\" d=\"M%d %d", r->measurements[i].key, LEFT,
			COUNT_BOTTOM);
		for (int b = 0; b < BINS; b++) {
			const double height =
				bins[i][b] ? (log10((double)bins[i][b]) + 0.3) / (top + 0.3) * (COUNT_BOTTOM - TOP) : 0;

			fprintf(out, "V%.1fH%.1f", COUNT_BOTTOM - height, LEFT + (b + 1) * width);
		}
		fprintf(out, "V%dZ\"/>\n", COUNT_BOTTOM);
	}
	fputs("</svg></div>\n", out);
}

/* ---- tables ---- */

static void tables(const struct report *r, FILE *out)
{
	fputs("<h2>Figures</h2><div "
	      "class=\"wide\"><table><tr><th></th><th>samples</th><th>skipped</th><th>least</th><th>mean</th><th>50 "
	      "%</th>"
	      "<th>90 %</th><th>99 %</th><th>99.9 %</th><th>99.99 %</th><th>longest</th><th>late, 99 %</th></tr>\n",
	      out);
	for (int i = 0; i < r->count; i++) {
		const struct measurement *m = &r->measurements[i];

		fprintf(out,
			"<tr style=\"--c:var(--%s)\"><td><i></i>%s</td><td>%" PRIu64 "</td><td>%" PRIu64
			"</td><td>%s</td><td>%s</td><td>%s</td>",
			m->key, m->title, m->response.histogram.count, m->skipped, span(m->response.min_ns),
			span(times_mean(&m->response)), span(at(m, 500000)));
		fprintf(out, "<td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			span(at(m, 900000)), span(at(m, 990000)), tail(m, 999000), tail(m, 999900),
			span(m->response.histogram.max_ns), span(histogram_at(&m->late.histogram, 990000)));
	}
	fputs("</table></div>\n", out);
	if (r->load_count && named(r, "driver")) {
		fputs("<h2>What the load gets</h2><div class=\"wide\"><table><tr><th>process</th>", out);
		for (int m = 0; m < r->count; m++)
			if (strcmp(r->measurements[m].key, "alone") != 0)
				fprintf(out, "<th>%s</th>", r->measurements[m].title);
		fputs("</tr>\n", out);
		for (int i = 0; i < r->load_count; i++) {
			fprintf(out, "<tr><td>%s: %s</td>", load_name(&r->loads[i]), load_unit(&r->loads[i]));
			for (int m = 0; m < r->count; m++)
				if (strcmp(r->measurements[m].key, "alone") != 0)
					fprintf(out, "<td>%.1f / s</td>", r->measurements[m].load_rates[i]);
			fputs("</tr>\n", out);
		}
		fputs("</table></div>\n", out);
	}
}

void report_page(const struct report *r, FILE *out)
{
	const struct axis axis = axis_of(r);

	head(r, out);
	draw_tail(r, &axis, out);
	draw_counts(r, &axis, out);
	tables(r, out);
	fputs("<p class=\"muted\" style=\"margin-top:22px\">A time counts from when the work was due "
	      "(CLOCK_MONOTONIC) until the CPU sees its end. What is due while the one before is not done is skipped "
	      "and counted. Percentiles are upper ends of buckets, at most 0.8 % above the sample. Made by gpuseg "
	      "latency.</p>\n</main></body></html>\n",
	      out);
}
