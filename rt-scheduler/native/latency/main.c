/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-latency - what cyclictest is for a CPU, for a GPU: work that is due periodically, and how long it takes from
 * then until the CPU sees its end. See measure.h; `gpuseg latency` runs it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"
#include "gpuseg_abi.h"
#include "latency/mps.h"
#include "latency/report.h"

#define TRACING_DIR "/sys/kernel/tracing"
#define PERIOD_DEFAULT_NS NS_PER_MS
#define DURATION_DEFAULT_NS (10 * NS_PER_S)
#define DURATION_MAX_NS (24 * 3600 * NS_PER_S)
#define BEGIN_LIMIT_NS (10 * NS_PER_S)
#define SETTLE_NS (300 * NS_PER_MS) /* after the loads began, and after the daemon has seen the task */

#define COPY_BYTES_MAX (INT64_C(1) << 30)

enum {
	EXIT_NO = 3,
	KERNEL_PARTS = 4,
	PRIORITY_DEFAULT = 49,
	TINY_THREADS = 32,
	WORK_THREADS = 128,
	READ_THREADS = 512
};

enum { RESERVE_MAX = 90, WHOLE = 100, SPACE_CPU_PRIORITY = 50 };
enum { UNSET = -1, SPIN_LONG = 4000000, GRAPH_KERNELS_MAX = 1000, GRAPH_KERNELS_PER_MS = 50 };

static struct options {
	struct work work;
	int64_t kernel_ns, period_ns, duration_ns, break_ns;
	int gpu, priority, reserve; /* percent, of SPACE_ARGUMENT; 0: none is measured */
	bool compare, json;
	const char *html, *histfile;
	struct load loads[LOADS_MAX];
	int load_count;
} o = {.work = {.blocks = 1, .threads = TINY_THREADS},
       .period_ns = UNSET,
       .duration_ns = DURATION_DEFAULT_NS,
       .priority = PRIORITY_DEFAULT};

static struct gpu gpu;
static struct report report;
static char **arguments;
static struct load_order load_order;
static char mps[512]; /* pipe directory of MPS; "": it is not compared */
static gpuseg_client *client;
static gpuseg_task *task;

static const char help[] =
	"Usage: gpuseg latency [option]...\n"
	"Measure how late periodic work ends on an NVIDIA GPU, as cyclictest does for a CPU. A latency counts from "
	"the\n"
	"time at which the work was due until the CPU sees its end. Needs no daemon, no root and no CUDA toolkit.\n\n"
	"  --work WORK: a kernel of some time, such as 5ms; read:TIME: one that reads memory; copy:SIZE, such as "
	"copy:8MiB:\n"
	"      a camera's frame from pinned memory to the GPU; graph:N: a CUDA graph of N kernels that do nothing "
	"(default:\n"
	"      one such kernel).\n"
	"  --period TIME: how often it is due (default: 1ms, or more: 4 times the kernel, 1ms for each MiB or 50 "
	"kernels).\n"
	"  --duration TIME: of each measurement (default: 10s). Ctrl-C ends it earlier.\n"
	"  --load KIND,...: measure alone, then beside a process for each KIND that keeps the GPU busy: products, "
	"reads,\n"
	"      copies, launches, contexts. A KIND may stand there several times.\n"
	"  --compare: measure once more among clients of MPS (beside load also with limits that leave 12 percent of "
	"the\n"
	"      GPU free), and as a real-time task of the daemon; one of them must run.\n"
	"  --priority N: of that task, 1..99 (default: 49).\n"
	"  --gpu N: which GPU, as nvidia-smi counts (default: 0).\n"
	"  --break TIME: end at the first latency above TIME, and stop the kernel's trace where that is permitted.\n"
	"  --json: print one JSON object instead of the table.\n"
	"  --html FILE: write a page with the distributions.\n"
	"  --histfile FILE: write lines of microseconds and counts.\n\n"
	"chrt -f 50 gpuseg latency gives the measuring thread a real-time priority on its CPU.\n\n"
	"Exit status: 0 measured, 1 failure, 2 usage, 3 no GPU, a latency above --break, or nothing to compare.\n";

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

/* ---- options ---- */

static void refuse_work(const char *text)
{
	usage_error(
		"--work: \"%s\" is unknown; use a time (5ms), read:TIME (read:1ms), copy:SIZE (copy:8MiB) or graph:N "
		"(graph:20)",
		text);
}

/* As the daemon's settings: a whole number and KiB, MiB or GiB. */
static size_t take_size(const char *text)
{
	static const char *const units[] = {"KiB", "MiB", "GiB"};
	char *unit = NULL;
	const int64_t number = *text >= '0' && *text <= '9' ? strtoll(text, &unit, 10) : 0;

	for (size_t i = 0; unit && i < ARRAY_LENGTH(units); i++) {
		if (strcmp(unit, units[i]) != 0)
			continue;
		if (number < 1 || number > COPY_BYTES_MAX >> (10 * (i + 1)))
			usage_error("--work copy: \"%s\" is out of range; it must be 1KiB to 1GiB", text);
		return (size_t)number << (10 * (i + 1));
	}
	usage_error("--work copy: \"%s\" is not a size; write it like 512KiB or 8MiB", text);
}

static void take_work(const char *text)
{
	o.work = (struct work){.blocks = 1, .threads = TINY_THREADS};
	o.kernel_ns = 0;
	if (strncmp(text, "copy:", strlen("copy:")) == 0) {
		o.work.kind = WORK_COPY;
		o.work.bytes = take_size(text + strlen("copy:"));
	} else if (strncmp(text, "graph:", strlen("graph:")) == 0) {
		o.work.kind = WORK_GRAPH;
		o.work.kernels =
			(uint32_t)option_integer("--work graph", text + strlen("graph:"), 1, GRAPH_KERNELS_MAX);
	} else if (strncmp(text, "read:", strlen("read:")) == 0) {
		o.work.kind = WORK_READ;
		o.kernel_ns = option_duration("--work read", text + strlen("read:"), NS_PER_US, 10 * NS_PER_S);
	} else if (*text >= '0' && *text <= '9') {
		o.kernel_ns = option_duration("--work", text, NS_PER_US, 10 * NS_PER_S);
	} else {
		refuse_work(text);
	}
}

/* So long that the work has time to end, whatever this machine needs for it. */
static int64_t default_period(void)
{
	const int64_t takes_ns = o.work.kind == WORK_COPY    ? (int64_t)(o.work.bytes * NS_PER_MS >> 20)
				 : o.work.kind == WORK_GRAPH ? o.work.kernels * NS_PER_MS / GRAPH_KERNELS_PER_MS
							     : KERNEL_PARTS * o.kernel_ns;

	return takes_ns > PERIOD_DEFAULT_NS ? takes_ns : PERIOD_DEFAULT_NS;
}

static void take_loads(const char *text)
{
	char kind[32];

	for (const char *p = text;;) {
		const size_t length = strcspn(p, ",");

		snprintf(kind, sizeof(kind), "%.*s", (int)(length < sizeof(kind) ? length : sizeof(kind) - 1), p);
		if (!load_kind_named(kind))
			usage_error("--load: \"%s\" is unknown; use " LOAD_KINDS, kind);
		if (o.load_count == LOADS_MAX)
			usage_error("--load: more than %d processes; use fewer", LOADS_MAX);
		o.loads[o.load_count++].kind = load_kind_named(kind);
		if (p[length] == '\0')
			return;
		p += length + 1;
	}
}

static void parse_options(int argc, char **argv)
{
	enum { WORK = 1, PERIOD, DURATION, LOAD, COMPARE, PRIORITY, GPU, BREAK, JSON, HTML, HISTFILE };
	static const struct option known[] = {
		{"work", required_argument, NULL, WORK},
		{"period", required_argument, NULL, PERIOD},
		{"duration", required_argument, NULL, DURATION},
		{"load", required_argument, NULL, LOAD},
		{"compare", no_argument, NULL, COMPARE},
		{"priority", required_argument, NULL, PRIORITY},
		{"gpu", required_argument, NULL, GPU},
		{"break", required_argument, NULL, BREAK},
		{"json", no_argument, NULL, JSON},
		{"html", required_argument, NULL, HTML},
		{"histfile", required_argument, NULL, HISTFILE},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (option) {
		case WORK:
			take_work(optarg);
			break;
		case PERIOD:
			o.period_ns = option_duration("--period", optarg, 50 * NS_PER_US, 100 * NS_PER_S);
			break;
		case DURATION:
			o.duration_ns = option_duration("--duration", optarg, NS_PER_MS, DURATION_MAX_NS);
			break;
		case LOAD:
			take_loads(optarg);
			break;
		case COMPARE:
			o.compare = true;
			break;
		case PRIORITY:
			o.priority = (int)option_integer("--priority", optarg, 1, 99);
			break;
		case GPU:
			o.gpu = (int)option_integer("--gpu", optarg, 0, 63);
			break;
		case BREAK:
			o.break_ns = option_duration("--break", optarg, NS_PER_US, DURATION_MAX_NS);
			break;
		case JSON:
			o.json = true;
			break;
		case HTML:
			o.html = optarg;
			break;
		case HISTFILE:
			o.histfile = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("\"%s\" is no option; see gpuseg latency --help", argv[optind]);
	if (o.period_ns == UNSET)
		o.period_ns = default_period();
	if (o.kernel_ns >= o.period_ns)
		usage_error("--work: %" PRId64 " us do not fit into a period of %" PRId64 " us; give a longer --period",
			    o.kernel_ns / 1000, o.period_ns / 1000);
	if (o.duration_ns < o.period_ns)
		usage_error("--duration: %" PRId64 " us are shorter than the period, %" PRId64 " us; give a longer one",
			    o.duration_ns / 1000, o.period_ns / 1000);
}

/* ---- the daemon ---- */

/* What the daemon does on this GPU: fills report.daemon. 0, or an exit status after one line. */
static int ask_daemon(void)
{
	struct gpuseg_status status = {0};
	char directory[512], path[600];
	ssize_t got = -1;
	int fd;

	if (gpuseg_runtime_dir(directory, sizeof(directory)) < 0)
		directory[0] = '\0';
	snprintf(path, sizeof(path), "%s/" GPUSEG_STATUS_NAME, directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, &status, sizeof(status));
		close(fd);
	}
	if (got == sizeof(status) && status.magic == GPUSEG_STATUS_MAGIC && strcmp(status.mechanism, "sim") == 0) {
		message("--compare: the daemon schedules a virtual GPU, not this one; start it with: sudo gpuseg run");
		return EXIT_NO;
	}
	if (got == sizeof(status) && status.magic == GPUSEG_STATUS_MAGIC)
		snprintf(report.daemon, sizeof(report.daemon), "mechanism %.15s, policy %.15s", status.mechanism,
			 status.policy);
	else
		snprintf(report.daemon, sizeof(report.daemon), "mechanism unknown");
	return 0;
}

/* 0 or -errno, after one line. */
static int connect_daemon(void)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	int rc;

	attr.name = "latency";
	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST; /* what runs unmanaged is not to be measured */
	rc = gpuseg_connect(&attr, &client);
	if (rc < 0 && rc != -ENOTCONN)
		message("--compare: %s", gpuseg_last_message(NULL));
	return rc;
}

static void disconnect_daemon(void)
{
	gpuseg_disconnect(client);
	client = NULL;
	task = NULL;
}

/* Before anything is measured: what is there to compare with? 0, or an exit status after one line. */
static int check_compared(void)
{
	const int rc = connect_daemon();

	if (!mps_find(mps, sizeof(mps)))
		mps[0] = '\0';
	else
		mps_avoid();
	if (rc == 0) {
		disconnect_daemon();
		return ask_daemon();
	}
	if (rc != -ENOTCONN)
		return EXIT_FAILURE;
	if (mps[0]) {
		message("--compare: no daemon runs; only MPS in %s is compared", mps);
		return 0;
	}
	message("--compare: no daemon runs; start it with: sudo gpuseg run");
	return EXIT_NO;
}

static int open_task(void)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;

	const int rc = connect_daemon();

	if (rc == -ENOTCONN)
		message("--compare: the daemon has ended");
	if (rc != 0)
		return -1;
	attr.name = "latency";
	attr.priority = (uint32_t)o.priority;
	attr.gpu = (uint32_t)gpu.index;
	attr.period_ns = o.period_ns;
	attr.timeout_ns = BEGIN_LIMIT_NS;
	attr.spin_count = SPIN_LONG; /* it keeps its processor while it waits, as it does for the kernel */
	if (gpuseg_task_open(client, &attr, &task) == 0)
		return 0;
	message("--compare: %s", gpuseg_last_message(client));
	return -1;
}

/* 0, or an exit status after one line. */
static int check_space(void)
{
	if (!o.load_count)
		usage_error(SPACE_ARGUMENT ": give a --load");
	if (!mps_find(mps, sizeof(mps))) {
		message(SPACE_ARGUMENT ": no control daemon of MPS lives in %s", mps);
		return EXIT_NO;
	}
	mps_avoid();
	return 0;
}

/* ---- measurements ---- */

static struct measurement *next_measurement(const char *key, const char *title)
{
	struct measurement *m = &report.measurements[report.count++];

	m->key = key;
	snprintf(m->title, sizeof(m->title), "%s", title);
	return m;
}

static void say_break(const struct measurement *m)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "sample %" PRIu64 " (%s) took %.1f us, above --break, %.6f s after its begin, at %.6f s",
		 m->response.histogram.count, m->title, (double)m->response.last_ns / 1e3,
		 (double)m->break_after_ns / 1e9, (double)m->break_at_ns / 1e9);
	message("%s of CLOCK_MONOTONIC%s", text,
		trace_stop(TRACING_DIR, text) ? "; the kernel's trace is stopped" : "");
}

static int run_measurement(const struct plan *plan, const char *key, const char *title)
{
	struct measurement *m = next_measurement(key, title);
	const bool loaded = o.load_count && strcmp(key, "alone") != 0;
	const bool bounded = loaded && plan->space;
	int rc;

	sleep_until(now_ns() + SETTLE_NS, &stopping);
	for (int i = 0; loaded && i < o.load_count; i++)
		o.loads[i].done_before = load_done(&o.loads[i]);
	const int64_t began_ns = now_ns();

	if (bounded)
		loads_measure(o.loads, o.load_count, true);
	rc = measure(&gpu, plan, client, task, m);
	if (bounded)
		loads_measure(o.loads, o.load_count, false);
	if (m->broke)
		say_break(m);
	for (int i = 0; loaded && i < o.load_count; i++)
		m->load_rates[i] =
			(double)(load_done(&o.loads[i]) - o.loads[i].done_before) * 1e9 / (double)(now_ns() - began_ns);
	if (m->response.histogram.count == 0)
		report.count--; /* ended before the first sample */
	return rc == 0 && loaded ? loads_check(o.loads, o.load_count) : rc;
}

/* The keys of what is measured in MPS: loads as they are, and limited. */
static const char *mps_key(const struct mps_page *page)
{
	return page->alone ? "alone" : page->reserve ? "space" : page->limit ? "room" : "mps";
}

static const char *mps_title(const struct mps_page *page)
{
	return page->alone     ? "alone"
	       : page->reserve ? "beside load, in a space"
	       : page->limit   ? "in MPS, room kept free"
	       : o.load_count  ? "beside load, in MPS"
			       : "in MPS";
}

static bool go_on(void)
{
	return !stopping && !(report.count && report.measurements[report.count - 1].broke);
}

/* In the process of its own: measures among clients of MPS. An exit status. */
static int measure_in_mps(struct mps_page *page)
{
	int rc = gpu_find(&gpu, o.gpu);

	if (rc == 0)
		rc = gpu_open(&gpu, 0);
	if (rc == 0)
		rc = mps_check(&gpu, page);
	__atomic_store_n(&page->started, 1, __ATOMIC_RELEASE); /* pairs with mps.c: wait_for() */
	if (rc == 0)
		rc = gpu_prepare(&gpu, &page->plan.work);
	if (page->limit)
		mps_limit(page->limit); /* this process has its context */
	if (page->alone)
		o.load_count = 0;
	if (rc == 0)
		rc = loads_start(o.loads, o.load_count, o.gpu, &page->order);
	if (rc == 0 && !stopping)
		rc = run_measurement(&page->plan, mps_key(page), mps_title(page));
	loads_stop(o.loads, o.load_count);
	for (int i = 0; rc == 0 && i < o.load_count; i++) {
		times_merge(&report.measurements[0].in_flight, &o.loads[i].page->in_flight);
		report.measurements[0].loads_cpu_taken += o.loads[i].page->cpu_taken;
	}
	if (report.count) {
		page->measurement = report.measurements[0];
		__atomic_store_n(&page->done, 1, __ATOMIC_RELEASE);
	}
	gpu_close(&gpu);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The loads are clients of MPS meanwhile. */
static int run_mps(const struct plan *plan, int limit, bool alone)
{
	static struct mps_page order;
	struct measurement *m;
	int rc;

	loads_stop(o.loads, o.load_count);
	order.plan = *plan;
	order.limit = limit;
	order.reserve = o.reserve;
	order.alone = alone;
	order.order = load_order;
	order.gpu_index = gpu.index;
	m = next_measurement(mps_key(&order), mps_title(&order));
	rc = mps_run(mps, &order, arguments, m);
	m->key = mps_key(&order); /* the child's has another address */
	if (m->response.histogram.count == 0)
		report.count--;
	return rc;
}

static int measure_space(const struct plan *plan)
{
	int rc = run_mps(plan, 0, true);

	if (rc == 0 && go_on())
		rc = run_mps(plan, (WHOLE - o.reserve) / o.load_count, false);
	return rc;
}

static int measure_all(const struct plan *plan)
{
	int rc = 0;

	if (o.reserve)
		return measure_space(plan);

	if (!o.load_count && !o.compare)
		return run_measurement(plan, "as-is", "as it is");
	if (o.load_count) {
		rc = run_measurement(plan, "alone", "alone");
		if (rc == 0 && go_on())
			rc = loads_start(o.loads, o.load_count, o.gpu, &load_order);
	}
	if (rc == 0 && go_on())
		rc = run_measurement(plan, "driver", o.load_count ? "beside load, driver alone" : "driver alone");
	if (rc == 0 && go_on() && mps[0]) {
		rc = run_mps(plan, 0, false);
		if (rc == 0 && go_on() && o.load_count)
			rc = run_mps(plan, (WHOLE - MPS_ROOM) / o.load_count, false);
		if (rc == 0 && go_on() && report.daemon[0])
			rc = loads_start(o.loads, o.load_count, o.gpu, &load_order);
	}
	if (rc == 0 && go_on() && report.daemon[0]) {
		rc = open_task();
		if (rc == 0 && go_on())
			rc = run_measurement(plan, "gpuseg", o.load_count ? "beside load, with gpuseg" : "with gpuseg");
		disconnect_daemon();
	}
	return rc;
}

static void describe_machine(void)
{
	static const char *const names[] = {[SCHED_OTHER] = "other", [SCHED_FIFO] = "fifo", [SCHED_RR] = "rr"};
	struct sched_param parameter = {0};
	const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	struct utsname system;

	if (uname(&system) == 0)
		snprintf(report.system, sizeof(report.system), "%.20s %.64s %.20s%s", system.sysname, system.release,
			 system.machine, strstr(system.version, "PREEMPT_RT") ? " PREEMPT_RT" : "");
	sched_getparam(0, &parameter);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		snprintf(report.scheduling, sizeof(report.scheduling), "%s:%d", names[policy],
			 parameter.sched_priority);
	else
		snprintf(report.scheduling, sizeof(report.scheduling), "%s",
			 policy == SCHED_OTHER ? "other" : "special");
}

/*
 * A loop in a space has such a priority, and what its CPU does for others is no slowdown. Loads do not inherit it.
 * Where it is not permitted, samples in which the CPU was taken are left out.
 */
static void take_cpu_priority(void)
{
	const struct sched_param parameter = {.sched_priority = SPACE_CPU_PRIORITY};

	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter);
}

/* As cyclictest: processors that sleep deeply wake late. Where it is not permitted, they do. The file stays open. */
static void keep_processors_awake(void)
{
	const int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	const int32_t latency_us = 0;

	if (fd >= 0 && write(fd, &latency_us, sizeof(latency_us)) != sizeof(latency_us))
		close(fd);
}

/* The multiprocessors that the work's kernel is for: in a space those of the reserve. */
static unsigned int work_blocks(void)
{
	const unsigned int part =
		o.reserve ? gpu.multiprocessors * (unsigned int)o.reserve / WHOLE : gpu.multiprocessors;

	return part ? part : 1;
}

/* The rounds of a load's kernel; unchanged if there is no such load. */
static int prepare_load(const char *name, enum work_kind kind, uint64_t *rounds)
{
	struct work work = {.kind = kind, .blocks = gpu.multiprocessors * PRODUCTS_BLOCKS, .threads = PRODUCTS_THREADS};
	bool needed = false;

	for (int i = 0; i < o.load_count; i++)
		needed = needed || strcmp(load_name(&o.loads[i]), name) == 0;
	if (!needed)
		return 0;
	if (gpu_prepare(&gpu, &work) != 0 ||
	    gpu_calibrate(&gpu, &work, load_order.bounded ? BOUNDED_NS : PRODUCTS_NS) != 0)
		return -1;
	*rounds = work.rounds;
	return 0;
}

static int prepare(struct plan *plan)
{
	const int rc = gpu_find(&gpu, o.gpu);

	if (rc != 0)
		return rc;
	if (gpu_open(&gpu, 0) != 0)
		return -1;
	plan->work = o.work;
	if (o.kernel_ns) {
		plan->work.blocks = work_blocks();
		plan->work.threads = o.work.kind == WORK_READ ? READ_THREADS : WORK_THREADS;
	}
	if (gpu_prepare(&gpu, &plan->work) != 0 || (o.kernel_ns && gpu_calibrate(&gpu, &plan->work, o.kernel_ns) != 0))
		return -1;
	load_order.bounded = o.reserve != 0;
	load_order.multiprocessors = gpu.multiprocessors;
	return prepare_load("products", WORK_KERNEL, &load_order.product_rounds) != 0 ||
			       prepare_load("reads", WORK_READ, &load_order.read_rounds) != 0
		       ? -1
		       : 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
	const char *const terminal = getenv("TERM");
	struct mps_page *of_mps = NULL;
	struct plan plan = {0};
	struct output page, lines;
	int rc;

	program_name = "gpuseg latency";
	sigaction(SIGTERM, &action, NULL);
	if (argc > 1 && strcmp(argv[1], LOAD_ARGUMENT) == 0)
		return load_main(argc - 2, argv + 2);
	sigaction(SIGINT, &action, NULL);
	argv[0] = (char *)(uintptr_t)program_name; /* for getopt_long */
	if (argc > 2 && strcmp(argv[1], MPS_ARGUMENT) == 0) {
		of_mps = mps_take(argv[2]);
		if (!of_mps)
			return EXIT_FAILURE;
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	if (argc > 2 && strcmp(argv[1], SPACE_ARGUMENT) == 0) {
		o.reserve = (int)option_integer(SPACE_ARGUMENT, argv[2], 1, RESERVE_MAX);
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	arguments = argv;
	parse_options(argc, argv);
	if (o.reserve || (of_mps && of_mps->reserve))
		take_cpu_priority();
	if (of_mps)
		return measure_in_mps(of_mps);
	plan.period_ns = o.period_ns;
	plan.duration_ns = o.duration_ns;
	plan.break_ns = o.break_ns;
	plan.space = o.reserve != 0;
	plan.live = isatty(STDERR_FILENO) && strcmp(terminal ? terminal : "", "dumb") != 0;
	if ((o.html && output_check(&page, "--html", o.html) != 0) ||
	    (o.histfile && output_check(&lines, "--histfile", o.histfile) != 0))
		return EXIT_FAILURE;
	rc = o.reserve ? check_space() : o.compare ? check_compared() : 0;
	if (rc != 0)
		return rc;
	rc = prepare(&plan);
	if (rc != 0)
		return rc == -ENODEV ? EXIT_NO : EXIT_FAILURE;
	if (report.daemon[0]) { /* refused now, not after two measurements */
		rc = open_task();
		disconnect_daemon();
		if (rc != 0)
			return EXIT_FAILURE;
	}
	keep_processors_awake();
	describe_machine();
	report.gpu = &gpu;
	report.work = plan.work;
	report.kernel_ns = o.kernel_ns;
	report.period_ns = o.period_ns;
	report.break_ns = o.break_ns;
	report.priority = o.priority;
	report.loads = o.loads;
	report.load_count = o.load_count;
	report.space = plan.space;
	rc = measure_all(&plan);
	loads_stop(o.loads, o.load_count);
	report.complete = rc == 0 && go_on();
	gpu_close(&gpu);
	if (report.count == 0) {
		if (rc == 0)
			message("ended before the first sample");
		return EXIT_FAILURE;
	}
	if (o.json)
		report_json(&report, stdout);
	else
		report_text(&report, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		message("the result cannot be written: %s", strerror(errno));
		rc = -1;
	}
	if ((o.html && output_write(&page, &report, report_page) != 0) ||
	    (o.histfile && output_write(&lines, &report, report_histogram) != 0))
		rc = -1;
	if (rc != 0)
		return EXIT_FAILURE;
	return report.measurements[report.count - 1].broke ? EXIT_NO : EXIT_SUCCESS;
}
