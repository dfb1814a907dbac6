/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuseg-rm-fake.so - preloaded, or loaded by JNA in place of libc, it simulates /dev/nvidiactl for tests: open
 * returns a connection to gpuseg-rm-standin, an ioctl of type 'F' on such a connection is sent there, and readlink of
 * its entry in /proc/<pid>/fd returns /dev/nvidiactl. All other calls go to libc. See rm_wire.h.
 *
 * What the kernel sees is a socket. With GPUSEG_RM_SHADOW=DEVICE each open also opens that device, and each ioctl is
 * repeated on it with the results in place. It fails there, but gpuseg-observer sees what it would see of a driver.
 */
#define _GNU_SOURCE
#include "gpuseg_rm.h"
#include "rm_wire.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICE "/dev/nvidiactl"
#define REPLY_TIMEOUT_MS 60000
#define SHADOW_ENV "GPUSEG_RM_SHADOW"
#define SHADOWS_MAX 1024
#define KNOWN_MAX 1024

static int shadow_of[SHADOWS_MAX]; /* by descriptor of the connection; 0 = none */
/* Inodes of sockets that are connections: the kernel numbers sockets upwards, and its list of them is long. */
static uint64_t known[KNOWN_MAX];

/* Hash (FNV-1a) of the stand-in's path: two stand-ins on one machine are two separate drivers. */
static uint32_t standin_number(void)
{
	const char *path = getenv(RM_WIRE_ENV);
	uint32_t hash = 2166136261u;

	while (path && *path)
		hash = (hash ^ (uint8_t)*path++) * 16777619u;
	return hash;
}

static int connect_standin(void)
{
	static int number;
	const char *path = getenv(RM_WIRE_ENV);
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct sockaddr_un self = {.sun_family = AF_UNIX};
	int fd;
	int n;

	if (!path || strlen(path) >= sizeof(to.sun_path)) {
		errno = ENOENT;
		return -1;
	}
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	n = snprintf(self.sun_path + 1, sizeof(self.sun_path) - 1, "%s%08x-%d-%d", RM_WIRE_NAME, standin_number(),
		     (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
	if (bind(fd, (struct sockaddr *)&self, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* The connection gets the number under which the observer saw the device opened; the device moves to another. */
static int open_with_shadow(const char *device)
{
	const int fd = (int)syscall(SYS_openat, AT_FDCWD, device, O_RDWR | O_CLOEXEC);
	const int shadow = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	const int connection = connect_standin();

	if (connection < 0 || shadow < 0 || fd >= SHADOWS_MAX || dup3(connection, fd, O_CLOEXEC) < 0) {
		const int error = errno;

		if (fd >= 0)
			close(fd);
		if (shadow >= 0)
			close(shadow);
		if (connection >= 0)
			close(connection);
		errno = error;
		return -1;
	}
	close(connection);
	shadow_of[fd] = shadow;
	return fd;
}

static int open_any(int dir, const char *path, int flags, mode_t mode)
{
	if (strcmp(path, DEVICE) == 0) {
		const char *device = getenv(SHADOW_ENV);

		return device ? open_with_shadow(device) : connect_standin();
	}
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = (mode_t)va_arg(list, int);
	va_end(list);
	return open_any(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = (mode_t)va_arg(list, int);
	va_end(list);
	return open_any(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

static int is_standin(int fd)
{
	struct sockaddr_un name;
	socklen_t size = sizeof(name);

	memset(&name, 0, sizeof(name));
	return getsockname(fd, (struct sockaddr *)&name, &size) == 0 && name.sun_family == AF_UNIX &&
	       name.sun_path[0] == 0 && strncmp(name.sun_path + 1, RM_WIRE_NAME, strlen(RM_WIRE_NAME)) == 0;
}

static int exchange(int fd, const struct rm_wire_request *request, struct rm_wire_reply *reply)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)request, .iov_len = sizeof(*request)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
	struct cmsghdr *c = (struct cmsghdr *)room.bytes;
	struct pollfd ready;
	int pair[2];
	ssize_t n;

	memset(&room, 0, sizeof(room));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
	n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	close(pair[1]);
	if (n < 0) {
		close(pair[0]);
		errno = ENODEV;
		return -1;
	}
	ready = (struct pollfd){.fd = pair[0], .events = POLLIN};
	while ((n = poll(&ready, 1, REPLY_TIMEOUT_MS)) < 0 && errno == EINTR)
		;
	n = n > 0 ? recv(pair[0], reply, sizeof(*reply), 0) : 0;
	close(pair[0]);
	if (n != (ssize_t)sizeof(*reply)) {
		errno = ENODEV; /* the stand-in has ended, or the object was freed during the call */
		return -1;
	}
	if (reply->error) {
		errno = reply->error;
		return -1;
	}
	return 0;
}

static int escape(int fd, unsigned long number, unsigned long size, void *arg)
{
	struct rm_wire_request request = {.magic = RM_WIRE_MAGIC, .number = (uint32_t)number};
	struct rm_wire_reply reply;
	void *params = NULL;

	request.block_size = (uint32_t)(size < RM_WIRE_BLOCK ? size : RM_WIRE_BLOCK);
	memcpy(request.block, arg, request.block_size);
	if (number == GPUSEG_RM_ESC_CONTROL) {
		struct gpuseg_rm_control c;

		memcpy(&c, arg, sizeof(c));
		params = (void *)(uintptr_t)c.params;
		request.params_size = c.params_size;
	} else if (number == GPUSEG_RM_ESC_ALLOC) {
		struct rm_wire_alloc a;

		memcpy(&a, arg, sizeof(a));
		params = (void *)(uintptr_t)a.params;
		request.params_size = a.params_size;
	}
	if (request.params_size > RM_WIRE_PARAMS) {
		errno = EINVAL;
		return -1;
	}
	if (params)
		memcpy(request.params, params, request.params_size);
	if (exchange(fd, &request, &reply) != 0)
		return -1;
	memcpy(arg, reply.block, request.block_size);
	if (params)
		memcpy(params, reply.params, request.params_size);
	return 0;
}

EXPORT int ioctl(int fd, unsigned long number, ...)
{
	va_list list;
	void *arg;

	va_start(list, number);
	arg = va_arg(list, void *);
	va_end(list);
	if (((number >> 8) & 0xff) == 'F' && arg && is_standin(fd)) {
		const int result = escape(fd, number & 0xff, (number >> 16) & 0x3fff, arg);

		if (result == 0 && fd < SHADOWS_MAX && shadow_of[fd] > 0)
			syscall(SYS_ioctl, shadow_of[fd], number, arg); /* fails: the device is not a GPU's */
		return result;
	}
	return (int)syscall(SYS_ioctl, fd, number, arg);
}

static ssize_t show_device(char *buffer, size_t size)
{
	const size_t n = size < strlen(DEVICE) ? size : strlen(DEVICE);

	memcpy(buffer, DEVICE, n);
	return (ssize_t)n;
}

/* Not through the exported name: that may lead to the C library's where this library was loaded by JNA. */
static ssize_t shown_link(const char *path, char *buffer, size_t size)
{
	ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);
	char line[512];
	char inode[64];
	char name[64];
	uint64_t number;
	FILE *file;

	if (n < 10 || strncmp(path, "/proc/", 6) != 0 || strncmp(buffer, "socket:[", 8) != 0 || n - 9 >= 60)
		return n;
	snprintf(inode, sizeof(inode), " %.*s ", (int)(n - 9), buffer + 8);
	number = strtoull(inode, NULL, 10);
	if (__atomic_load_n(&known[number % KNOWN_MAX], __ATOMIC_RELAXED) == number)
		return show_device(buffer, size);
	snprintf(name, sizeof(name), "@%s%08x-", RM_WIRE_NAME, standin_number());
	file = fopen("/proc/net/unix", "re");
	if (!file)
		return n;
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, inode) && strstr(line, name)) {
			__atomic_store_n(&known[number % KNOWN_MAX], number, __ATOMIC_RELAXED);
			n = show_device(buffer, size);
			break;
		}
	}
	fclose(file);
	return n;
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size)
{
	return shown_link(path, buffer, size);
}

/* See common/device_file.h. */
EXPORT int gpuseg_standin_owns(const char *link);
EXPORT int gpuseg_standin_owns(const char *link)
{
	char raw[64], shown[64];
	const ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, raw, sizeof(raw));

	/* the name of a socket is the kernel's: no file can have it */
	return n > 8 && memcmp(raw, "socket:[", 8) == 0 &&
	       shown_link(link, shown, sizeof(shown)) == (ssize_t)strlen(DEVICE) &&
	       memcmp(shown, DEVICE, strlen(DEVICE)) == 0;
}
