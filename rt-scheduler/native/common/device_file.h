/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a descriptor of another process is, before anything is done with it. The name of its link in /proc says nothing:
 * a process with a mount namespace of its own can name any file /dev/nvidiactl, also one of a FUSE server that never
 * answers. So its device number is looked at, first through the link (nothing is opened or duplicated, and the server
 * of a file is not asked: AT_STATX_DONT_SYNC), then on the duplicate. Header only, because the libraries that use it
 * are also compiled alone. Any thread.
 */
#ifndef GPUSEG_DEVICE_FILE_H
#define GPUSEG_DEVICE_FILE_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first: statx is declared with it alone"
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* A character device. */
struct device_number {
	unsigned major;
	unsigned minor;
};

/*
 * Exported by a driver's stand-in for tests, which is preloaded into this very process: 1 = the link in /proc leads to
 * a file that it made and that its ioctl serves. Who may preload a library into this process may do anything anyway.
 */
__attribute__((weak)) int gpuseg_standin_owns(const char *link);

static inline bool device_file_is_standin(const char *link)
{
	return gpuseg_standin_owns != NULL && gpuseg_standin_owns(link) == 1;
}

/* The major number of a driver, which may have one of several names in /proc/devices; -ENODEV if none is loaded. */
static inline int device_file_major(const char *const *names, unsigned count)
{
	FILE *file = fopen("/proc/devices", "re");
	char line[128], name[100];
	int major = -ENODEV, n;

	if (file == NULL)
		return -errno;
	while (major < 0 && fgets(line, sizeof(line), file) != NULL && strncmp(line, "Block", 5) != 0)
		if (sscanf(line, "%d %99s", &n, name) == 2)
			for (unsigned i = 0; i < count && major < 0; i++)
				if (strcmp(name, names[i]) == 0)
					major = n;
	fclose(file);
	return major;
}

/* The number of this process's own device file; 0 or -errno. */
static inline int device_file_own(const char *path, struct device_number *number)
{
	struct statx file;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &file) != 0)
		return -errno;
	if (!S_ISCHR(file.stx_mode))
		return -ENODEV;
	*number = (struct device_number){.major = file.stx_rdev_major, .minor = file.stx_rdev_minor};
	return 0;
}

/* 0: a link in /proc leads to this device (NULL: only to a stand-in's). -ENOTTY: to something else. Else -errno. */
static inline int device_file_check(const char *link, const struct device_number *number)
{
	struct statx file;

	if (device_file_is_standin(link))
		return 0;
	/* not access(2) or stat(2): both may ask the server of the file */
	if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE, &file) != 0)
		return -errno;
	/* Where a stand-in answers, the driver's own devices are foreign: nothing meant for it may reach a real GPU. */
	if (gpuseg_standin_owns != NULL)
		return -ENOTTY;
	return number != NULL && S_ISCHR(file.stx_mode) && file.stx_rdev_major == number->major &&
			       file.stx_rdev_minor == number->minor
		       ? 0
		       : -ENOTTY;
}

/*
 * A duplicate of another process's descriptor, if that is this device. -ENOTTY: it is something else. -EBADF: it is not
 * open. Other results: -errno of pidfd_getfd.
 */
static inline int device_file_duplicate(int pid, int pidfd, int remote, const struct device_number *number)
{
	char link[64];
	int fd, looked;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, remote);
	looked = device_file_check(link, number);
	if (looked == -ENOENT)
		return -EBADF;
	if (looked != 0)
		return looked == -EACCES || looked == -EPERM ? looked : -ENOTTY;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, remote, 0);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (device_file_check(link, number) == 0)
		return fd;
	/* Exchanged after the first look. It stays open: to close a file asks its server, which may never answer. */
	return -ENOTTY;
}

/*
 * Whether a link leads to a memory file (memfd): these are the only files of their file system. A file of another one
 * may have the same name, and block who opens, reads or closes it.
 */
static inline bool device_file_is_memfd(const char *link)
{
	static _Thread_local struct statx own;
	struct statx file;

	if (own.stx_mode == 0) {
		char path[64];
		const int fd = (int)syscall(SYS_memfd_create, "gpuseg-look", 1u /* MFD_CLOEXEC */);

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fd < 0 || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &own) != 0)
			own.stx_mode = 0;
		if (fd >= 0)
			close(fd);
		if (own.stx_mode == 0)
			return false;
	}
	return statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0 && S_ISREG(file.stx_mode) &&
	       file.stx_dev_major == own.stx_dev_major && file.stx_dev_minor == own.stx_dev_minor;
}

#endif
