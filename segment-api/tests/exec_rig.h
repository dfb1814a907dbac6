/* SPDX-License-Identifier: Apache-2.0 */
/* exec_rig.h - run programs under gpuseg-exec on the stand-ins of libcuda and libcupti, with a daemon in a thread. */
#ifndef EXEC_RIG_H
#define EXEC_RIG_H

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"

#ifndef CALLS
#define CALLS "auto" /* how gpuseg-exec has calls of the driver followed, unless a test says it */
#endif
#define VARIABLE "GPUSEG_EXEC_"
#define OUTPUT 8192
#define ARGUMENTS 24
/* A program that takes longer than this hangs. Sanitizers and busy machines are slow; nothing here takes a second. */
#define HANG_NS (100 * NS_PER_S)

static char build[PATH_MAX]; /* directory of the libraries */

struct run {
	pid_t pid;
	int out, err;
	char text[OUTPUT], said[OUTPUT]; /* stdout, stderr */
	size_t text_size, said_size;
	int status;
};

static inline const char *in_build(const char *file)
{
	static char paths[4][PATH_MAX + 64];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX + 64, "%s/%s", build, file);
	return path;
}

/* The environment of programs under test: this daemon, this libcupti. */
static inline void prepare(const struct fake_daemon *d)
{
	char self[PATH_MAX], options[512];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (getenv("GPUSEG_TEST_RUNNER") && *getenv("GPUSEG_TEST_RUNNER"))
		SKIP("programs that start programs are not run under emulation");
	CHECK(n > 0);
	self[n] = '\0';
	for (int levels = 0; levels < 2; levels++) /* BUILD/tests/test_... */
		*strrchr(self, '/') = '\0';
	snprintf(build, sizeof(build), "%s", self);
	setenv("GPUSEG_DIR", d ? d->dir : "/nonexistent", 1);
	setenv("GPUSEG_CUPTI", in_build("tests/cuda/libcupti.so.13"), 1);
	unsetenv("CUDA_INJECTION64_PATH");
	unsetenv("GPUSEG_UNMANAGED");
	/* The wrappers are preloaded, so they come before AddressSanitizer's library. */
	if (!strstr(getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "", "verify_asan_link_order")) {
		snprintf(options, sizeof(options), "%s:verify_asan_link_order=0",
			 getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
		setenv("ASAN_OPTIONS", options, 1);
	}
	/* The injected library does not wait for the daemon at the exit of a program, so its threads are not joined. */
	snprintf(options, sizeof(options), "%s:report_thread_leaks=0",
		 getenv("TSAN_OPTIONS") ? getenv("TSAN_OPTIONS") : "");
	if (!strstr(getenv("TSAN_OPTIONS") ? getenv("TSAN_OPTIONS") : "", "report_thread_leaks"))
		setenv("TSAN_OPTIONS", options, 1);
}

/* Words that set a variable of gpuseg-exec go into the environment of the program. */
static inline struct run start(const char *const *arguments)
{
	const char *argv[ARGUMENTS];
	struct run r = {.pid = -1};
	int out[2], err[2];
	char *variables[ARGUMENTS];
	size_t count = 0, set = 0;
	static char calls[] = "GPUSEG_EXEC_CALLS=" CALLS;

	if (strstr(arguments[0], "/gpuseg-exec"))
		variables[set++] = calls;
	for (; *arguments; arguments++) {
		CHECK(count + 1 < ARGUMENTS);
		if (strncmp(*arguments, VARIABLE, strlen(VARIABLE)) == 0)
			variables[set++] = (char *)(uintptr_t)*arguments;
		else
			argv[count++] = *arguments;
	}
	argv[count] = NULL;
	CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(err, O_CLOEXEC), 0);
	r.pid = fork();
	CHECK(r.pid >= 0);
	if (r.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		for (size_t i = 0; i < set; i++)
			putenv(variables[i]);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	close(out[1]);
	close(err[1]);
	r.out = out[0];
	r.err = err[0];
	return r;
}

static inline void take(int *fd, char *text, size_t *size)
{
	const ssize_t n = read(*fd, text + *size, OUTPUT - 1 - *size);

	if (n <= 0) {
		close(*fd);
		*fd = -1;
		return;
	}
	*size += (size_t)n;
	text[*size] = '\0';
}

/* Read until the program ends, or until it has printed `until`. */
static inline void follow(struct run *r, const char *until)
{
	const int64_t limit_ns = now_ns() + HANG_NS;

	while ((r->out >= 0 || r->err >= 0) && !(until && strstr(r->text, until))) {
		struct pollfd fds[2] = {{.fd = r->out, .events = POLLIN}, {.fd = r->err, .events = POLLIN}};

		poll(fds, 2, 100);
		if (fds[0].revents)
			take(&r->out, r->text, &r->text_size);
		if (fds[1].revents)
			take(&r->err, r->said, &r->said_size);
		if (now_ns() - limit_ns >= 0) {
			kill(r->pid, SIGKILL);
			CHECK(false, "the program hangs; it said: %s", r->said);
		}
	}
}

/* Read for so long, or until the program ends, however long it takes. */
static inline void follow_for(struct run *r, int64_t ns)
{
	const int64_t until_ns = now_ns() + ns;
	int64_t left_ns = ns;

	while ((r->out >= 0 || r->err >= 0) && left_ns > 0) {
		struct pollfd fds[2] = {{.fd = r->out, .events = POLLIN}, {.fd = r->err, .events = POLLIN}};

		poll(fds, 2, (int)(left_ns / NS_PER_MS) + 1);
		if (fds[0].revents)
			take(&r->out, r->text, &r->text_size);
		if (fds[1].revents)
			take(&r->err, r->said, &r->said_size);
		left_ns = until_ns - now_ns();
	}
}

static inline void finish(struct run *r)
{
	follow(r, NULL);
	CHECK_EQ(waitpid(r->pid, &r->status, 0), r->pid);
}

static inline struct run run(const char *const *arguments)
{
	struct run r = start(arguments);

	finish(&r);
	return r;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})
#define EXEC(...) RUN(in_build("gpuseg-exec"), __VA_ARGS__)
#define APP in_build("tests/cuda/inject_app")

static inline void passed(const struct run *r)
{
	CHECK(WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0, "status %#x, it said: %s", (unsigned int)r->status,
	      r->said);
}

/* The result is that of the program by itself. */
static inline void same_as_alone(const struct run *r, const char *scenario)
{
	const struct run alone = RUN(APP, scenario);

	passed(&alone);
	passed(r);
	CHECK(strcmp(alone.text, r->text) == 0, "alone: %s, with gpuseg: %s", alone.text, r->text);
}

struct tally {
	unsigned int begins, ends, others;
	unsigned int open; /* at the end */
	int64_t longest_ns;
	int64_t length_ns, device_ns; /* sums */
	int64_t end_ns;		      /* of the last segment */
};

/* Begin and end alternate for each task. */
static inline struct tally tally_of(struct fake_daemon *d)
{
	struct tally t = {0};
	int64_t begun_ns[GPUSEG_SLOTS_MAX] = {0};
	size_t count;

	/* What a program wrote at its end may not have been read yet. */
	for (int64_t limit_ns = now_ns() + NS_PER_S; now_ns() - limit_ns < 0;) {
		count = fake_daemon_records(d);
		sleep_ns(20 * NS_PER_MS);
		if (fake_daemon_records(d) == count)
			break;
	}
	count = fake_daemon_records(d);
	for (size_t i = 0; i < count; i++) {
		const struct gpuseg_record r = fake_daemon_record(d, i);
		int64_t *begun = &begun_ns[r.task_id % GPUSEG_SLOTS_MAX];

		if (r.kind == GPUSEG_RECORD_BEGIN) {
			CHECK_EQ(*begun, 0);
			*begun = r.time_ns;
			t.begins++;
			t.open++;
		} else if (r.kind == GPUSEG_RECORD_END) {
			CHECK(*begun != 0, "an end without a begin");
			if (r.time_ns - *begun > t.longest_ns)
				t.longest_ns = r.time_ns - *begun;
			t.length_ns += r.time_ns - *begun;
			t.device_ns += r.arg_ns;
			t.end_ns = r.time_ns;
			*begun = 0;
			t.ends++;
			t.open--;
		} else {
			t.others++;
		}
	}
	CHECK(!d->sequence_broken);
	return t;
}

#endif /* EXEC_RIG_H */
