/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpuseg doctor and the daemon read of the last self-test: lines of KEY: VALUE. Root's is at ROOT_DIRECTORY, a
 * user's in his own state directory. They believe a file of root or of their own user that no other one may write.
 * The Java counterpart is SelftestResult.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"

/* not the daemon's state directory, which belongs to the daemon's user */
#define ROOT_DIRECTORY "/var/lib/gpuseg-selftest"
#define STANDIN_ENV "GPUSEG_SELFTEST_STATE" /* where a stand-in's result is left; without it, it is not */
#define NAME "result"

/* False: there is no such directory. */
static bool directory_of(const struct machine *m, char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length;

	if (m->standin)
		length = getenv(STANDIN_ENV) ? snprintf(path, size, "%s", getenv(STANDIN_ENV)) : 0;
	else if (geteuid() == 0)
		length = snprintf(path, size, "%s", ROOT_DIRECTORY);
	else if (state && state[0] == '/')
		length = snprintf(path, size, "%s/gpuseg", state);
	else
		length = home && home[0] == '/' ? snprintf(path, size, "%s/.local/state/gpuseg", home) : 0;
	return length > 0 && (size_t)length < size;
}

static int make_directories(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return mkdir(path, 0755) != 0 && errno != EEXIST ? -errno : 0;
}

static void line(FILE *file, const char *key, const char *value)
{
	fprintf(file, "%s: ", key);
	for (const char *c = value; *c; c++)
		fputc((unsigned char)*c < ' ' ? ' ' : *c, file);
	fputc('\n', file);
}

static int write_result(int at, const char *name)
{
	const int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	char number[16];
	bool wrong;

	if (!file)
		return -errno;
	snprintf(number, sizeof(number), "%d", report.exit_status);
	line(file, "selftest", "1");
	line(file, "simulated", report.machine.standin ? "yes" : "no");
	line(file, "mechanism", driver->mechanism);
	line(file, "driver", report.machine.driver);
	line(file, "gpu", report.machine.known_as[0] ? report.machine.known_as : report.machine.model);
	line(file, "level", report.level);
	line(file, "exit_status", number);
	line(file, "sentence", report.sentence);
	/* whatever the umask is: another user's doctor reads root's */
	wrong = fchmod(fd, 0644) != 0 || fflush(file) != 0 || ferror(file);
	fclose(file);
	return wrong ? -EIO : 0;
}

void leave_result(void)
{
	char path[PATH_MAX];
	int at, rc;

	/* what did not run here proves nothing, and does not replace what was proven */
	if (!report.started || !directory_of(&report.machine, path, sizeof(path)))
		return;
	rc = make_directories(path);
	at = rc == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (rc == 0 && at < 0)
		rc = -errno;
	if (rc == 0) {
		unlinkat(at, NAME ".new", 0);
		rc = write_result(at, NAME ".new");
	}
	if (rc == 0 && renameat(at, NAME ".new", at, NAME) != 0)
		rc = -errno;
	if (at >= 0)
		close(at);
	if (rc != 0)
		message("%s: %s; gpuseg doctor will not know of this result", path, strerror(-rc));
}
