/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *program_name = "gpuseg";

static bool patient = true;

void message_never_waits(void)
{
	struct stat file;
	int own;

	patient = false;
	if (fstat(STDERR_FILENO, &file) != 0 || !S_ISFIFO(file.st_mode))
		return;
	/* Opened anew: O_NONBLOCK on this one would be that of every process that shares it. */
	own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (own >= 0) {
		dup2(own, STDERR_FILENO);
		close(own);
	}
}

static void vmessage(const char *format, va_list arguments)
{
	char line[1024];
	int prefix = snprintf(line, sizeof(line), "%s: ", program_name);
	int body = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, arguments);
	size_t length = (size_t)prefix + (body < 0 ? 0 : (size_t)body);

	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	if (!patient && (send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != ENOTSOCK))
		return;
	/* One write per line, so that lines of several processes on one terminal do not mix. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written; /* an error cannot be reported anywhere */
}

void message(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vmessage(format, arguments);
	va_end(arguments);
}

void usage_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vmessage(format, arguments);
	va_end(arguments);
	exit(EXIT_USAGE);
}

void sleep_until(int64_t time_ns, const volatile int *stop)
{
	const struct timespec until = to_timespec(time_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		if (stop && *stop)
			return;
}

int parse_duration(const char *text, int64_t *ns)
{
	static const struct {
		const char *suffix;
		int64_t ns;
	} units[] = {{"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
	const char *p = text;
	int64_t whole = 0, fraction = 0, scale = 1;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *p - '0', &whole))
			return -ERANGE;
	if (*p == '.') {
		if (*++p < '0' || *p > '9')
			return -EINVAL;
		for (; *p >= '0' && *p <= '9'; p++) {
			if (scale == NS_PER_S)
				return -ERANGE;
			fraction = fraction * 10 + (*p - '0');
			scale *= 10;
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		int64_t total, part;

		if (strcmp(p, units[i].suffix) != 0)
			continue;
		/* Fraction and unit are at most 10^9 each, so their product fits. */
		part = fraction * units[i].ns;
		if (part % scale != 0)
			return -ERANGE;
		if (__builtin_mul_overflow(whole, units[i].ns, &total) ||
		    __builtin_add_overflow(total, part / scale, &total))
			return -ERANGE;
		*ns = total;
		return 0;
	}
	return -EINVAL;
}

int64_t option_duration(const char *option, const char *text, int64_t minimum_ns, int64_t maximum_ns)
{
	int64_t ns = 0;
	int rc = parse_duration(text, &ns);

	if (rc == -EINVAL) {
		const char *end = text + strspn(text, "0123456789.");

		if (end != text && *end == '\0')
			usage_error("%s: \"%s\" has no unit; write it as %sms (ns, us, ms and s are known)", option,
				    text, text);
		usage_error("%s: \"%s\" is not a duration; write it like 250us, 1.5ms or 2s", option, text);
	}
	if (rc != 0)
		usage_error("%s: \"%s\" is too large or finer than 1ns", option, text);
	if (ns < minimum_ns || ns > maximum_ns)
		usage_error("%s: \"%s\" is out of range; it must be %" PRId64 "ns to %" PRId64 "ns", option, text,
			    minimum_ns, maximum_ns);
	return ns;
}

int64_t option_integer(const char *option, const char *text, int64_t minimum, int64_t maximum)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < minimum || value > maximum)
		usage_error("%s: \"%s\" is not an integer from %" PRId64 " to %" PRId64, option, text, minimum,
			    maximum);
	return value;
}

struct scheduling option_scheduling(const char *option, const char *text)
{
	struct scheduling result = {false, 0};

	if (strcmp(text, "other") == 0)
		return result;
	if (strncmp(text, "fifo:", 5) != 0)
		usage_error("%s: \"%s\" is unknown; use fifo:PRIORITY or other", option, text);
	result.fifo = true;
	result.priority = (int)option_integer(option, text + 5, 1, 99);
	return result;
}

int apply_scheduling(struct scheduling scheduling)
{
	const struct sched_param parameters = {.sched_priority = scheduling.fifo ? scheduling.priority : 0};

	/* sched_setscheduler(2) takes a thread id: 0 is the calling thread. */
	return sched_setscheduler(0, scheduling.fifo ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0 ? 0 : -errno;
}

int pin_to_cpu(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

int lock_memory(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	struct rlimit limit = {0};

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	if (!(data[0].effective & 1U << CAP_IPC_LOCK) &&
	    (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY))
		return -EPERM;
	return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? 0 : -errno;
}

/* Reads a small file whole; its length, with a 0 behind it. */
static ssize_t read_text(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

uint64_t process_start_ticks(pid_t pid)
{
	char path[32], text[1024];
	const char *p;
	char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_text(path, text, sizeof(text)) <= 0)
		return 0;
	/* The command name (field 2) may hold blanks and parentheses: count from the last ')'. */
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, &end, 10) : 0;
}

bool process_advances(pid_t pid, uint64_t *ran_ns)
{
	char path[32], text[1024];
	const char *state;
	uint64_t ran = 0;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	if (read_text(path, text, sizeof(text)) > 0)
		ran = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	state = strrchr(text, ')');
	if (ran == *ran_ns)
		return state && strncmp(state, ") R", 3) == 0;
	*ran_ns = ran;
	return true;
}

int pidfd_of(pid_t pid)
{
	/*
	 * pidfd_open(2), since Linux 5.3; sets close-on-exec. Called by number, because older C libraries lack a
	 * wrapper.
	 */
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd >= 0 ? (int)fd : -errno;
}

int unix_address(struct sockaddr_un *address, const char *directory, const char *name)
{
	int length;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path, sizeof(address->sun_path), "%s%s%s", directory, name ? "/" : "",
			  name ? name : "");
	return length < 0 || (size_t)length >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}
