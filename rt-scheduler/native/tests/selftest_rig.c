/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/selftest_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/check.h"

enum { AT_ONCE = 3 };

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

void copy_program(const char *name)
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

void run_all(size_t count, void (*run)(size_t index), const char *(*name)(size_t index))
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
				run(started);
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
			fprintf(stderr, "not found: %s\n", name(i));
		}
	}
	CHECK(failed == 0, "%u of %zu", failed, count);
}
