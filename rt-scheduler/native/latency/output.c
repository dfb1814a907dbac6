/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "latency/report.h"

static int refuse(const struct output *o)
{
	message("%s %s: %s", o->option, o->path, strerror(errno));
	return -1;
}

static FILE *open_output(struct output *o)
{
	struct stat file;
	int fd;

	o->temporary[0] = '\0';
	if (stat(o->path, &file) == 0 && !S_ISREG(file.st_mode)) {
		fd = open(o->path, O_WRONLY | O_CLOEXEC);
	} else {
		const int length = snprintf(o->temporary, sizeof(o->temporary), "%s.%d.part", o->path, (int)getpid());

		if (length < 0 || (size_t)length >= sizeof(o->temporary)) {
			errno = ENAMETOOLONG;
			o->temporary[0] = '\0';
			return NULL;
		}
		fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0)
			o->temporary[0] = '\0';
	}
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static void discard(struct output *o)
{
	if (o->temporary[0])
		unlink(o->temporary);
}

int output_check(struct output *o, const char *option, const char *path)
{
	FILE *file;

	o->option = option;
	o->path = path;
	file = open_output(o);
	if (!file)
		return refuse(o);
	fclose(file);
	discard(o);
	return 0;
}

int output_write(struct output *o, const struct report *r, void (*write)(const struct report *, FILE *))
{
	FILE *file = open_output(o);
	bool good;

	if (!file)
		return refuse(o);
	write(r, file);
	good = fflush(file) == 0 && !ferror(file);
	if (good && o->temporary[0] && fsync(fileno(file)) != 0)
		good = false;
	if (!good) {
		const int error = errno;

		fclose(file);
		discard(o);
		errno = error;
		return refuse(o);
	}
	if (fclose(file) != 0 || (o->temporary[0] && rename(o->temporary, o->path) != 0)) {
		const int error = errno;

		discard(o);
		errno = error;
		return refuse(o);
	}
	return 0;
}

static int write_to(const char *directory, const char *name, const char *text)
{
	char path[4096];
	const int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	const int fd = length < (int)sizeof(path) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	bool good;

	if (fd < 0)
		return 0;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

int trace_stop(const char *directory, const char *text)
{
	return write_to(directory, "trace_marker", text) && write_to(directory, "tracing_on", "0\n");
}
