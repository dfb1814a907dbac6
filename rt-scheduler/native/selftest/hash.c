/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DIGITS = 64 };

/* Starts sha256sum, which reads the file and writes to a pipe. Its end for reading, or -errno. */
static int start(int file, pid_t *pid)
{
	char *const arguments[] = {"sha256sum", NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	error = posix_spawn_file_actions_init(&actions);
	if (error == 0) {
		error = posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
		if (error == 0)
			error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		if (error == 0)
			error = posix_spawnp(pid, arguments[0], &actions, NULL, arguments, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (error != 0)
		close(ends[0]);
	return error != 0 ? -error : ends[0];
}

int file_hash(const char *path, char digits[DIGITS + 1])
{
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n;
	pid_t pid;
	int said;

	if (file < 0)
		return -errno;
	said = start(file, &pid);
	close(file);
	if (said < 0)
		return said;
	while (have < DIGITS && (n = read(said, digits + have, DIGITS - have)) > 0)
		have += (size_t)n;
	close(said);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	digits[have] = '\0';
	return have == DIGITS && strspn(digits, "0123456789abcdef") == DIGITS ? 0 : -EIO;
}
