/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool beside(const char *name, int mode, char *path, size_t size)
{
	const ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + strlen(name) + 2 > size)
		return false;
	strcpy(slash + 1, name);
	return access(path, mode) == 0;
}

static bool page_says(const char *directory, const char *name, size_t offset)
{
	char path[128];
	uint32_t word = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &word, sizeof(word), (off_t)offset) != sizeof(word))
		word = 0;
	close(fd);
	return word != 0;
}

/* For what a process writes, as long as it goes on. */
static bool wait_for_page(const char *directory, const char *name, size_t offset, pid_t writer)
{
	const int64_t from_ns = now_ns();
	int64_t limit_ns = from_ns + END_LIMIT_NS;
	uint64_t ran_ns = 0;

	while (!page_says(directory, name, offset)) {
		if (process_advances(writer, &ran_ns))
			limit_ns = now_ns() + END_LIMIT_NS;
		if (now_ns() > limit_ns || now_ns() > from_ns + START_LIMIT_NS || stopping)
			return false;
		nap(2 * NS_PER_MS);
	}
	return true;
}

static pid_t start_watchdog(const char *program, const char *directory, pid_t holder)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", holder);
	pid = fork();
	if (pid == 0) {
		const int nowhere = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		execl(program, program, "--dir", directory, "--daemon-pid", number, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void remove_directory(const char *directory)
{
	static const char *const files[] = {GPUSEG_STATUS_NAME, GPUSEG_HELD_NAME, GPUSEG_WATCHDOG_NAME};
	char path[128];

	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* The holder is the helper's child; it has ended as soon as it is no longer a living process. */
static void give_back_by_watchdog(const char *program, const char *directory)
{
	struct order order = {.code = ORDER_HOLD, .child = CHILD_A};
	struct child *a = &children[CHILD_A];
	struct answer answer;
	pid_t holder = 0, watchdog = 0;
	bool runs, ended = false, own = false;
	int64_t killed_ns, took_ns, limit_ns;
	uint64_t ran_ns = 0;
	int status = 0;
	struct stand s;
	char value[96];

	snprintf(order.directory, sizeof(order.directory), "%s", directory);
	if (helper_call(&order, &answer) == 0 && answer.status == 0)
		holder = (pid_t)answer.value;
	if (holder <= 0 ||
	    !wait_for_page(directory, GPUSEG_STATUS_NAME, offsetof(struct gpuseg_status, reserved), holder)) {
		if (!stopping)
			row_set(ROW_WATCHDOG, DOES_NOT, "", "the process that should hold a child did not come to it");
	} else {
		s = watch_disabled(a, &children[CHILD_B], now_ns(), HOLD_NS);
		watchdog = start_watchdog(program, directory, holder);
		if (!s.stopped || !s.had_work)
			row_set(ROW_WATCHDOG, DOES_NOT, "", "the child that was to be held did not stand still");
		else if (watchdog < 0 || !wait_for_page(directory, GPUSEG_WATCHDOG_NAME,
							offsetof(struct gpuseg_watchdog, version), watchdog))
			row_set(ROW_WATCHDOG, DOES_NOT, "", "gpuseg-watchdog did not start to watch");
	}
	if (holder > 0)
		kill(holder, SIGKILL);
	if (report.rows[ROW_WATCHDOG].verdict != UNDECIDED || stopping)
		goto ends;
	killed_ns = now_ns();
	runs = progresses(a, 3);
	took_ns = now_ns() - killed_ns;
	limit_ns = now_ns() + END_LIMIT_NS;
	while (!ended && now_ns() < limit_ns) {
		if (process_advances(watchdog, &ran_ns) && now_ns() < killed_ns + START_LIMIT_NS)
			limit_ns = now_ns() + END_LIMIT_NS;
		ended = waitpid(watchdog, &status, WNOHANG) == watchdog;
		if (!ended)
			nap(2 * NS_PER_MS);
	}
	if (ended)
		watchdog = 0;
	if (!driver->notes_slices)
		own = true;
	else if (call(ORDER_GET_SLICE, CHILD_A, 0, &answer) == 0 && answer.status == 0)
		own = answer.value == a->own_us;
	snprintf(value, sizeof(value), "runs %.1f ms after its holder was killed", (double)took_ns / NS_PER_MS);
	if (!all_live() || over[0])
		goto ends;
	if (!runs)
		row_set(ROW_WATCHDOG, DOES_NOT, "", "the child stands still after its holder was killed");
	else if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		row_set(ROW_WATCHDOG, DOES_NOT, value, "the watchdog did not end with status 0");
	else if (!own)
		row_set(ROW_WATCHDOG, DOES_NOT, value, "the time slice is not the child's own again");
	else
		row_set(ROW_WATCHDOG, WORKS, value, "%s", driver->notes_slices ? "its own time slice, too" : "");
ends:
	if (watchdog > 0) {
		kill(watchdog, SIGKILL);
		waitpid(watchdog, NULL, 0);
	}
	/* whatever the watchdog did */
	call(ORDER_SWITCH, CHILD_A, 0, &answer);
	if (a->own_us)
		call(ORDER_SLICE, CHILD_A, a->own_us, &answer);
}

void check_watchdog(void)
{
	char program[PATH_MAX], directory[64] = "/dev/shm/gpuseg-selftest-XXXXXX";

	if (over[0])
		return;
	if (report.rows[ROW_DISABLE].verdict != WORKS || report.rows[ROW_ENABLE].verdict != WORKS) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "no child can be disabled and enabled");
		return;
	}
	if (driver->notes_slices && children[CHILD_A].own_us == 0) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "the driver does not tell a child's own time slice");
		return;
	}
	if (!beside("gpuseg-watchdog", X_OK, program, sizeof(program))) {
		/* no path: it may have a user's name in it */
		row_set(ROW_WATCHDOG, SKIPPED, "", "no gpuseg-watchdog beside gpuseg-selftest");
		return;
	}
	if (!mkdtemp(directory)) {
		row_set(ROW_WATCHDOG, SKIPPED, "", "%s: %s", directory, strerror(errno));
		return;
	}
	give_back_by_watchdog(program, directory);
	remove_directory(directory);
}
