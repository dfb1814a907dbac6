/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-latency on a stand-in of the driver: what it measures, writes and refuses. No check depends on how long
 * anything takes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/histogram.h"
#include "common/base.h"
#include "latency/report.h"
#include "tests/check.h"
#include "tests/rig.h"

enum { TEXT_BYTES = 1 << 20 };

#define PROGRAM "gpuseg-latency"

static char text[TEXT_BYTES];

static void use_standin(void)
{
	const char *build = getenv("GPUSEG_TEST_BUILD");
	char path[4096];

	snprintf(path, sizeof(path), "%s/standin/latency", build ? build : "build");
	setenv("LD_LIBRARY_PATH", path, 1);
	setenv("GPUSEG_DIR", rig_directory(), 1); /* no daemon there */
}

static int run(const char *const arguments[])
{
	use_standin();
	return rig_run(PROGRAM, arguments, text, sizeof(text));
}

static const char *content(const char *path)
{
	static char bytes[TEXT_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	rig_read_all(fd, bytes, sizeof(bytes));
	return bytes;
}

static size_t lines_of(const char *s)
{
	size_t lines = 0;

	for (; *s; s++)
		lines += *s == '\n';
	return lines;
}

/* ---- a reader of JSON: NULL where it is none, else what follows the value ---- */

static const char *json_value(const char *p);

static const char *json_list(const char *p, char end, bool named)
{
	if (*p == end)
		return p + 1;
	for (;; p++) {
		if (named) {
			if (*p != '"')
				return NULL;
			p = json_value(p);
			if (!p || *p++ != ':')
				return NULL;
		}
		p = json_value(p);
		if (!p || (*p != ',' && *p != end))
			return NULL;
		if (*p == end)
			return p + 1;
	}
}

static const char *json_value(const char *p)
{
	char *end;

	if (*p == '{')
		return json_list(p + 1, '}', true);
	if (*p == '[')
		return json_list(p + 1, ']', false);
	if (*p == '"') {
		for (p++; *p && *p != '"'; p++)
			if (*p == '\\')
				p++;
		return *p ? p + 1 : NULL;
	}
	for (const char *const *word = (const char *const[]){"true", "false", "null", NULL}; *word; word++)
		if (strncmp(p, *word, strlen(*word)) == 0)
			return p + strlen(*word);
	strtod(p, &end);
	return end == p ? NULL : end;
}

static void check_json(void)
{
	const char *end = json_value(text);

	CHECK(end && strcmp(end, "\n") == 0, "no JSON, or more than that: %s", text);
}

/* The number behind a key, in the measurement of this name. */
static int64_t number(const char *measurement, const char *key)
{
	char name[64];
	const char *p;

	snprintf(name, sizeof(name), "\"name\":\"%s\"", measurement);
	p = strstr(text, name);
	CHECK(p, "no measurement %s: %s", measurement, text);
	snprintf(name, sizeof(name), "\"%s\":", key);
	p = strstr(p, name);
	CHECK(p, "no %s: %s", key, text);
	return strtoll(p + strlen(name), NULL, 10);
}

/* What the pairs of the measurement's histogram add up to. They ascend, and the longest is in the last. */
static int64_t histogram_sum(const char *measurement)
{
	char name[64];
	const char *p;
	int64_t sum = 0, last = -1;

	snprintf(name, sizeof(name), "\"name\":\"%s\"", measurement);
	p = strstr(strstr(text, name), "\"histogram_ns\":[");
	CHECK(p, "no histogram");
	p += strlen("\"histogram_ns\":[");
	while (*p == '[' || *p == ',') {
		long long value = 0, count = 0;

		p += *p == ',';
		CHECK(sscanf(p, "[%lld,%lld]", &value, &count) == 2 && value > last && count > 0, "at %.40s", p);
		last = value;
		sum += count;
		p = strchr(p, ']') + 1;
	}
	CHECK(last >= number(measurement, "max_ns"), "the longest is in the last bucket");
	return sum;
}

TEST(should_measure_as_it_is_without_any_option_but_the_duration)
{
	const char *const arguments[] = {"--duration", "100ms", "--json", NULL};

	CHECK_EQ(run(arguments), 0);
	check_json();
	CHECK_CONTAINS(text, "{\"gpu\":\"stand-in \\\"<0>\\\", no GPU\",");
	CHECK_CONTAINS(text, "\"work\":\"kernel\",\"kernel_ns\":0,\"copy_bytes\":0,\"graph_kernels\":0,"
			     "\"period_ns\":1000000,\"complete\":true,\"loads\":[]");
	CHECK(number("as-is", "samples") > 0, "nothing measured");
	/* Every time that was due is a sample or skipped; the last kernel may pass some behind the end. */
	CHECK(number("as-is", "samples") + number("as-is", "skipped") >= 100, "times are lost: %s", text);
	CHECK_EQ(histogram_sum("as-is"), number("as-is", "samples"));
	CHECK(number("as-is", "min_ns") <= number("as-is", "mean_ns") &&
		      number("as-is", "mean_ns") <= number("as-is", "max_ns"),
	      "out of order: %s", text);
	CHECK(number("as-is", "50") <= number("as-is", "99.9") && number("as-is", "99.9") <= number("as-is", "max_ns"),
	      "percentiles out of order: %s", text);
}

TEST(should_measure_alone_then_beside_each_kind_of_load)
{
	const char *const arguments[] = {
		"--work",     "200us", "--period", "2ms",   "--load", "products,copies,launches,contexts,reads",
		"--duration", "200ms", "--json",   "--gpu", "1",      NULL};
	const char *rates;

	CHECK_EQ(run(arguments), 0);
	check_json();
	CHECK_CONTAINS(text, "<1>");
	CHECK_CONTAINS(
		text,
		"\"kernel_ns\":200000,\"copy_bytes\":0,\"graph_kernels\":0,\"period_ns\":2000000,\"complete\":true,"
		"\"loads\":[\"products\",\"copies\",\"launches\",\"contexts\",\"reads\"]");
	CHECK_EQ(histogram_sum("alone"), number("alone", "samples"));
	CHECK_EQ(histogram_sum("driver"), number("driver", "samples"));
	CHECK_CONTAINS(strstr(text, "\"name\":\"alone\""), "\"loads_per_s\":[]");
	rates = strstr(strstr(text, "\"name\":\"driver\""), "\"loads_per_s\":[");
	CHECK(rates, "no rates: %s", text);
	rates += strlen("\"loads_per_s\":");
	for (int i = 0; i < 5; i++) {
		char *end;
		const double rate = strtod(rates + 1, &end);

		CHECK(end != rates + 1 && rate >= 0, "load %d: %s", i, rates); /* each did something, else it fails */
		rates = end;
	}
	CHECK(*rates == ']', "five rates");
}

/* Every launch of the graph carried out all its kernels: else the last one has not written its number. */
TEST(should_measure_copies_and_graphs)
{
	static const struct {
		const char *work, *json, *says, *plural;
	} cases[] = {
		{"copy:2MiB",
		 "\"work\":\"copy\",\"kernel_ns\":0,\"copy_bytes\":2097152,\"graph_kernels\":0,\"period_ns\":2000000,",
		 "a copy of 2 MiB to the GPU every 2 ms", "of the copies end"},
		{"copy:100KiB",
		 "\"work\":\"copy\",\"kernel_ns\":0,\"copy_bytes\":102400,\"graph_kernels\":0,\"period_ns\":1000000,",
		 "a copy of 100 KiB to the GPU every 1 ms", "of the copies end"},
		{"read:100us",
		 "\"work\":\"read\",\"kernel_ns\":100000,\"copy_bytes\":0,\"graph_kernels\":0,\"period_ns\":1000000,",
		 "a kernel that reads memory for 100 us every 1 ms", "of the kernels end"},
		{"graph:100",
		 "\"work\":\"graph\",\"kernel_ns\":0,\"copy_bytes\":0,\"graph_kernels\":100,\"period_ns\":2000000,",
		 "a CUDA graph of 100 kernels every 2 ms", "of the graphs end"},
	};
	const char *const lost[] = {"--work", "graph:5", "--duration", "60s", NULL};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const char *const json[] = {"--work", cases[i].work, "--duration", "100ms", "--json", NULL};
		const char *const page[] = {"--work", cases[i].work, "--duration", "50ms",
					    "--html", rig_path("p"), NULL};

		CHECK_EQ(run(json), 0);
		check_json();
		CHECK_CONTAINS(text, cases[i].json);
		CHECK(number("as-is", "samples") > 0, "nothing measured");
		CHECK_EQ(run(page), 0);
		CHECK_CONTAINS(text, cases[i].says);
		CHECK_CONTAINS(content(rig_path("p")), cases[i].says + 1);
		CHECK_CONTAINS(content(rig_path("p")), cases[i].plural);
	}
	/* A copy's time is in what was measured: ten bytes a nanosecond. */
	CHECK_EQ(run((const char *const[]){"--work", "copy:10MiB", "--duration", "50ms", "--json", NULL}), 0);
	CHECK(number("as-is", "min_ns") >= 10 << 20 >> 4, "shorter than the copy: %s", text);
	setenv("GPUSEG_STANDIN_FAIL", "graph", 1);
	CHECK_EQ(run(lost), 1);
	CHECK_CONTAINS(text, "gpuseg latency: kernel 5 is done and has not written its number, but 4\n");
	setenv("GPUSEG_STANDIN_FAIL", "cuGraphInstantiateWithFlags", 1);
	CHECK_EQ(run(lost), 1);
	CHECK_CONTAINS(text, "cuGraphInstantiateWithFlags: out of memory");
	CHECK_EQ(lines_of(text), 1);
	setenv("GPUSEG_STANDIN_FAIL", "cuMemAlloc", 1);
	CHECK_EQ(run((const char *const[]){"--work", "copy:8MiB", NULL}), 1);
	CHECK_CONTAINS(text, "cuMemAlloc_v2: out of memory");
	CHECK_EQ(lines_of(text), 1);
}

static int count_of(const char *in, const char *what)
{
	int count = 0;

	for (const char *at = in; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

/* A control daemon of MPS: somebody reads from the pipe. Every process that the stand-in finds there is in "clients" */
TEST(should_compare_with_mps_where_its_control_daemon_lives)
{
	const char *const loaded[] = {"--work",	    "100us",	   "--load", "launches,copies", "--compare",
				      "--duration", "100ms",	   "--json", "--html",		rig_path("p"),
				      "--histfile", rig_path("h"), NULL};
	const char *const bare[] = {"--compare", "--duration", "60s", NULL};
	const char *const broken[] = {"--compare", "--duration", "60s", "--break", "1us", "--json", NULL};
	const char *json, *clients;
	int reader;

	setenv("CUDA_MPS_PIPE_DIRECTORY", rig_directory(), 1);
	CHECK_EQ(mkfifo(rig_path("control"), 0600), 0);
	CHECK_EQ(run(bare), 3); /* a pipe that a dead daemon left */
	CHECK_CONTAINS(text, "--compare: no daemon runs; start it with");
	reader = open(rig_path("control"), O_RDWR | O_CLOEXEC);
	CHECK(reader >= 0, "%s", strerror(errno));
	CHECK_EQ(run(loaded), 0);
	CHECK_CONTAINS(text, "gpuseg latency: --compare: no daemon runs; only MPS in /tmp/gpuseg-test-");
	json = strchr(text, '{');
	CHECK(json, "no JSON: %s", text);
	memmove(text, json, strlen(json) + 1);
	check_json();
	CHECK_CONTAINS(text, "\"complete\":true");
	CHECK(number("alone", "samples") > 0 && number("driver", "samples") > 0, "nothing measured outside");
	CHECK_EQ(histogram_sum("mps"), number("mps", "samples"));
	CHECK_CONTAINS(strstr(text, "\"name\":\"mps\""), "\"loads_per_s\":[");
	CHECK_EQ(histogram_sum("room"), number("room", "samples"));
	CHECK_CONTAINS(strstr(text, "\"name\":\"room\""), "\"loads_per_s\":[");
	/* The measured process and its two loads, twice; what was measured before is none of them. */
	clients = content(rig_path("clients"));
	CHECK_EQ(lines_of(clients), 6);
	CHECK_EQ(count_of(clients, " - -\n"), 4);
	CHECK_EQ(count_of(clients, " 44 1\n"), 2);
	CHECK_CONTAINS(content(rig_path("p")), "beside load, in MPS");
	CHECK_CONTAINS(content(rig_path("p")), "in MPS, room kept free");
	CHECK_CONTAINS(content(rig_path("p")), "</b> (");
	CHECK_CONTAINS(content(rig_path("p")), " in MPS with 12 % kept free.</p>");
	CHECK(strncmp(content(rig_path("h")), "# us alone driver mps room\n", 27) == 0, "no column of MPS");
	CHECK_EQ(unlink(rig_path("clients")), 0);
	CHECK_EQ(run(broken), 3);
	CHECK_CONTAINS(text, "sample 1 (driver alone) took ");
	CHECK(access(rig_path("clients"), F_OK) != 0, "measured after the break");
	/* The control daemon lives, but the driver does not use it. */
	setenv("GPUSEG_STANDIN_FAIL", "mps", 1);
	CHECK_EQ(run((const char *const[]){"--compare", "--duration", "20ms", NULL}), 1);
	CHECK_CONTAINS(text, "the driver makes contexts outside of it; CUDA_MPS_PIPE_DIRECTORY=/none leaves MPS out\n");
	CHECK_CONTAINS(text, "\ndriver ");
	CHECK(!strstr(text, "\nmps "), "a row of what was not measured: %s", text);
	CHECK_EQ(close(reader), 0);
}

/* A part of the figures of one measurement. */
static int64_t part_of(const char *measurement, const char *part, const char *key)
{
	char name[64];
	const char *p;

	snprintf(name, sizeof(name), "\"name\":\"%s\"", measurement);
	p = strstr(text, name);
	snprintf(name, sizeof(name), "\"%s\":{", part);
	p = p ? strstr(p, name) : NULL;
	snprintf(name, sizeof(name), "\"%s\":", key);
	p = p ? strstr(p, name) : NULL;
	CHECK(p, "no %s of %s in %s: %s", key, part, measurement, text);
	return strtoll(p + strlen(name), NULL, 10);
}

/* What the stand-in takes for a copy of 64 MiB; a kernel beside the copies takes ten times as long. */
TEST(should_measure_a_space_beside_bounded_loads)
{
	const int64_t copy_ns = (INT64_C(64) << 20) / 10;
	const char *const space[] = {"--space",	 "12",	 "--work",     "1ms",	"--load", "copies,launches",
				     "--period", "20ms", "--duration", "400ms", "--json", NULL};
	const char *clients;
	int reader;

	setenv("CUDA_MPS_PIPE_DIRECTORY", rig_directory(), 1);
	CHECK_EQ(run(space), 3);
	CHECK_CONTAINS(text, "--space: no control daemon of MPS lives in /tmp/gpuseg-test-");
	CHECK_EQ(lines_of(text), 1);
	CHECK_EQ(mkfifo(rig_path("control"), 0600), 0);
	reader = open(rig_path("control"), O_RDWR | O_CLOEXEC);
	CHECK(reader >= 0, "%s", strerror(errno));
	setenv("GPUSEG_STANDIN_SLOW", "products=5000,copies=1000", 1);
	CHECK_EQ(run(space), 0);
	check_json();
	CHECK_CONTAINS(text, "\"complete\":true");
	CHECK_EQ(number("alone", "executions") + number("alone", "cpu_taken"), number("alone", "samples"));
	CHECK_EQ(number("space", "executions") + number("space", "cpu_taken"), number("space", "samples"));
	CHECK(part_of("alone", "response", "min_ns") * 2 < part_of("space", "response", "min_ns"), "not slowed: %s",
	      text);
	CHECK(part_of("space", "response", "min_ns") < INT64_C(40) * NS_PER_MS, "products run: %s", text);
	CHECK_EQ(number("alone", "batches"), 0);
	CHECK(number("space", "batches") > 0, "no load: %s", text);
	CHECK(part_of("space", "in_flight", "max_ns") >= copy_ns - NS_PER_US, "shorter than a copy: %s", text);
	/* The work under the limit of the reserve, twice, and each load under a part of the rest. */
	clients = content(rig_path("clients"));
	CHECK_EQ(lines_of(clients), 4);
	CHECK_EQ(count_of(clients, " 12 -\n"), 2);
	CHECK_EQ(count_of(clients, " 44 1\n"), 2);
	CHECK_EQ(close(reader), 0);
}

TEST(should_print_a_table_and_a_histogram)
{
	const char *const arguments[] = {"--duration", "50ms", NULL};

	CHECK_EQ(run(arguments), 0);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		CHECK(line == text || strchr(line, '\n') - line < 80, "wider than a terminal: %s", line);
	CHECK_CONTAINS(text, "stand-in \"<0>\", no GPU, driver ");
	CHECK_CONTAINS(text, "a kernel that does nothing every 1 ms");
	CHECK_CONTAINS(text, "; load: none\n");
	CHECK_CONTAINS(text, "p99.9");
	CHECK_CONTAINS(text, "\nas-is ");
	CHECK_CONTAINS(text, "up to us       as-is");
	CHECK_CONTAINS(text, "#\n");
}

TEST(should_stop_at_the_first_sample_above_break)
{
	const char *const arguments[] = {"--break", "1us", "--duration", "60s", "--json", NULL};
	const char *json;

	CHECK_EQ(run(arguments), 3); /* no kernel ends within 1 us of its time */
	CHECK_CONTAINS(text, "gpuseg latency: sample 1 (as it is) took ");
	CHECK_CONTAINS(text, "above --break");
	json = strchr(text, '{');
	CHECK(json, "no JSON");
	memmove(text, json, strlen(json) + 1);
	check_json();
	CHECK_EQ(number("as-is", "samples"), 1);
	CHECK_CONTAINS(text, "\"complete\":false");
	CHECK_CONTAINS(text, "\"break\":{\"sample\":1,\"took_ns\":");
}

TEST(should_write_a_page_and_lines)
{
	const char *const arguments[] = {"--work", "100us",	  "--load",	"launches",    "--duration", "100ms",
					 "--html", rig_path("p"), "--histfile", rig_path("h"), "--json",     NULL};
	long long us, alone, driver, sums[2] = {0}, last = -1;
	struct stat file;
	const char *p;

	CHECK_EQ(run(arguments), 0);
	p = content(rig_path("p"));
	CHECK_CONTAINS(p, "<!DOCTYPE html>");
	CHECK_CONTAINS(p, "GPU latency: stand-in &quot;&lt;0&gt;&quot;, no GPU");
	CHECK_CONTAINS(p, "A kernel of 100 us every 1 ms · load: launches");
	CHECK_CONTAINS(p, "beside load, driver alone");
	CHECK_CONTAINS(p, "prefers-color-scheme:dark");
	CHECK_CONTAINS(p, "@media(max-width:640px)"); /* a telephone: what is wide scrolls by itself */
	for (const char *w = p; (w = strstr(w + 1, "<table>"));)
		CHECK(strncmp(w - 18, "<div class=\"wide\">", 18) == 0, "a table that makes the page wide");
	CHECK(strcmp(p + strlen(p) - 8, "</html>\n") == 0, "ends with %s", p + strlen(p) - 8);
	CHECK(!strstr(p, "<script") && !strstr(p, "http") && !strstr(p, "nan") && !strstr(p, "inf\""), "not plain: %s",
	      p);
	p = content(rig_path("h"));
	CHECK(strncmp(p, "# us alone driver\n", 18) == 0, "%.40s", p);
	for (p += 18; sscanf(p, "%lld %lld %lld\n", &us, &alone, &driver) == 3; p = strchr(p, '\n') + 1) {
		CHECK(us > last && alone + driver > 0, "line %.40s", p);
		last = us;
		sums[0] += alone;
		sums[1] += driver;
	}
	CHECK_EQ(*p, '\0');
	CHECK_EQ(sums[0], number("alone", "samples"));
	CHECK_EQ(sums[1], number("driver", "samples"));
	CHECK(stat(rig_path("p"), &file) == 0 && (file.st_mode & 0777 & ~0644) == 0 && file.st_mode & 0400, "mode %o",
	      file.st_mode);
}

TEST(should_write_a_page_wholly_or_not_at_all)
{
	const char *const small[] = {"--duration", "20ms", "--html", rig_path("p"), "--json", NULL};
	const char *const full[] = {"--duration", "20ms", "--html", "/dev/full", "--json", NULL};
	const char *const nowhere[] = {"--duration", "60s", "--html", rig_path("none/p"), NULL};
	const char *const both[] = {"--duration", "20ms", "--histfile", "/dev/full", NULL};
	struct rlimit limit = {.rlim_cur = 2048, .rlim_max = RLIM_INFINITY};
	FILE *file = fopen(rig_path("p"), "we");

	CHECK(file && fputs("the page before", file) >= 0 && fclose(file) == 0, "%s", strerror(errno));
	CHECK_EQ(run(full), 1);
	CHECK_CONTAINS(text, "gpuseg latency: --html /dev/full: No space left on device");
	CHECK_EQ(run(both), 1);
	CHECK_CONTAINS(text, "gpuseg latency: --histfile /dev/full: No space left on device");
	CHECK_EQ(run(nowhere), 1); /* at once, not after a minute */
	CHECK_CONTAINS(text, "No such file or directory");
	CHECK_EQ(lines_of(text), 1);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 2048;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(run(small), 1);
	CHECK_CONTAINS(text, "File too large");
	CHECK(strcmp(content(rig_path("p")), "the page before") == 0, "the old page is gone");
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(run(small), 0);
	CHECK_CONTAINS(content(rig_path("p")), "</html>");
	snprintf(text, sizeof(text), "ls %s | grep -q part", rig_directory());
	CHECK(system(text) != 0, "a part was left"); /* grep finds none */
}

static bool has_samples(void *pid)
{
	char path[64];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/status", *(pid_t *)pid);
	p = strstr(content(path), "\nvoluntary_ctxt_switches:");
	/* It sleeps once for each kernel, and of a long measurement a thousand at most are for warmth. */
	return p && strtoll(p + strlen("\nvoluntary_ctxt_switches:"), NULL, 10) > 1200;
}

/* What the program prints on a terminal of this width until it is over; Ctrl-C is typed after some of it. */
static int on_terminal(const char *const arguments[], unsigned short columns, const char *terminal, bool interrupt)
{
	const struct winsize window = {.ws_row = 24, .ws_col = columns};
	const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n;
	pid_t pid;

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 && ioctl(master, TIOCSWINSZ, &window) == 0);
	use_standin();
	setenv("TERM", terminal, 1);
	pid = fork();
	if (pid == 0) {
		const char *build = getenv("GPUSEG_TEST_BUILD");
		const char *const *from = arguments;
		char path[4096], *argv[16] = {path};
		int slave;

		snprintf(path, sizeof(path), "%s/" PROGRAM, build ? build : "build");
		for (int i = 1; *from; i++)
			argv[i] = (char *)(uintptr_t)*from++;
		setsid();
		slave = open(ptsname(master), O_RDWR); /* its terminal, with the signals of its keys */
		dup2(slave, STDIN_FILENO);
		dup2(slave, STDERR_FILENO);
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		execv(path, argv);
		_exit(127);
	}
	text[0] = '\0';
	while ((n = read(master, text + length, sizeof(text) - 1 - length)) > 0) {
		length += (size_t)n;
		text[length] = '\0';
		if (interrupt && strstr(text, "\033[K")) {
			CHECK_EQ(write(master, "\x03", 1), 1);
			interrupt = false;
		}
	}
	close(master);
	return rig_wait(pid);
}

TEST(should_redraw_one_line_for_each_measurement_on_a_terminal)
{
	const char *const loaded[] = {"--load", "launches", "--duration", "600ms", NULL};
	const char *const endless[] = {"--duration", "3600s", NULL};
	char *rest;
	size_t lines = 0, redrawn = 0;

	CHECK_EQ(on_terminal(loaded, 80, "xterm", false), 0);
	for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		char *end = strstr(line, "\033[K");

		CHECK(end && end[3] == '\0' && end - line <= 79, "line %s", line);
		*end = '\0';
		CHECK(strncmp(line, "alone: ", 7) == 0 || strncmp(line, "driver: ", 8) == 0, "line %s", line);
		CHECK_CONTAINS(line, "  min ");
		CHECK_CONTAINS(line, "  act ");
		CHECK_CONTAINS(line, "  avg ");
		CHECK_CONTAINS(line, "  max ");
		CHECK_CONTAINS(line, "  p99.9 - us"); /* of 600 samples none says */
		redrawn++;
	}
	CHECK(redrawn >= 2, "%zu lines", redrawn);
	CHECK_EQ(on_terminal(loaded, 30, "xterm", false), 0);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	CHECK_EQ(lines, 2);
	for (const char *line = strchr(text, '\r'); line; line = strchr(line + 1, '\r'))
		CHECK(line[1] == '\n' || strstr(line, "\033[K") - line <= 30, "line %.60s", line);
	CHECK_EQ(on_terminal(endless, 80, "xterm", true), 0); /* Ctrl-C */
	CHECK(strcmp(text + strlen(text) - 5, "\033[K\r\n") == 0, "the line is left open: %s", text);
	CHECK_EQ(on_terminal(loaded, 80, "dumb", false), 0);
	CHECK_EQ(text[0], '\0');
	CHECK_EQ(run(loaded), 0); /* a pipe */
	CHECK(!strchr(text, '\033') && !strchr(text, '\r'), "escape codes in a pipe");
}

TEST(should_report_what_it_has_when_it_is_stopped)
{
	const char *const arguments[] = {"--duration", "3600s", "--json", NULL};
	int output;
	pid_t pid;

	use_standin();
	pid = rig_start(PROGRAM, arguments, &output);
	CHECK(rig_until(has_samples, &pid), "it measures nothing");
	kill(pid, SIGINT);
	rig_read_all(output, text, sizeof(text));
	CHECK_EQ(rig_wait(pid), 0);
	check_json();
	CHECK_CONTAINS(text, "\"complete\":false");
	CHECK_EQ(histogram_sum("as-is"), number("as-is", "samples"));
}

TEST(should_refuse_bad_options_in_one_line)
{
	static const struct {
		const char *arguments[6];
		const char *says;
	} cases[] = {
		{{"--period", "1", NULL}, "has no unit"},
		{{"--period", "10us", NULL}, "--period"},
		{{"--work", "5ms", "--period", "1ms", NULL}, "give a longer --period"},
		{{"--work", "5", NULL}, "has no unit"},
		{{"--work", "fast", NULL},
		 "\"fast\" is unknown; use a time (5ms), read:TIME (read:1ms), copy:SIZE (copy:8MiB)"},
		{{"--work", "read:", NULL}, "--work read"},
		{{"--space", "0", "--load", "copies", NULL}, "1 to 90"},
		{{"--space", "12", NULL}, "--space: give a --load"},
		{{"--work", "", NULL}, "\"\" is unknown; use a time"},
		{{"--work", "copy", NULL}, "is unknown; use a time"},
		{{"--work", "copy:", NULL}, "--work copy: \"\" is not a size; write it like 512KiB or 8MiB"},
		{{"--work", "copy:8MB", NULL}, "\"8MB\" is not a size"},
		{{"--work", "copy:-1MiB", NULL}, "\"-1MiB\" is not a size"},
		{{"--work", "copy:0KiB", NULL}, "is out of range; it must be 1KiB to 1GiB"},
		{{"--work", "copy:2GiB", NULL}, "is out of range; it must be 1KiB to 1GiB"},
		{{"--work", "copy:99999999999999999999KiB", NULL}, "is out of range; it must be 1KiB to 1GiB"},
		{{"--work", "graph:", NULL}, "1 to 1000"},
		{{"--work", "graph:0", NULL}, "--work graph: \"0\""},
		{{"--work", "graph:1001", NULL}, "1 to 1000"},
		{{"--period", "1s", "--duration", "500ms", NULL}, "give a longer one"},
		{{"--load", "products,everything", NULL}, "\"everything\" is unknown; use products, reads, copies"},
		{{"--load", "", NULL}, "is unknown; use products"},
		{{"--priority", "100", NULL}, "1 to 99"},
		{{"--gpu", "64", NULL}, "0 to 63"},
		{{"--break", "soon", NULL}, "is not a duration"},
		{{"--speed", NULL}, "gpuseg latency: unrecognized option '--speed'"},
		{{"fast", NULL}, "\"fast\" is no option"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		CHECK_EQ(run(cases[i].arguments), 2);
		CHECK_CONTAINS(text, cases[i].says);
		CHECK_EQ(lines_of(text), 1);
	}
}

TEST(should_say_in_one_line_what_is_missing)
{
	const char *const plain[] = {"--duration", "60s", NULL};
	const char *const third[] = {"--gpu", "2", NULL};
	const char *const copies[] = {"--duration", "20ms", "--load", "launches,copies", NULL};
	const char *const compare[] = {"--duration", "60s", "--compare", NULL};
	FILE *file;

	CHECK_EQ(run(compare), 3);
	CHECK_CONTAINS(text, "gpuseg latency: --compare: no daemon runs; start it with: sudo gpuseg run\n");
	CHECK_EQ(lines_of(text), 1);
	CHECK_EQ(run(third), 1);
	CHECK_CONTAINS(text, "--gpu: there is no GPU 2; use 0 to 1");
	setenv("GPUSEG_STANDIN_FAIL", "cuInit", 1);
	CHECK_EQ(run(plain), 3);
	CHECK_CONTAINS(text, "gpuseg latency: cuInit: no CUDA-capable device is detected");
	CHECK_EQ(lines_of(text), 1);
	setenv("GPUSEG_STANDIN_FAIL", "cuCtxCreate", 1);
	CHECK_EQ(run(plain), 1);
	CHECK_CONTAINS(text, "out of memory (CUDA error 2)");
	setenv("GPUSEG_STANDIN_FAIL", "cuStreamQuery", 1);
	CHECK_EQ(run(plain), 1);
	CHECK_CONTAINS(text, "cuStreamQuery: invalid argument");
	setenv("GPUSEG_STANDIN_FAIL", "cuMemAlloc", 1);
	CHECK_EQ(run(copies), 1); /* what was measured alone is printed */
	CHECK_CONTAINS(text, "load copies: cuMemAlloc: out of memory");
	CHECK_CONTAINS(text, "--load copies: the process ended with status 1");
	CHECK_CONTAINS(text, "\nalone ");
	/* No driver: what is found by its name is no library. */
	file = fopen(rig_path("libcuda.so.1"), "we");
	CHECK(file && fclose(file) == 0, "%s", strerror(errno));
	setenv("LD_LIBRARY_PATH", rig_directory(), 1);
	CHECK_EQ(rig_run(PROGRAM, plain, text, sizeof(text)), 3);
	CHECK_CONTAINS(text, "gpuseg latency: no NVIDIA driver on this machine: ");
	CHECK_EQ(lines_of(text), 1);
}

TEST(should_stop_the_trace_of_the_kernel_after_a_line_in_it)
{
	FILE *marker = fopen(rig_path("trace_marker"), "we"), *on = fopen(rig_path("tracing_on"), "we");

	CHECK(marker && on && fputs("1\n", on) >= 0 && fclose(on) == 0 && fclose(marker) == 0, "%s", strerror(errno));
	CHECK_EQ(trace_stop(rig_directory(), "sample 7"), 1);
	CHECK(strcmp(content(rig_path("trace_marker")), "sample 7") == 0, "no line");
	CHECK(content(rig_path("tracing_on"))[0] == '0', "not stopped");
	CHECK_EQ(trace_stop(rig_path("nowhere"), "sample 7"), 0);
}

TEST(should_keep_every_value_within_its_bucket)
{
	static struct histogram h;
	unsigned last = 0;

	for (int64_t value = 0; value < (INT64_C(1) << 61); value += 1 + value / 500) {
		const unsigned bucket = histogram_bucket(value);
		const int64_t end = histogram_value(bucket);

		CHECK(bucket < HISTOGRAM_BUCKETS && bucket >= last, "value %" PRId64 " in bucket %u after %u", value,
		      bucket, last);
		CHECK(end >= value && (double)(end - value) <= 0.008 * (double)value, "value %" PRId64 ", end %" PRId64,
		      value, end);
		CHECK_EQ(histogram_bucket(end), bucket);
		CHECK_EQ(histogram_bucket(end + 1), bucket + 1);
		last = bucket;
	}
	CHECK_EQ(histogram_at(&h, 500000), 0);
	for (int64_t value = 1; value <= 1000; value++)
		histogram_add(&h, value * 100000);
	CHECK_EQ(histogram_at(&h, 1000000), 100000000);
	CHECK(histogram_at(&h, 500000) >= 50000000 && histogram_at(&h, 500000) <= 50400000, "p50 %" PRId64,
	      histogram_at(&h, 500000));
	CHECK(histogram_at(&h, 999000) >= 99900000 && histogram_at(&h, 999000) <= 100000000, "p99.9 %" PRId64,
	      histogram_at(&h, 999000));
}

static const struct check_case cases[] = {
	CASE(should_measure_as_it_is_without_any_option_but_the_duration),
	CASE(should_measure_alone_then_beside_each_kind_of_load),
	CASE(should_measure_copies_and_graphs),
	CASE(should_compare_with_mps_where_its_control_daemon_lives),
	CASE(should_measure_a_space_beside_bounded_loads),
	CASE(should_print_a_table_and_a_histogram),
	CASE(should_stop_at_the_first_sample_above_break),
	CASE(should_write_a_page_and_lines),
	CASE(should_write_a_page_wholly_or_not_at_all),
	CASE(should_redraw_one_line_for_each_measurement_on_a_terminal),
	CASE(should_report_what_it_has_when_it_is_stopped),
	CASE(should_refuse_bad_options_in_one_line),
	CASE(should_say_in_one_line_what_is_missing),
	CASE(should_stop_the_trace_of_the_kernel_after_a_line_in_it),
	CASE(should_keep_every_value_within_its_bucket),
};
CHECK_MAIN_APART(cases)
