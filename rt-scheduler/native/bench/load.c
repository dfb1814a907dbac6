/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-bench-load - many clients at a fixed rate: the C side of `gpuseg bench load` and `gpuseg bench tail`.
 *
 *   parent ── fork ──► client 0: connect, open a task, begin at start + offset + k / rate, end at once
 *          ── fork ──► client 1 ...                    one process each: a process registers once
 *
 * Every begin waits for the daemon's grant. The rate does not depend on the daemon: a begin that is due while the one
 * before still waits is made late. `due` counts from the time at which the begin was due, `begin` from the call. Prints
 * one JSON object on stdout at the end. All processes exit when the process that started this one dies.
 *
 * The witness (--witness) does not use gpuseg. It is a process that only reads the clock, on a processor of its own.
 * The gaps that it sees are delays of the machine, so no tail on this machine can be shorter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/client.h"
#include "bench/histogram.h"
#include "bench/pace.h"

#define LEAD_NS (1500 * NS_PER_MS)     /* until all clients are connected */
#define BEGIN_LIMIT_NS (10 * NS_PER_S) /* a grant that takes longer is a failure */
#define DURATION_MAX_NS (24 * 3600 * NS_PER_S)
#define STALLS_FROM_NS (100 * NS_PER_US)
#define GAPS_FROM_NS (10 * NS_PER_US)

enum { CLIENTS_MAX = 256, RATE_MAX = 1000000, STALLS_MAX = 4096, CPUS_MAX = 1024 };

struct stall {
	int64_t at_ns; /* when it was due */
	int64_t took_ns;
	int64_t late_ns; /* of that, before the call of begin */
};

struct shared {
	struct histogram begin, due;
	uint64_t begins, ends, drops, optimistic;
	uint64_t stalls_seen;
	struct stall stalls[STALLS_MAX];
	int failure; /* -errno */
};

/* Gaps of 10 us or more between two reads of the clock. */
struct witness {
	struct histogram gaps;
	uint64_t above_stall;
};

static struct options {
	struct client_options client;
	int64_t clients, rate, duration_ns, warmup_ns;
	int cpus[CPUS_MAX]; /* client i runs on cpus[i % cpu_count] */
	int cpu_count;
	int witness; /* its processor, -1: none */
	bool stalls;
} options;

static int run_round(gpuseg_task *task, int64_t due_ns, bool measured, struct shared *s)
{
	const int64_t begin_ns = now_ns();
	int rc = gpuseg_begin(task);
	const int64_t begun_ns = now_ns();

	if (rc == -EBUSY || rc == -ENOSPC) {
		s->drops++;
		return 0;
	}
	if (rc < 0)
		return rc;
	s->begins++;
	if (measured) {
		histogram_add(&s->begin, begun_ns - begin_ns);
		histogram_add(&s->due, begun_ns - due_ns);
		if (begun_ns - due_ns > STALLS_FROM_NS) {
			if (s->stalls_seen < STALLS_MAX)
				s->stalls[s->stalls_seen] =
					(struct stall){due_ns, begun_ns - due_ns, begin_ns - due_ns};
			s->stalls_seen++;
		}
	}
	do { /* with a full queue the library keeps the end for the next call */
		rc = gpuseg_end(task);
		if (rc == -EBUSY || rc == -ENOSPC)
			sleep_until(now_ns() + NS_PER_MS, NULL);
	} while (rc == -EBUSY || rc == -ENOSPC);
	if (rc == 0)
		s->ends++;
	return rc;
}

static int run_client(int index, int64_t start_ns, struct shared *s)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	struct gpuseg_counters counters = {.size = sizeof(counters)};
	const int64_t period_ns = NS_PER_S / options.rate, offset_ns = period_ns * index / options.clients;
	const int64_t end_ns = start_ns + options.warmup_ns + options.duration_ns;
	gpuseg_client *client = NULL;
	gpuseg_task *task = NULL;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "load-%d", index);
	attr.flags = GPUSEG_TASK_ALWAYS_WAIT;
	attr.timeout_ns = BEGIN_LIMIT_NS;
	rc = open_client(name, name, &options.client, &attr, &client, &task);
	if (rc < 0) {
		gpuseg_disconnect(client);
		return rc;
	}
	for (int64_t k = 0; rc >= 0; k++) {
		const int64_t due_ns = start_ns + offset_ns + k * period_ns;

		if (due_ns >= end_ns)
			break;
		if (options.client.spin)
			spin_until(due_ns);
		else
			sleep_until(due_ns, NULL);
		rc = run_round(task, due_ns, due_ns - start_ns >= options.warmup_ns, s);
	}
	if (rc < 0)
		message("%s: %s", name, gpuseg_last_message(client));
	if (gpuseg_get_counters(client, &counters) == 0)
		s->optimistic = counters.optimistic;
	gpuseg_disconnect(client);
	return rc < 0 ? rc : 0;
}

static void run_witness(int64_t start_ns, struct witness *w)
{
	const int64_t end_ns = start_ns + options.warmup_ns + options.duration_ns;

	sleep_until(start_ns + options.warmup_ns, NULL);
	for (int64_t last_ns = now_ns(), at_ns; last_ns < end_ns; last_ns = at_ns) {
		at_ns = now_ns();
		if (at_ns - last_ns >= GAPS_FROM_NS)
			histogram_add(&w->gaps, at_ns - last_ns);
		if (at_ns - last_ns > STALLS_FROM_NS)
			w->above_stall++;
	}
}

static void print_times(const char *name, const struct histogram *h)
{
	printf("\"%s_ns\":{\"n\":%" PRIu64 ",\"p50\":%" PRId64 ",\"p90\":%" PRId64 ",\"p99\":%" PRId64
	       ",\"p99_9\":%" PRId64 ",\"p99_99\":%" PRId64 ",\"max\":%" PRId64 "}",
	       name, h->count, histogram_at(h, 500000), histogram_at(h, 900000), histogram_at(h, 990000),
	       histogram_at(h, 999000), histogram_at(h, 999900), h->max_ns);
}

static void print_result(const struct shared *shared, const struct witness *w, int64_t from_ns)
{
	static struct shared sum;
	bool first = true;

	for (int i = 0; i < options.clients; i++) {
		histogram_merge(&sum.begin, &shared[i].begin);
		histogram_merge(&sum.due, &shared[i].due);
		sum.begins += shared[i].begins;
		sum.ends += shared[i].ends;
		sum.drops += shared[i].drops;
		sum.optimistic += shared[i].optimistic;
		sum.stalls_seen += shared[i].stalls_seen;
		if (shared[i].failure)
			sum.failure++;
	}
	printf("{\"clients\":%" PRId64 ",\"rate\":%" PRId64 ",\"duration_s\":%.3f,\"begins\":%" PRIu64
	       ",\"ends\":%" PRIu64 ",\"drops\":%" PRIu64 ",\"optimistic\":%" PRIu64 ",\"failed_clients\":%d,",
	       options.clients, options.rate, (double)options.duration_ns / (double)NS_PER_S, sum.begins, sum.ends,
	       sum.drops, sum.optimistic, sum.failure);
	print_times("begin", &sum.begin);
	printf(",");
	print_times("due", &sum.due);
	printf(",\"from_ns\":%" PRId64 ",\"stalls_seen\":%" PRIu64, from_ns, sum.stalls_seen);
	if (options.stalls) {
		printf(",\"stalls\":[");
		for (int i = 0; i < options.clients; i++)
			for (uint64_t k = 0; k < shared[i].stalls_seen && k < STALLS_MAX; k++, first = false)
				printf("%s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", first ? "" : ",",
				       shared[i].stalls[k].at_ns, shared[i].stalls[k].took_ns,
				       shared[i].stalls[k].late_ns);
		printf("]");
	}
	if (options.witness >= 0) {
		printf(",\"witness\":{\"cpu\":%d,\"gaps_above_100us\":%" PRIu64 ",", options.witness, w->above_stall);
		print_times("gaps_above_10us", &w->gaps);
		printf("}");
	}
	printf("}\n");
}

static const char help[] =
	"Usage: gpuseg-bench-load --dir DIR [option]...\n"
	"Clients that begin and end segments at a fixed rate; every begin waits for its grant. One JSON object.\n\n"
	"  --dir DIR             runtime directory of the daemon\n"
	"  --clients N           number of clients, 1..256, one process each (default 64)\n"
	"  --rate N              segments per second and client, 1..1000000 (default 1000)\n"
	"  --duration DURATION   of the measurement (default 10s)\n"
	"  --warmup DURATION     before the measurement (default 1s)\n"
	"  --priority N          0 best effort (default), 1..99 real time\n"
	"  --gpu N               index of the GPU (default 0)\n"
	"  --wait sleep|spin     how to wait between segments and for the grant (default sleep)\n"
	"  --cpus LIST           pin the clients to these processors in turn, for instance 2-5,8\n"
	"  --scheduling fifo:P|other   scheduling of clients and witness, if permitted (default other)\n"
	"  --stalls              list begins that took more than 100 us after they were due: [due ns, ns, late "
	"ns]\n"
	"  --witness N           one more process, on this processor, which reports gaps between reads of the clock\n"
	"  --help                this text\n";

/* A list as Linux writes it: numbers and ranges, joined by commas. */
static void parse_cpus(const char *text)
{
	for (const char *at = text;;) {
		char *end;
		long from = strtol(at, &end, 10), to = from;
		bool valid = end != at;

		if (valid && *end == '-') {
			at = end + 1;
			to = strtol(at, &end, 10);
			valid = end != at;
		}
		if (!valid || (*end != ',' && *end != '\0') || from < 0 || to < from || to >= CPUS_MAX ||
		    options.cpu_count + to - from >= CPUS_MAX)
			usage_error("--cpus: \"%s\" is no list of processors; write it like 2-5,8", text);
		for (; from <= to; from++)
			options.cpus[options.cpu_count++] = (int)from;
		if (*end == '\0')
			return;
		at = end + 1;
	}
}

static void parse_options(int argc, char **argv)
{
	enum { CLIENTS = 1, RATE, DURATION, WARMUP, CPUS, STALLS, WITNESS, HELP };
	static const struct option known[] = {
		CLIENT_OPTIONS,
		{"clients", required_argument, NULL, CLIENTS},
		{"rate", required_argument, NULL, RATE},
		{"duration", required_argument, NULL, DURATION},
		{"warmup", required_argument, NULL, WARMUP},
		{"cpus", required_argument, NULL, CPUS},
		{"stalls", no_argument, NULL, STALLS},
		{"witness", required_argument, NULL, WITNESS},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case CLIENTS:
			options.clients = option_integer("--clients", optarg, 1, CLIENTS_MAX);
			break;
		case RATE:
			options.rate = option_integer("--rate", optarg, 1, RATE_MAX);
			break;
		case DURATION:
			options.duration_ns = option_duration("--duration", optarg, NS_PER_MS, DURATION_MAX_NS);
			break;
		case WARMUP:
			options.warmup_ns = option_duration("--warmup", optarg, 0, DURATION_MAX_NS);
			break;
		case CPUS:
			parse_cpus(optarg);
			break;
		case STALLS:
			options.stalls = true;
			break;
		case WITNESS:
			options.witness = (int)option_integer("--witness", optarg, 0, CPUS_MAX - 1);
			break;
		case HELP:
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			if (!take_client_option(option, optarg, &options.client))
				exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("unexpected argument \"%s\"; see --help", argv[optind]);
	if (!options.client.directory)
		usage_error("--dir is missing; give the runtime directory of the daemon");
}

/* fork(2), with a child that dies with this process. */
static pid_t spawn(pid_t parent, int cpu)
{
	const pid_t pid = fork();

	if (pid < 0) {
		message("fork: %s", strerror(errno));
		exit(EXIT_FAILURE); /* the children that run already die with this process */
	}
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	if (cpu >= 0 && pin_to_cpu(cpu) != 0)
		message("processor %d: not pinned: %s", cpu, strerror(errno));
	try_scheduling(options.client.scheduling);
	return 0;
}

static void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED) {
		message("%zu bytes of shared memory: %s", bytes, strerror(errno));
		exit(EXIT_FAILURE);
	}
	return memory;
}

int main(int argc, char **argv)
{
	const pid_t parent = getpid();
	struct witness *witness;
	struct shared *shared;
	int64_t start_ns;
	int status, failures = 0;

	program_name = "gpuseg-bench-load";
	options = (struct options){
		.clients = 64, .rate = 1000, .duration_ns = 10 * NS_PER_S, .warmup_ns = NS_PER_S, .witness = -1};
	parse_options(argc, argv);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* when the process that started this one dies */
	shared = shared_memory((size_t)options.clients * sizeof(*shared));
	witness = shared_memory(sizeof(*witness));
	start_ns = now_ns() + LEAD_NS + options.clients * 40 * NS_PER_MS;
	for (int i = 0; i < options.clients; i++) {
		if (spawn(parent, options.cpu_count ? options.cpus[i % options.cpu_count] : -1) == 0) {
			shared[i].failure = run_client(i, start_ns, &shared[i]);
			_exit(shared[i].failure ? EXIT_FAILURE : EXIT_SUCCESS);
		}
	}
	if (options.witness >= 0 && spawn(parent, options.witness) == 0) {
		run_witness(start_ns, witness);
		_exit(EXIT_SUCCESS);
	}
	for (;;) {
		const pid_t pid = wait(&status);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		failures += !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
	}
	print_result(shared, witness, start_ns + options.warmup_ns);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
