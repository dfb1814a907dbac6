/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured real-time process. It runs `jobs` kernels of a set length and pauses between them (--pause-ms plus a
 * random part of up to --jitter-ms; defaults 30 and 9). A response time counts from just before begin to the end of the
 * kernel. Every result is checked. A job may be a burst of kernels, each in a segment of its own; its response is then
 * that of the whole burst.
 *
 *   gpuseg-bench-rt --mode none|segment|wait|off-then-launch|launch-then-off --kernel-ms X --per NS --jobs N --seed N
 *                   [--pids P,P,...] [--priority N] [--hint-ms X] [--slice-us N] [--other-slice-us N] [--samples FILE]
 *                   [--pages FILE,FILE,...]   count the kernels of these best-effort processes during the run
 *                   [--own-page FILE]         its word 1 is 1 while a segment runs, the 64 bits at byte 16 count jobs;
 *                                             the process ends after the job in which the word at byte 8 is set
 *                   [--gate]                  start the jobs when the word at byte 12 of the own page is 1
 *                   [--stay]                  that word is 2 after the last job, and the process ends when the word at
 *                                             byte 8 is set: what the driver does at its end disturbs no other's jobs
 *                   [--open FILE]             set that word in the page of another process, wait for its first job
 *                   [--name TEXT]             of the task, for the journal
 *                   [--gpu N]                 work on GPU N, in the order of the PCI bus, and name it in the task
 *                   [--burst N --burst-gap-us N]   N kernels per job, this long between end and next begin
 *                   [--period-ms X]           one job per period, begun up to --jitter-ms after its release, and the
 *                                             period declared; no pauses; every 16th job checks inside its segment
 *                   [--check-every N]         every Nth job does. With --phase-ms these are the releases at
 *                                             multiples of N periods, so that checks of several processes keep
 *                                             their distance
 *                   [--undeclared]            the period is not declared
 *                   [--budget-ms X]           declared, too
 *                   [--phase-ms X]            releases are X ms after multiples of the period of CLOCK_MONOTONIC
 *                   [--rare]                  from the middle on every second job is left out
 *                   [--silent]                from the middle on all jobs are left out
 *                   [--touch-us N]            an empty kernel N us before each job: if nobody else works, the GPU has
 *                                             switched to this context by the time of its begin
 *                   [--touches]               libgpuseg touches when the daemon expects a begin (GPUSEG_CUDA_TOUCH)
 *                   [--graph N]               the kernel is a graph of N equal ones
 *                   [--blocks N]              kernels of at most N blocks; otherwise of as many as fill the GPU
 *                   [--watch]                 with --period-ms: a response counts from the time at which its job was
 *                                             due, and jobs that are left out count among the N; this thread looks for
 *                                             the end by itself, and tells for how long its CPU was away (late
 *                                             awake, gaps of more than 20 us while it looked)
 *                   [--warm N]                N jobs before those that are measured
 *
 *   none              only the kernel
 *   segment           libgpuseg, optimistic begin
 *   wait              libgpuseg, begin waits until lower work is disabled
 *   off-then-launch, launch-then-off   only the driver calls on --pids, without gpuseg: the least cost of enforcement
 *   --slice-us        own time slice; --other-slice-us: time slice of --pids; both are restored at the end
 *   --calibrate       print nanoseconds per iteration after 5 s of load, and stop
 */
#include "gpu_work.cuh"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../rm/gpuseg_rm.h"
#include "gpuseg_cuda.h"

#define JOBS_MAX 100000
#define BURST_MAX 16
#define GATE_LOOK_US 50000 /* a process behind a gate is idle by any measure */
#define OPEN_LIMIT_NS 60000000000ll
#define PAGE_DONE 2

static volatile sig_atomic_t stopping;
static struct gpuseg_rm_process others[16];
static struct gpuseg_rm_process *other_list[16];
static uint32_t other_count;
static struct gpuseg_rm_process self;

static void on_signal(int)
{
	stopping = 1;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void figures(const char *name, const int64_t *values, int n)
{
	int64_t *v = (int64_t *)malloc(n * sizeof(int64_t));
	memcpy(v, values, n * sizeof(int64_t));
	qsort(v, n, sizeof(int64_t), ascending);
	printf("\"%s\":{\"min\":%ld,\"p50\":%ld,\"p95\":%ld,\"p99\":%ld,\"p99.9\":%ld,\"max\":%ld}", name, (long)v[0],
	       (long)v[n / 2], (long)v[(int)(n * 0.95)], (long)v[(int)(n * 0.99)], (long)v[(long)n * 999 / 1000],
	       (long)v[n - 1]);
	free(v);
}

static int set_slices(struct gpuseg_rm_process *p, uint64_t us)
{
	int failed = 0;
	for (uint32_t i = 0; i < p->tsg_count; i++)
		if (p->tsgs[i].engine == GPUSEG_RM_ENGINE_GR0 &&
		    gpuseg_rm_control(p->tsgs[i].fd, p->tsgs[i].client, p->tsgs[i].handle, GPUSEG_RM_SET_TIMESLICE, &us,
				      sizeof(us)) != 0)
			failed = 1;
	return failed;
}

static volatile struct be_page *pages[16];
static int page_count;

static void map_pages(char *list)
{
	for (char *p = strtok(list, ","); p && page_count < 16; p = strtok(NULL, ",")) {
		int fd = open(p, O_RDONLY);
		void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct be_page), PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED) {
			perror(p);
			exit(1);
		}
		close(fd);
		pages[page_count++] = (volatile struct be_page *)map;
	}
}

static volatile struct be_page *own_page(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	void *map = fd < 0 || ftruncate(fd, BE_PAGE_BYTES) != 0
			    ? MAP_FAILED
			    : mmap(NULL, sizeof(struct be_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return (volatile struct be_page *)map;
}

static uint64_t other_kernels(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < page_count; i++)
		sum += pages[i]->kernels;
	return sum;
}

static void work_run(struct gpu_work *w, int kernels, int slot)
{
#ifdef __CUDACC__
	static cudaGraphExec_t graph;
	if (kernels > 1 && !graph) {
		cudaGraph_t captured;
		cudaStream_t s;
		CHECK(cudaStreamCreate(&s));
		CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
		for (int i = 0; i < kernels; i++)
			gpu_work_launch(w, s, slot);
		CHECK(cudaStreamEndCapture(s, &captured));
		CHECK(cudaGraphInstantiateWithFlags(&graph, captured, 0));
	}
	if (kernels > 1) {
		CHECK(cudaGraphLaunch(graph, 0));
		return;
	}
#endif
	for (int i = 0; i < kernels; i++)
		gpu_work_launch(w, 0, slot);
}

/* A check outside of segments would wait for the others, and the next job would be late. */
static void check_inside(struct gpu_work *w, long *wrong)
{
	*wrong += gpu_work_wrong(w);
	gpu_work_poison(w, 0);
	CHECK(cudaDeviceSynchronize());
}

static void sleep_until(int64_t at_ns)
{
	struct timespec t = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv)
{
	const char *mode = "none", *pids = "", *samples = NULL, *name = "bench-rt";
	double kernel_ms = 5, per = 0, hint_ms = 0, pause_ms = 30, jitter_ms = 9, period_ms = 0;
	int jobs = 100, priority = 80, calibrate = 0, burst = 1, gate = 0, stay = 0, gpu = -1;
	int undeclared = 0, rare = 0, silent = 0, kernels_per_job = 1, warm = 0, check_every = 16;
	int blocks = 0, watch = 0;
	long burst_gap_us = 0, touch_us = 0;
	double phase_ms = -1, budget_ms = 0;
	unsigned touches = 0;
	unsigned seed = 1;
	long slice_us = 0, other_slice_us = 0;
	volatile struct be_page *own = NULL, *opens = NULL;
	static const struct option options[] = {
		{"mode", 1, 0, 'm'},
		{"kernel-ms", 1, 0, 'k'},
		{"per", 1, 0, 'p'},
		{"jobs", 1, 0, 'j'},
		{"seed", 1, 0, 's'},
		{"pids", 1, 0, 'P'},
		{"priority", 1, 0, 'r'},
		{"hint-ms", 1, 0, 'h'},
		{"slice-us", 1, 0, 'S'},
		{"other-slice-us", 1, 0, 'O'},
		{"samples", 1, 0, 'f'},
		{"calibrate", 0, 0, 'c'},
		{"gpu", 1, 0, 'u'},
		{"pages", 1, 0, 'G'},
		{"budget-ms", 1, 0, 'D'},
		{"pause-ms", 1, 0, 'w'},
		{"own-page", 1, 0, 'o'},
		{"name", 1, 0, 'N'},
		{"jitter-ms", 1, 0, 'J'},
		{"gate", 0, 0, 'A'},
		{"open", 1, 0, 'a'},
		{"burst", 1, 0, 'b'},
		{"burst-gap-us", 1, 0, 'g'},
		{"period-ms", 1, 0, 'T'},
		{"undeclared", 0, 0, 'U'},
		{"rare", 0, 0, 'R'},
		{"graph", 1, 0, 'K'},
		{"warm", 1, 0, 'W'},
		{"phase-ms", 1, 0, 'F'},
		{"silent", 0, 0, 'Q'},
		{"touch-us", 1, 0, 't'},
		{"check-every", 1, 0, 'C'},
		{"touches", 0, 0, 'i'},
		{"stay", 0, 0, 'y'},
		{"blocks", 1, 0, 'B'},
		{"watch", 0, 0, 'L'},
		{0, 0, 0, 0},
	};
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (o) {
		case 'm':
			mode = optarg;
			break;
		case 'k':
			kernel_ms = atof(optarg);
			break;
		case 'p':
			per = atof(optarg);
			break;
		case 'j':
			jobs = atoi(optarg);
			break;
		case 's':
			seed = (unsigned)atoi(optarg);
			break;
		case 'P':
			pids = optarg;
			break;
		case 'r':
			priority = atoi(optarg);
			break;
		case 'h':
			hint_ms = atof(optarg);
			break;
		case 'D':
			budget_ms = atof(optarg);
			break;
		case 'S':
			slice_us = atol(optarg);
			break;
		case 'O':
			other_slice_us = atol(optarg);
			break;
		case 'f':
			samples = optarg;
			break;
		case 'c':
			calibrate = 1;
			break;
		case 'u':
			gpu = atoi(optarg);
			break;
		case 'w':
			pause_ms = atof(optarg);
			break;
		case 'N':
			name = optarg;
			break;
		case 'J':
			jitter_ms = atof(optarg);
			break;
		case 'A':
			gate = 1;
			break;
		case 'y':
			stay = 1;
			break;
		case 'B':
			blocks = atoi(optarg);
			break;
		case 'L':
			watch = 1;
			break;
		case 'a':
			opens = own_page(optarg);
			break;
		case 'b':
			burst = atoi(optarg);
			break;
		case 'g':
			burst_gap_us = atol(optarg);
			break;
		case 'T':
			period_ms = atof(optarg);
			break;
		case 'U':
			undeclared = 1;
			break;
		case 'R':
			rare = 1;
			break;
		case 'K':
			kernels_per_job = atoi(optarg);
			break;
		case 'W':
			warm = atoi(optarg);
			break;
		case 'F':
			phase_ms = atof(optarg);
			break;
		case 'Q':
			silent = 1;
			break;
		case 't':
			touch_us = atol(optarg);
			break;
		case 'C':
			check_every = atoi(optarg);
			break;
		case 'i':
			touches = GPUSEG_CUDA_TOUCH;
			break;
		case 'o':
			own = own_page(optarg);
			break;
		case 'G':
			map_pages(strdup(optarg));
			break;
		default:
			return 2;
		}
	}
	if (jobs < 1 || jobs > JOBS_MAX || burst < 1 || burst > BURST_MAX || burst_gap_us < 0 || jitter_ms < 0 ||
	    period_ms < 0 || kernels_per_job < 1 || (kernels_per_job > 1 && burst > 1) || warm < 0 ||
	    ((gate || stay) && !own) || touch_us < 0 || check_every < 1 ||
	    ((phase_ms >= 0 || silent || rare || touch_us || watch) && period_ms <= 0) || blocks < 0 ||
	    (watch && (burst > 1 || kernels_per_job > 1)))
		return 2;
	const int segment = strcmp(mode, "segment") == 0 || strcmp(mode, "wait") == 0;
	const int off_first = strcmp(mode, "off-then-launch") == 0;
	const int off_after = strcmp(mode, "launch-then-off") == 0;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	gpu_work_choose(gpu);
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
	struct gpu_work w;
	gpu_work_open(&w, burst);
	w.blocks = blocks && blocks < w.blocks ? blocks : w.blocks;
	if (calibrate) {
		int64_t until = now_ns() + 5000000000ll;
		w.n = 1000000;
		while (now_ns() < until) {
			gpu_work_launch(&w, 0, 0);
			CHECK(cudaDeviceSynchronize());
		}
		printf("%.9f\n", gpu_work_calibrate(&w));
		return 0;
	}
	if (per <= 0)
		per = gpu_work_calibrate(&w);
	if (watch)
		gpu_work_count(&w);
	w.n = (long)(kernel_ms * 1e6 / per / kernels_per_job);
	gpu_work_reference(&w);
	work_run(&w, kernels_per_job, 0); /* makes the graph */
	CHECK(cudaDeviceSynchronize());
	const int64_t period_ns = (int64_t)(period_ms * 1e6);

	gpuseg_client *client = NULL;
	gpuseg_task *task = NULL;
	struct gpuseg_cuda cuda;
	if (segment) {
		struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
		struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
		connect_attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST; /* what runs unmanaged is not to be measured */
		if (gpuseg_connect(&connect_attr, &client) < 0) {
			fprintf(stderr, "%s\n", gpuseg_last_message(NULL));
			return 1;
		}
		attr.name = name;
		attr.priority = (uint32_t)priority;
		attr.gpu = gpu < 0 ? 0 : (uint32_t)gpu;
		attr.period_ns = undeclared ? 0 : period_ns;
		attr.budget_ns = (int64_t)(budget_ms * 1e6);
		attr.flags = strcmp(mode, "wait") == 0 ? GPUSEG_TASK_ALWAYS_WAIT : 0;
		attr.spin_count = 4000000; /* this thread keeps its CPU while it waits, as with the bare driver calls */
		if (gpuseg_task_open(client, &attr, &task) < 0) {
			fprintf(stderr, "%s\n", gpuseg_last_message(client));
			return 1;
		}
		if (gpuseg_cuda_open(&cuda, task, GPUSEG_CUDA_SPIN | touches) < 0)
			return 1;
	}
	char *list = strdup(pids);
	/* Before the others: copies of their descriptors would count as its own. */
	if (slice_us && gpuseg_rm_attach(&self, getpid()) != 0)
		return 1;
	for (char *p = strtok(list, ","); p && other_count < 16; p = strtok(NULL, ",")) {
		int error = gpuseg_rm_attach(&others[other_count], atoi(p));
		if (error) {
			fprintf(stderr, "attach to %s: %s\n", p, strerror(-error));
			return 1;
		}
		other_list[other_count] = &others[other_count];
		other_count++;
	}
	int64_t status = 0;
	if (slice_us)
		status |= set_slices(&self, (uint64_t)slice_us);
	if (other_slice_us)
		for (uint32_t i = 0; i < other_count; i++)
			status |= set_slices(&others[i], (uint64_t)other_slice_us);

	int64_t *response = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t));
	int64_t *begin = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t));
	int64_t *end = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t));
	int64_t *lateness = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t));
	int64_t *mhz = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t)); /* of the job's last kernel */
	int64_t *net = (int64_t *)calloc(JOBS_MAX, sizeof(int64_t)); /* response less its CPU's absence */
	int64_t *part = (int64_t *)calloc((size_t)JOBS_MAX * burst, sizeof(int64_t)); /* response of each segment */
	long wrong = 0, skipped = 0, missed = 0, excused = 0;
	int n = 0, failed = 0, warmed = 0;
	int64_t windows = 0;
	usleep(300000);
	if (own)
		own->first_ns = now_ns(); /* set up */
	while (gate && !own->reserved && !stopping)
		usleep(GATE_LOOK_US);
	if (opens) {
		const int64_t limit = now_ns() + OPEN_LIMIT_NS;
		opens->reserved = 1;
		while (!opens->kernels && !stopping) {
			if (now_ns() > limit) {
				fprintf(stderr, "the process behind --open does no job\n");
				return 1;
			}
			usleep(1000);
		}
	}
	int64_t loop_from = now_ns(), release = loop_from;
	if (phase_ms >= 0)
		release += (int64_t)(phase_ms * 1e6) - release % period_ns;
	uint64_t kernels_from = other_kernels();
	gpu_work_poison(&w, 0);
	CHECK(cudaDeviceSynchronize());
	/* With --watch what was skipped counts, once it is warm. */
	for (int job = -warm; (silent ? job : n + (watch && warmed ? skipped : 0)) < jobs && !stopping && !failed;
	     job++) {
		if (job >= 0 && !warmed) {
			warmed = 1;
			loop_from = now_ns();
			kernels_from = other_kernels();
			windows = skipped = missed = excused = 0;
			begin[0] = end[0] = 0;
		}
		if (!period_ns) {
			gpu_work_poison(&w, 0);
			CHECK(cudaDeviceSynchronize());
		}
		/* Only now: the check above was work outside a segment and waited for others, and a begin must not
		 * follow their ends. */
		int64_t at = jitter_ms >= 0.001 ? rand_r(&seed) % (long)(jitter_ms * 1e6) : 0;
		if (!period_ns) {
			at += now_ns() + (int64_t)(pause_ms * 1e6);
		} else {
			release += rare && job >= jobs / 2 ? 2 * period_ns : period_ns;
			for (; release < now_ns(); skipped++) {
				release += period_ns;
				job += watch;
			}
			at += release;
		}
		if (silent && job >= jobs / 2) {
			sleep_until(at);
			continue;
		}
		if (segment && hint_ms > 0)
			gpuseg_hint(task, at);
		if (touch_us) {
			sleep_until(at - touch_us * 1000);
			gpu_work_touch(&w);
		}
		const int checks = period_ns && (phase_ms >= 0 ? release / period_ns : job) % check_every == 0;
		sleep_until(at);
		int64_t job_mhz = 0;
		int64_t away = watch ? now_ns() - at : 0;
		const int64_t job_from = watch ? at : now_ns();
		for (int i = 0; i < burst; i++) {
			int64_t a = now_ns();
			if (segment) {
				int r = gpuseg_cuda_begin(&cuda);
				if (r < 0) {
					fprintf(stderr, "begin: %s\n", gpuseg_strerror(r));
					failed = 1;
					break;
				}
			} else if (off_first) {
				status |= gpuseg_rm_switch_processes(other_list, other_count, 1, 1);
			}
			int64_t b = now_ns();
			if (own)
				own->ready = 1; /* the segment runs */
			work_run(&w, kernels_per_job, i);
			if (off_after)
				status |= gpuseg_rm_switch_processes(other_list, other_count, 1, 1);
			int64_t c;
			if (watch) {
				away += gpu_work_watch(&w);
				response[n] = now_ns() - job_from;
			}
			if (segment) {
				cudaError_t e = cudaStreamSynchronize(0);
				c = now_ns();
				if (own)
					own->ready = 0;
				job_mhz = gpu_work_mhz(&w);
				if (e == cudaSuccess && checks)
					check_inside(&w, &wrong);
				gpuseg_cuda_end_done(&cuda, 0);
				CHECK(e);
			} else {
				cudaError_t e = cudaDeviceSynchronize();
				c = now_ns();
				if (own)
					own->ready = 0;
				job_mhz = gpu_work_mhz(&w);
				if (off_first || off_after)
					status |= gpuseg_rm_switch_processes(other_list, other_count, 0, 1);
				CHECK(e);
				if (checks)
					check_inside(&w, &wrong);
			}
			int64_t d = now_ns();
			windows += d - a;
			part[(size_t)n * burst + i] = c - a;
			response[n] = watch ? response[n] : c - job_from;
			begin[n] += b - a;
			end[n] += d - c;
			if (i + 1 < burst)
				sleep_until(d + burst_gap_us * 1000);
		}
		if (failed)
			break;
		if (own)
			own->kernels = own->kernels + 1;
		net[n] = response[n] - away;
		lateness[n] = job_from - at;
		mhz[n] = job_mhz;
		if (!period_ns)
			wrong += gpu_work_wrong(&w);
		else if (job_from + response[n] > release + period_ns) {
			missed++;
			excused += job_from + net[n] <= release + period_ns;
		}
		n += warmed;
		if (own && own->stop)
			stopping = 1;
	}
	const int64_t loop_ns = now_ns() - loop_from;
	const uint64_t kernels = other_kernels() - kernels_from;
	if (stay && !failed) {
		own->reserved = PAGE_DONE;
		while (!own->stop && !stopping)
			usleep(GATE_LOOK_US);
	}
	if (other_count && (off_first || off_after))
		status |= gpuseg_rm_switch_processes(other_list, other_count, 0, 1);
	if (slice_us)
		set_slices(&self, 2048);
	if (other_slice_us)
		for (uint32_t i = 0; i < other_count; i++)
			set_slices(&others[i], 2048);
	if (n == 0) {
		if (segment)
			gpuseg_cuda_close(&cuda);
		return 1;
	}
	printf("{\"loop_ns\":%ld,\"windows_ns\":%ld,\"other_kernels\":%lu,", (long)loop_ns, (long)windows,
	       (unsigned long)kernels);
	if (period_ns)
		printf("\"period_ms\":%.3f,\"skipped\":%ld,\"missed\":%ld,", period_ms, skipped, missed);
	printf("\"mode\":\"%s\",\"kernel_ms\":%.3f,\"jobs\":%d,\"wrong\":%ld,\"status\":%ld,", mode, kernel_ms, n,
	       wrong, (long)status);
	figures("response_ns", response, n);
	printf(",");
	figures("begin_ns", begin, n);
	printf(",");
	figures("end_ns", end, n);
	if (w.time) {
		printf(",");
		figures("sm_mhz", mhz, n);
	}
	if (watch) {
		printf(",\"excused\":%ld,", excused);
		figures("net_ns", net, n);
	}
	if (burst > 1) {
		int64_t *later = (int64_t *)calloc((size_t)n * (burst - 1), sizeof(int64_t));
		int64_t *first = (int64_t *)calloc(n, sizeof(int64_t));
		for (int i = 0; i < n; i++) {
			first[i] = part[(size_t)i * burst];
			memcpy(later + (size_t)i * (burst - 1), part + (size_t)i * burst + 1,
			       (burst - 1) * sizeof(int64_t));
		}
		printf(",\"burst\":%d,\"burst_gap_us\":%ld,", burst, burst_gap_us);
		figures("first_ns", first, n);
		printf(",");
		figures("later_ns", later, n * (burst - 1));
		free(first);
		free(later);
	}
	if (segment) {
		struct gpuseg_counters counters = {};
		counters.size = sizeof(counters);
		gpuseg_get_counters(client, &counters);
		printf(",\"begins\":%lu,\"optimistic\":%lu,\"touches\":%u", (unsigned long)counters.begins,
		       (unsigned long)counters.optimistic, gpuseg_cuda_touches(&cuda));
	}
	printf("}\n");
	if (samples) {
		FILE *f = fopen(samples, "w");
		if (f) {
			fprintf(f, "response_ns,begin_ns,end_ns,late_ns,sm_mhz%s", watch ? ",net_ns" : "");
			for (int b = 0; burst > 1 && b < burst; b++)
				fprintf(f, ",segment_%d_ns", b + 1);
			fprintf(f, "\n");
			for (int i = 0; i < n; i++) {
				fprintf(f, "%ld,%ld,%ld,%ld,%ld", (long)response[i], (long)begin[i], (long)end[i],
					(long)lateness[i], (long)mhz[i]);
				if (watch)
					fprintf(f, ",%ld", (long)net[i]);
				for (int b = 0; burst > 1 && b < burst; b++)
					fprintf(f, ",%ld", (long)part[(size_t)i * burst + b]);
				fprintf(f, "\n");
			}
			if (fclose(f) != 0) {
				perror(samples);
				return 1;
			}
		} else {
			perror(samples);
			return 1;
		}
	}
	if (segment) {
		gpuseg_cuda_close(&cuda);
		gpuseg_disconnect(client);
	}
	return wrong || status || (n + (watch ? skipped : 0) < jobs && !stopping && !silent) ? 1 : 0;
}
