/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/selftest_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/check.h"

enum { AT_ONCE = 3 }; /* both programs of self-tests run at a time */

char directory[64];
const char *build;

void write_file(const char *name, const char *text, mode_t mode)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0, "%s", path);
}

const char *path_of(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", directory, name);
	return path;
}

pid_t start(const char *program, const char *const arguments[], const char *output)
{
	const pid_t pid = fork();

	if (pid == 0) {
		const int fd = open(path_of(output), O_WRONLY | O_CREAT | O_TRUNC, 0644);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execv(program, (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	return pid;
}

void read_file(const char *name, char *text)
{
	const int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, TEXT_MAX - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
}

void wait_for_text(const char *name, const char *text)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	static char content[TEXT_MAX];

	for (;;) {
		read_file(name, content);
		if (strstr(content, text))
			return;
		CHECK(now_ns() < limit_ns, "%s: %s does not say \"%s\": %s", directory, name, text, content);
		sleep_until(now_ns() + 5 * NS_PER_MS, NULL);
	}
}

int wait_for(pid_t pid)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		CHECK(now_ns() < limit_ns, "%s: process %d does not end", directory, pid);
		sleep_until(now_ns() + 5 * NS_PER_MS, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* From the build's directory. */
static void copy_program(const char *name)
{
	char from[PATH_MAX];
	static char bytes[1 << 22];
	int in, out;
	ssize_t n;

	snprintf(from, sizeof(from), "%s/%s", build, name);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	n = in < 0 ? -1 : read(in, bytes, sizeof(bytes));
	CHECK(n > 0 && n < (ssize_t)sizeof(bytes) && out >= 0 && write(out, bytes, (size_t)n) == n, "%s", from);
	close(in);
	close(out);
}

void make_directory(void)
{
	snprintf(directory, sizeof(directory), "/tmp/gpuseg-test-XXXXXX");
	CHECK(mkdtemp(directory) != NULL);
}

void *map_file(const char *name, size_t size)
{
	const int fd = open(path_of(name), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *map;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "%s", name);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED, "%s", name);
	close(fd);
	return map;
}

void remove_directory(void)
{
	char line[PATH_MAX];

	snprintf(line, sizeof(line), "rm -rf %s", directory);
	unsetenv("LD_PRELOAD");
	CHECK_EQ(system(line), 0);
}

void find_build(void)
{
	static char path[PATH_MAX];
	const char *named = getenv("GPUSEG_TEST_BUILD");

	build = realpath(named ? named : "build", path);
	CHECK(build, "%s: %s", named ? named : "build", strerror(errno));
}

pid_t start_selftest(const struct plant *p, const char *library)
{
	static char program[PATH_MAX];
	const bool copied = p->around >= NO_WATCHDOG && p->around < AROUND_OWN;

	snprintf(program, sizeof(program), "%s/gpuseg-selftest", copied ? directory : build);
	if (copied)
		copy_program("gpuseg-selftest");
	if (copied && library && p->around != NO_LIBRARY)
		copy_program(library);
	if (p->around == IDLE_WATCHDOG)
		write_file("gpuseg-watchdog", "#!/bin/sh\nexit 0\n", 0755);
	if (p->around == DEAF_WATCHDOG)
		write_file("gpuseg-watchdog", "#!/bin/sh\nexec sleep 100\n", 0755);
	return start(program, (const char *const[]){program, "--json", "--evidence", path_of("evidence"), NULL},
		     "said");
}

/* That of a test that ran; of one that did not there is none. */
static void check_result(const struct plant *p, const char *of)
{
	static char result[TEXT_MAX];
	char line[160];

	read_file("state/gpuseg/result", result);
	if (p->status == 3) {
		CHECK(result[0] == 0, "a result where nothing was tested: %s", result);
		return;
	}
	snprintf(line, sizeof(line), "selftest: 1\nsimulated: yes\n%slevel: ", of);
	CHECK_CONTAINS(result, line);
	snprintf(line, sizeof(line), "\nlevel: %s\n", p->level);
	CHECK(p->level[0] == 0 || strstr(result, line), "no \"%s\": %s", line, result);
	snprintf(line, sizeof(line), "\nexit_status: %d\nsentence: ", p->status);
	CHECK_CONTAINS(result, line);
}

static void check_evidence(const char *row)
{
	static char evidence[TEXT_MAX];
	const char *hash;

	read_file("evidence", evidence);
	CHECK_CONTAINS(evidence, row);
	CHECK(!strstr(evidence, "secret"), "a UUID in the evidence");
	CHECK(!strstr(evidence, directory), "a path in the evidence: %s", evidence);
	hash = strstr(evidence, "\"program_sha256\": \"");
	CHECK(hash && strspn(hash + strlen("\"program_sha256\": \""), "0123456789abcdef") == 64, "no hash");
}

void check_selftest(const struct plant *p, pid_t selftest, const char *of)
{
	const int status = wait_for(selftest);
	static char said[TEXT_MAX];
	char row[64], level[64];

	read_file("said", said);
	CHECK(status == p->status, "exit status %d, not %d: %s", status, p->status, said);
	snprintf(level, sizeof(level), "\"level\": \"%s\"", p->level);
	CHECK(p->level[0] == 0 || strstr(said, level), "not %s: %s", level, said);
	if (p->row[0]) {
		snprintf(row, sizeof(row), "\"id\": \"%s\", \"verdict\": \"%s\"", p->row, p->verdict);
		CHECK(strstr(said, row), "not %s: %s", row, said);
		check_evidence(row);
	} else {
		CHECK(said[0] && strchr(said, '\n') == said + strlen(said) - 1, "not one line: %s", said);
	}
	check_result(p, of);
}

void run_plants(const struct plant *plants, size_t count, void (*run)(const struct plant *p))
{
	const char *const named = getenv("GPUSEG_TEST_EVERY");
	const size_t every = named ? strtoul(named, NULL, 10) : 1;
	pid_t pids[32] = {0};
	size_t started = 0, ended = 0;
	unsigned failed = 0;

	find_build();
	CHECK(every > 0 && count <= ARRAY_LENGTH(pids));
	while (ended < (count + every - 1) / every) {
		int status = 0;
		pid_t pid;

		for (; started < count && started / every - ended < AT_ONCE; started += every) {
			pids[started] = fork();
			if (pids[started] == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				run(&plants[started]);
				exit(CHECK_PASSED);
			}
		}
		pid = waitpid(-1, &status, 0);
		CHECK(pid > 0);
		ended++;
		for (size_t i = 0; status != 0 && i < count; i++) {
			if (pids[i] != pid)
				continue;
			failed++;
			fprintf(stderr, "not found: driver %s, runtime %s, around %d\n",
				plants[i].driver ? plants[i].driver : "-", plants[i].runtime ? plants[i].runtime : "-",
				plants[i].around);
		}
	}
	CHECK(failed == 0, "%u of %zu", failed, count);
}
