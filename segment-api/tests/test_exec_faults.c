/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exec_faults.c - programs under gpuseg-exec while programs and daemons are killed, stopped, slow or silent at any
 * moment, and many launches in one process. On the stand-ins of libcuda and libcupti.
 *
 * Longer runs: GPUSEG_TEST_ROUNDS=500 (faults), GPUSEG_TEST_LAUNCHES=10000000 (soak), GPUSEG_TEST_SEED=N.
 */
#include "exec_rig.h"

static int64_t number_of(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? atoll(text) : otherwise;
}

/* ---- faults ---- */

enum fault {
	PROGRAM_KILLED,
	PROGRAM_STOPPED, /* SIGSTOP, later SIGCONT */
	DAEMON_KILLED,	 /* none follows until the program has ended */
	DAEMON_FOLLOWED, /* killed, and another one starts at once */
	DAEMON_REPLACED, /* the same three times */
	DAEMON_SLOW,	 /* to grant */
	DAEMON_SILENT,	 /* grants nothing from here on, as if it were stopped */
	DAEMON_MUTE,	 /* does not answer registrations from the start */
	DAEMON_REFUSES,	 /* every segment */
	DAEMON_DROPS,	 /* the client as faulty */
	FAULTS
};

static const char *const fault_names[FAULTS] = {
	"program killed", "program stopped", "daemon killed", "daemon followed", "daemon replaced",
	"daemon slow",	  "daemon silent",   "daemon mute",   "daemon refuses",	 "daemon drops"};

/* What is launched; each has a result of its own, and takes some 10 to 300 ms alone. */
static const char *const programs[] = {"jobs",	  "one-job", "no-sync",	    "default-stream", "per-thread",
				       "threads", "graphs",  "kinds",	    "training",	      "contexts",
				       "forks",	  "exit",    "streams-end", "failing",	      "long-waits"};
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static const char *const options[][2] = {{"--priority", "80"},
					 {"--priority", "1"},
					 {"--weight", "100"},
					 {"--best-effort", "GPUSEG_EXEC_HOLD_OFF=0"},
					 {"--best-effort", "GPUSEG_EXEC_SEGMENTS=process"},
					 {"--best-effort", "GPUSEG_EXEC_SEGMENTS=graph"},
					 {"--best-effort", "GPUSEG_EXEC_SLICE=500us"},
					 {"--best-effort", "GPUSEG_EXEC_STREAMS=priority"}};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static void adjust(struct fake_daemon *d, bool mute)
{
	pthread_mutex_lock(&d->mutex);
	d->mute = mute;
	d->expects = true;
	pthread_mutex_unlock(&d->mutex);
}

/* Half of the moments lie in the first 10 ms, in which the library connects and opens its task. */
static int64_t moment_ns(unsigned int *seed)
{
	const int64_t us = rand_r(seed) % 2 ? rand_r(seed) % 10000 : rand_r(seed) % 200000;

	return us * NS_PER_US;
}

static bool runs(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* False: the program had ended before. */
static bool replace(struct fake_daemon *d, const struct run *r, int times, unsigned int *seed)
{
	bool hit = false;

	for (int i = 0; i < times; i++) {
		fake_daemon_kill(d);
		hit |= runs(r->pid);
		sleep_ns(rand_r(seed) % 5 * NS_PER_MS);
		fake_daemon_follow(d);
		sleep_ns(rand_r(seed) % 30 * NS_PER_MS);
	}
	return hit;
}

static unsigned int read_locked(struct fake_daemon *d, const unsigned int *word)
{
	unsigned int value;

	pthread_mutex_lock(&d->mutex);
	value = *word;
	pthread_mutex_unlock(&d->mutex);
	return value;
}

/* Until the program has opened its task, or has ended: how long that takes is the machine's load and the sanitizer. */
static void await_open(struct fake_daemon *d, const struct run *r)
{
	while (read_locked(d, &d->opens) == 0 && runs(r->pid))
		sleep_ns(NS_PER_MS / 5);
}

/* Do it. False: it comes too late or too early to do anything; for faults that last, was_felt() knows in the end. */
static bool strike(enum fault fault, struct fake_daemon *d, const struct run *r, unsigned int *seed)
{
	bool hit = true;

	switch (fault) {
	case PROGRAM_KILLED:
		kill(r->pid, SIGKILL);
		break;
	case PROGRAM_STOPPED:
		kill(r->pid, SIGSTOP);
		hit = runs(r->pid);
		sleep_ns(rand_r(seed) % 100 * NS_PER_MS);
		kill(r->pid, SIGCONT);
		break;
	case DAEMON_KILLED:
		fake_daemon_kill(d);
		hit = runs(r->pid);
		break;
	case DAEMON_FOLLOWED:
		hit = replace(d, r, 1, seed);
		break;
	case DAEMON_REPLACED:
		hit = replace(d, r, 3, seed);
		break;
	case DAEMON_SLOW:
		fake_daemon_grants(d, FAKE_DELAY, rand_r(seed) % 150 * NS_PER_MS);
		break;
	case DAEMON_SILENT:
		fake_daemon_grants(d, FAKE_IGNORE, 0);
		break;
	case DAEMON_REFUSES:
		fake_daemon_grants(d, FAKE_REFUSE, 0);
		break;
	case DAEMON_DROPS:
		hit = read_locked(d, &d->opens) > 0;
		if (hit)
			fake_daemon_drop(d, GPUSEG_POISON_QUOTA);
		hit = hit && runs(r->pid);
		break;
	default:
		break;
	}
	return hit;
}

/* After the end of the program. */
static bool was_felt(enum fault fault, struct fake_daemon *d, const struct run *r)
{
	switch (fault) {
	case PROGRAM_KILLED:
		return WIFSIGNALED(r->status);
	case DAEMON_MUTE:
		return read_locked(d, &d->unanswered) > 0;
	case DAEMON_SLOW:
	case DAEMON_SILENT:
	case DAEMON_REFUSES:
		return read_locked(d, &d->not_granted) > 0;
	default:
		return true;
	}
}

struct tale {
	int64_t longest_ns;
	char longest[128];
};

/* One program, one fault. Did it come while there was something to be hit? */
static bool play(enum fault fault, const struct run *alone, unsigned int *seed, struct tale *tale)
{
	const size_t program = (size_t)rand_r(seed) % PROGRAMS, option = (size_t)rand_r(seed) % OPTIONS;
	const int64_t begin_ns = now_ns();
	struct fake_daemon d;
	char what[128];
	struct run r;
	bool hit;

	snprintf(what, sizeof(what), "%s, %s %s, %s", fault_names[fault], options[option][0], options[option][1],
		 programs[program]);
	fake_daemon_start(&d);
	prepare(&d);
	adjust(&d, fault == DAEMON_MUTE);
	r = start((const char *const[]){in_build("gpuseg-exec"), options[option][0], options[option][1],
					"GPUSEG_EXEC_TOUCH=on", "GPUSEG_EXEC_WAIT=200ms", "--", APP, programs[program],
					NULL});
	if (fault == DAEMON_DROPS)
		await_open(&d, &r);
	sleep_ns(moment_ns(seed));
	hit = strike(fault, &d, &r, seed);
	finish(&r); /* fails if the program hangs */
	hit = hit && was_felt(fault, &d, &r);
	if (now_ns() - begin_ns > tale->longest_ns) {
		tale->longest_ns = now_ns() - begin_ns;
		snprintf(tale->longest, sizeof(tale->longest), "%s", what);
	}
	if (fault != PROGRAM_KILLED) {
		CHECK(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0, "%s: status %#x, it said: %s", what,
		      (unsigned int)r.status, r.said);
		CHECK(strcmp(r.text, alone[program].text) == 0, "%s: alone: %s, now: %s", what, alone[program].text,
		      r.text);
	}
	fake_daemon_stop(&d);
	return hit;
}

/* A fault that hit nothing is played again, with another program at another moment, so often at most. */
#define TRIES 50

TEST(should_end_with_its_result_whatever_happens_to_daemon_and_program)
{
	const int rounds = (int)number_of("GPUSEG_TEST_ROUNDS", 20);
	unsigned int seed = (unsigned int)number_of("GPUSEG_TEST_SEED", 20261123), count[FAULTS] = {0};
	struct tale tale = {.longest_ns = 0};
	struct run alone[PROGRAMS];
	unsigned int missed = 0;

	alarm((unsigned int)(CHECK_SECONDS + 10 * rounds));
	prepare(NULL);
	for (size_t i = 0; i < PROGRAMS; i++) {
		alone[i] = RUN(APP, programs[i]);
		passed(&alone[i]);
	}
	for (int round = 0; round < rounds; round++) {
		/* Each fault in turn; the rest at random. */
		const enum fault fault = (enum fault)(round % FAULTS);
		int tries = 0;

		while (tries < TRIES && !play(fault, alone, &seed, &tale))
			tries++;
		CHECK(tries < TRIES, "round %d: %s: nothing was hit in %d programs", round, fault_names[fault], TRIES);
		missed += (unsigned int)tries;
		count[fault]++;
	}
	printf("  %d rounds, %u repeated because nothing was hit, the longest took %lld ms (%s):", rounds, missed,
	       (long long)(tale.longest_ns / NS_PER_MS), tale.longest);
	for (int f = 0; f < FAULTS; f++)
		printf(" %s %u%s", fault_names[f], count[f], f + 1 < FAULTS ? "," : "\n");
}

/* ---- soak ---- */

#define GROWTH_KB 4096 /* allocators round up; a leak of one byte for each launch of a long run is more */

TEST(should_neither_grow_nor_go_wrong_over_many_launches)
{
	const int64_t launches = number_of("GPUSEG_TEST_LAUNCHES", 300000);
	char number[24];
	struct fake_daemon d;
	long rss[2], fds[2], threads[2];
	long long done, wrong;
	struct run r;
	const char *at;

	alarm((unsigned int)(CHECK_SECONDS + launches / 5000));
	fake_daemon_start_sized(&d, 64 << 20, false);
	prepare(&d);
	snprintf(number, sizeof(number), "%lld", (long long)launches);
	adjust(&d, false);
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "GPUSEG_EXEC_TOUCH=on", "--", APP,
					"long-soak", number, NULL});
	for (int64_t limit_ns = now_ns() + launches * 200 * NS_PER_US; r.out >= 0 && now_ns() - limit_ns < 0;)
		follow_for(&r, NS_PER_S);
	finish(&r);
	passed(&r);
	at = strstr(r.said, "soak:");
	CHECK(at && sscanf(at, "soak: launches %lld wrong %lld rss %ld %ld fds %ld %ld threads %ld %ld", &done, &wrong,
			   &rss[0], &rss[1], &fds[0], &fds[1], &threads[0], &threads[1]) == 8,
	      "%s", r.said);
	printf("  %lld launches, %zu records, RSS %ld to %ld KiB, descriptors %ld to %ld\n", done,
	       fake_daemon_records(&d), rss[0], rss[1], fds[0], fds[1]);
	CHECK_EQ(done, launches);
	CHECK_EQ(wrong, 0);
	CHECK(rss[1] - rss[0] < GROWTH_KB, "RSS grew from %ld to %ld KiB", rss[0], rss[1]);
	CHECK_EQ(fds[0], fds[1]);
	CHECK_EQ(threads[0], threads[1]);
	CHECK(fake_daemon_records(&d) >= 2);
	CHECK(!d.sequence_broken);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {
	CASE(should_end_with_its_result_whatever_happens_to_daemon_and_program),
	CASE(should_neither_grow_nor_go_wrong_over_many_launches),
};

CHECK_MAIN(cases)
