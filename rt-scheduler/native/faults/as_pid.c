/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-as-pid - runs a program under a given process id, to test the handling of a reused pid.
 *
 *   gpuseg-as-pid PID PROGRAM [ARGUMENT]...
 *
 * The kernel assigns the pid through clone3(set_tid). This needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, and the pid
 * must be free: its last owner must have been reaped. Exits as the program does. When this program is killed, the other
 * one is, too. Status 1: the pid is not available; 127: the program does not start.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"

enum { EXIT_NOT_STARTED = 127, TRIES = 200 };

int main(int argc, char **argv)
{
	pid_t pid, wanted;
	long child = -1;
	int status;

	program_name = "gpuseg-as-pid";
	if (argc < 3)
		usage_error("give a pid and a program: gpuseg-as-pid 4711 /bin/sleep 1");
	wanted = (pid_t)option_integer("PID", argv[1], 2, INT32_MAX);
	struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1};

	/* Its last owner may still be a zombie: wait some 200 ms until it is reaped. */
	for (int i = 0; i < TRIES && child < 0; i++) {
		child = syscall(SYS_clone3, &arguments, sizeof(arguments));
		if (child < 0 && errno != EEXIST)
			break;
		if (child < 0)
			sleep_until(now_ns() + NS_PER_MS, NULL);
	}
	if (child < 0) {
		message("pid %d: %s; choose a free one below /proc/sys/kernel/pid_max, with CAP_CHECKPOINT_RESTORE",
			wanted, strerror(errno));
		return EXIT_FAILURE;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[2], argv + 2);
		message("%s: %s", argv[2], strerror(errno));
		_exit(EXIT_NOT_STARTED);
	}
	do {
		pid = waitpid((pid_t)child, &status, 0);
	} while (pid < 0 && errno == EINTR);
	if (pid < 0 || !WIFEXITED(status))
		return pid < 0 ? EXIT_FAILURE : 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}
