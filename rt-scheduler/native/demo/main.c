/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-demo-task - one process, one periodic task with CPU and (simulated) GPU segments.
 *
 *   release = start + offset + k * period                                            completion
 *      |  cpu:2ms  | begin |  host 1ms | submit, wait for device 4ms | end |  cpu:3ms  |
 *      |<--------------------------- response, counted from the nominal release ------>|
 *
 * The task runs in a thread of its own, which does no I/O and allocates nothing between its first release and its last
 * completion. The main thread waits for the end or for SIGTERM, and reports.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base.h"
#include "demo/segments.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "gpuseg_sim.h"

#define STOP_GRACE_NS (300 * NS_PER_MS) /* longest time that a stopped task has to finish its job */
#define DURATION_MAX_NS (24 * 3600 * NS_PER_S)

enum { JOBS_MAX = 1 << 22, NOT_PINNED = -1, SKIPPED = 2 };

struct options {
	const char *directory;
	const char *name;
	const char *out;
	const char *progress;
	const char *on_usr2;
	const char *stamp_in, *stamp_out;
	int priority, gpu_priority;
	int64_t period_ns, deadline_ns, offset_ns, start_ns, duration_ns, begin_timeout_ns;
	int64_t budget_ns, window_ns;
	enum gpuseg_on_overrun on_overrun;
	int weight, partition, boost;
	enum gpuseg_sim_wait_mode wait;
	bool spin;
	bool unmanaged;
	bool always_wait;
	struct scheduling scheduling;
	int cpu;
	int segment_count;
	struct segment segments[SEGMENTS_MAX];
};

struct job {
	int64_t release_ns;
	int64_t response_ns;
	int64_t worked_ns; /* until its work was done, before the end was marked */
	bool miss;
};

static struct demo {
	struct options options;
	gpuseg_sim *gpu;
	gpuseg_client *client; /* NULL: unmanaged */
	gpuseg_task *task;     /* NULL: unmanaged */
	bool reachable;	       /* the last mark reached a daemon */
	struct gpuseg_progress *progress;
	int64_t *stamp_in;  /* R: of the task before in the chain, NULL: none. 0 = nothing was written yet */
	int64_t *stamp_out; /* W: this task (release; pairs with the acquire of the next task), NULL: none */
	volatile int stop;
	struct job *jobs;
	int64_t capacity;
	int64_t done; /* W task thread (release), R main thread (acquire): completed jobs in `jobs` */
	uint64_t begins;
	int failure; /* -errno that ended the task early */
} demo;

static int64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* CPU time, not wall time: a preempted thread still does all of its work. */
static void compute(int64_t amount_ns)
{
	if (!demo.options.spin) {
		sleep_until(now_ns() + amount_ns, &demo.stop);
		return;
	}
	for (const int64_t end_ns = thread_cpu_ns() + amount_ns; thread_cpu_ns() < end_ns && !demo.stop;)
		for (volatile int i = 0; i < 100; i++)
			;
}

/* release: a reader that sees the count, also after our death, sees the fact */
static void note(uint64_t *word)
{
	__atomic_store_n(word, *word + 1, __ATOMIC_RELEASE);
}

static void note_state(enum gpuseg_progress_state state)
{
	__atomic_store_n(&demo.progress->state, (uint32_t)state, __ATOMIC_RELEASE);
}

/*
 * A robot that loses its scheduler continues without it, and uses the next one when the library has reconnected. Any
 * other failure is an error of this program. 0: done; 1: the daemon is lost; -errno.
 */
static int managed_result(const char *what, int rc)
{
	const bool reached = rc >= 0;

	if (rc == -EBUSY ||
	    rc == -ENOSPC) /* faster than the daemon allows: the mark is dropped, which the library counts */
		return 1;
	if (!reached && rc != -ENOTCONN) {
		message("%s: %s: %s", demo.options.name, what, gpuseg_last_message(demo.client));
		return rc;
	}
	if (reached != demo.reachable) {
		if (reached)
			demo.progress->connections++;
		else
			message("%s: %s: the daemon is gone; going on unmanaged", demo.options.name, what);
		demo.reachable = reached;
		__atomic_store_n(&demo.progress->managed, reached, __ATOMIC_RELEASE);
	}
	return reached ? 0 : 1;
}

static uint64_t optimistic_begins(void)
{
	struct gpuseg_counters counters = {.size = sizeof(counters)};

	return gpuseg_get_counters(demo.client, &counters) < 0 ? 0 : counters.optimistic;
}

/* 0: begun; 1: not recorded, continue; SKIPPED: this segment must not run; -errno. */
static int begin_segment(void)
{
	uint64_t optimistic;
	int rc;

	if (!demo.task)
		return 1;
	note_state(GPUSEG_PROGRESS_WAITING);
	optimistic = optimistic_begins();
	rc = gpuseg_begin(demo.task);
	if (rc == -ECANCELED) /* the segment before overran, so this one must be skipped */
		return SKIPPED;
	rc = managed_result("begin", rc);
	if (rc != 0)
		return rc;
	demo.begins++;
	note(&demo.progress->begins);
	if (optimistic_begins() == optimistic)
		note(&demo.progress->answered);
	return 0;
}

static int run_gpu_segment(const struct segment *segment)
{
	uint64_t fence;
	int rc = begin_segment();
	const bool begun = rc == 0;

	if (rc == SKIPPED) {
		note_state(GPUSEG_PROGRESS_RESTING);
		return 0;
	}
	if (rc < 0)
		return rc;
	rc = 0;
	note_state(GPUSEG_PROGRESS_HOLDING);
	compute(segment->cpu_ns);
	if (segment->device_ns > 0) {
		note_state(GPUSEG_PROGRESS_KERNEL);
		rc = gpuseg_sim_submit(demo.gpu, segment->device_ns, &fence);
		if (rc == 0)
			rc = gpuseg_sim_wait(demo.gpu, fence, demo.options.wait, -1);
		if (rc != 0)
			message("%s: virtual GPU: %s", demo.options.name, strerror(-rc));
		else
			note(&demo.progress->kernels);
	}
	/* The virtual GPU runs a kernel for exactly its duration, so that is what counters of a device would show. */
	if (begun && rc == 0) {
		rc = managed_result("end", gpuseg_end_measured(demo.task, segment->device_ns));
		if (rc == 0)
			note(&demo.progress->ends);
	}
	note_state(GPUSEG_PROGRESS_RESTING);
	return rc < 0 ? rc : 0;
}

/* When the sample was taken on which this job works: the first task of a chain samples now. */
static int64_t read_stamp(void)
{
	if (demo.stamp_in)
		return __atomic_load_n(demo.stamp_in, __ATOMIC_ACQUIRE);
	return demo.stamp_out ? now_ns() : 0;
}

static int run_job(int64_t release_ns, int64_t *done_ns)
{
	const struct options *o = &demo.options;
	const int64_t stamp_ns = read_stamp();
	int rc = 0;

	if (demo.task)
		rc = managed_result("job release", gpuseg_job_release_stamped(demo.task, release_ns, stamp_ns));
	if (rc > 0)
		rc = 0;
	for (int i = 0; i < o->segment_count && rc == 0 && !demo.stop; i++) {
		if (o->segments[i].kind == SEGMENT_CPU)
			compute(o->segments[i].cpu_ns);
		else
			rc = run_gpu_segment(&o->segments[i]);
	}
	if (rc == 0 && demo.stamp_out && stamp_ns != 0 && !demo.stop)
		__atomic_store_n(demo.stamp_out, stamp_ns, __ATOMIC_RELEASE);
	*done_ns = now_ns();
	if (rc == 0 && demo.task && !demo.stop)
		rc = managed_result("job end", gpuseg_job_end(demo.task));
	return rc < 0 ? rc : 0;
}

static void run_jobs(void)
{
	const struct options *o = &demo.options;
	const int64_t end_ns = o->start_ns + o->duration_ns;

	for (int64_t k = 0; k < demo.capacity; k++) {
		const int64_t release_ns = o->start_ns + o->offset_ns + k * o->period_ns;
		int64_t done_ns;

		if (release_ns >= end_ns)
			return;
		sleep_until(release_ns, &demo.stop); /* in the past if the job before was late */
		if (demo.stop)
			return;
		demo.failure = run_job(release_ns, &done_ns);
		if (demo.failure != 0 || demo.stop)
			return;

		const int64_t response_ns = now_ns() - release_ns;
		demo.jobs[k] = (struct job){release_ns, response_ns, done_ns - release_ns,
					    o->priority > 0 && response_ns > o->deadline_ns};
		__atomic_store_n(&demo.done, k + 1, __ATOMIC_RELEASE);
		demo.progress->last_ns = release_ns + response_ns;
		note(&demo.progress->jobs);
	}
}

static void *task_thread(void *argument)
{
	int rc;

	(void)argument;
	if (demo.options.cpu != NOT_PINNED) {
		rc = pin_to_cpu(demo.options.cpu);
		if (rc != 0)
			message("%s: --cpu %d: %s; not pinned", demo.options.name, demo.options.cpu, strerror(-rc));
	}
	if (demo.options.scheduling.fifo) {
		rc = apply_scheduling(demo.options.scheduling);
		if (rc != 0)
			message("%s: --scheduling fifo:%d: %s; going on as other", demo.options.name,
				demo.options.scheduling.priority, strerror(-rc));
	}
	run_jobs();
	kill(getpid(), SIGUSR1); /* wakes the main thread, which waits for this blocked signal */
	return NULL;
}

static int by_response(const void *a, const void *b)
{
	const int64_t x = ((const struct job *)a)->response_ns, y = ((const struct job *)b)->response_ns;

	return (x > y) - (x < y);
}

static int write_jobs(const char *path, int64_t count)
{
	FILE *file = fopen(path, "we");
	int rc = 0;

	if (!file)
		return -errno;
	if (fputs("release_ns,response_ns,miss,worked_ns\n", file) < 0)
		rc = -errno;
	for (int64_t i = 0; i < count && rc == 0; i++)
		if (fprintf(file, "%" PRId64 ",%" PRId64 ",%d,%" PRId64 "\n", demo.jobs[i].release_ns,
			    demo.jobs[i].response_ns, demo.jobs[i].miss, demo.jobs[i].worked_ns) < 0)
			rc = -errno;
	if (fclose(file) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

static void print_ms(const char *key, const struct job *jobs, int64_t count, int64_t rank)
{
	if (count == 0)
		printf("\"%s\":null,", key);
	else
		printf("\"%s\":%.3f,", key, (double)jobs[rank].response_ns / (double)NS_PER_MS);
}

static int64_t nearest_rank(int64_t count, int64_t percent)
{
	return (count * percent + 99) / 100 - 1;
}

static int report(void)
{
	const struct options *o = &demo.options;
	const int64_t count = __atomic_load_n(&demo.done, __ATOMIC_ACQUIRE);
	struct gpuseg_counters counters = {.size = sizeof(counters)};
	int64_t misses = 0;
	int rc = 0;

	if (o->out) {
		rc = write_jobs(o->out, count);
		if (rc != 0)
			message("--out: \"%s\": %s", o->out, strerror(-rc));
	}
	if (demo.client && gpuseg_get_counters(demo.client, &counters) < 0)
		message("%s: the library's counters cannot be read", o->name);
	for (int64_t i = 0; i < count; i++)
		misses += demo.jobs[i].miss;
	qsort(demo.jobs, (size_t)count, sizeof(demo.jobs[0]), by_response);
	printf("{\"name\":\"%s\",\"simulated\":true,\"managed\":%s,\"priority\":%d,\"jobs\":%" PRId64
	       ",\"misses\":%" PRId64 ",",
	       o->name, demo.client ? "true" : "false", o->priority, count, misses);
	print_ms("p50_ms", demo.jobs, count, nearest_rank(count, 50));
	print_ms("p99_ms", demo.jobs, count, nearest_rank(count, 99));
	print_ms("max_ms", demo.jobs, count, count - 1);
	printf("\"begins\":%" PRIu64 ",\"timeouts\":%" PRIu64 ",\"skipped\":%" PRIu64 "}\n", demo.begins,
	       counters.timeouts, counters.refused);
	if (fflush(stdout) != 0) {
		message("stdout: %s", strerror(errno));
		rc = -errno;
	}
	return rc;
}

/* Without a file the page is private: the task counts in any case. */
static int map_progress(const char *path)
{
	const size_t size = sizeof(*demo.progress);
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	void *page;

	if (path && (fd < 0 || ftruncate(fd, (off_t)size) != 0)) {
		message("--progress: \"%s\": %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (page == MAP_FAILED) {
		message("--progress: %s", strerror(errno));
		return -ENOMEM;
	}
	demo.progress = page;
	demo.progress->pid = getpid();
	return 0;
}

/* A word that two tasks of a chain share, created by whichever comes first. */
static int map_stamp(const char *option, const char *path, int64_t **word)
{
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
	void *page;

	if (!path)
		return 0;
	if (fd < 0 || ftruncate(fd, sizeof(**word)) != 0) {
		message("%s: \"%s\": %s", option, path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	page = mmap(NULL, sizeof(**word), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED) {
		message("%s: %s", option, strerror(errno));
		return -ENOMEM;
	}
	*word = page;
	return 0;
}

static int connect_all(void)
{
	const struct options *o = &demo.options;
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	int rc = gpuseg_sim_open(o->directory, &demo.gpu);

	if (rc != 0) {
		message("%s: virtual GPU: %s; is gpuseg-vgpu running on the same --dir?", o->name, strerror(-rc));
		return rc;
	}
	if (o->unmanaged)
		return 0;
	connect_attr.dir = o->directory;
	connect_attr.name = o->name;
	connect_attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST; /* managed_result() goes on, and counts */
	rc = gpuseg_connect(&connect_attr, &demo.client);
	if (rc < 0) {
		message("%s: connect: %s", o->name, gpuseg_last_message(NULL));
		return rc;
	}
	attr.name = o->name;
	attr.priority = (uint32_t)o->priority;
	attr.gpu_priority = (uint32_t)o->gpu_priority;
	attr.period_ns = o->period_ns;
	attr.deadline_ns = o->deadline_ns;
	attr.flags = o->always_wait ? GPUSEG_TASK_ALWAYS_WAIT : 0;
	attr.timeout_ns = o->begin_timeout_ns;
	attr.on_timeout = GPUSEG_ON_TIMEOUT_PROCEED;
	attr.budget_ns = o->budget_ns;
	attr.window_ns = o->window_ns;
	attr.on_overrun = o->on_overrun;
	attr.weight = (uint32_t)o->weight;
	attr.partition = (uint32_t)o->partition;
	attr.boost_priority = (uint32_t)o->boost;
	rc = gpuseg_task_open(demo.client, &attr, &demo.task);
	if (rc < 0)
		message("%s: task: %s", o->name, gpuseg_last_message(demo.client));
	demo.reachable = rc >= 0;
	demo.progress->managed = rc >= 0;
	demo.progress->connections = rc >= 0;
	return rc < 0 ? rc : 0;
}

static const char help[] =
	"Usage: gpuseg-demo-task --name NAME --period DURATION --segments LIST [option]...\n"
	"One process with one periodic task on the virtual GPU; its figures are simulated.\n\n"
	"  --dir DIR                  runtime directory of the daemon and the virtual GPU\n"
	"  --name NAME                name of the task (letters, digits, . _ -)\n"
	"  --priority N               0 best effort (default), 1..99 real time, 99 is the highest\n"
	"  --gpu-priority N           priority on the GPU; 0 same as --priority (default)\n"
	"  --period DURATION          time between releases\n"
	"  --deadline DURATION        relative deadline (default: the period); none for best effort\n"
	"  --segments LIST            for instance cpu:2ms,gpu:1ms+4ms,cpu:3ms (gpu: host + device)\n"
	"  --offset DURATION          time from the start to the first release\n"
	"  --start-at NS              common start, CLOCK_MONOTONIC nanoseconds (default: 50 ms from now)\n"
	"  --duration DURATION        releases happen in [start, start + duration) (default 10s)\n"
	"  --wait block|busy          what the thread does while the GPU works (default block)\n"
	"  --cpu-mode spin|sleep      compute, or only sleep, CPU and host parts (default spin)\n"
	"  --begin-timeout DURATION   longest wait at begin, then proceed unprotected (default: no limit)\n"
	"  --budget DURATION          longest time that a segment may hold the GPU (default: no limit)\n"
	"  --window DURATION          longest time from grant to end (default: no limit)\n"
	"  --overrun ACTION           notify, demote (default), suspend or skip-next\n"
	"  --weight N                 share of best-effort time, 1..10000 (default 100)\n"
	"  --partition N              time partition, 1..255 (default: none)\n"
	"  --boost N                  run at SCHED_FIFO 1..99 inside segments (default: no boost)\n"
	"  --always-wait              no optimistic begin\n"
	"  --progress FILE            write a gpuseg_progress, which survives a kill of the task\n"
	"  --stamp-out FILE           in a chain: write the time of the sample to this file at the end of each job\n"
	"  --stamp-in FILE            in a chain: read it from this file at each release (without it: now)\n"
	"  --on-usr2 fork|exec        SIGUSR2: fork a child that lives for 1 s and tries to use its parent's handles, "
	"or\n"
	"                             become `sleep 1`, at any moment of the task (default: ignored)\n"
	"  --out FILE                 one line per job: release_ns,response_ns,miss,worked_ns\n"
	"  --scheduling fifo:P|other  scheduling of the task's thread, if permitted (default other)\n"
	"  --cpu N                    pin the task's thread to this processor\n"
	"  --unmanaged                do not connect to the daemon, do not mark segments\n"
	"  --help                     this text\n"
	"The last line of stdout is a JSON summary. Durations carry a unit: 250us, 1.5ms, 2s.\n";

static enum gpuseg_on_overrun option_overrun(const char *text)
{
	static const char *const names[] = {"notify", "demote", "suspend", "skip-next"};

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return (enum gpuseg_on_overrun)(GPUSEG_ON_OVERRUN_NOTIFY + i);
	usage_error("--overrun: \"%s\" is unknown; use notify, demote, suspend or skip-next", text);
}

static void parse_options(int argc, char **argv, struct options *o)
{
	enum {
		DIRECTORY = 1,
		NAME,
		PRIORITY,
		GPU_PRIORITY,
		PERIOD,
		DEADLINE,
		SEGMENTS,
		OFFSET,
		START,
		DURATION,
		WAIT,
		CPU_MODE,
		TIMEOUT,
		BUDGET,
		WINDOW,
		OVERRUN,
		WEIGHT,
		PARTITION,
		BOOST,
		ALWAYS_WAIT,
		PROGRESS,
		STAMP_IN,
		STAMP_OUT,
		ON_USR2,
		OUT,
		SCHEDULING,
		CPU,
		UNMANAGED,
		HELP
	};
	static const struct option known[] = {
		{"dir", required_argument, NULL, DIRECTORY},
		{"name", required_argument, NULL, NAME},
		{"priority", required_argument, NULL, PRIORITY},
		{"gpu-priority", required_argument, NULL, GPU_PRIORITY},
		{"period", required_argument, NULL, PERIOD},
		{"deadline", required_argument, NULL, DEADLINE},
		{"segments", required_argument, NULL, SEGMENTS},
		{"offset", required_argument, NULL, OFFSET},
		{"start-at", required_argument, NULL, START},
		{"duration", required_argument, NULL, DURATION},
		{"wait", required_argument, NULL, WAIT},
		{"cpu-mode", required_argument, NULL, CPU_MODE},
		{"begin-timeout", required_argument, NULL, TIMEOUT},
		{"budget", required_argument, NULL, BUDGET},
		{"window", required_argument, NULL, WINDOW},
		{"overrun", required_argument, NULL, OVERRUN},
		{"weight", required_argument, NULL, WEIGHT},
		{"partition", required_argument, NULL, PARTITION},
		{"boost", required_argument, NULL, BOOST},
		{"always-wait", no_argument, NULL, ALWAYS_WAIT},
		{"progress", required_argument, NULL, PROGRESS},
		{"stamp-in", required_argument, NULL, STAMP_IN},
		{"stamp-out", required_argument, NULL, STAMP_OUT},
		{"on-usr2", required_argument, NULL, ON_USR2},
		{"out", required_argument, NULL, OUT},
		{"scheduling", required_argument, NULL, SCHEDULING},
		{"cpu", required_argument, NULL, CPU},
		{"unmanaged", no_argument, NULL, UNMANAGED},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	char error[256];
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case DIRECTORY:
			o->directory = optarg;
			break;
		case NAME:
			o->name = optarg;
			break;
		case PRIORITY:
			o->priority = (int)option_integer("--priority", optarg, 0, 99);
			break;
		case GPU_PRIORITY:
			o->gpu_priority = (int)option_integer("--gpu-priority", optarg, 0, 99);
			break;
		case PERIOD:
			o->period_ns = option_duration("--period", optarg, 1, DURATION_MAX_NS);
			break;
		case DEADLINE:
			o->deadline_ns = option_duration("--deadline", optarg, 1, DURATION_MAX_NS);
			break;
		case SEGMENTS:
			o->segment_count = parse_segments(optarg, o->segments, error, sizeof(error));
			if (o->segment_count < 0)
				usage_error("--segments: %s", error);
			break;
		case OFFSET:
			o->offset_ns = option_duration("--offset", optarg, 0, DURATION_MAX_NS);
			break;
		case START:
			o->start_ns = option_integer("--start-at", optarg, 1, INT64_MAX - 2 * DURATION_MAX_NS);
			break;
		case DURATION:
			o->duration_ns = option_duration("--duration", optarg, 1, DURATION_MAX_NS);
			break;
		case WAIT:
			if (strcmp(optarg, "block") != 0 && strcmp(optarg, "busy") != 0)
				usage_error("--wait: \"%s\" is unknown; use block or busy", optarg);
			o->wait = strcmp(optarg, "busy") == 0 ? GPUSEG_SIM_BUSY : GPUSEG_SIM_BLOCK;
			break;
		case CPU_MODE:
			if (strcmp(optarg, "spin") != 0 && strcmp(optarg, "sleep") != 0)
				usage_error("--cpu-mode: \"%s\" is unknown; use spin or sleep", optarg);
			o->spin = strcmp(optarg, "spin") == 0;
			break;
		case TIMEOUT:
			o->begin_timeout_ns = option_duration("--begin-timeout", optarg, 1, DURATION_MAX_NS);
			break;
		case BUDGET:
			o->budget_ns = option_duration("--budget", optarg, 1, 3600 * NS_PER_S);
			break;
		case WINDOW:
			o->window_ns = option_duration("--window", optarg, 1, 3600 * NS_PER_S);
			break;
		case OVERRUN:
			o->on_overrun = option_overrun(optarg);
			break;
		case WEIGHT:
			o->weight = (int)option_integer("--weight", optarg, 1, 10000);
			break;
		case PARTITION:
			o->partition = (int)option_integer("--partition", optarg, 1, 255);
			break;
		case BOOST:
			o->boost = (int)option_integer("--boost", optarg, 1, 99);
			break;
		case ALWAYS_WAIT:
			o->always_wait = true;
			break;
		case STAMP_IN:
			o->stamp_in = optarg;
			break;
		case STAMP_OUT:
			o->stamp_out = optarg;
			break;
		case PROGRESS:
			o->progress = optarg;
			break;
		case ON_USR2:
			if (strcmp(optarg, "fork") != 0 && strcmp(optarg, "exec") != 0)
				usage_error("--on-usr2: \"%s\" is unknown; use fork or exec", optarg);
			o->on_usr2 = optarg;
			break;
		case OUT:
			o->out = optarg;
			break;
		case SCHEDULING:
			o->scheduling = option_scheduling("--scheduling", optarg);
			break;
		case CPU:
			o->cpu = (int)option_integer("--cpu", optarg, 0, 4095);
			break;
		case UNMANAGED:
			o->unmanaged = true;
			break;
		case HELP:
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("unexpected argument \"%s\"; see --help", argv[optind]);
	if (!o->name || !o->period_ns || !o->segment_count)
		usage_error("--name, --period and --segments are required; see --help");
	/* The name is printed into JSON without escapes. */
	if (*o->name == '\0' || strlen(o->name) > 63 || o->name[strspn(o->name, name_characters)] != '\0')
		usage_error("--name: \"%s\": use 1 to 63 letters, digits, '.', '_' or '-'", o->name);
	if (o->deadline_ns == 0)
		o->deadline_ns = o->period_ns;
	if (o->duration_ns / o->period_ns >= JOBS_MAX)
		usage_error("--duration: %" PRId64 " jobs are more than %d; shorten it or lengthen --period",
			    o->duration_ns / o->period_ns, JOBS_MAX);
}

/*
 * The child inherits every descriptor, so the sockets stay open when the parent is killed. The library must refuse what
 * the child does with the parent's handles.
 */
static void misbehave(void)
{
	if (strcmp(demo.options.on_usr2, "exec") == 0) {
		sigset_t none;

		sigemptyset(&none);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		execl("/bin/sleep", "sleep", "1", (char *)NULL);
		message("%s: exec: %s", demo.options.name, strerror(errno));
		return;
	}
	if (fork() != 0)
		return;
	if (demo.task && gpuseg_begin(demo.task) != -EOWNERDEAD) {
		message("%s: a child could use its parent's task", demo.options.name);
		_exit(EXIT_FAILURE);
	}
	sleep_until(now_ns() + NS_PER_S, NULL);
	_exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
	struct options *o = &demo.options;
	pthread_t thread;
	sigset_t signals;
	int caught, rc;

	program_name = "gpuseg-demo-task";
	*o = (struct options){.spin = true, .duration_ns = 10 * NS_PER_S, .cpu = NOT_PINNED};
	parse_options(argc, argv, o);

	/* All threads, also that of the library, inherit the mask: only the main thread receives the signals. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);

	demo.capacity = o->duration_ns / o->period_ns + 1;
	demo.jobs = calloc((size_t)demo.capacity, sizeof(demo.jobs[0]));
	if (!demo.jobs) {
		message("no memory for %" PRId64 " jobs", demo.capacity);
		return EXIT_FAILURE;
	}
	if (map_progress(o->progress) != 0 || map_stamp("--stamp-in", o->stamp_in, &demo.stamp_in) != 0 ||
	    map_stamp("--stamp-out", o->stamp_out, &demo.stamp_out) != 0 || connect_all() != 0)
		return EXIT_FAILURE;
	rc = o->scheduling.fifo ? lock_memory() : 0;
	if (rc != 0)
		message("%s: memory is not locked: %s", o->name, strerror(-rc));
	if (o->start_ns == 0)
		o->start_ns = now_ns() + 50 * NS_PER_MS;
	rc = pthread_create(&thread, NULL, task_thread, NULL);
	if (rc != 0) {
		message("thread: %s", strerror(rc));
		return EXIT_FAILURE;
	}
	do {
		if (sigwait(&signals, &caught) != 0)
			caught = SIGTERM;
		if (caught == SIGUSR2 && o->on_usr2)
			misbehave();
	} while (caught == SIGUSR2);
	demo.stop = 1;

	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until = to_timespec((int64_t)until.tv_sec * NS_PER_S + until.tv_nsec + STOP_GRACE_NS);
	const bool joined = pthread_timedjoin_np(thread, NULL, &until) == 0;

	rc = report();
	if (!joined) /* it waits for a grant or for the GPU; daemon and GPU notice the end of the process */
		_exit(rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	if (demo.client)
		gpuseg_disconnect(demo.client);
	gpuseg_sim_close(demo.gpu);
	free(demo.jobs);
	return rc == 0 && demo.failure == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
