/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - the one way of saying something. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

/* What number 2 stood for when this was loaded. */
static struct {
	bool open;
	dev_t device;
	ino_t inode;
} at_load;

__attribute__((constructor)) static void look_at_stderr(void)
{
	struct stat st;

	at_load.open = fstat(STDERR_FILENO, &st) == 0;
	at_load.device = st.st_dev;
	at_load.inode = st.st_ino;
}

/*
 * A program may close number 2 and get it for a file of its own, which a line of ours would spoil. A program that sends
 * its messages elsewhere looks the same, unless it is to a terminal; then nothing is said.
 */
static bool stderr_is_open(void)
{
	struct stat st;

	if (at_load.open && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == at_load.device && st.st_ino == at_load.inode)
		return true;
	return isatty(STDERR_FILENO);
}

void say(const char *format, ...)
{
	char line[512];
	va_list ap;
	int n, more;

	if (!stderr_is_open())
		return;
	n = snprintf(line, sizeof(line), "gpuseg: %s[%d]: ", program_invocation_short_name, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(line) - 2)
		return;
	va_start(ap, format);
	more = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
	va_end(ap);
	if (more < 0)
		return;
	n += more;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* Not through stdio: the program may hold its lock. Where nobody reads, nothing can be done about it. */
	(void)!syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
}
