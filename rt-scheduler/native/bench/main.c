/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-bench-ipc - the C side of `gpuseg bench ipc`: the latencies that an application sees.
 *
 *   floor           two threads exchange a shared word: the least latency that this machine allows
 *   pingpong-futex  the same, but the measuring thread sleeps on a futex
 *   begin           begin -> grant -> return of a task that always waits for the daemon
 *   optimistic      begin of a task that the daemon has pre-granted
 *   end             end of such a task
 *
 * Prints one JSON object per mode, one per line, on stdout. Times are in nanoseconds and include the cost of reading
 * the clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/client.h"
#include "bench/floor.h"
#include "bench/latencies.h"
#include "bench/pace.h"

#define PACE_DAEMON_NS (5 * NS_PER_US)	   /* lets the daemon handle the end before the next begin */
#define PREGRANT_WAIT_NS (200 * NS_PER_MS) /* for the daemon's first pre-grant after the task was opened */
#define SLEEP_ABOVE_NS (5 * NS_PER_MS)	   /* of a pause: the rest is spun, so that the begin finds caches warm */
#define BEGIN_LIMIT_NS (10 * NS_PER_S)	   /* a grant that takes longer is a failure of the bench */

#define FLOOD "flood" /* the only mode that measures nothing */

enum { UNSET = -1, ROUNDS_MAX = 100 * 1000 * 1000 };

struct options {
	struct client_options client;
	int64_t rounds, warmup;
	int64_t pace_ns; /* UNSET: the default of the mode */
	int cpu, peer_cpu;
	const char *samples; /* file for the raw times, NULL: none */
};

/* A heading, then one line per round, in order. */
static int write_samples(const char *mode, const struct options *o, const struct latencies *l)
{
	FILE *file = o->samples ? fopen(o->samples, "w") : NULL;
	bool good = file && fprintf(file, "%s_ns\n", mode) > 0;

	if (!o->samples)
		return 0;
	for (size_t i = 0; good && i < l->count; i++)
		good = fprintf(file, "%" PRId64 "\n", l->ns[i]) > 0;
	if (file && fclose(file) != 0)
		good = false;
	if (!good)
		message("%s: --samples %s: %s", mode, o->samples, strerror(errno));
	return good ? 0 : -EIO;
}

static void print_result(const char *mode, const struct options *o, int64_t pace_ns, struct latencies *l,
			 const char *more)
{
	latencies_sort(l);
	printf("{\"mode\":\"%s\",\"n\":%zu,\"warmup\":%" PRId64 ",\"pace_ns\":%" PRId64 ",\"p50_ns\":%" PRId64
	       ",\"p99_ns\":%" PRId64 ",\"p999_ns\":%" PRId64 ",\"max_ns\":%" PRId64 ",\"mean_ns\":%.1f%s}\n",
	       mode, l->count, o->warmup, pace_ns, latencies_at(l, 500), latencies_at(l, 990), latencies_at(l, 999),
	       latencies_at(l, 1000), latencies_mean(l), more);
	fflush(stdout);
}

static int run_floor(const char *mode, const struct options *o, struct latencies *l)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct floor_setting setting = {
		.cpu = o->cpu == UNSET ? 0 : o->cpu,
		.peer_cpu = o->peer_cpu == UNSET ? (o->cpu == 1 ? 0 : 1) : o->peer_cpu,
		.futex = strcmp(mode, "pingpong-futex") == 0,
		.pace_ns = o->pace_ns == UNSET ? 0 : o->pace_ns,
		.warmup = (size_t)o->warmup,
	};
	char more[64];
	int rc;

	if (cpus < 2 || setting.cpu == setting.peer_cpu) {
		message("%s: needs two processors, this is %d and %d of %ld; choose them with --cpu and --peer-cpu",
			mode, setting.cpu, setting.peer_cpu, cpus);
		return -EINVAL;
	}
	rc = measure_floor(&setting, l);
	if (rc != 0) {
		message("%s: processors %d and %d: %s", mode, setting.cpu, setting.peer_cpu, strerror(-rc));
		return rc;
	}
	snprintf(more, sizeof(more), ",\"cpu\":%d,\"peer_cpu\":%d", setting.cpu, setting.peer_cpu);
	print_result(mode, o, setting.pace_ns, l, more);
	return 0;
}

/*
 * Waits until the daemon has pre-granted the task for the first time, because earlier rounds would not be optimistic.
 */
static int await_pregrant(gpuseg_client *client, gpuseg_task *task)
{
	struct gpuseg_counters counters = {.size = sizeof(counters)};

	for (const int64_t limit_ns = now_ns() + PREGRANT_WAIT_NS; now_ns() < limit_ns;) {
		int rc = gpuseg_begin_timed(task, BEGIN_LIMIT_NS);

		if (rc < 0)
			return rc;
		rc = gpuseg_end(task);
		if (rc >= 0)
			rc = gpuseg_get_counters(client, &counters);
		if (rc < 0)
			return rc;
		if (counters.optimistic > 0)
			return 0;
		sleep_until(now_ns() + NS_PER_MS, NULL);
	}
	return -EAGAIN;
}

static int measure_rounds(gpuseg_task *task, bool measure_end, int64_t pace_ns, const struct options *o,
			  struct latencies *l)
{
	for (int64_t i = 0; i < o->warmup + o->rounds; i++) {
		const int64_t begin_ns = now_ns();
		int rc = gpuseg_begin(task);
		const int64_t begun_ns = now_ns();

		if (rc < 0)
			return rc;
		if (measure_end) /* the daemon has handled the begin: only the end is measured */
			spin_until(begun_ns + pace_ns);

		const int64_t end_ns = now_ns();
		rc = gpuseg_end(task);
		const int64_t ended_ns = now_ns();

		if (rc < 0)
			return rc;
		if (i >= o->warmup)
			latencies_add(l, measure_end ? ended_ns - end_ns : begun_ns - begin_ns);
		if (pace_ns > SLEEP_ABOVE_NS) /* a long pause leaves the processor to others */
			sleep_until(ended_ns + pace_ns - SLEEP_ABOVE_NS, NULL);
		spin_until(ended_ns + pace_ns);
	}
	return 0;
}

/* Writes records without a pause and without waiting, for tests that kill a client while it writes. */
static int flood(gpuseg_task *task, const struct options *o)
{
	int rc = 0;

	for (int64_t i = 0; i < o->rounds && (rc >= 0 || rc == -EAGAIN || rc == -ENOSPC); i++)
		rc = gpuseg_job_release(task, now_ns());
	return rc == -EAGAIN || rc == -ENOSPC ? 0 : rc; /* full: the daemon is slower than the flood */
}

static int run_daemon(const char *mode, const struct options *o, struct latencies *l)
{
	const int64_t pace_ns = o->pace_ns == UNSET ? PACE_DAEMON_NS : o->pace_ns;
	const bool waits = strcmp(mode, "begin") == 0, floods = strcmp(mode, FLOOD) == 0;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	struct gpuseg_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	gpuseg_client *client = NULL;
	gpuseg_task *task = NULL;
	char more[160];
	int rc = o->cpu == UNSET ? 0 : pin_to_cpu(o->cpu);

	if (rc != 0) {
		message("%s: --cpu %d: %s", mode, o->cpu, strerror(-rc));
		return rc;
	}
	attr.flags = waits ? GPUSEG_TASK_ALWAYS_WAIT : 0;
	attr.timeout_ns = BEGIN_LIMIT_NS;
	attr.on_timeout = GPUSEG_ON_TIMEOUT_FAIL;
	rc = open_client(mode, "bench", &o->client, &attr, &client, &task);
	if (rc < 0) {
		gpuseg_disconnect(client);
		return rc;
	}
	if (!waits && !floods) {
		rc = await_pregrant(client, task);
		if (rc == -EAGAIN)
			message("%s: the daemon pre-grants nothing; its policy, mechanism or load does not allow it",
				mode);
	}
	if (rc >= 0)
		rc = gpuseg_get_counters(client, &before);
	if (rc >= 0)
		rc = floods ? flood(task, o) : measure_rounds(task, strcmp(mode, "end") == 0, pace_ns, o, l);
	if (rc >= 0)
		rc = gpuseg_get_counters(client, &after);
	if (rc < 0) {
		message("%s: %s", mode, gpuseg_last_message(client));
	} else if (!floods) {
		rc = write_samples(mode, o, l);
		snprintf(more, sizeof(more),
			 ",\"optimistic\":%" PRIu64 ",\"slept\":%" PRIu64 ",\"drops\":%" PRIu64 ",\"bells\":%" PRIu64,
			 after.optimistic - before.optimistic, after.slept - before.slept, after.drops - before.drops,
			 after.bells - before.bells);
		print_result(mode, o, pace_ns, l, more);
	}
	gpuseg_disconnect(client);
	return rc < 0 ? rc : 0;
}

static const struct {
	const char *name;
	int (*run)(const char *mode, const struct options *o, struct latencies *l);
} modes[] = {
	{"floor", run_floor},	    {"pingpong-futex", run_floor}, {"begin", run_daemon},
	{"optimistic", run_daemon}, {"end", run_daemon},	   {FLOOD, run_daemon},
};

static const char help[] =
	"Usage: gpuseg-bench-ipc [option]... MODE...\n"
	"Latencies in nanoseconds, one JSON object per mode.\n\n"
	"  floor           two threads and a shared word, both spin\n"
	"  pingpong-futex  two threads and a shared word, the measuring thread sleeps\n"
	"  begin           from begin to grant to return, always through the daemon\n"
	"  optimistic      begin of a pre-granted task\n"
	"  end             end of a segment\n"
	"  flood           job releases without a pause; measures nothing\n\n"
	"  --dir DIR                  runtime directory of the daemon\n"
	"  --n N                      measured rounds (default 100000)\n"
	"  --warmup N                 rounds before the measurement (default 20000)\n"
	"  --pace NS                  nanoseconds between rounds (default 0; with a daemon 5000)\n"
	"  --samples FILE             write all times of the last mode except floor, in order\n"
	"  --cpu N                    processor of the measuring thread\n"
	"  --peer-cpu N               processor of the answering thread (floor, pingpong-futex)\n"
	"  --priority N               priority of the task, 0 = best effort (default 99)\n"
	"  --gpu N                    GPU of the task (default 0)\n"
	"  --wait spin|sleep          how to wait for a grant (default spin)\n"
	"  --scheduling fifo:P|other  scheduling of the measuring thread, if permitted (default other)\n"
	"  --help                     this text\n";

static void parse_options(int argc, char **argv, struct options *o)
{
	enum { ROUNDS = 1, WARMUP, PACE, SAMPLES, CPU, PEER_CPU, HELP };
	static const struct option known[] = {
		CLIENT_OPTIONS,
		{"n", required_argument, NULL, ROUNDS},
		{"warmup", required_argument, NULL, WARMUP},
		{"pace", required_argument, NULL, PACE},
		{"samples", required_argument, NULL, SAMPLES},
		{"cpu", required_argument, NULL, CPU},
		{"peer-cpu", required_argument, NULL, PEER_CPU},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case ROUNDS:
			o->rounds = option_integer("--n", optarg, 1, ROUNDS_MAX);
			break;
		case WARMUP:
			o->warmup = option_integer("--warmup", optarg, 0, ROUNDS_MAX);
			break;
		case PACE:
			o->pace_ns = option_integer("--pace", optarg, 0, NS_PER_S);
			break;
		case SAMPLES:
			o->samples = optarg;
			break;
		case CPU:
			o->cpu = (int)option_integer("--cpu", optarg, 0, 4095);
			break;
		case PEER_CPU:
			o->peer_cpu = (int)option_integer("--peer-cpu", optarg, 0, 4095);
			break;
		case HELP:
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			if (!take_client_option(option, optarg, &o->client))
				exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind == argc)
		usage_error("no mode given; use one or more of floor, pingpong-futex, begin, optimistic, end, flood");
}

static int mode_index(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return (int)i;
	usage_error("mode \"%s\" is unknown; use floor, pingpong-futex, begin, optimistic, end or flood", name);
}

int main(int argc, char **argv)
{
	struct options o = {.rounds = 100000, .warmup = 20000, .pace_ns = UNSET, .cpu = UNSET, .peer_cpu = UNSET};
	struct latencies l;
	bool measures = false;
	int rc = 0;

	program_name = "gpuseg-bench-ipc";
	o.client = (struct client_options){.priority = 99, .spin = true};
	parse_options(argc, argv, &o);
	for (int i = optind; i < argc; i++) {
		mode_index(argv[i]); /* refuse before the first measurement */
		measures = measures || strcmp(argv[i], FLOOD) != 0;
	}
	if (latencies_create(&l, measures ? (size_t)o.rounds : 1) != 0) {
		message("no memory for %" PRId64 " latencies; lower --n", o.rounds);
		return EXIT_FAILURE;
	}
	rc = lock_memory();
	if (rc != 0)
		message("memory is not locked (%s): page faults may show in the tail", strerror(-rc));
	rc = 0;
	try_scheduling(o.client.scheduling);
	for (int i = optind; i < argc && rc == 0; i++) {
		l.count = 0;
		rc = modes[mode_index(argv[i])].run(argv[i], &o, &l);
	}
	latencies_destroy(&l);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
